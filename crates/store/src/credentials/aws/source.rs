//! The sources of AWS credentials, with all settings that are known before a request is made, and the formats of
//! temporary access keys.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use super::super::request::CredentialResponse;
use crate::timestamp::rfc3339;
use crate::{AccessKey, ExpiringKey};

/// A source, with its name for error messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NamedSource {
    pub(super) name: String,
    pub(super) source: AwsSource,
}

/// The source of the credentials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AwsSource {
    /// A key from a file or from variables.
    Keys(UnparsedKey),
    Role {
        role: IamRole,
        base: Box<NamedSource>,
    },
    WebIdentity {
        token_file: PathBuf,
        role: IamRole,
    },
    Sso(SsoRole),
    Process {
        command: String,
    },
    /// A login from `aws login`, which the AWS CLI turns into keys.
    Login {
        profile: String,
    },
    Container {
        url: String,
        token: Option<ContainerToken>,
    },
    Instance(InstanceRole),
}

/// A role to assume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IamRole {
    pub(super) arn: String,
    pub(super) session_name: Option<String>,
    pub(super) external_id: Option<String>,
    pub(super) duration: Option<Duration>,
    pub(super) policy: Option<String>,
    pub(super) mfa_serial: Option<String>,
    pub(super) sts: StsEndpoint,
}

/// An AWS service that issues credentials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StsEndpoint {
    pub(super) url: String,
    pub(super) region: String,
}

/// A role in an AWS account, whose temporary credentials are fetched with the login that `aws sso login` saved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SsoRole {
    pub(super) profile: String,
    pub(super) session: Option<String>,
    pub(super) start_url: String,
    pub(super) account_id: String,
    pub(super) role_name: String,
    pub(super) portal: String,
    pub(super) oidc: String,
    /// The folder of the login's cache file.
    pub(super) logins: PathBuf,
}

/// The token that Laneway sends to a container's endpoint.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ContainerToken {
    Value(String),
    File(PathBuf),
}

impl std::fmt::Debug for ContainerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value"),
            Self::File(path) => write!(f, "File({path:?})"),
        }
    }
}

/// The role of an EC2 instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InstanceRole {
    pub(super) endpoint: String,
    /// True if a setting names the metadata service. If false, Laneway tries the service last, after it has found no
    /// configured source.
    pub(super) is_asked_for: bool,
    /// The places that were searched before.
    pub(super) tried: Vec<String>,
}

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
pub(in crate::credentials) fn read_keys(body: &[u8]) -> Result<ExpiringKey, String> {
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
    read_keys(&answer.body).map_err(|cause| format!("{place}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_end_say_when() {
        let text =
            br#"{"AccessKeyId":"A","SecretAccessKey":"S","Token":"T","Expiration":"2099-01-01T00:00:00Z"}"#;
        let credential = read_keys(text).expect("keys");
        assert_eq!(credential.key.session_token.as_deref(), Some("T"));
        assert_eq!(credential.expires_at, rfc3339("2099-01-01T00:00:00UTC"));
        let process = br#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T"}"#;
        assert_eq!(read_keys(process).expect("keys").key.session_token.as_deref(), Some("T"));
    }

    #[test]
    fn keys_that_have_ended_or_are_none_are_refused_without_being_told() {
        let ended = br#"{"AccessKeyId":"A","SecretAccessKey":"hush","Expiration":"2001-01-01T00:00:00Z"}"#;
        assert_eq!(
            read_keys(ended).map(|_| ()).expect_err("ended"),
            "the keys expired at 2001-01-01T00:00:00Z"
        );
        for odd in [
            &br#"{"AccessKeyId":"","SecretAccessKey":"hush"}"#[..],
            br#"{"SecretAccessKey":"hush"}"#,
            b"hush",
        ] {
            let error = read_keys(odd).map(|_| ()).expect_err("no keys");
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
