//! Temporary access keys, in the formats in which AWS's services and credential processes issue them.

use std::time::SystemTime;

use serde::Deserialize;

use super::super::request::CredentialResponse;
use crate::timestamp::rfc3339;
use crate::{AccessKey, ExpiringKey};

/// An access key with the text of its expiration, if it has one.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UnparsedKey {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
    /// The expiration as RFC 3339 writes it.
    pub(super) ends: Option<String>,
}

impl std::fmt::Debug for UnparsedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnparsedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl UnparsedKey {
    /// Converts the access key into a credential that can sign requests.
    ///
    /// # Errors
    /// Fails if the key is empty or has expired, or if the expiration isn't a valid time.
    pub(super) fn into_credential(self) -> Result<ExpiringKey, String> {
        if self.id.is_empty() || self.secret.is_empty() {
            return Err("the source returned empty keys".to_owned());
        }
        let expires_at = match &self.ends {
            None => None,
            Some(text) => {
                let end = rfc3339(text)
                    .ok_or_else(|| format!("the keys' expiration {text:?} isn't a valid time"))?;
                if end <= SystemTime::now() {
                    return Err(format!("the keys expired at {text}"));
                }
                Some(end)
            }
        };
        let session_token = self.token.filter(|token| !token.is_empty());
        let key = AccessKey { id: self.id, secret: self.secret, session_token };
        Ok(ExpiringKey { key, expires_at })
    }
}

/// The JSON document that container and instance metadata services return. Credential processes print the same, but
/// call the token `SessionToken`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetadataCredentials {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "SessionToken")]
    token: Option<String>,
    expiration: Option<String>,
}

/// Reads an access key from such a document.
///
/// # Errors
/// Fails for any other document, without repeating its content.
pub(in crate::credentials) fn read(body: &[u8]) -> Result<ExpiringKey, String> {
    let document: MetadataCredentials =
        serde_json::from_slice(body).map_err(|e| super::super::request::malformed(&e))?;
    let MetadataCredentials { access_key_id: id, secret_access_key: secret, token, expiration: ends } =
        document;
    UnparsedKey { id, secret, token, ends }.into_credential()
}

/// Reads the document of a successful answer.
pub(super) fn answered(answer: &CredentialResponse, place: &str) -> Result<ExpiringKey, String> {
    if !answer.status.is_success() {
        return Err(format!("{place} answered {}: {}", answer.status.as_u16(), answer.text()));
    }
    read(&answer.body).map_err(|cause| format!("{place}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_end_say_when() {
        let text =
            br#"{"AccessKeyId":"A","SecretAccessKey":"S","Token":"T","Expiration":"2099-01-01T00:00:00Z"}"#;
        let credential = read(text).expect("keys");
        assert_eq!(credential.key.session_token.as_deref(), Some("T"));
        assert_eq!(credential.expires_at, rfc3339("2099-01-01T00:00:00UTC"));
        let process = br#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T"}"#;
        assert_eq!(read(process).expect("keys").key.session_token.as_deref(), Some("T"));
    }

    #[test]
    fn keys_that_have_ended_or_are_none_are_refused_without_being_told() {
        let ended = br#"{"AccessKeyId":"A","SecretAccessKey":"hush","Expiration":"2001-01-01T00:00:00Z"}"#;
        assert_eq!(read(ended).map(|_| ()).expect_err("ended"), "the keys expired at 2001-01-01T00:00:00Z");
        for odd in [
            &br#"{"AccessKeyId":"","SecretAccessKey":"hush"}"#[..],
            br#"{"SecretAccessKey":"hush"}"#,
            b"hush",
        ] {
            let error = read(odd).map(|_| ()).expect_err("no keys");
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
