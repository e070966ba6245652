//! Fetches a role's temporary credentials from AWS's Security Token Service (STS), or from an EC2 instance's metadata
//! service, version 2
//! (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html>).

use std::time::{Duration, SystemTime};

use http::Method;
use laneway_lanes::Lanes;
use serde::Deserialize;

use super::super::deadline::explained_when_slow;
use super::super::failure::CredentialFailure;
use super::super::presence::{Cloud, first_answer, is_there};
use super::super::request::{CredentialRequest, CredentialResponse, short};
use super::super::sigv4;
use super::source::{IamRole, InstanceRole, UnparsedKey, answered};
use crate::digest::hex_sha256;
use crate::timestamp::{now_s, rfc3339, to_rfc3339};
use crate::{AccessKey, ExpiringKey, xml};

const VERSION: &str = "2011-06-15";

/// If this machine's clock differs from the service's by at least this much, the difference may be why STS refused a
/// signature. Signatures are valid for 5 minutes
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html>).
const SKEW_MIN: Duration = Duration::from_secs(4 * 60);

/// Assumes a role with these credentials.
///
/// # Errors
/// Returns STS's error, or the reason why there is no answer.
pub(super) async fn assume_role(
    role: &IamRole,
    mfa_code: Option<&str>,
    base: &AccessKey,
    lanes: &Lanes,
) -> Result<ExpiringKey, String> {
    let mut fields = fields("AssumeRole", role);
    let duration = role.duration.map(|duration| duration.as_secs().to_string());
    let optional = [
        ("ExternalId", role.external_id.as_deref()),
        ("DurationSeconds", duration.as_deref()),
        ("Policy", role.policy.as_deref()),
        ("SerialNumber", role.mfa_serial.as_deref()),
        ("TokenCode", mfa_code),
    ];
    fields.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))));
    let ask =
        form(role, &fields)?.header("x-amz-content-sha256", &hex_sha256(form(role, &fields)?.body()))?;
    let signed = |time| {
        let mut parts = ask.parts()?;
        sigv4::sign(&mut parts, base, (&role.sts.region, "sts"), time)
            .map_err(|e| format!("the request for STS can't be signed: {e}"))?;
        // The lanes add `Host` themselves when they send the request.
        parts.headers.remove(http::header::HOST);
        Ok::<_, String>(ask.clone().with_headers(parts.headers))
    };
    let local = SystemTime::now();
    let answer = signed(local)?.send(lanes).await?;
    let Some(date) = date_of_refusal(&answer, local) else {
        return read(&answer, &ask.place(), (local, local));
    };
    tracing::info!(
        "this machine's clock differs from STS's clock, so the request is signed again with the time of STS"
    );
    read(&signed(date)?.send(lanes).await?, &ask.place(), (date, local))
}

/// Returns the service's time if the service refused a request and this machine's clock is wrong. The wrong clock may
/// be the reason for the refusal.
fn date_of_refusal(answer: &CredentialResponse, local: SystemTime) -> Option<SystemTime> {
    let date = httpdate::parse_http_date(answer.headers.get("date")?.to_str().ok()?).ok()?;
    let skew = date.duration_since(local).unwrap_or_else(|earlier| earlier.duration());
    (answer.status.is_client_error() && skew >= SKEW_MIN).then_some(date)
}

/// Assumes a role with a token of an identity provider that the role trusts.
///
/// # Errors
/// As for [`assume_role`].
pub(super) async fn assume_role_with_web_identity(
    role: &IamRole,
    token: &str,
    lanes: &Lanes,
) -> Result<ExpiringKey, String> {
    let mut fields = fields("AssumeRoleWithWebIdentity", role);
    fields.push(("WebIdentityToken", token.to_owned()));
    let ask = form(role, &fields)?;
    let local = SystemTime::now();
    read(&ask.send(lanes).await?, &ask.place(), (local, local))
}

fn fields(action: &str, role: &IamRole) -> Vec<(&'static str, String)> {
    let session = role.session_name.clone().unwrap_or_else(|| format!("laneway-{}", now_s()));
    vec![
        ("Action", action.to_owned()),
        ("Version", VERSION.to_owned()),
        ("RoleArn", role.arn.clone()),
        ("RoleSessionName", session),
    ]
}

fn form(role: &IamRole, fields: &[(&'static str, String)]) -> Result<CredentialRequest, String> {
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    CredentialRequest::form(&format!("{}/", role.sts.url), &fields)?.header("accept", "text/xml")
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumeRoleResponse {
    #[serde(alias = "AssumeRoleResult", alias = "AssumeRoleWithWebIdentityResult")]
    result: AssumeRoleResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumeRoleResult {
    credentials: StsCredentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

#[derive(Deserialize)]
struct StsErrorResponse {
    #[serde(rename = "Error")]
    error: StsError,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsError {
    code: String,
    #[serde(default)]
    message: String,
}

/// Reads the temporary credentials from an answer. The service states their expiration by its own clock. `date` is the
/// service's time and `local` this machine's time of the same moment.
fn read(
    answer: &CredentialResponse,
    place: &str,
    (date, local): (SystemTime, SystemTime),
) -> Result<ExpiringKey, String> {
    if !answer.status.is_success() {
        let said = match xml::read::<StsErrorResponse>(&answer.body) {
            Ok(StsErrorResponse { error }) => short(&format!("{}: {}", error.code, error.message)),
            Err(_) => answer.text(),
        };
        return Err(format!("{place} answered {}: {said}", answer.status.as_u16()));
    }
    // A document that can't be parsed may still contain secrets, so the error doesn't repeat it.
    let document: AssumeRoleResponse =
        xml::read(&answer.body).map_err(|_| format!("{place} sent an answer without credentials"))?;
    let handed = document.result.credentials;
    UnparsedKey {
        id: handed.access_key_id,
        secret: handed.secret_access_key,
        token: Some(handed.session_token),
        ends: Some(match rfc3339(&handed.expiration).and_then(|end| end.duration_since(date).ok()) {
            Some(left) if date != local => to_rfc3339(local + left),
            _ => handed.expiration,
        }),
    }
    .into_credential()
}

/// The lifetime of a session with the metadata service, in seconds. It is the maximum that the service permits.
const SESSION_S: &str = "21600";

/// The hint for a metadata service that accepts connections but never answers the request for a session. By default the
/// service's answers can travel only one network hop, and a container is two hops away
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>).
const HOPS: &str = "in a container it needs a hop limit of 2 (aws ec2 modify-instance-metadata-options \
                    --http-put-response-hop-limit 2); AWS_EC2_METADATA_DISABLED=true turns it off";

const ROLES: &str = "latest/meta-data/iam/security-credentials/";

/// Fetches the temporary credentials of the instance's role. Laneway treats the source as absent if no setting names
/// the metadata service and the service is unreachable, turned off or without a role. Any other failure is an error.
///
/// # Errors
/// Returns the reason why there are none.
pub(super) async fn instance_keys(
    name: &str,
    instance: &InstanceRole,
    lanes: &Lanes,
) -> Result<ExpiringKey, CredentialFailure> {
    let unusable = |cause: String| CredentialFailure::unusable(name, cause);
    let nothing = |cause: &str| {
        if instance.is_asked_for {
            return CredentialFailure::unusable(name, format!("{}: {cause}", instance.endpoint));
        }
        let last = format!("{name} ({cause})");
        CredentialFailure::Nothing(instance.tried.iter().cloned().chain([last]).collect())
    };
    let session = CredentialRequest::new(Method::PUT, &format!("{}/latest/api/token", instance.endpoint))
        .map_err(unusable)?;
    let session = session.header("x-aws-ec2-metadata-token-ttl-seconds", SESSION_S).map_err(unusable)?;
    let (host, port) = session.host();
    let begun = if instance.is_asked_for {
        explained_when_slow(name, HOPS, session.send(lanes)).await
    } else if is_there(host, port, Cloud::Aws).await {
        let begun = explained_when_slow(name, HOPS, first_answer(&session, lanes)).await;
        begun.ok_or_else(|| nothing("nothing answers in time"))?
    } else {
        return Err(nothing("nothing answers"));
    };
    let begun = begun.map_err(unusable)?;
    match begun.status.as_u16() {
        200..=299 => {}
        403 => return Err(nothing("it is turned off")),
        404 | 405 => return Err(nothing("it doesn't support sessions (IMDSv2)")),
        // On another cloud, a different server may answer at this address. So this answer means only that EC2's service
        // is absent.
        status @ 400..=499 => return Err(nothing(&format!("it answered {status}"))),
        status => return Err(unusable(format!("{} answered {status}", session.place()))),
    }
    let token = String::from_utf8_lossy(&begun.body).trim().to_owned();
    let asked = |path: &str| {
        let ask = CredentialRequest::get(&format!("{}/{path}", instance.endpoint))?;
        ask.header("x-aws-ec2-metadata-token", &token)
    };
    let roles = asked(ROLES).map_err(unusable)?;
    let listed = roles.send(lanes).await.map_err(unusable)?;
    if listed.status.as_u16() == 404 {
        return Err(nothing("the instance has no role"));
    }
    if !listed.status.is_success() {
        return Err(unusable(format!("{} answered {}", roles.place(), listed.status.as_u16())));
    }
    let role = listed.text().split_whitespace().next().map(str::to_owned);
    let role = role.ok_or_else(|| nothing("the instance has no role"))?;
    let keys = asked(&format!("{ROLES}{}", crate::encode::path(&role))).map_err(unusable)?;
    let answer = keys.send(lanes).await.map_err(unusable)?;
    answered(&answer, &keys.place()).map_err(unusable)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use laneway_testkit::{Scripted, answer as scripted};

    use super::super::source::StsEndpoint;
    use super::*;
    use crate::timestamp::iso8601_basic;

    fn answer(status: u16, body: &'static str) -> CredentialResponse {
        let status = StatusCode::from_u16(status).expect("a status");
        CredentialResponse { status, headers: http::HeaderMap::new(), body: body.into() }
    }

    fn now() -> (SystemTime, SystemTime) {
        (SystemTime::now(), SystemTime::now())
    }

    #[tokio::test]
    async fn a_wrong_clock_is_corrected_by_the_refusals_date() {
        for ahead_s in [7200, -7200] {
            let ahead = Duration::from_secs(i64::unsigned_abs(ahead_s));
            let there = move |time: SystemTime| if ahead_s < 0 { time - ahead } else { time + ahead };
            let server = Scripted::serve(move |asked| {
                let date = there(SystemTime::now());
                let hours = [date, date - Duration::from_secs(60)];
                let mut hours =
                    hours.map(|time| iso8601_basic(time).expect("a time").0[..11].to_owned()).into_iter();
                let signed = asked.header("x-amz-date").unwrap_or_default();
                if !hours.any(|hour| signed.starts_with(&hour)) {
                    let refusal =
                        "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>";
                    return scripted(403, &[("Date", &httpdate::fmt_http_date(date))], refusal);
                }
                let end = to_rfc3339(date + Duration::from_secs(3600));
                let keys = format!(
                    "<AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey>\
                     <SessionToken>T</SessionToken><Expiration>{end}</Expiration>"
                );
                let body = format!(
                    "<AssumeRoleResponse><AssumeRoleResult><Credentials>{keys}</Credentials>\
                     </AssumeRoleResult></AssumeRoleResponse>"
                );
                scripted(200, &[], body)
            });
            let role = IamRole {
                arn: "arn:aws:iam::1:role/r".to_owned(),
                session_name: None,
                external_id: None,
                duration: None,
                policy: None,
                mfa_serial: None,
                sts: StsEndpoint { url: server.url(), region: "us-east-1".to_owned() },
            };
            let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
            let key = assume_role(&role, None, &AccessKey::new("K", "S"), &lanes).await.expect("keys");
            // STS grants an hour by its own clock. By this machine's clock, the key must last an hour too.
            let left =
                key.expires_at.expect("an end").duration_since(SystemTime::now()).expect("a future end");
            assert!(left > Duration::from_secs(3000) && left <= Duration::from_secs(3600), "{left:?}");
            assert_eq!(server.asked().len(), 2);
        }
    }

    #[test]
    fn both_kinds_of_roles_are_read() {
        for kind in ["AssumeRole", "AssumeRoleWithWebIdentity"] {
            let text = format!(
                "<{kind}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{kind}Result><Credentials>\
                 <AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>\
                 <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></{kind}Result></{kind}Response>"
            );
            let credential = read(&answer(200, text.leak()), "https://sts", now()).expect("credentials");
            assert_eq!(credential.key.id, "A");
            assert_eq!(credential.key.session_token.as_deref(), Some("T"));
            assert!(credential.expires_at.is_some());
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_services_words() {
        let body = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User x is not authorized</Message></Error></ErrorResponse>";
        let error = read(&answer(403, body), "https://sts/", now()).expect_err("refused");
        assert_eq!(error, "https://sts/ answered 403: AccessDenied: User x is not authorized");
        let odd = read(&answer(200, "<x>hush</x>"), "https://sts/", now()).expect_err("odd");
        assert!(!odd.contains("hush"), "{odd}");
    }
}
