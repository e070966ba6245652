//! Obtains the token of an external identity, and exchanges it for a Google token.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Method;
use laneway_lanes::Lanes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::request::{CredentialRequest, malformed, short};
use super::super::{command, sigv4};
use super::adc::{Executable, ExternalAccount, SubjectTokenSource, TokenFormat};
use super::certificate;
use super::token::{SCOPE, Token, basic, granted, impersonated};
use crate::digest::hex_sha256;
use crate::encode::component;
use crate::timestamp::now_s;
use crate::{AccessKey, Environment};

/// The default time limit of an executable.
const EXECUTABLE_LIMIT: Duration = Duration::from_secs(30);

/// Returns a Google token for the external identity. If the configuration names a service account to impersonate, it is
/// a token of that account.
///
/// # Errors
/// Returns the failed step (reading, running, asking or exchanging) and its cause.
pub(super) async fn token(
    external: &ExternalAccount,
    environment: &Environment,
    lanes: &Lanes,
) -> Result<Token, String> {
    let in_source = |cause: String| format!("its credential_source: {cause}");
    let pair = match &external.credential_source.certificate {
        None => None,
        Some(source) => Some(Arc::new(certificate::configured(source, environment).map_err(in_source)?)),
    };
    let subject = match (&external.credential_source.certificate, &pair) {
        (Some(source), Some(pair)) => certificate::subject(source, pair),
        _ => subject(external, environment, lanes).await,
    };
    let subject = subject.map_err(in_source)?;
    let mut fields = vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ("audience", external.audience.as_str()),
        ("scope", SCOPE),
        ("subject_token_type", external.subject_token_type.as_str()),
        ("subject_token", subject.as_str()),
    ];
    let options = match (&external.workforce_pool_user_project, &external.client_id) {
        // If the client identifies itself, Google uses the client's own project, so the setting isn't sent.
        (Some(project), None) => Some(component(&json!({"userProject": project}).to_string())),
        _ => None,
    };
    fields.extend(options.as_deref().map(|options| ("options", options)));
    let mut ask = CredentialRequest::form(external.token_url(), &fields)?.showing(pair.as_ref());
    if let (Some(id), Some(secret)) = (&external.client_id, &external.client_secret) {
        ask = ask.header("authorization", &basic(id, secret))?;
    }
    let federated = granted(&ask, &ask.send(lanes).await?)?;
    match &external.service_account_impersonation_url {
        None => Ok(federated),
        Some(url) => {
            let lifetime_s = external.service_account_impersonation.token_lifetime_seconds;
            impersonated(url, &[], lifetime_s, &federated, pair.as_ref(), lanes).await
        }
    }
}

async fn subject(
    external: &ExternalAccount,
    environment: &Environment,
    lanes: &Lanes,
) -> Result<String, String> {
    let source = &external.credential_source;
    if source.environment_id.is_some() {
        return aws(external, environment, lanes).await;
    }
    if let Some(executable) = &source.executable {
        return run(executable, external, environment).await;
    }
    if let Some(path) = &source.file {
        let text = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
        return formatted(&text, &source.format).map_err(|cause| format!("{path}: {cause}"));
    }
    let mut ask = CredentialRequest::get(source.url.as_deref().unwrap_or_default())?;
    for (name, value) in &source.headers {
        ask = ask.header(name, value)?;
    }
    let answer = ask.send(lanes).await?;
    if !answer.status.is_success() {
        return Err(format!("{} answered {}: {}", ask.place(), answer.status.as_u16(), answer.text()));
    }
    formatted(&answer.body, &source.format).map_err(|cause| format!("{}: {cause}", ask.place()))
}

/// Extracts a token from a file or an answer.
fn formatted(text: &[u8], format: &TokenFormat) -> Result<String, String> {
    let token = match (format.kind.as_deref(), &format.subject_token_field_name) {
        (Some("json"), Some(field)) => {
            let document: Value = serde_json::from_slice(text).map_err(|e| malformed(&e))?;
            document[field].as_str().ok_or_else(|| format!("it has no field {field:?}"))?.to_owned()
        }
        _ => String::from_utf8(text.to_vec()).map_err(|_| "it isn't UTF-8 text".to_owned())?,
    };
    // A file that was saved by an editor ends in a line break, which isn't part of the token.
    let token = token.trim();
    if token.is_empty() { Err("it is empty".to_owned()) } else { Ok(token.to_owned()) }
}

/// The JSON document that an executable prints, and that it may also save in a file.
#[derive(Deserialize)]
struct ExecutableOutput {
    version: u64,
    success: bool,
    token_type: Option<String>,
    id_token: Option<String>,
    saml_response: Option<String>,
    /// Seconds since 1970.
    expiration_time: Option<u64>,
    code: Option<Value>,
    message: Option<String>,
}

async fn run(
    executable: &Executable,
    external: &ExternalAccount,
    environment: &Environment,
) -> Result<String, String> {
    // A credentials file may come from a third party, so it must not run a program unless the user allows it.
    if environment.get("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES").as_deref() != Some("1") {
        return Err(
            "its executable is not run unless GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES is 1".to_owned()
        );
    }
    if let Some(path) = &executable.output_file
        && let Ok(text) = std::fs::read(path)
        && let Ok(kept) = serde_json::from_slice::<ExecutableOutput>(&text)
        && kept.expiration_time.is_some()
        && let Ok(token) = printed(&kept)
    {
        return Ok(token);
    }
    let mut variables = vec![
        ("GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE", external.audience.clone()),
        ("GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE", external.subject_token_type.clone()),
        ("GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE", "0".to_owned()),
        ("GOOGLE_EXTERNAL_ACCOUNT_REVOKE", "0".to_owned()),
    ];
    let url = external.service_account_impersonation_url.as_deref();
    let email = url.and_then(|url| url.rsplit('/').next()?.strip_suffix(":generateAccessToken"));
    variables.extend(email.map(|email| ("GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL", email.to_owned())));
    let file = executable.output_file.clone();
    variables.extend(file.map(|file| ("GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE", file)));
    let limit = executable.timeout_millis.map_or(EXECUTABLE_LIMIT, Duration::from_millis);
    let mut output = command::run(&executable.command, environment, &variables, Some(limit)).await?;
    if output.is_empty()
        && let Some(path) = &executable.output_file
    {
        output = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    }
    let document: ExecutableOutput =
        serde_json::from_slice(&output).map_err(|e| format!("the program's output: {}", malformed(&e)))?;
    printed(&document)
}

fn printed(document: &ExecutableOutput) -> Result<String, String> {
    if document.version > 1 {
        return Err(format!("the program's output has version {}, which isn't known", document.version));
    }
    if !document.success {
        let code = document.code.as_ref().map(|code| code.to_string()).unwrap_or_default();
        let words = short(document.message.as_deref().unwrap_or("no reason given"));
        return Err(format!("the program says that it failed ({}): {words}", code.trim_matches('"')));
    }
    if document.expiration_time.is_some_and(|ends| ends <= now_s()) {
        return Err("the program's token has expired".to_owned());
    }
    let token = match document.token_type.as_deref() {
        Some("urn:ietf:params:oauth:token-type:jwt" | "urn:ietf:params:oauth:token-type:id_token") => {
            &document.id_token
        }
        Some("urn:ietf:params:oauth:token-type:saml2") => &document.saml_response,
        other => return Err(format!("the program's token_type is {:?}", other.unwrap_or_default())),
    };
    token.clone().ok_or_else(|| "the program's output holds no token of its token_type".to_owned())
}

/// Returns AWS's proof of identity: a request to STS that is signed but not sent. Google itself sends the request to
/// STS, to learn who signed it.
async fn aws(external: &ExternalAccount, environment: &Environment, lanes: &Lanes) -> Result<String, String> {
    let source = &external.credential_source;
    let session = match &source.imdsv2_session_token_url {
        None => None,
        Some(url) => Some(session(url, lanes).await?),
    };
    let ask = async |url: &str| -> Result<String, String> {
        let mut ask = CredentialRequest::get(url)?;
        if let Some(session) = &session {
            ask = ask.header("x-aws-ec2-metadata-token", session)?;
        }
        let answer = ask.send(lanes).await?;
        match answer.status.is_success() {
            true => Ok(String::from_utf8_lossy(&answer.body).trim().to_owned()),
            false => Err(format!("{} answered {}", ask.place(), answer.status.as_u16())),
        }
    };
    let region = match (environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]), &source.region_url) {
        (Some(region), _) => region,
        (None, Some(url)) => {
            // The server answers with the zone: the region's name followed by a letter.
            let mut zone = ask(url).await?;
            zone.pop();
            zone
        }
        (None, None) => return Err("AWS_REGION isn't set, and there is no region_url".to_owned()),
    };
    let variables = (environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY"));
    let key = match (variables, &source.url) {
        ((Some(id), Some(secret)), _) => {
            AccessKey { id, secret, session_token: environment.get("AWS_SESSION_TOKEN") }
        }
        ((None, None), Some(url)) => {
            let role = ask(url).await?;
            let keys = ask(&format!("{}/{role}", url.trim_end_matches('/'))).await?;
            super::super::aws::read_keys(keys.as_bytes())?.key
        }
        ((None, None), None) => return Err("neither AWS_ACCESS_KEY_ID nor its url gives keys".to_owned()),
        _ => return Err("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set".to_owned()),
    };
    let verify = verification_url(source, &region);
    let unsigned = CredentialRequest::new(Method::POST, &verify)?
        .header("x-goog-cloud-target-resource", &external.audience)?
        .header("x-amz-content-sha256", &hex_sha256(b""))?;
    let mut parts = unsigned.parts()?;
    sigv4::sign(&mut parts, &key, (&region, "sts"), SystemTime::now())?;
    let host = parts.uri.host().unwrap_or_default().to_owned();
    let mut headers = vec![json!({"key": "host", "value": host})];
    for (name, value) in &parts.headers {
        let value = value.to_str().map_err(|_| format!("the header {name} isn't ASCII text"))?;
        headers.push(json!({"key": name.as_str(), "value": value}));
    }
    let request = json!({"url": verify, "method": "POST", "headers": headers});
    Ok(component(&request.to_string()))
}

fn verification_url(source: &SubjectTokenSource, region: &str) -> String {
    const USUAL: &str = "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15";
    source.regional_cred_verification_url.as_deref().unwrap_or(USUAL).replace("{region}", region)
}

async fn session(url: &str, lanes: &Lanes) -> Result<String, String> {
    let ask =
        CredentialRequest::new(Method::PUT, url)?.header("x-aws-ec2-metadata-token-ttl-seconds", "300")?;
    let answer = ask.send(lanes).await?;
    match answer.status.is_success() {
        true => Ok(String::from_utf8_lossy(&answer.body).trim().to_owned()),
        false => Err(format!("{} answered {}", ask.place(), answer.status.as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_text_unless_a_field_is_named() {
        assert_eq!(formatted(b"token\n", &TokenFormat::default()).as_deref(), Ok("token"));
        let json = TokenFormat { kind: Some("json".into()), subject_token_field_name: Some("f".into()) };
        assert_eq!(formatted(br#"{"f":"token"}"#, &json).as_deref(), Ok("token"));
        for (text, format) in [(&b" \n"[..], &TokenFormat::default()), (b"{}", &json), (b"hush", &json)] {
            let error = formatted(text, format).expect_err("no token");
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn what_a_program_prints_is_a_token_or_why_there_is_none() {
        let read = |text: &str| printed(&serde_json::from_str(text).expect("a document"));
        let jwt = r#"{"version":1,"success":true,"token_type":"urn:ietf:params:oauth:token-type:jwt","id_token":"t"}"#;
        assert_eq!(read(jwt).as_deref(), Ok("t"));
        let failed = read(r#"{"version":1,"success":false,"code":"401","message":"Caller not authorized."}"#);
        assert!(failed.is_err_and(|error| error.contains("401") && error.contains("not authorized")));
        let old = r#"{"version":1,"success":true,"token_type":"urn:ietf:params:oauth:token-type:jwt","id_token":"t","expiration_time":1}"#;
        assert!(read(old).is_err_and(|error| error.contains("expired")));
        assert!(read(r#"{"version":2,"success":true}"#).is_err_and(|error| error.contains("version 2")));
    }
}
