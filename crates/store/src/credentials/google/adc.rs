//! Google's application default credentials: finds them from variables and a file, without any request
//! (<https://google.aip.dev/auth/4110>).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::super::failure::CredentialFailure;
use super::super::request::malformed;
use crate::Environment;

/// The default domain, Google's own cloud.
pub(super) const GOOGLE: &str = "googleapis.com";

/// The identity that was found, with its settings.
#[derive(Clone, Debug)]
pub(super) struct Adc {
    /// The source's name in error messages.
    pub(super) name: String,
    pub(super) identity: Identity,
    /// The project that is billed for requests.
    pub(super) quota_project: Option<String>,
    /// The domain of the cloud that the identity belongs to. `None` if only the machine's metadata server knows it.
    pub(super) universe: Option<String>,
}

/// The kinds of identity. Each obtains its token in a different way.
#[derive(Clone, Debug)]
pub(super) enum Identity {
    User(AuthorizedUser),
    ServiceAccount(ServiceAccount),
    External(Box<ExternalAccount>),
    ExternalUser(ExternalAuthorizedUser),
    Impersonated(Box<ImpersonatedAccount>),
    Machine(MachineAccount),
}

/// A user's login, as gcloud saves it.
#[derive(Clone, Deserialize)]
pub(super) struct AuthorizedUser {
    pub(super) client_id: String,
    pub(super) client_secret: String,
    pub(super) refresh_token: String,
    #[serde(default = "token_uri")]
    pub(super) token_uri: String,
}

/// The key of a service account.
#[derive(Clone, Deserialize)]
pub(super) struct ServiceAccount {
    pub(super) client_email: String,
    pub(super) private_key: String,
    pub(super) private_key_id: Option<String>,
    #[serde(default = "token_uri")]
    pub(super) token_uri: String,
}

/// An identity of another cloud or identity provider, whose token is exchanged for a Google token
/// (<https://google.aip.dev/auth/4117>).
#[derive(Clone, Deserialize)]
pub(super) struct ExternalAccount {
    pub(super) audience: String,
    pub(super) subject_token_type: String,
    token_url: Option<String>,
    pub(super) credential_source: SubjectTokenSource,
    pub(super) service_account_impersonation_url: Option<String>,
    #[serde(default)]
    pub(super) service_account_impersonation: TokenLifetime,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) workforce_pool_user_project: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
pub(super) struct TokenLifetime {
    pub(super) token_lifetime_seconds: Option<u64>,
}

/// The location of an external identity's token. Exactly one of these fields is set.
#[derive(Clone, Default, Deserialize)]
pub(super) struct SubjectTokenSource {
    pub(super) file: Option<String>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) executable: Option<Executable>,
    pub(super) certificate: Option<CertificateSource>,
    pub(super) environment_id: Option<String>,
    pub(super) region_url: Option<String>,
    pub(super) regional_cred_verification_url: Option<String>,
    pub(super) imdsv2_session_token_url: Option<String>,
    /// The format of the token. The default is plain text.
    #[serde(default)]
    pub(super) format: TokenFormat,
}

/// A certificate that serves as a token. The fields locate the configuration that names the certificate's files, and
/// the file with the issuers' certificates.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct CertificateSource {
    pub(super) use_default_certificate_config: bool,
    pub(super) certificate_config_location: Option<String>,
    pub(super) trust_chain_path: Option<String>,
}

/// A program that prints a token.
#[derive(Clone, Deserialize)]
pub(super) struct Executable {
    pub(super) command: String,
    pub(super) timeout_millis: Option<u64>,
    pub(super) output_file: Option<String>,
}

/// The format of a token in a file or an answer.
#[derive(Clone, Default, Deserialize)]
pub(super) struct TokenFormat {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) subject_token_field_name: Option<String>,
}

/// A user's login through another identity provider, as `gcloud auth login --cred-file` saves it.
#[derive(Clone, Deserialize)]
pub(super) struct ExternalAuthorizedUser {
    pub(super) refresh_token: String,
    pub(super) token_url: String,
    pub(super) client_id: String,
    pub(super) client_secret: String,
}

/// A service account, and the identity that may impersonate it.
#[derive(Clone)]
pub(super) struct ImpersonatedAccount {
    pub(super) url: String,
    pub(super) delegates: Vec<String>,
    pub(super) base: Identity,
}

/// The machine's own service account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MachineAccount {
    /// The host, and the port if it isn't 80.
    pub(super) host: String,
    /// True if a setting names the metadata server. In that case it is an error if the server doesn't answer.
    pub(super) is_asked_for: bool,
    /// The places that were searched before.
    pub(super) tried: Vec<String>,
}

fn token_uri() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

impl ExternalAccount {
    /// Returns the URL of the server that exchanges the token. Tokens made from certificates are exchanged at a
    /// separate host.
    pub(super) fn token_url(&self) -> &str {
        text(&self.token_url).unwrap_or(match self.credential_source.certificate {
            None => "https://sts.googleapis.com/v1/token",
            Some(_) => "https://sts.mtls.googleapis.com/v1/token",
        })
    }
}

/// Finds the identity.
///
/// # Errors
/// Returns the mistake in the configured file. In that case no other source is tried.
pub(super) fn find(environment: &Environment) -> Result<Adc, CredentialFailure> {
    let own_quota = environment.get("GOOGLE_CLOUD_QUOTA_PROJECT");
    let named = environment.get("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
    let usual = gcloud_file(environment);
    let found = match (named, usual) {
        (Some(path), _) => Some(("GOOGLE_APPLICATION_CREDENTIALS".to_owned(), path)),
        // Only a file that doesn't exist is skipped. If its folder can't be read, the file may exist, so that is an
        // error.
        (None, Some((name, path))) if !is_absent(&path) => Some((name, path)),
        _ => None,
    };
    if let Some((name, path)) = found {
        let name = format!("{name} ({})", path.display());
        let text = std::fs::read(&path).map_err(|e| CredentialFailure::unusable(&name, e.to_string()))?;
        let mut adc = read(&name, &text).map_err(|cause| CredentialFailure::unusable(&name, cause))?;
        adc.quota_project = own_quota.or(adc.quota_project);
        return Ok(adc);
    }
    let tried =
        ["GOOGLE_APPLICATION_CREDENTIALS", "gcloud's default credentials"].map(str::to_owned).to_vec();
    if environment.switch("NO_GCE_CHECK") == Some(true) {
        return Err(CredentialFailure::Nothing(tried));
    }
    let host = environment.first(&["GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"]);
    let is_asked_for = host.is_some();
    // Use the address instead of the server's name, because a resolver may not know the name or may resolve it to
    // another host.
    let host = host.unwrap_or_else(|| "169.254.169.254".to_owned());
    Ok(Adc {
        name: "the metadata server".to_owned(),
        identity: Identity::Machine(MachineAccount { host, is_asked_for, tried }),
        quota_project: own_quota,
        universe: None,
    })
}

/// Returns the identity of a service account's key that the caller passed as text. Other kinds of credentials can name
/// programs to run and servers to ask, so Laneway accepts them only from files.
///
/// # Errors
/// Returns the mistake in the key, without the key's content.
pub(super) fn given(key: &str, environment: &Environment) -> Result<Adc, CredentialFailure> {
    let name = "service_account_key";
    let unusable = |cause: String| CredentialFailure::unusable(name, cause);
    let mut adc = read(name, key.as_bytes()).map_err(unusable)?;
    if !matches!(adc.identity, Identity::ServiceAccount(_)) {
        return Err(unusable(
            "it isn't a service account key: its `type` isn't `service_account`".to_owned(),
        ));
    }
    adc.quota_project = environment.get("GOOGLE_CLOUD_QUOTA_PROJECT").or(adc.quota_project);
    Ok(adc)
}

/// Returns the file that `gcloud auth application-default login` writes.
fn gcloud_file(environment: &Environment) -> Option<(String, PathBuf)> {
    let name = match environment.get("CLOUDSDK_CONFIG") {
        Some(_) => "CLOUDSDK_CONFIG",
        None => "gcloud's default credentials",
    };
    Some((name.to_owned(), gcloud_folder(environment)?.join("application_default_credentials.json")))
}

/// Returns gcloud's configuration folder.
pub(super) fn gcloud_folder(environment: &Environment) -> Option<PathBuf> {
    let named = environment.get("CLOUDSDK_CONFIG").map(PathBuf::from);
    named.or_else(|| Some(environment.home()?.join(".config/gcloud")))
}

pub(super) fn is_absent(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    std::fs::metadata(path).is_err_and(|e| matches!(e.kind(), NotFound | NotADirectory))
}

/// Reads a credentials file.
///
/// # Errors
/// Returns the mistake in the file, without the file's content.
fn read(name: &str, text: &[u8]) -> Result<Adc, String> {
    let document: Value = serde_json::from_slice(text).map_err(|e| malformed(&e))?;
    let text = |field: &str| document[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(Adc {
        name: name.to_owned(),
        quota_project: text("quota_project_id"),
        universe: Some(text("universe_domain").unwrap_or_else(|| GOOGLE.to_owned())),
        identity: identity(document)?,
    })
}

fn identity(document: Value) -> Result<Identity, String> {
    fn fields<T: for<'de> Deserialize<'de>>(document: Value) -> Result<T, String> {
        serde_json::from_value(document).map_err(|e| malformed(&e))
    }
    let kind = document["type"].as_str().unwrap_or_default().to_owned();
    let in_kind = |cause: String| format!("{kind}: {cause}");
    Ok(match kind.as_str() {
        "authorized_user" => Identity::User(fields(document).map_err(in_kind)?),
        "service_account" => Identity::ServiceAccount(fields(document).map_err(in_kind)?),
        "external_account_authorized_user" => Identity::ExternalUser(fields(document).map_err(in_kind)?),
        "external_account" => {
            let external: ExternalAccount = fields(document).map_err(in_kind)?;
            check(&external.credential_source).map_err(in_kind)?;
            Identity::External(Box::new(external))
        }
        "impersonated_service_account" => {
            #[derive(Deserialize)]
            struct Fields {
                service_account_impersonation_url: String,
                #[serde(default)]
                delegates: Vec<String>,
                source_credentials: Value,
            }
            let Fields { service_account_impersonation_url: url, delegates, source_credentials } =
                fields(document).map_err(in_kind)?;
            let base =
                identity(source_credentials).map_err(|cause| format!("its source_credentials: {cause}"))?;
            Identity::Impersonated(Box::new(ImpersonatedAccount { url, delegates, base }))
        }
        "" => return Err("it has no type".to_owned()),
        _ => {
            return Err(format!(
                "credentials of the type {kind:?} can't be used; the supported types are authorized_user, service_account, \
                 external_account, external_account_authorized_user and impersonated_service_account"
            ));
        }
    })
}

/// Checks that the settings name exactly one location of the token, and that Laneway supports it.
fn check(subject: &SubjectTokenSource) -> Result<(), String> {
    if let Some(environment) = &subject.environment_id {
        return match environment.strip_prefix("aws") {
            Some("1") => Ok(()),
            Some(version) => Err(format!("version {version:?} of AWS's credential_source isn't known")),
            None => Err(format!("its environment_id {environment:?} isn't known")),
        };
    }
    if let Some(certificate) = &subject.certificate {
        let is_default = certificate.use_default_certificate_config;
        match (is_default, text(&certificate.certificate_config_location)) {
            (true, Some(_)) => {
                return Err("its certificate_config_location and use_default_certificate_config \
                contradict each other"
                    .to_owned());
            }
            (false, None) => {
                return Err("its certificate has neither certificate_config_location nor \
                use_default_certificate_config"
                    .to_owned());
            }
            _ => {}
        }
    }
    let sources = [
        subject.file.is_some(),
        subject.url.is_some(),
        subject.executable.is_some(),
        subject.certificate.is_some(),
    ];
    match sources.into_iter().filter(|is_there| *is_there).count() {
        0 => Err("its credential_source has neither file, url, executable, certificate nor environment_id"
            .to_owned()),
        1 => format(&subject.format),
        _ => Err("its credential_source has more than one source".to_owned()),
    }
}

/// Returns the field's text, or `None` if it is missing or empty.
pub(super) fn text(field: &Option<String>) -> Option<&str> {
    field.as_deref().filter(|text| !text.is_empty())
}

fn format(format: &TokenFormat) -> Result<(), String> {
    match (format.kind.as_deref(), &format.subject_token_field_name) {
        (None | Some("text"), _) | (Some("json"), Some(_)) => Ok(()),
        (Some("json"), None) => Err("its format is json, and has no subject_token_field_name".to_owned()),
        (Some(kind), _) => Err(format!("its format {kind:?} is neither text nor json")),
    }
}

macro_rules! without_secrets {
    ($($name:ident),*) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}
without_secrets!(
    AuthorizedUser,
    ServiceAccount,
    ExternalAccount,
    ExternalAuthorizedUser,
    ImpersonatedAccount
);

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str) -> Result<Adc, CredentialFailure> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("adc.json");
        std::fs::write(&path, document).expect("a file");
        find(&Environment::of([("GOOGLE_APPLICATION_CREDENTIALS", path.display().to_string())]))
    }

    fn cause(outcome: Result<Adc, CredentialFailure>) -> String {
        match outcome {
            Err(CredentialFailure::Unusable { source, cause }) => format!("{source}: {cause}"),
            other => panic!("{other:?}"),
        }
    }

    const USER: &str = r#"{"type":"authorized_user","client_id":"i","client_secret":"hush","refresh_token":"hush","quota_project_id":"q"}"#;

    #[test]
    fn a_login_names_its_quota_project_which_a_variable_replaces() {
        let adc = found(USER).expect("a login");
        assert!(matches!(&adc.identity, Identity::User(user) if user.token_uri == token_uri()));
        assert_eq!((adc.quota_project.as_deref(), adc.universe.as_deref()), (Some("q"), Some(GOOGLE)));
        assert!(!format!("{adc:?}").contains("hush"));
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("application_default_credentials.json"), USER).expect("a file");
        let folder = folder.path().display().to_string();
        let environment =
            Environment::of([("CLOUDSDK_CONFIG", folder.as_str()), ("GOOGLE_CLOUD_QUOTA_PROJECT", "other")]);
        assert_eq!(find(&environment).expect("a login").quota_project.as_deref(), Some("other"));
    }

    #[test]
    fn a_file_that_is_named_must_be_there_and_be_one() {
        let gone = Environment::of([("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/adc.json")]);
        let gone = cause(find(&gone));
        assert!(
            gone.starts_with("GOOGLE_APPLICATION_CREDENTIALS (/nowhere/adc.json): No such file"),
            "{gone}"
        );
        for (document, word) in [
            ("hush", "a JSON document"),
            ("{}", "no type"),
            (r#"{"type":"gdch_service_account"}"#, "gdch_service_account"),
            (
                r#"{"type":"authorized_user","client_id":"i","client_secret":"hush"}"#,
                "missing field `refresh_token`",
            ),
            (r#"{"type":"service_account","client_email":"e"}"#, "missing field `private_key`"),
            (
                r#"{"type":"impersonated_service_account","service_account_impersonation_url":"u","source_credentials":{"type":"x"}}"#,
                "its source_credentials",
            ),
        ] {
            let cause = cause(found(document));
            assert!(cause.contains(word) && !cause.contains("hush"), "{cause}");
        }
    }

    #[test]
    fn a_key_that_is_given_is_that_of_a_service_account() {
        let key = r#"{"type":"service_account","client_email":"e","private_key":"hush","universe_domain":"own.example"}"#;
        let adc = given(key, &Environment::of([("GOOGLE_CLOUD_QUOTA_PROJECT", "q")])).expect("a key");
        assert!(matches!(&adc.identity, Identity::ServiceAccount(account) if account.client_email == "e"));
        assert_eq!((adc.quota_project.as_deref(), adc.universe.as_deref()), (Some("q"), Some("own.example")));
        assert!(!format!("{adc:?}").contains("hush"));
        for (key, word) in [
            ("hush", "a JSON document"),
            (USER, "isn't a service account key"),
            (r#"{"type":"service_account","client_email":"hush"}"#, "missing field `private_key`"),
        ] {
            let cause = cause(given(key, &Environment::default()));
            assert!(cause.starts_with("service_account_key: "), "{cause}");
            assert!(cause.contains(word) && !cause.contains("hush"), "{cause}");
        }
    }

    #[test]
    fn an_external_account_has_one_source_whose_format_may_be_left_out() {
        let external = |source: &str| {
            found(&format!(
                r#"{{"type":"external_account","audience":"a","subject_token_type":"t","credential_source":{source}}}"#
            ))
        };
        for good in [
            r#"{"file":"/t"}"#,
            r#"{"url":"http://h/","headers":{"a":"b"},"format":{"type":"json","subject_token_field_name":"f"}}"#,
            r#"{"executable":{"command":"c"}}"#,
            r#"{"certificate":{"use_default_certificate_config":true}}"#,
            r#"{"certificate":{"certificate_config_location":"/c","trust_chain_path":"/t"}}"#,
            r#"{"environment_id":"aws1","url":"http://h/","regional_cred_verification_url":"https://sts"}"#,
        ] {
            assert!(matches!(external(good).expect(good).identity, Identity::External(_)));
        }
        for (bad, word) in [
            ("{}", "neither file"),
            (r#"{"file":"/t","url":"http://h/"}"#, "more than one"),
            (r#"{"certificate":{}}"#, "neither certificate_config_location"),
            (
                r#"{"certificate":{"use_default_certificate_config":true,"certificate_config_location":"/c"}}"#,
                "contradict",
            ),
            (r#"{"file":"/t","certificate":{"use_default_certificate_config":true}}"#, "more than one"),
            (r#"{"environment_id":"aws2"}"#, "\"2\""),
            (r#"{"file":"/t","format":{"type":"json"}}"#, "subject_token_field_name"),
            (r#"{"file":"/t","format":{"type":"xml"}}"#, "xml"),
        ] {
            let cause = cause(external(bad));
            assert!(cause.contains(word), "{cause}");
        }
    }

    #[test]
    fn without_a_file_it_is_the_machine() {
        let adc = find(&Environment::of([("HOME", "/nowhere"), ("GOOGLE_APPLICATION_CREDENTIALS", "")]))
            .expect("the machine");
        assert!(
            matches!(&adc.identity, Identity::Machine(machine) if !machine.is_asked_for && machine.host == "169.254.169.254")
        );
        let named = find(&Environment::of([("HOME", "/nowhere"), ("GCE_METADATA_HOST", "h:1")]))
            .expect("the machine");
        assert!(
            matches!(&named.identity, Identity::Machine(machine) if machine.is_asked_for && machine.host == "h:1")
        );
        assert!(matches!(
            find(&Environment::of([("NO_GCE_CHECK", "true")])),
            Err(CredentialFailure::Nothing(_))
        ));
    }
}
