//! Tests which credentials Laneway finds in files and variables. `interop/credentials.py` runs the same cases with
//! botocore and google-auth. The tests also write the table in `docs/credentials.md`.

mod services;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use http::HeaderMap;
use laneway_lanes::Lanes;
use serde::Deserialize;
use serde_json::Value;

use self::services::{Services, certificates};
use super::{AwsCredentials, GoogleCredentials};
use crate::{AccessKey, AssumedRole, Environment, Error, Settings};

#[derive(Deserialize)]
struct Cases {
    aws: Vec<Case>,
    google: Vec<Case>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Case {
    name: String,
    env: BTreeMap<String, String>,
    profile: Option<String>,
    config: Option<Vec<String>>,
    credentials: Option<Vec<String>>,
    adc: Option<Value>,
    gcloud: Option<Value>,
    files: BTreeMap<String, Value>,
    laneway: ExpectedCredential,
    reference: ExpectedCredential,
    why: Option<String>,
}

/// The expected outcome of a case.
#[derive(Clone, Default, Deserialize, PartialEq, Eq, Debug)]
#[serde(default)]
struct ExpectedCredential {
    r#as: Option<String>,
    /// The expected error: for Laneway a part of its message, and for the other libraries the name of the exception.
    error: Option<String>,
    nothing: bool,
    anonymous: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/credentials")
}

fn cases() -> Cases {
    let text = std::fs::read_to_string(folder().join("cases.json")).expect("cases");
    serde_json::from_str(&text).expect("cases")
}

/// A case whose files are in a temporary home folder.
struct Stage {
    home: tempfile::TempDir,
    server: Services,
    key: String,
}

impl Stage {
    fn new() -> Self {
        let key = std::fs::read_to_string(folder().join("private_key.pem")).expect("a key");
        Self { home: tempfile::tempdir().expect("a folder"), server: Services::start(), key }
    }

    fn fill(&self, text: &str) -> String {
        let url = self.server.url();
        text.replace("{home}", &self.home.path().display().to_string())
            .replace("{server}", url)
            .replace("{server_host}", url.trim_start_matches("http://"))
            .replace("{mutual}", self.server.mutual())
            .replace("{dead}", self.server.dead())
            .replace("{private_key}", &self.key)
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(values) => values.iter().map(|value| self.filled(value)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.filled(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Writes the files, and returns the settings that find them.
    fn lay_out(&self, case: &Case) -> Settings {
        for (name, text) in certificates().files() {
            self.write(name, &text);
        }
        for (name, lines) in [(".aws/config", &case.config), (".aws/credentials", &case.credentials)] {
            if let Some(lines) = lines {
                self.write(name, &self.fill(&format!("{}\n", lines.join("\n"))));
            }
        }
        let gcloud = ".config/gcloud/application_default_credentials.json";
        for (name, document) in [("adc.json", &case.adc), (gcloud, &case.gcloud)] {
            if let Some(document) = document {
                self.write(name, &self.filled(document).to_string());
            }
        }
        for (name, content) in &case.files {
            match content {
                Value::String(text) => self.write(name, &self.fill(text)),
                document => self.write(name, &self.filled(document).to_string()),
            }
        }
        let home = self.home.path().display().to_string();
        let mut variables = BTreeMap::from([("HOME".to_owned(), home.clone())]);
        if case.adc.is_some() {
            variables.insert("GOOGLE_APPLICATION_CREDENTIALS".to_owned(), format!("{home}/adc.json"));
        }
        variables.extend(case.env.iter().map(|(name, value)| (name.clone(), self.fill(value))));
        let settings = Settings::from_environment(Environment::of(variables));
        Settings { profile: case.profile.clone(), ..settings }
    }
}

/// Returns the key id that signs a request to S3.
async fn signer(settings: &Settings, lanes: &Lanes) -> Result<Option<String>, Error> {
    let settings = crate::settings::completed(settings)?;
    let key = AwsCredentials::new(&settings, lanes).credential().await?;
    Ok(key.map(|key| key.credential.key.id.clone()))
}

/// Returns the account whose token a request to GCS carries.
async fn bearer(settings: &Settings, lanes: &Lanes) -> Result<Option<String>, Error> {
    let endpoint = super::google_endpoint(settings)?;
    let mut headers = HeaderMap::new();
    GoogleCredentials::new(settings, &endpoint, lanes).authorize(&mut headers).await?;
    let text = |name: &str| headers.get(name).map(|value| value.to_str().expect("text").to_owned());
    let Some(token) = text("authorization") else { return Ok(None) };
    let mut name = token.trim_start_matches("Bearer ").to_owned();
    if let [_, claims, _] = name.split('.').collect::<Vec<_>>()[..]
        && let Ok(claims) = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(claims)
    {
        let claims: Value = serde_json::from_slice(&claims).expect("claims");
        name = format!("self-signed {}", claims["iss"].as_str().expect("an issuer"));
    }
    if let Some(project) = text("x-goog-user-project") {
        let _ = write!(name, " for {project}");
    }
    Ok(Some(name))
}

/// Returns the mistake in an outcome, if there is one.
fn judge(stage: &Stage, case: &Case, outcome: Result<Option<String>, Error>) -> Option<String> {
    let secrets = ["PRIVATE KEY", "hush"];
    let good = match (&outcome, &case.laneway) {
        (Ok(Some(who)), ExpectedCredential { r#as: Some(meant), .. }) => who == meant,
        (Ok(None), ExpectedCredential { anonymous: true, .. }) => true,
        (Err(error), ExpectedCredential { error: Some(words), .. }) => {
            let message = error.to_string();
            let is_one_line =
                !message.contains('\n') && !secrets.iter().any(|secret| message.contains(secret));
            error.is_unauthenticated() && is_one_line && message.contains(&stage.fill(words))
                || error.is_invalid() && message.contains(&stage.fill(words))
        }
        (Err(error), ExpectedCredential { nothing: true, .. }) => {
            error.to_string().contains("no credentials are set up")
        }
        _ => false,
    };
    (!good).then(|| format!("{}: {outcome:?} instead of {:?}", case.name, case.laneway))
}

/// Returns lanes with a short time limit for unreachable servers. Another suite tests the time for which Laneway waits.
fn lanes() -> Lanes {
    let authority = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(authority.path(), certificates().authority()).expect("a file");
    let trust = laneway_lanes::Trust { extra_ca_files: vec![authority.path().to_owned()] };
    let retry_for = Duration::from_millis(500);
    Lanes::start(laneway_lanes::LanesConfig { retry_for, trust, ..laneway_lanes::LanesConfig::default() })
        .expect("lanes")
}

#[tokio::test]
async fn files_and_variables_mean_who_they_mean_to_botocore() {
    let lanes = lanes();
    let mut wrong = Vec::new();
    for case in cases().aws {
        let stage = Stage::new();
        let settings = stage.lay_out(&case);
        wrong.extend(judge(&stage, &case, signer(&settings, &lanes).await));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn files_and_variables_mean_who_they_mean_to_google_auth() {
    let lanes = lanes();
    let mut wrong = Vec::new();
    for case in cases().google {
        let stage = Stage::new();
        let settings = stage.lay_out(&case);
        wrong.extend(judge(&stage, &case, bearer(&settings, &lanes).await));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A renewed login is written back to its file, because the old one can't be renewed a second time.
#[tokio::test]
async fn a_renewed_sso_login_is_kept_for_its_owner() {
    let cases = cases().aws;
    let case = cases.iter().find(|case| case.name.contains("login is renewed")).expect("the case");
    let stage = Stage::new();
    let settings = stage.lay_out(case);
    signer(&settings, &lanes()).await.unwrap_or_else(|e| panic!("{e}"));
    let path = stage.home.path().join(case.files.keys().next().expect("a file"));
    let kept: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("a login");
    assert_eq!(
        (kept["accessToken"].as_str(), kept["refreshToken"].as_str()),
        (Some("renewed"), Some("again-2"))
    );
    assert!(kept["expiresAt"].as_str().is_some_and(|ends| !ends.starts_with("2001")), "{kept}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    }
}

/// The CLIs own their logins' files, so Laneway asks them for keys and tokens.
#[tokio::test]
async fn logins_of_gcloud_and_aws_are_asked_for_by_their_own_commands() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new();
    let program = |name: &str, script: &str| {
        stage.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        let path = stage.home.path().join("bin").join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    };
    program(
        "aws",
        r#"[ "$*" = "configure export-credentials --format process --profile my team" ] || exit 9
echo '{"Version":1,"AccessKeyId":"login","SecretAccessKey":"hush","SessionToken":"t","Expiration":"2127-01-01T00:00:00Z"}'"#,
    );
    program(
        "gcloud",
        r#"[ "$*" = "auth print-access-token --quiet" ] && echo "gcloud-$CLOUDSDK_CORE_ACCOUNT""#,
    );
    stage.write(".aws/config", "[profile my team]\nlogin_session = arn:aws:iam::1:user/me\n");
    let home = stage.home.path().display().to_string();
    let path = format!("{home}/bin:/usr/bin:/bin");
    let settings = |more: &[(&str, &str)]| {
        let variables = [("HOME", home.as_str()), ("PATH", &path), ("NO_GCE_CHECK", "true")];
        let variables = variables.iter().chain(more).map(|(name, value)| (*name, *value));
        Settings::from_environment(Environment::of(variables))
    };
    let keys = signer(&settings(&[("AWS_PROFILE", "my team")]), &lanes()).await;
    assert_eq!(keys.unwrap_or_else(|e| panic!("{e}")).as_deref(), Some("login"));
    let account = [("CLOUDSDK_CORE_ACCOUNT", "me")];
    let error = bearer(&settings(&account), &lanes()).await.expect_err("nobody has logged in");
    assert!(error.to_string().contains("gcloud's own login"), "{error}");
    stage.write(".config/gcloud/credentials.db", "");
    let token = bearer(&settings(&account), &lanes()).await;
    assert_eq!(token.unwrap_or_else(|e| panic!("{e}")).as_deref(), Some("gcloud-me"));
}

/// An agent that replaces a metadata server may start after the pod that needs it.
#[tokio::test]
async fn a_metadata_server_that_fails_at_first_is_waited_for() {
    let stage = Stage::new();
    let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
    stage.server.fail_first(3);
    let url = stage.server.url().to_owned();
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str()), ("HOME", "/nowhere")];
    let settings = Settings::from_environment(Environment::of(variables));
    assert_eq!(
        signer(&settings, &lanes).await.unwrap_or_else(|e| panic!("{e}")).as_deref(),
        Some("instance")
    );
    stage.server.fail_first(2);
    let host = url.trim_start_matches("http://");
    let settings =
        Settings::from_environment(Environment::of([("GCE_METADATA_HOST", host), ("HOME", "/nowhere")]));
    assert_eq!(bearer(&settings, &lanes).await.unwrap_or_else(|e| panic!("{e}")).as_deref(), Some("machine"));
}

/// The code that the user enters is sent to STS.
#[tokio::test]
async fn an_mfa_code_is_asked_for_and_shown() {
    let cases = cases().aws;
    let case = cases.iter().find(|case| case.name.contains("mfa_serial")).expect("the case");
    let stage = Stage::new();
    let mut settings = stage.lay_out(case);
    settings.mfa_prompt = Some(std::sync::Arc::new(|serial: &str| Ok(format!("{}\n", serial.len()))));
    let who = signer(&settings, &lanes()).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(who.as_deref(), Some("one.K.mfa-21"));
}

/// Keys from the settings or from a search assume the role. AWS must not see the keys of another service.
#[tokio::test]
async fn keys_assume_the_role_of_the_settings() {
    let stage = Stage::new();
    let lanes = lanes();
    let mut role = AssumedRole::new("arn:aws:iam::1:role/one");
    role.external_id = Some("ext".to_owned());
    let amazons = Settings::from_environment(Environment::of([
        ("HOME", "/nowhere"),
        ("AWS_ACCESS_KEY_ID", "A"),
        ("AWS_SECRET_ACCESS_KEY", "S"),
    ]));
    role.sts_endpoint = Some(format!("{}/", stage.server.url()));
    let found = Settings { assume_role: Some(role.clone()), ..amazons.clone() };
    let given = Settings { access_key: Some(AccessKey::new("K", "S")), ..found.clone() };
    for (settings, name) in [(&found, "one.A.ext"), (&given, "one.K.ext")] {
        assert_eq!(signer(settings, &lanes).await.unwrap_or_else(|e| panic!("{e}")).as_deref(), Some(name));
    }
    role.sts_endpoint = None;
    let (s3_endpoint, assume_role) = (Some("https://minio.example".to_owned()), Some(role));
    let others = Settings { s3_endpoint, assume_role, ..amazons };
    let refused = signer(&others, &lanes).await.expect_err("another service's keys");
    assert!(refused.is_unauthenticated() && refused.to_string().contains("STS's endpoint"), "{refused}");
}

#[tokio::test]
async fn an_identity_acts_as_the_account_of_the_settings() {
    let cases = cases().google;
    let mut case = cases.iter().find(|case| case.name.starts_with("a login that")).expect("a case").clone();
    let iam = "CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS";
    case.env.insert(iam.to_owned(), "{server}/impersonate/".to_owned());
    let stage = Stage::new();
    let mut settings = stage.lay_out(&case);
    settings.impersonate = vec!["delegate@p.iam".to_owned(), "sa@p.iam".to_owned()];
    let who = bearer(&settings, &lanes()).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(who.as_deref(), Some("as.v1/projects/-/serviceAccounts/sa@p.iam.user.me"));
}

/// If a configured source fails, Laneway must not request credentials from any other server.
#[tokio::test]
async fn nobody_else_is_asked_when_what_is_set_up_fails() {
    for case in cases().aws.iter().filter(|case| case.laneway.error.is_some()) {
        let stage = Stage::new();
        let settings = stage.lay_out(case);
        let _ = signer(&settings, &lanes()).await;
        let asked = stage.server.asked();
        assert!(!asked.iter().any(|path| path.starts_with("/latest/")), "{}: {asked:?}", case.name);
    }
}

#[test]
fn the_table_of_cases_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/credentials.md");
    let table = table(&cases());
    if std::env::var_os("LANEWAY_WRITE_DOCS").is_some() {
        std::fs::write(&path, &table).expect("a file");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "docs/credentials.md is old: LANEWAY_WRITE_DOCS=1 cargo test -p laneway-store table_of_cases"
    );
}

fn table(cases: &Cases) -> String {
    let mut text = String::from(
        "# Credentials in each case\n\n\
         This page shows which credentials Laneway, botocore and google-auth find in the same files and variables.\n\
         `crates/store/tests/credentials/cases.json` holds the files and variables of each case. The test\n\
         `cargo test -p laneway-store credentials::cases` checks Laneway's answers and this page. `interop/credentials.py` checks the answers\n\
         of botocore and google-auth.\n\n\
         An answer names the credentials that sign requests. A key appears as its ID. A role or token appears together with the credentials\n\
         that obtained it: in `one.two.K`, the key `K` assumes the role `two`, and the role `two` assumes the role `one`.\n",
    );
    for (title, other, cases) in [("AWS", "botocore", &cases.aws), ("Google", "google-auth", &cases.google)] {
        let _ = write!(
            text,
            "\n## {title}\n\n| case | Laneway | {other} | where they differ |\n|---|---|---|---|\n"
        );
        for case in cases {
            let why = case.why.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {why} |",
                case.name,
                words(&case.laneway),
                words(&case.reference)
            );
        }
    }
    text.push_str(OF_CERTIFICATES);
    text.push_str(OF_AZURE);
    text
}

/// The part of `docs/credentials.md` about Azure. The unit tests in `credentials/azure` check it.
const OF_AZURE: &str = "
## Azure

Laneway uses the first source of this table that is set up. A source that is set up but can't be used is an error, which names it. Laneway
doesn't try another identity then. The order of the sources from AZURE_CLIENT_SECRET on is azure-identity's.

| source | what it gives | what is an error |
|---|---|---|
| a credential provider of the program | a token | the provider's error |
| `AZURE_STORAGE_CONNECTION_STRING` | an account's name, its endpoint, and its key or SAS token | a field without `=`, no account, a key that isn't base64, an expired SAS |
| `AZURE_STORAGE_KEY`, `_ACCOUNT_KEY`, `_ACCESS_KEY` | the account's key | a key that isn't base64, a URL of another account |
| `AZURE_STORAGE_SAS_TOKEN`, `_SAS_KEY` | a SAS token | no `sig`, an expired `se`, plain HTTP to another machine |
| `AZURE_TOKEN_CREDENTIALS=AzureCliCredential` | a token of the Azure CLI's login | no login |
| `AZURE_TOKEN_CREDENTIALS=ManagedIdentityCredential` | a token of `IDENTITY_ENDPOINT` or of the machine's metadata service | no answer, a refusal |
| `AZURE_STORAGE_TOKEN` | a token, which isn't renewed | plain HTTP to another machine |
| `AZURE_CLIENT_SECRET` | a token of a service principal | no `AZURE_TENANT_ID` or `AZURE_CLIENT_ID` |
| `AZURE_CLIENT_CERTIFICATE_PATH` | | always: not supported yet |
| `AZURE_FEDERATED_TOKEN_FILE` | a token of a workload identity | an unreadable file, no `AZURE_TENANT_ID` or `AZURE_CLIENT_ID` |
| `IDENTITY_ENDPOINT` | a token of App Service or Functions | no `IDENTITY_HEADER` |
| the metadata service of the machine | a token of its managed identity | a refusal, if `AZURE_CLIENT_ID` names the identity |
| the login of the Azure CLI | a token | a failure of `az` |

The account comes from the URL, `--azure-account`, the connection string, `AZURE_STORAGE_ACCOUNT` or `AZURE_STORAGE_ACCOUNT_NAME`. The
endpoint comes from `--azure-endpoint`, the connection string, `AZURE_STORAGE_SERVICE_ENDPOINT`, `AZURE_STORAGE_BLOB_ENDPOINT` or
`AZURE_STORAGE_ENDPOINT`. `UseDevelopmentStorage=true` means Azurite on this machine. A SAS token in a URL is refused, because URLs are
printed and logged.
";

/// The text about client certificates in `docs/credentials.md`. The table there shows only the requests for tokens.
const OF_CERTIFICATES: &str = "
If an external account has a certificate, Laneway requests its token over mutual TLS, at `token_url` (default: `sts.mtls.googleapis.com`).
To impersonate a service account, Laneway also presents the certificate if that server asks for one. Laneway reads the certificate's files
again for each connection.

For requests to GCS itself, Laneway uses a workload's certificate if google-auth and google-cloud-storage would use one. A configuration file
names this certificate. The path of this file is in `GOOGLE_API_CERTIFICATE_CONFIG` or
`CLOUDSDK_CONTEXT_AWARE_CERTIFICATE_CONFIG_FILE_PATH`. If both are unset, it is gcloud's `certificate_config.json`. Requests then go to
`storage.mtls.googleapis.com` with this certificate. GCS requires the certificate only for tokens that an administrator has bound to
certificates. To send requests to `storage.googleapis.com` without the certificate, set `GOOGLE_API_USE_CLIENT_CERTIFICATE=false` or
`GOOGLE_API_USE_MTLS_ENDPOINT=never`. If you set an endpoint of your own, Laneway doesn't use the certificate either.
";

fn words(said: &ExpectedCredential) -> String {
    match said {
        ExpectedCredential { r#as: Some(who), .. } => format!("`{who}`"),
        ExpectedCredential { error: Some(error), .. } => format!("error: {}", error.replace('|', "\\|")),
        ExpectedCredential { anonymous: true, .. } => "anonymous".to_owned(),
        _ => "no credentials".to_owned(),
    }
}
