//! Fetches access tokens, in exchange for a refresh token, a key's signature or another token (RFC 6749, RFC 7523, RFC
//! 8693). The tokens of the machine's own service account come from Google's metadata server or an agent that replaces
//! it (<https://cloud.google.com/compute/docs/access/authenticate-workloads#curl>).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use laneway_lanes::{ClientCertificate, Lanes};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::failure::CredentialFailure;
use super::super::presence::{Cloud, first_answer, is_there};
use super::super::request::{CredentialRequest, CredentialResponse, short};
use super::adc::{AuthorizedUser, ExternalAuthorizedUser, GOOGLE, MachineAccount, ServiceAccount};
use super::signer::AccountKey;
use crate::timestamp::{end_in, now_s, rfc3339};

/// The scope of all tokens, the same as gcloud's. It covers all services, so only the account's roles limit what a
/// token permits.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// The lifetime of a token that a service account's key signs. It is the maximum that Google accepts.
const LIFETIME: Duration = Duration::from_secs(3600);

/// A token, and the time of its expiration, if it has one.
#[derive(Clone)]
pub(in crate::credentials) struct Token {
    pub(in crate::credentials) access_token: String,
    pub(in crate::credentials) expires_at: Option<SystemTime>,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// Fetches a user's token with the login's refresh token.
pub(super) async fn of_user(user: &AuthorizedUser, lanes: &Lanes) -> Result<Token, String> {
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", &user.client_id),
        ("client_secret", &user.client_secret),
        ("refresh_token", &user.refresh_token),
    ];
    let ask = CredentialRequest::form(&user.token_uri, &fields)?;
    granted(&ask, &ask.send(lanes).await?).map_err(|cause| match cause.contains("invalid_grant") {
        true => {
            format!("{cause}; the login was revoked or has ended: run gcloud auth application-default login")
        }
        false => cause,
    })
}

/// Fetches a token with the refresh token of a login through another identity provider.
pub(super) async fn of_external_user(user: &ExternalAuthorizedUser, lanes: &Lanes) -> Result<Token, String> {
    let fields = [("grant_type", "refresh_token"), ("refresh_token", &*user.refresh_token)];
    let ask = CredentialRequest::form(&user.token_url, &fields)?;
    let ask = ask.header("authorization", &basic(&user.client_id, &user.client_secret))?;
    granted(&ask, &ask.send(lanes).await?)
}

/// Returns the `Authorization` header by which a client identifies itself.
pub(super) fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{id}:{secret}")))
}

/// Returns a service account's token. The account's key signs a JSON Web Token. Google's own cloud exchanges it for an
/// access token, and other clouds accept it directly.
pub(super) async fn of_service_account(
    account: &ServiceAccount,
    universe: &str,
    lanes: &Lanes,
) -> Result<Token, String> {
    let is_google = universe == super::adc::GOOGLE;
    let now_s = now_s();
    let ends_s = now_s + LIFETIME.as_secs();
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = &account.private_key_id {
        header["kid"] = Value::String(id.clone());
    }
    let mut claims = json!({"iss": account.client_email, "scope": SCOPE, "iat": now_s, "exp": ends_s});
    if is_google {
        claims["aud"] = Value::String(account.token_uri.clone());
    } else {
        claims["sub"] = Value::String(account.client_email.clone());
    }
    let assertion = AccountKey::of(account)?.json_web_token(&header, &claims)?;
    if !is_google {
        return Ok(Token { access_token: assertion, expires_at: Some(end_in(LIFETIME.as_secs())) });
    }
    let fields = [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &assertion)];
    let ask = CredentialRequest::form(&account.token_uri, &fields)?;
    granted(&ask, &ask.send(lanes).await?)
}

/// Fetches a service account's token with the token of an identity that may impersonate the account.
pub(super) async fn impersonated(
    url: &str,
    delegates: &[String],
    lifetime_s: Option<u64>,
    base: &Token,
    certificate: Option<&Arc<ClientCertificate>>,
    lanes: &Lanes,
) -> Result<Token, String> {
    let lifetime = format!("{}s", lifetime_s.unwrap_or(LIFETIME.as_secs()));
    let document = json!({"delegates": delegates, "scope": [SCOPE], "lifetime": lifetime});
    let authorization = format!("Bearer {}", base.access_token);
    let ask = CredentialRequest::json(url, &document)?
        .header("authorization", &authorization)?
        .showing(certificate);
    let answer = ask.send(lanes).await?;
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Document {
        access_token: String,
        expire_time: String,
    }
    if !answer.status.is_success() {
        return Err(format!("{} answered {}", ask.place(), refusal(&answer)));
    }
    let Document { access_token, expire_time } =
        answer.json().map_err(|e| format!("{}: {e}", ask.place()))?;
    let expires_at =
        rfc3339(&expire_time).ok_or_else(|| format!("{}: its expireTime isn't a valid time", ask.place()))?;
    let expires_at = Some(expires_at);
    Ok(Token { access_token, expires_at })
}

/// Reads the answer to a request for a token.
///
/// # Errors
/// Returns the server's error, or that the answer can't be read.
pub(super) fn granted(ask: &CredentialRequest, answer: &CredentialResponse) -> Result<Token, String> {
    if !answer.status.is_success() {
        return Err(format!("{} answered {}", ask.place(), refusal(answer)));
    }
    #[derive(Deserialize)]
    struct Document {
        access_token: String,
        /// The token's lifetime in seconds. Some servers write the number as a string.
        expires_in: Option<Value>,
    }
    let Document { access_token, expires_in } = answer.json().map_err(|e| format!("{}: {e}", ask.place()))?;
    let lasts_s = match &expires_in {
        Some(Value::Number(seconds)) => seconds.as_u64(),
        Some(Value::String(seconds)) => seconds.parse().ok(),
        _ => None,
    };
    Ok(Token { access_token, expires_at: lasts_s.map(end_in) })
}

/// Returns the server's error message, in the format of OAuth or of Google's other services.
pub(super) fn refusal(answer: &CredentialResponse) -> String {
    let status = answer.status.as_u16();
    let Ok(document) = answer.json::<Value>() else { return format!("{status}: {}", answer.text()) };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let words = match &document["error"] {
        Value::Object(error) => text(error.get("message").unwrap_or(&Value::Null)),
        Value::String(error) => match document["error_description"].as_str() {
            Some(description) => format!("{error}: {description}"),
            None => error.clone(),
        },
        _ => String::new(),
    };
    short(&format!("{status}: {}", if words.is_empty() { "no reason given" } else { &words }))
}

/// Fetches a token. If no setting names the server, Laneway treats a server that is unreachable or has no account as
/// absent. Any other failure is an error.
///
/// # Errors
/// Returns the reason why there is none.
pub(super) async fn of_machine(
    name: &str,
    machine: &MachineAccount,
    universe: &str,
    lanes: &Lanes,
) -> Result<Token, CredentialFailure> {
    let unusable = |cause: String| CredentialFailure::unusable(name, cause);
    let nothing = |cause: &str| {
        if machine.is_asked_for {
            return CredentialFailure::unusable(format!("GCE_METADATA_HOST ({})", machine.host), cause);
        }
        let last = format!("{name} ({cause})");
        CredentialFailure::Nothing(machine.tried.iter().cloned().chain([last]).collect())
    };
    let ask = ask(machine, "instance/service-accounts/default/token").map_err(unusable)?;
    let (host, port) = ask.host();
    let answer = if machine.is_asked_for {
        ask.send(lanes).await
    } else if is_there(host, port, Cloud::Google).await {
        first_answer(&ask, lanes).await.ok_or_else(|| nothing("nothing answers in time"))?
    } else {
        return Err(nothing("nothing answers"));
    };
    let answer = answer.map_err(unusable)?;
    // On another cloud, a different server may answer at this address. Google's server sends this header.
    if !machine.is_asked_for && !answer.headers.contains_key("metadata-flavor") {
        return Err(nothing("the server that answers isn't Google's"));
    }
    if answer.status.as_u16() == 404 {
        return Err(nothing("the machine has no service account"));
    }
    let token = granted(&ask, &answer).map_err(unusable)?;
    // The machine's cloud is checked only if the settings name a cloud other than Google's own.
    if universe != GOOGLE {
        let ask = self::ask(machine, "universe/universe-domain").map_err(unusable)?;
        let answer = ask.send(lanes).await.map_err(unusable)?;
        let own = if answer.status.is_success() { answer.text() } else { String::new() };
        let own = if own.is_empty() { GOOGLE } else { &own };
        if own != universe {
            return Err(unusable(format!(
                "it belongs to {own}, but GOOGLE_CLOUD_UNIVERSE_DOMAIN is {universe}"
            )));
        }
    }
    Ok(token)
}

/// Returns the email address of the machine's service account.
///
/// # Errors
/// Returns the reason why it isn't known.
pub(super) async fn email_of_machine(machine: &MachineAccount, lanes: &Lanes) -> Result<String, String> {
    let ask = ask(machine, "instance/service-accounts/default/email")?;
    let answer = ask.send(lanes).await?;
    match answer.status.is_success() {
        true => Ok(answer.text()),
        false => Err(format!("{} answered {}", ask.place(), answer.status.as_u16())),
    }
}

fn ask(machine: &MachineAccount, path: &str) -> Result<CredentialRequest, String> {
    CredentialRequest::get(&format!("http://{}/computeMetadata/v1/{path}", machine.host))?
        .header("metadata-flavor", "Google")
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn answer(status: u16, body: &'static str) -> CredentialResponse {
        let status = StatusCode::from_u16(status).expect("a status");
        CredentialResponse { status, headers: http::HeaderMap::new(), body: body.into() }
    }

    #[test]
    fn tokens_come_with_their_lifetime_in_either_way() {
        let ask = CredentialRequest::get("https://h/token").expect("a question");
        for body in [
            r#"{"access_token":"t","expires_in":3600}"#,
            r#"{"access_token":"t","expires_in":"3600"}"#,
            r#"{"access_token":"t","expires_in":18446744073709551615}"#,
        ] {
            let token = granted(&ask, &answer(200, body)).expect("a token");
            assert!(token.access_token == "t" && token.expires_at.is_some());
        }
        let odd = granted(&ask, &answer(200, r#"{"access_token":{"hush":1}}"#)).expect_err("no token");
        assert!(!odd.contains("hush"), "{odd}");
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let oauth = r#"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#;
        assert_eq!(refusal(&answer(400, oauth)), "400: invalid_grant: Token has been expired or revoked.");
        let service = r#"{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}"#;
        assert_eq!(refusal(&answer(403, service)), "403: Permission denied");
        assert_eq!(refusal(&answer(500, "<html>")), "500: <html>");
    }
}
