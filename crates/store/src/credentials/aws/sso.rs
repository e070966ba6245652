//! Fetches temporary credentials for a role in an AWS account, with the login that `aws sso login` saved. A login that
//! is about to expire is renewed with its refresh token. That token works only once, so the renewed login is written
//! back to the file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use laneway_lanes::Lanes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::request::{CredentialRequest, malformed};
use super::source::{SsoRole, UnparsedKey};
use crate::ExpiringKey;
use crate::digest::hex_sha1;
use crate::timestamp::{end_in, rfc3339, to_rfc3339};

/// A login is renewed if it expires within this many seconds.
const RENEW_BEFORE_S: u64 = 5 * 60;

/// Fetches temporary credentials for the role.
///
/// # Errors
/// Fails without a valid login, or with the service's error.
pub(super) async fn keys(sso: &SsoRole, lanes: &Lanes) -> Result<ExpiringKey, String> {
    let login = login(sso, lanes).await?;
    let query =
        crate::encode::QueryString::new().and("role_name", &sso.role_name).and("account_id", &sso.account_id);
    let url = format!("{}/federation/credentials{query}", sso.portal);
    let ask = CredentialRequest::get(&url)?.header("x-amz-sso_bearer_token", &login)?;
    let answer = ask.send(lanes).await?;
    match answer.status.as_u16() {
        200..=299 => {}
        401 => return Err(format!("the login has ended: {}", renew_by_hand(sso))),
        status => return Err(format!("{} answered {status}: {}", ask.place(), message(&answer.text()))),
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Document {
        role_credentials: Handed,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Handed {
        access_key_id: String,
        secret_access_key: String,
        session_token: String,
        /// Milliseconds since 1970.
        expiration: u64,
    }
    let Document { role_credentials: handed } = answer.json().map_err(|e| format!("{}: {e}", ask.place()))?;
    let ends = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(handed.expiration));
    let ends = ends.ok_or("the keys' expiration isn't a valid time")?;
    UnparsedKey {
        id: handed.access_key_id,
        secret: handed.secret_access_key,
        token: Some(handed.session_token),
        ends: Some(to_rfc3339(ends)),
    }
    .into_credential()
}

fn message(text: &str) -> String {
    let said = serde_json::from_str::<Value>(text).ok();
    said.as_ref().and_then(|said| said["message"].as_str()).unwrap_or(text).to_owned()
}

/// Returns the login's cache file. The file's name is the SHA-1 of the session's name, or of the portal's URL if there
/// is no session.
fn file(sso: &SsoRole) -> PathBuf {
    let of = sso.session.as_deref().unwrap_or(&sso.start_url);
    sso.logins.join(format!("{}.json", hex_sha1(of.as_bytes())))
}

fn renew_by_hand(sso: &SsoRole) -> String {
    match &sso.session {
        Some(session) => format!("run aws sso login --sso-session {session}"),
        None => format!("run aws sso login --profile {}", sso.profile),
    }
}

/// Returns the token of a valid login, renewed if necessary.
async fn login(sso: &SsoRole, lanes: &Lanes) -> Result<String, String> {
    let path = file(sso);
    let text = std::fs::read(&path)
        .map_err(|e| format!("there is no login ({}: {e}): {}", path.display(), renew_by_hand(sso)))?;
    let mut login: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|e| format!("{}: {}", path.display(), malformed(&e)))?;
    let text = |login: &Map<String, Value>, name: &str| Some(login.get(name)?.as_str()?.to_owned());
    let token =
        text(&login, "accessToken").ok_or_else(|| format!("{}: it has no accessToken", path.display()))?;
    let left = |login: &Map<String, Value>, name: &str| {
        let end = rfc3339(login.get(name)?.as_str()?)?;
        Some(end.duration_since(SystemTime::now()).ok()?.as_secs())
    };
    let left_s = left(&login, "expiresAt").unwrap_or(0);
    if left_s > RENEW_BEFORE_S {
        return Ok(token);
    }
    let renewal = [text(&login, "clientId"), text(&login, "clientSecret"), text(&login, "refreshToken")];
    let can_be = sso.session.is_some() && left(&login, "registrationExpiresAt").is_some_and(|left| left > 0);
    let renewed = match renewal {
        [Some(id), Some(secret), Some(refresh)] if can_be => renew(sso, &id, &secret, &refresh, lanes).await,
        _ => Err("it can't be renewed".to_owned()),
    };
    match renewed {
        Ok(renewed) => {
            login.insert("accessToken".to_owned(), Value::String(renewed.access_token.clone()));
            if let Some(refresh) = renewed.refresh_token {
                login.insert("refreshToken".to_owned(), Value::String(refresh));
            }
            let ends = end_in(renewed.expires_in);
            login.insert("expiresAt".to_owned(), Value::String(to_rfc3339(ends)));
            if let Err(e) = write(&path, &login) {
                tracing::warn!("the renewed SSO login can't be written to {}: {e}", path.display());
            }
            Ok(renewed.access_token)
        }
        Err(_) if left_s > 0 => Ok(token),
        Err(cause) => Err(format!("the login has ended ({cause}): {}", renew_by_hand(sso))),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefreshedToken {
    access_token: String,
    expires_in: u64,
    refresh_token: Option<String>,
}

async fn renew(
    sso: &SsoRole,
    id: &str,
    secret: &str,
    refresh: &str,
    lanes: &Lanes,
) -> Result<RefreshedToken, String> {
    let document = json!({
        "clientId": id, "clientSecret": secret, "grantType": "refresh_token", "refreshToken": refresh,
    });
    let ask = CredentialRequest::json(&format!("{}/token", sso.oidc), &document)?;
    let answer = ask.send(lanes).await?;
    if answer.status.is_success() {
        return answer.json().map_err(|e| format!("{}: {e}", ask.place()));
    }
    // The document contains an error code and a description. Show only the code.
    let said: Value = answer.json().unwrap_or_default();
    let cause = said["error"].as_str().unwrap_or("no reason given").to_owned();
    Err(format!("{} answered {}: {cause}", ask.place(), answer.status.as_u16()))
}

/// Replaces the login's file in one step. Only its owner can read the new file.
fn write(path: &Path, login: &Map<String, Value>) -> std::io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&temporary)
        .and_then(|mut file| file.write_all(serde_json::Value::Object(login.clone()).to_string().as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
