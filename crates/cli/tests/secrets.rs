//! The program never writes a secret to any output, for every source of credentials and every way to end.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use laneway_testkit::{Asked, Endpoint, Program, Scripted, Wire, answer};
use memchr::memmem;

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// The start of every secret in these tests. No output may contain it in any form.
const MARK: &str = "CANARY";

const LATER: &str = "2099-01-01T00:00:00Z";

/// The headers that send a customer's key to S3 and to Azure.
const CUSTOMER_KEY: &str = "x-amz-server-side-encryption-customer-key";
const AZURE_CUSTOMER_KEY: &str = "x-ms-encryption-key";

/// The headers with secrets, apart from those of the credential services.
const SECRET_HEADERS: [&str; 6] =
    ["authorization", "x-amz-security-token", CUSTOMER_KEY, AZURE_CUSTOMER_KEY, "x-ms-copy-source", "x-own"];

fn customer_key() -> String {
    BASE64_STANDARD.encode(format!("{MARK:-<32}"))
}

/// Returns a secret with characters that URLs and JSON escape.
fn secret(of: &str) -> String {
    format!("{MARK}/{of}+7=\"&")
}

/// The behaviour of the servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    /// The credential services issue credentials, and the store answers normally.
    Fine,
    /// The store refuses the request and repeats it in the answer, as S3 does if a signature doesn't match.
    Refusing,
    /// The store refuses the request, and repeats the secrets in the error's code and message, which the program shows.
    Telling,
    /// The credential services refuse the request and repeat it.
    Withholding,
    /// The credential services refuse the request and repeat only the secret, without its scheme and user name.
    Quoting,
    /// The credential services answer with truncated documents.
    Garbling,
    /// The store puts the secrets in place of a size in its listing.
    Listing,
    /// The store closes each connection.
    Silent,
}

const MOODS: [Mood; 8] = [
    Mood::Fine,
    Mood::Refusing,
    Mood::Telling,
    Mood::Withholding,
    Mood::Quoting,
    Mood::Garbling,
    Mood::Listing,
    Mood::Silent,
];

impl Mood {
    /// Returns true if only the credential services behave unusually.
    fn is_of_services(self) -> bool {
        matches!(self, Self::Withholding | Self::Quoting | Self::Garbling)
    }
}

/// Starts the credential services and a store, all at one address.
fn serve(mood: Mood) -> Scripted {
    Scripted::serve(move |asked| match credentials(asked) {
        Some(handed) => match mood {
            Mood::Withholding => answer(403, &[], repeated(asked)),
            Mood::Quoting => answer(403, &[], quoted(asked)),
            Mood::Garbling => answer(200, &[], &handed[..handed.len() * 2 / 3]),
            _ => answer(200, &[("Metadata-Flavor", "Google")], handed),
        },
        None => match mood {
            Mood::Silent => Vec::new(),
            Mood::Refusing => answer(403, &[], repeated(asked)),
            Mood::Telling => answer(400, &[], telling(asked)),
            Mood::Listing if is_listing(asked) => answer(200, &[], listing(asked)),
            _ => store(asked),
        },
    })
}

/// Returns an error that repeats the request.
fn repeated(asked: &Asked) -> String {
    let body = String::from_utf8_lossy(&asked.body);
    let of_services = ["x-amz-sso_bearer_token", "x-identity-header"];
    let headers = SECRET_HEADERS.iter().chain(&of_services);
    let shown = headers.map(|name| asked.header(name).unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let shown = format!("{} {}\n{shown}\n{body}", asked.method, asked.target)
        .replace('&', "&amp;")
        .replace('<', "&lt;");
    format!(
        "<Error><Code>SignatureDoesNotMatch</Code><Message>The signature does not match.</Message>\
         <CanonicalRequest>{shown}</CanonicalRequest><StringToSign>{shown}</StringToSign></Error>"
    )
}

/// Returns the request's secret headers, and the signature of a SAS token.
fn shown(asked: &Asked) -> String {
    let headers = SECRET_HEADERS.map(|name| asked.header(name).unwrap_or_default()).join(" ");
    let signature = asked.target.split_once("sig=").map_or("", |(_, signature)| signature);
    format!("{headers} {signature}")
}

fn is_of_azure(asked: &Asked) -> bool {
    asked.header("x-ms-version").is_some()
}

fn is_listing(asked: &Asked) -> bool {
    asked.target.contains("list-type") || asked.target.contains("comp=list")
}

/// Returns a page of a listing with one object of this size.
fn page(asked: &Asked, size: &str) -> String {
    if is_of_azure(asked) {
        let properties = format!("<Properties><Content-Length>{size}</Content-Length></Properties>");
        let blob = format!("<Blob><Name>k</Name>{properties}</Blob>");
        return format!("<EnumerationResults><Blobs>{blob}</Blobs><NextMarker /></EnumerationResults>");
    }
    let object = format!("<Contents><Key>k</Key><Size>{size}</Size></Contents>");
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{object}</ListBucketResult>")
}

/// Returns a listing page whose only object has the secrets as its size.
fn listing(asked: &Asked) -> String {
    page(asked, &shown(asked).replace('&', "&amp;").replace('<', "&lt;"))
}

/// Returns an error whose message repeats the secret headers, in the request's dialect.
fn telling(asked: &Asked) -> String {
    let shown = shown(asked);
    if asked.target.starts_with("/storage/") || asked.target.starts_with("/upload/") {
        let reason = serde_json::json!([{"reason": shown}]);
        return serde_json::json!({"error": {"code": 400, "message": shown, "errors": reason}}).to_string();
    }
    let shown = shown.replace('&', "&amp;").replace('<', "&lt;");
    format!("<Error><Code>{shown}</Code><Message>what is {shown}?</Message></Error>")
}

/// Returns an error that repeats only the request's authorization. If there is none, it repeats the whole request.
fn quoted(asked: &Asked) -> String {
    let Some((scheme, secret)) = asked.header("authorization").and_then(|value| value.split_once(' ')) else {
        return repeated(asked);
    };
    let pair = BASE64_STANDARD.decode(secret).ok().filter(|_| scheme == "Basic");
    let pair = pair.map(|pair| String::from_utf8(pair).expect("a text"));
    let password = pair.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, password)| password);
    let secret = password.unwrap_or(secret);
    serde_json::json!({"error": "invalid_client", "error_description": format!("bad secret {secret}")})
        .to_string()
}

fn keys() -> String {
    let (key, token) = (secret("handed-key"), secret("handed-token"));
    serde_json::json!({"Code": "Success", "AccessKeyId": "ID", "SecretAccessKey": key, "Token": token, "Expiration": LATER}).to_string()
}

/// Returns the credentials that a service issues, or `None` for a request to a store.
fn credentials(asked: &Asked) -> Option<String> {
    const ROLES: &str = "/latest/meta-data/iam/security-credentials";
    let path = asked.target.split('?').next().unwrap_or_default().trim_end_matches('/');
    let token = |name| serde_json::json!({"access_token": secret(name), "expires_in": 3600}).to_string();
    Some(match (asked.method.as_str(), path) {
        ("PUT", "/latest/api/token") => secret("imds-session").replace('"', ""),
        ("GET", ROLES) => "role".to_owned(),
        ("GET", "/container" | "/latest/meta-data/iam/security-credentials/role") => keys(),
        ("GET", "/federation/credentials") => serde_json::json!({"roleCredentials": {
            "accessKeyId": "ID", "secretAccessKey": secret("sso-key"), "sessionToken": secret("sso-token"),
            "expiration": 4_070_908_800_000_u64,
        }})
        .to_string(),
        ("POST", "" | "/") => {
            let action = if String::from_utf8_lossy(&asked.body).contains("WebIdentity") {
                "AssumeRoleWithWebIdentity"
            } else {
                "AssumeRole"
            };
            let (key, token) = (secret("sts-key").replace('&', ""), secret("sts-token").replace('&', ""));
            format!(
                "<{action}Response><{action}Result><Credentials><AccessKeyId>ID</AccessKeyId><SecretAccessKey>{key}</SecretAccessKey>\
                 <SessionToken>{token}</SessionToken><Expiration>{LATER}</Expiration></Credentials></{action}Result></{action}Response>"
            )
        }
        ("POST", "/oauth" | "/sts" | "/tenant/oauth2/v2.0/token") => token("access-token"),
        ("GET", "/msi" | "/metadata/identity/oauth2/token") => token("machine-token"),
        ("GET", path) if path.ends_with("/service-accounts/default/token") => token("machine-token"),
        _ => return None,
    })
}

/// Returns the answer of a store with one object.
fn store(asked: &Asked) -> Vec<u8> {
    match (asked.method.as_str(), is_listing(asked)) {
        (_, true) => answer(200, &[], page(asked, "1")),
        ("GET", _) => answer(200, &[("ETag", "\"e\"")], "x"),
        ("HEAD", _) => b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \"e\"\r\n\r\n".to_vec(),
        _ => answer(200, &[("ETag", "\"e\"")], ""),
    }
}

/// The sources that every command rejects as bad usage.
const REFUSED: [&str; 3] = ["a header that is none", "a proxy that is none", "a customer's key that is none"];

/// The store that a source is for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Cloud {
    #[default]
    Amazon,
    Google,
    Azure,
}

impl Cloud {
    fn scheme(self) -> &'static str {
        match self {
            Self::Amazon => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

/// A source of credentials: variables, options of the command, and files in the home folder.
#[derive(Default)]
struct Source {
    name: &'static str,
    variables: Vec<(&'static str, String)>,
    options: Vec<String>,
    files: Vec<(&'static str, String)>,
    cloud: Cloud,
}

/// The variables of secrets for which Laneway asks no credential service.
const STATIC: [&str; 5] = [
    "AWS_SECRET_ACCESS_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
];

impl Source {
    /// Returns the behaviours of servers to test with this source. A source with a key asks no credential service, so
    /// the behaviours of these services are left out.
    fn moods(&self) -> Vec<Mood> {
        let asks_no_service = self.variables.iter().any(|(name, _)| STATIC.contains(name));
        MOODS.into_iter().filter(|mood| !(asks_no_service && mood.is_of_services())).collect()
    }
}

/// Returns all sources. `server` is the URL of the services, `home` the folder with the user's files.
fn sources(server: &str, home: &Path) -> Vec<Source> {
    let host = server.trim_start_matches("http://").to_owned();
    let file = |name: &str| home.join(name).display().to_string();
    let aws = |name, variables: Vec<(&'static str, String)>| Source { name, variables, ..Source::default() };
    let configured =
        |name, config: String| Source { files: vec![(".aws/config", config)], ..aws(name, Vec::new()) };
    let own = || {
        vec![
            ("AWS_ACCESS_KEY_ID", "ID".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", secret("key")),
            ("AWS_SESSION_TOKEN", secret("session")),
        ]
    };
    let adc = |name, json: serde_json::Value| Source {
        name,
        variables: vec![("GOOGLE_APPLICATION_CREDENTIALS", file("adc.json"))],
        files: vec![("adc.json", json.to_string()), ("token", secret("subject"))],
        cloud: Cloud::Google,
        ..Source::default()
    };
    let azure = |name, variables: Vec<(&'static str, String)>| Source {
        name,
        variables: [vec![("AZURE_STORAGE_SERVICE_ENDPOINT", format!("{server}/acct"))], variables].concat(),
        cloud: Cloud::Azure,
        ..Source::default()
    };
    let entra = |name, variables: Vec<(&'static str, String)>| {
        let ids = vec![
            ("AZURE_TENANT_ID", "tenant".to_owned()),
            ("AZURE_CLIENT_ID", "client".to_owned()),
            ("AZURE_AUTHORITY_HOST", server.to_owned()),
        ];
        azure(name, [ids, variables].concat())
    };
    let connected = |name, text: String| Source {
        name,
        variables: vec![(
            "AZURE_STORAGE_CONNECTION_STRING",
            format!("BlobEndpoint={server}/acct;AccountName=acct;{text}"),
        )],
        cloud: Cloud::Azure,
        ..Source::default()
    };
    let account_key = BASE64_STANDARD.encode(secret("account"));
    let sas = format!("sv=2021-12-02&ss=b&srt=sco&sp=rwdlacx&se={LATER}&sig={MARK}%2Fsas%2B7%3D");
    let federated = serde_json::json!({
        "type": "external_account", "token_url": format!("{server}/sts"),
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": {"file": file("token")},
    });
    let mut named = federated.clone();
    named["client_id"] = "id".into();
    named["client_secret"] = secret("client").into();
    let directory = serde_json::json!({
        "type": "external_account_authorized_user", "token_url": format!("{server}/sts"),
        "audience": "//iam.googleapis.com/locations/global/workforcePools/p/providers/q",
        "client_id": "id", "client_secret": secret("client"), "refresh_token": secret("refresh"),
    });
    let user = serde_json::json!({
        "type": "authorized_user", "client_id": "id", "client_secret": secret("client"), "refresh_token": secret("refresh"),
        "token_uri": format!("{server}/oauth"),
    });
    let process = format!(
        "echo '{}'",
        serde_json::json!({"Version": 1, "AccessKeyId": "ID", "SecretAccessKey": secret("process")})
    );
    let sso = serde_json::json!({"accessToken": secret("login"), "expiresAt": LATER, "startUrl": "https://start", "region": "us-east-1"});
    vec![
        aws("variables", own()),
        Source { options: vec!["--header".into(), format!("x-own: {}", secret("header"))], ..aws("an added header", own()) },
        Source { options: vec!["--header".into(), format!("Authorization: Bearer {}", secret("bearer"))], ..aws("an added token", own()) },
        Source { options: vec!["--header".into(), format!("x-own {}", secret("header"))], ..aws("a header that is none", own()) },
        configured("a profile", format!("[default]\naws_access_key_id = ID\naws_secret_access_key = {}\n", secret("profile"))),
        configured("a profile with a line that is none", format!("[default]\naws_access_key_id = ID\naws_secret_access_key {}\n", secret("profile"))),
        configured("half of a profile", format!("[default]\naws_secret_access_key = {}\n", secret("profile"))),
        configured("a role", format!(
            "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n[profile base]\naws_access_key_id = ID\naws_secret_access_key = {}\n",
            secret("base")
        )),
        Source {
            files: vec![
                (".aws/config", "[default]\nsso_start_url = https://start\nsso_region = us-east-1\nsso_account_id = 1\nsso_role_name = r\n".into()),
                (".aws/sso/cache/6ad0e7e61d1f47e491ea32c2031add41ef92e07d.json", sso.to_string()),
            ],
            ..aws("a login of SSO", Vec::new())
        },
        Source {
            files: vec![(".aws/config", format!("[default]\ncredential_process = sh {}\n", file("keys.sh"))), ("keys.sh", process.clone())],
            ..aws("a program", Vec::new())
        },
        Source {
            files: vec![
                (".aws/config", format!("[default]\ncredential_process = sh {}\n", file("keys.sh"))),
                ("keys.sh", process.replace("\"Version\":1", "\"Version\":")),
            ],
            ..aws("a program that prints what is no JSON", Vec::new())
        },
        Source {
            files: vec![("token", secret("web-identity"))],
            ..aws("a web identity", vec![("AWS_WEB_IDENTITY_TOKEN_FILE", file("token")), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r".into())])
        },
        aws("a container", vec![
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{server}/container")),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", secret("container")),
        ]),
        aws("an instance", vec![("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.to_owned()), ("AWS_EC2_METADATA_DISABLED", "false".into())]),
        Source { options: vec!["--s3-endpoint".into(), format!("http://user:{MARK}-endpoint@{host}")], ..aws("an endpoint with a password", own()) },
        Source {
            variables: [own(), vec![("HTTP_PROXY", format!("http://user:{MARK}-proxy@{host}")), ("http_proxy", format!("http://user:{MARK}-proxy@{host}"))]].concat(),
            options: vec!["--s3-endpoint".into(), "http://store.test".into()],
            ..aws("a proxy with a password", Vec::new())
        },
        Source {
            variables: [own(), vec![("HTTP_PROXY", format!("ftp://user:{MARK}-proxy@{host}:port")), ("http_proxy", format!("ftp://user:{MARK}-proxy@{host}:port"))]].concat(),
            options: vec!["--s3-endpoint".into(), "http://store.test".into()],
            ..aws("a proxy that is none", Vec::new())
        },
        Source { variables: [own(), vec![("LANEWAY_CUSTOMER_KEY", format!("{MARK}-customer-key"))]].concat(), ..aws("a customer's key that is none", Vec::new()) },
        Source { variables: [own(), vec![("LANEWAY_CUSTOMER_KEY", customer_key())]].concat(), ..aws("a customer's key", Vec::new()) },
        Source {
            options: vec!["--customer-key-file".into(), file("customer-key")],
            files: vec![("customer-key", customer_key())],
            ..aws("a customer's key in a file", own())
        },
        adc("a login of gcloud's", user.clone()),
        adc("a login of another type", serde_json::json!({"type": "other", "refresh_token": secret("refresh")})),
        adc("a service account whose key is none", serde_json::json!({
            "type": "service_account", "client_email": "a@p", "private_key": format!("-----BEGIN PRIVATE KEY-----\n{MARK}\n-----END PRIVATE KEY-----\n"),
            "private_key_id": "k", "token_uri": format!("{server}/oauth"),
        })),
        adc("an external account", federated),
        adc("an external account of a client", named),
        adc("a login of another directory", directory),
        adc("an account that is impersonated", serde_json::json!({
            "type": "impersonated_service_account", "source_credentials": user,
            "service_account_impersonation_url": format!("{server}/impersonate/a@p:generateAccessToken"),
        })),
        Source { cloud: Cloud::Google, ..aws("a machine of Google's", vec![("GCE_METADATA_HOST", host.clone()), ("GCE_METADATA_IP", host), ("NO_GCE_CHECK", "false".into())]) },
        azure("an account's key", vec![("AZURE_STORAGE_KEY", account_key.clone())]),
        azure("an account's key that is none", vec![("AZURE_STORAGE_KEY", secret("account"))]),
        azure("a SAS token", vec![("AZURE_STORAGE_SAS_TOKEN", sas.clone())]),
        azure("a SAS token that has expired", vec![("AZURE_STORAGE_SAS_TOKEN", sas.replace("2099", "2009"))]),
        connected("a connection string", format!("AccountKey={account_key}")),
        connected("a connection string with a SAS token", format!("SharedAccessSignature={sas}")),
        connected("a connection string that is none", format!("AccountKey {account_key};{sas}")),
        azure("a token of Entra ID", vec![("AZURE_STORAGE_TOKEN", secret("token"))]),
        entra("an application of Entra ID", vec![("AZURE_CLIENT_SECRET", secret("client"))]),
        Source {
            files: vec![("token", secret("workload"))],
            ..entra("a workload of Entra ID", vec![("AZURE_FEDERATED_TOKEN_FILE", file("token"))])
        },
        azure("a host of Azure's", vec![("IDENTITY_ENDPOINT", format!("{server}/msi")), ("IDENTITY_HEADER", secret("host"))]),
        azure("a machine of Azure's", vec![("AZURE_POD_IDENTITY_AUTHORITY_HOST", server.to_owned())]),
        azure("a customer's key on Azure", vec![("AZURE_STORAGE_KEY", account_key), ("LANEWAY_CUSTOMER_KEY", customer_key())]),
    ]
}

/// The forms to look for: the secret itself, in hexadecimal, and in base64 at each offset.
static FORMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let inner = [0, 1, 2].map(|shift| {
        let text = base64(&[&vec![b'-'; shift][..], MARK.as_bytes()].concat());
        // Keep only the characters that don't depend on neighbouring bytes.
        text[if shift == 0 { 0 } else { shift + 1 }..text.len() - 4].to_vec()
    });
    let hex: String = MARK.bytes().map(|byte| format!("{byte:02x}")).collect();
    [vec![MARK.as_bytes().to_vec(), hex.into_bytes()], inner.to_vec()].concat()
});

fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |chunk: &[u8]| {
        let group =
            chunk.iter().chain([0; 2].iter()).take(3).fold(0u32, |group, byte| group << 8 | u32::from(*byte));
        [18, 12, 6, 0].map(|shift| DIGITS[(group >> shift & 63) as usize])
    };
    bytes.chunks(3).flat_map(digits).collect()
}

#[track_caller]
fn holds_none(what: &str, bytes: &[u8]) {
    for form in FORMS.iter() {
        assert!(
            memmem::find(bytes, form).is_none(),
            "{what} holds {:?}:\n{}",
            String::from_utf8_lossy(form),
            String::from_utf8_lossy(bytes)
        );
    }
}

/// Returns all files below a folder.
fn files(below: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(below).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
        match entry.is_dir() {
            true => found.extend(files(&entry)),
            false => drop(found.insert(entry)),
        }
    }
    found
}

/// The most verbose logs of the program and its libraries.
const TRACE: &str = "trace,h2=trace,rustls=trace,hyper=trace,tokio=trace,mio=trace";

/// The commands for `run`.
const LINES: &str = "cp small STORE://bucket/k
mv --manifest moved-in-run.manifest moved-in-run STORE://bucket/k
setmeta --metadata a=b STORE://bucket/k
sync tree STORE://bucket/
verify STORE://bucket/ tree
stat STORE://bucket/k
du STORE://bucket/
rm STORE://bucket/k
";

type Command = (Vec<String>, Option<&'static str>);

fn words(line: &str, scheme: &str) -> Vec<String> {
    line.replace("STORE", scheme).split(' ').map(str::to_owned).collect()
}

fn asked_with_and_without_logs(scheme: &str) -> Vec<Command> {
    let lines = [
        "cp -vvv --json --stats --manifest manifest small STORE://bucket/k",
        "cp -vvv large STORE://bucket/k",
        "ls -vvv -r STORE://bucket/",
        "verify --report report STORE://bucket/ .",
        "cat STORE://bucket/k",
    ];
    let both = |line: &str| {
        let words = words(line, scheme);
        let quiet = words.iter().filter(|word| *word != "-vvv").cloned().collect();
        [(words, Some(TRACE)), (quiet, None)]
    };
    lines.into_iter().flat_map(both).collect()
}

/// Returns the commands that each source runs against only one behaviour of the servers. The next source runs them against another
/// behaviour.
fn asked_with_logs(scheme: &str) -> Vec<Command> {
    let lines = [
        "sync --json --delete --manifest synced-up tree STORE://bucket/",
        "sync --stats --manifest synced-down STORE://bucket/ down",
        "cp --json -r --manifest copied STORE://bucket/ copies",
        "mv --json --manifest moved-up moved STORE://bucket/k",
        "mv --manifest moved-down STORE://bucket/k moved-back",
        "verify --json --report compared tree STORE://bucket/",
        "run --json --stats --manifest ran lines",
        "rm --json -r --yes --manifest removed STORE://bucket/",
        "setmeta --json --content-type a/b STORE://bucket/k",
        "du --json --total STORE://bucket/",
        "stat --json STORE://bucket/k",
        "cat --range 0-0 STORE://bucket/k",
        "ls --json STORE://",
        "mb --json STORE://made",
        "rb --json --force --yes STORE://made",
        "sign --json STORE://bucket/k",
    ];
    lines.into_iter().map(|line| (words(line, scheme), Some(TRACE))).collect()
}

/// Returns the commands for a source and the `nth` behaviour of the servers.
fn asked(scheme: &str, source: usize, nth: usize, moods: usize) -> Vec<Command> {
    let turned = asked_with_logs(scheme).into_iter().enumerate();
    let of_this_mood = turned.filter(|(turn, _)| (turn + source + nth).is_multiple_of(moods));
    asked_with_and_without_logs(scheme).into_iter().chain(of_this_mood.map(|(_, command)| command)).collect()
}

/// Runs commands in a new home folder and searches all their output for secrets.
fn look_through(source: usize, nth: usize) {
    let moods = all_moods().swap_remove(source);
    let mood = moods[nth];
    let server = serve(mood);
    let dir = tempfile::tempdir().expect("a folder");
    let home = dir.path().join("home");
    fs::create_dir(&home).expect("made");
    let Source { name, variables, options, files: given, cloud } =
        sources(&server.url(), &home).swap_remove(source);
    for (path, content) in given {
        fs::create_dir_all(home.join(path).parent().expect("a folder")).expect("made");
        fs::write(home.join(path), content).expect("written");
    }
    fs::create_dir(home.join("tree")).expect("made");
    for file in ["small", "moved", "moved-in-run", "tree/a", "tree/b"] {
        fs::write(home.join(file), "x").expect("written");
    }
    // A sparse file of zeros, which takes no space on the disk. It is just too large for one request.
    let large = fs::File::create(home.join("large")).expect("made");
    large.set_len(17 << 20).expect("lengthened");
    let scheme = cloud.scheme();
    fs::write(home.join("lines"), LINES.replace("STORE", scheme)).expect("written");
    let before = files(dir.path());
    let mut laneway = Program::new(LANEWAY, &home)
        .with("AWS_ENDPOINT_URL_S3", server.url())
        .with("AWS_ENDPOINT_URL_STS", server.url())
        .with("AWS_ENDPOINT_URL_SSO", server.url())
        .with("AWS_REGION", "us-east-1")
        .with("LANEWAY_RETRY_FOR", "0s")
        .with("RUST_BACKTRACE", "full")
        .in_folder(&home);
    if cloud == Cloud::Google {
        // A Google token is sent to Google's hosts only. The request goes through a proxy, which refuses.
        laneway = laneway.with("HTTPS_PROXY", server.url()).with("https_proxy", server.url());
    }
    for (variable, value) in variables {
        laneway = laneway.with(variable, value);
    }
    for (command, log) in asked(scheme, source, nth, moods.len()) {
        let laneway = log.map_or(laneway.clone(), |log| laneway.clone().with("LANEWAY_LOG", log));
        let run = laneway.run(command.iter().chain(&options));
        let what = format!("{name}, {mood:?}, {command:?}");
        holds_none(&format!("{what}: standard error"), run.stderr.as_bytes());
        // `sign` prints secrets on request: a URL with the session token, and the headers to send with it.
        if command[0] != "sign" {
            holds_none(&format!("{what}: standard output"), &run.stdout);
        }
        let is_meant = match REFUSED.contains(&name) {
            true => run.status == Some(2),
            false => matches!(run.status, Some(0 | 1)),
        };
        assert!(is_meant, "{what}: {:?} {}", run.status, run.stderr);
    }
    for path in files(dir.path()).difference(&before) {
        holds_none(&format!("{name}, {mood:?}: {}", path.display()), &fs::read(path).expect("read"));
    }
}

/// Returns the behaviours of the servers to test for each source.
fn all_moods() -> Vec<Vec<Mood>> {
    sources("http://localhost", Path::new("/")).iter().map(Source::moods).collect()
}

#[test]
fn every_command_is_asked_of_every_source_and_in_every_mood() {
    let (mut of_sources, mut in_moods) = (BTreeSet::new(), BTreeSet::new());
    for (source, moods) in all_moods().into_iter().enumerate() {
        for (nth, mood) in moods.iter().enumerate() {
            for (command, log) in asked("s3", source, nth, moods.len()) {
                of_sources.insert((source, command.clone(), log));
                in_moods.insert((format!("{mood:?}"), command, log));
            }
        }
    }
    let commands = asked_with_and_without_logs("s3").len() + asked_with_logs("s3").len();
    assert_eq!(of_sources.len(), commands * all_moods().len());
    assert_eq!(in_moods.len(), commands * MOODS.len());
}

/// Uses only four threads, so that other tests can run at the same time.
#[test]
fn no_source_of_credentials_shows_in_anything_that_is_written() {
    let moods = all_moods().into_iter().enumerate();
    let all: Vec<_> =
        moods.flat_map(|(source, moods)| (0..moods.len()).map(move |nth| (source, nth))).collect();
    std::thread::scope(|scope| {
        for part in all.chunks(all.len().div_ceil(4)) {
            scope.spawn(move || part.iter().for_each(|(source, nth)| look_through(*source, *nth)));
        }
    });
}

/// Checks that the store and the services did receive the secrets that no output may contain.
#[test]
fn the_secrets_are_used() {
    let server = serve(Mood::Fine);
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path())
        .with("AWS_ENDPOINT_URL_S3", server.url())
        .with("AWS_REGION", "us-east-1")
        .with("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/container", server.url()))
        .with("AWS_CONTAINER_AUTHORIZATION_TOKEN", secret("container"))
        .with("LANEWAY_CUSTOMER_KEY", customer_key());
    laneway.run(["cat", "s3://bucket/k"]).succeeds();
    let shown = |name: &str| {
        server.asked().iter().any(|asked| asked.header(name).is_some_and(|value| value.contains(MARK)))
    };
    assert!(shown("authorization") && shown("x-amz-security-token"));
    assert!(server.asked().iter().any(|asked| asked.header(CUSTOMER_KEY) == Some(&customer_key())));
    let sas = format!("sv=2021-12-02&ss=b&srt=sco&sp=rl&se={LATER}&sig={MARK}");
    let azure = Program::new(LANEWAY, home.path())
        .with("AZURE_STORAGE_SERVICE_ENDPOINT", format!("{}/acct", server.url()))
        .with("LANEWAY_CUSTOMER_KEY", customer_key());
    azure.clone().with("AZURE_STORAGE_SAS_TOKEN", sas).run(["cat", "az://bucket/k"]).succeeds();
    assert!(server.asked().iter().any(|asked| asked.target.contains(&format!("sig={MARK}"))));
    assert!(server.asked().iter().any(|asked| asked.header(AZURE_CUSTOMER_KEY) == Some(&customer_key())));
    let application = azure
        .with("AZURE_TENANT_ID", "tenant")
        .with("AZURE_CLIENT_ID", "client")
        .with("AZURE_AUTHORITY_HOST", server.url())
        .with("AZURE_CLIENT_SECRET", secret("client"));
    application.run(["cat", "az://bucket/k"]).succeeds();
    let is_asked = |asked: &Asked| String::from_utf8_lossy(&asked.body).contains(MARK);
    assert!(server.asked().iter().any(|asked| is_asked(asked) && asked.target.starts_with("/tenant/")));
    assert!(server.asked().iter().any(|asked| {
        is_of_azure(asked) && asked.header("authorization").is_some_and(|value| value.contains(MARK))
    }));
    holds_none("nothing", b"nothing");
    for (text, form) in
        [("-CANARY-", "LUNBTkFSWS0="), ("user:CANARY", "dXNlcjpDQU5BUlk="), ("CANARY-", "Q0FOQVJZLQ==")]
    {
        let found = std::panic::catch_unwind(|| holds_none(text, form.as_bytes()));
        assert!(found.is_err(), "{text} in base64 is overlooked");
    }
}

/// TLS and HTTP/2, with the logs of the libraries.
#[test]
fn logs_of_the_libraries_below_hold_no_header() {
    for wire in [Wire::TlsH2, Wire::TlsH1] {
        let endpoint = Endpoint::start(wire);
        fs::write(endpoint.folder().join("f"), "x").expect("written");
        let laneway = endpoint
            .program(LANEWAY)
            .with("AWS_SESSION_TOKEN", secret("session"))
            .with("LANEWAY_LOG", "trace,h2=trace,rustls=trace,hyper=trace,tokio_util=trace");
        for command in [["cp", "f", "s3://bucket/f"], ["cp", "f", "gs://bucket/f"]] {
            let header = ["--header", &format!("x-own: {MARK}")].map(str::to_owned);
            let run = laneway.run(command.iter().map(|word| (*word).to_owned()).chain(header));
            assert!(!run.stderr.is_empty());
            holds_none(&format!("{wire:?} {command:?}"), run.stderr.as_bytes());
            assert!(!run.stderr.contains("AWS4-HMAC"), "{}", run.stderr);
        }
    }
}

/// Until a signed URL expires, it gives access like a key.
#[test]
fn a_signed_url_that_is_typed_in_place_of_a_source_is_not_repeated() {
    let home = tempfile::tempdir().expect("a folder");
    for url in [
        format!("https://bucket.s3.amazonaws.com/k?X-Amz-Credential=ID&X-Amz-Signature={MARK}"),
        format!("https://user:{MARK}@host/k"),
        format!("s3://key:{MARK}@bucket/k"),
        format!("https://user:pa?{MARK}@host/k"),
        format!("gs://user:{MARK}#w@bucket/k"),
        format!("gs://user:{MARK}/w@bucket/k"),
        format!("https://acct.blob.core.windows.net/bucket/k?sv=2021-12-02&sp=r&sig={MARK}"),
        format!("az://bucket/k?sv=2021-12-02&sp=r&sig={MARK}"),
    ] {
        for command in [["cp", &url, "f"], ["ls", "-l", &url], ["cat", "-v", &url], ["rm", "-f", &url]] {
            let run = Program::new(LANEWAY, home.path()).with("LANEWAY_RETRY_FOR", "0s").run(command);
            assert_ne!(run.status, Some(0));
            holds_none(&format!("{command:?}"), run.stderr.as_bytes());
        }
    }
}
