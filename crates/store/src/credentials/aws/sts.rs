//! Roles, as STS issues them.

use std::time::SystemTime;

use laneway_lanes::Lanes;
use serde::Deserialize;

use super::super::ask::{Answer, Ask, short};
use super::super::sigv4;
use super::source::Role;
use super::temporary::Temporary;
use crate::digest::hex_sha256;
use crate::timestamp::now_s;
use crate::{AccessKey, ExpiringKey, xml};

const VERSION: &str = "2011-06-15";

/// Assumes a role with these credentials.
///
/// # Errors
/// Returns STS's error, or the reason why there is no answer.
pub(super) async fn assume_role(
    role: &Role,
    mfa_code: Option<&str>,
    base: &AccessKey,
    lanes: &Lanes,
) -> Result<ExpiringKey, String> {
    let mut fields = fields("AssumeRole", role);
    let duration = role.duration.map(|duration| duration.as_secs().to_string());
    let optional = [
        ("ExternalId", role.external_id.as_deref()),
        ("DurationSeconds", duration.as_deref()),
        ("SerialNumber", role.mfa_serial.as_deref()),
        ("TokenCode", mfa_code),
    ];
    fields.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))));
    let ask =
        form(role, &fields)?.header("x-amz-content-sha256", &hex_sha256(form(role, &fields)?.body()))?;
    let mut parts = ask.parts()?;
    sigv4::sign(&mut parts, base, (&role.sts.region, "sts"), SystemTime::now())
        .map_err(|e| format!("the request for STS can't be signed: {e}"))?;
    // The lanes set this header again.
    parts.headers.remove(http::header::HOST);
    let answer = ask.clone().with_headers(parts.headers).send(lanes).await?;
    read(&answer, &ask.place())
}

/// Assumes a role with a token of an identity provider that the role trusts.
///
/// # Errors
/// As for [`assume_role`].
pub(super) async fn assume_role_with_web_identity(
    role: &Role,
    token: &str,
    lanes: &Lanes,
) -> Result<ExpiringKey, String> {
    let mut fields = fields("AssumeRoleWithWebIdentity", role);
    fields.push(("WebIdentityToken", token.to_owned()));
    let ask = form(role, &fields)?;
    read(&ask.send(lanes).await?, &ask.place())
}

fn fields(action: &str, role: &Role) -> Vec<(&'static str, String)> {
    let session = role.session_name.clone().unwrap_or_else(|| format!("laneway-{}", now_s()));
    vec![
        ("Action", action.to_owned()),
        ("Version", VERSION.to_owned()),
        ("RoleArn", role.arn.clone()),
        ("RoleSessionName", session),
    ]
}

fn form(role: &Role, fields: &[(&'static str, String)]) -> Result<Ask, String> {
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Ask::form(&format!("{}/", role.sts.url), &fields)?.header("accept", "text/xml")
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    #[serde(alias = "AssumeRoleResult", alias = "AssumeRoleWithWebIdentityResult")]
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Outcome {
    credentials: Handed,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Handed {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "Error")]
    error: RefusalCause,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RefusalCause {
    code: String,
    #[serde(default)]
    message: String,
}

fn read(answer: &Answer, place: &str) -> Result<ExpiringKey, String> {
    if !answer.status.is_success() {
        let said = match xml::read::<Refusal>(&answer.body) {
            Ok(Refusal { error }) => short(&format!("{}: {}", error.code, error.message)),
            Err(_) => answer.text(),
        };
        return Err(format!("{place} answered {}: {said}", answer.status.as_u16()));
    }
    // A document that can't be read may hold keys, so it isn't repeated.
    let document: Document = xml::read(&answer.body)
        .map_err(|_| format!("{place} answered something that holds no credentials"))?;
    let handed = document.result.credentials;
    Temporary {
        id: handed.access_key_id,
        secret: handed.secret_access_key,
        token: Some(handed.session_token),
        ends: Some(handed.expiration),
    }
    .into_credential()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn answer(status: u16, body: &'static str) -> Answer {
        let status = StatusCode::from_u16(status).expect("a status");
        Answer { status, headers: http::HeaderMap::new(), body: body.into() }
    }

    #[test]
    fn both_kinds_of_roles_are_read() {
        for kind in ["AssumeRole", "AssumeRoleWithWebIdentity"] {
            let text = format!(
                "<{kind}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{kind}Result><Credentials>\
                 <AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>\
                 <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></{kind}Result></{kind}Response>"
            );
            let credential = read(&answer(200, text.leak()), "https://sts").expect("credentials");
            assert_eq!(credential.key.id, "A");
            assert_eq!(credential.key.session_token.as_deref(), Some("T"));
            assert!(credential.expires_at.is_some());
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_services_words() {
        let body = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User x is not authorized</Message></Error></ErrorResponse>";
        let error = read(&answer(403, body), "https://sts/").expect_err("refused");
        assert_eq!(error, "https://sts/ answered 403: AccessDenied: User x is not authorized");
        let odd = read(&answer(200, "<x>hush</x>"), "https://sts/").expect_err("odd");
        assert!(!odd.contains("hush"), "{odd}");
    }
}
