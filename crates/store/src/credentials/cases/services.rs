//! All services that issue credentials, at one address: STS, SSO, metadata servers, Google's token server and IAM. Each
//! credential's name contains the identity that requested it. The services behave like those in
//! `interop/credentials.py`.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use base64::Engine as _;
use percent_encoding::percent_decode_str;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

const LATER: &str = "2099-01-01T00:00:00Z";

const ROLES: &str = "/latest/meta-data/iam/security-credentials";

#[derive(Default)]
struct Record {
    asked: Mutex<Vec<String>>,
    failing: AtomicU32,
}

pub(super) struct Services {
    url: String,
    mutual: String,
    dead: String,
    record: Arc<Record>,
}

/// A request that has been read completely.
struct ReceivedRequest {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: String,
    /// The client's certificate, if the server asked for one.
    peer: Option<Vec<u8>>,
}

type ScriptedResponse = (u16, String);

impl Services {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let secured = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mutual = format!("https://localhost:{}", secured.local_addr().expect("an address").port());
        let record = Arc::new(Record::default());
        listen(listener, &record, |stream, record| serve(stream, |_| None, record));
        listen(secured, &record, |stream, record| {
            let tls = ServerConnection::new(certificates().server()).expect("TLS");
            let peer = |stream: &Tls| Some(stream.conn.peer_certificates()?.first()?.to_vec());
            serve(StreamOwned::new(tls, stream), peer, record);
        });
        Self { url, mutual, dead: format!("http://{closed}"), record }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL of the same services for clients with a certificate.
    pub(super) fn mutual(&self) -> &str {
        &self.mutual
    }

    /// Returns the URL of a port that refuses connections.
    pub(super) fn dead(&self) -> &str {
        &self.dead
    }

    /// Returns the paths of all requests.
    pub(super) fn asked(&self) -> Vec<String> {
        self.record.asked.lock().expect("the record").clone()
    }

    /// Answers the next `times` requests with 503.
    pub(super) fn fail_first(&self, times: u32) {
        self.record.failing.store(times, Ordering::SeqCst);
    }
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

fn listen(listener: TcpListener, record: &Arc<Record>, serve: fn(TcpStream, &Record)) {
    let kept = Arc::clone(record);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let record = Arc::clone(&kept);
            thread::spawn(move || serve(stream, &record));
        }
    });
}

fn serve<S: Read + Write>(stream: S, peer: impl Fn(&S) -> Option<Vec<u8>>, record: &Record) {
    let mut reader = BufReader::new(stream);
    while let Some(mut asked) = read(&mut reader) {
        asked.peer = peer(reader.get_ref());
        record.asked.lock().expect("the record").push(asked.path.clone());
        let failing =
            record.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let (status, body) = if failing.is_ok() { (503, String::new()) } else { answer(&asked) };
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nMetadata-Flavor: Google\r\n\r\n",
            body.len()
        );
        let stream = reader.get_mut();
        let written = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        if written.and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<impl Read>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = percent_decode_str(path).decode_utf8_lossy().into_owned();
    Some(ReceivedRequest {
        method,
        path,
        query: pairs(query),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        peer: None,
    })
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (decoded(name), decoded(value)));
    text.split('&').filter_map(pair).collect()
}

fn named<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    pairs.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
}

fn keys(name: &str) -> ScriptedResponse {
    let keys = json!({"Code": "Success", "AccessKeyId": name, "SecretAccessKey": "S", "Token": "T", "Expiration": LATER});
    (200, keys.to_string())
}

fn answer(asked: &ReceivedRequest) -> ScriptedResponse {
    let header = |name| named(&asked.headers, name);
    let has_session = header("x-aws-ec2-metadata-token") == "session";
    match (asked.method.as_str(), asked.path.trim_end_matches('/')) {
        ("PUT", "/latest/api/token") => (200, "session".to_owned()),
        ("GET", ROLES) if has_session => (200, "its-role".to_owned()),
        ("GET", "/latest/meta-data/iam/security-credentials/its-role") if has_session => keys("instance"),
        ("GET", "/latest/meta-data/placement/availability-zone") if has_session => {
            (200, "us-east-2b".to_owned())
        }
        ("GET", "/container") => match header("authorization") {
            "" => keys("container"),
            token => keys(&format!("container.{token}")),
        },
        ("GET", "/federation/credentials") => sso(asked),
        ("GET", "/subject") if header("ask") == "yes" => (200, json!({"token": "from-url"}).to_string()),
        ("GET", path)
            if path.ends_with("/service-accounts/default/token") && header("metadata-flavor") == "Google" =>
        {
            (200, json!({"access_token": "machine", "expires_in": 3600}).to_string())
        }
        ("POST", "/token") => {
            let renewed = json!({"accessToken": "renewed", "expiresIn": 3600, "refreshToken": "again-2"});
            (200, renewed.to_string())
        }
        ("POST", path) if path.starts_with("/impersonate/") => {
            let email = path.trim_start_matches("/impersonate/").trim_end_matches(":generateAccessToken");
            let base = header("authorization").trim_start_matches("Bearer ");
            (200, json!({"accessToken": format!("as.{email}.{base}"), "expireTime": LATER}).to_string())
        }
        ("POST", "/sts") => {
            let token = subject(named(&pairs(&asked.body), "subject_token"), asked.peer.as_deref());
            (200, json!({"access_token": format!("federated.{token}"), "expires_in": 3600}).to_string())
        }
        ("POST", "/oauth") => oauth(&pairs(&asked.body)),
        ("POST", "") => sts(asked, &pairs(&asked.body)),
        _ => (404, String::new()),
    }
}

fn sso(asked: &ReceivedRequest) -> ScriptedResponse {
    let login = named(&asked.headers, "x-amz-sso_bearer_token");
    if login == "revoked" {
        return (401, json!({"message": "Session token not found or invalid"}).to_string());
    }
    let (account, role) = (named(&asked.query, "account_id"), named(&asked.query, "role_name"));
    let keys = json!({
        "accessKeyId": format!("sso.{account}.{role}.{login}"), "secretAccessKey": "S", "sessionToken": "T",
        "expiration": 4_070_908_800_000_u64,
    });
    (200, json!({"roleCredentials": keys}).to_string())
}

fn oauth(form: &[(String, String)]) -> ScriptedResponse {
    let name = match (named(form, "grant_type"), named(form, "refresh_token")) {
        ("refresh_token", "withdrawn") => {
            let refusal =
                json!({"error": "invalid_grant", "error_description": "Token has been expired or revoked."});
            return (400, refusal.to_string());
        }
        ("refresh_token", login) => format!("user.{login}"),
        _ => {
            let claims = named(form, "assertion").split('.').nth(1).unwrap_or_default();
            let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(claims).expect("claims");
            let claims: Value = serde_json::from_slice(&claims).expect("claims");
            format!("account.{}", claims["iss"].as_str().expect("an issuer"))
        }
    };
    (200, json!({"access_token": name, "expires_in": 3600}).to_string())
}

fn sts(asked: &ReceivedRequest, form: &[(String, String)]) -> ScriptedResponse {
    let role = named(form, "RoleArn").rsplit('/').next().unwrap_or_default();
    if role == "forbidden" {
        let refusal = "<Code>AccessDenied</Code><Message>not you</Message>";
        return (403, format!("<ErrorResponse><Error><Type>Sender</Type>{refusal}</Error></ErrorResponse>"));
    }
    let action = named(form, "Action");
    let by = match action {
        "AssumeRole" => signer(named(&asked.headers, "authorization")),
        _ => named(form, "WebIdentityToken").to_owned(),
    };
    let external = match named(form, "ExternalId") {
        "" => String::new(),
        external => format!(".{external}"),
    };
    let code = match named(form, "TokenCode") {
        "" => String::new(),
        code => format!(".mfa-{code}"),
    };
    let keys = format!(
        "<AccessKeyId>{role}.{by}{external}{code}</AccessKeyId><SecretAccessKey>S</SecretAccessKey>\
         <SessionToken>T</SessionToken><Expiration>{LATER}</Expiration>"
    );
    (
        200,
        format!(
            "<{action}Response><{action}Result><Credentials>{keys}</Credentials></{action}Result></{action}Response>"
        ),
    )
}

fn signer(authorization: &str) -> String {
    let rest = authorization.split_once("Credential=").map_or("", |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default().to_owned()
}

/// Returns the name of the identity behind a subject token, so that tests can compare it. For AWS, the token is a
/// signed request, and the name consists of the signer and the URL's region. For certificates, the name contains their
/// number if the client presented the first one in the handshake.
fn subject(token: &str, peer: Option<&[u8]>) -> String {
    if token.starts_with('[') {
        let chain: Vec<String> = serde_json::from_str(token).expect("certificates");
        let shown = peer.map(|peer| base64::prelude::BASE64_STANDARD.encode(peer));
        let is_shown = chain.first() == shown.as_ref();
        return if is_shown { format!("certificate.{}", chain.len()) } else { "somebody else's".to_owned() };
    }
    if !token.starts_with("%7B") {
        return token.to_owned();
    }
    let request = percent_decode_str(token).decode_utf8_lossy();
    let request: Value = serde_json::from_str(&request).expect("a request");
    let headers = request["headers"].as_array().expect("headers");
    let header = |name: &str| {
        let found = headers
            .iter()
            .find(|header| header["key"].as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)));
        found.and_then(|header| header["value"].as_str()).unwrap_or_default()
    };
    assert!(!header("x-goog-cloud-target-resource").is_empty() && !header("host").is_empty());
    let region = request["url"].as_str().and_then(|url| url.split('.').nth(1)).unwrap_or_default();
    format!("aws.{}.{region}", signer(header("authorization")))
}

pub(super) struct Certificates {
    authority: Certificate,
    server: Arc<ServerConfig>,
    client: (Certificate, KeyPair),
    /// A certificate that the server doesn't trust.
    foreign: (Certificate, KeyPair),
}

pub(super) fn certificates() -> &'static Certificates {
    static MADE: OnceLock<Certificates> = OnceLock::new();
    MADE.get_or_init(Certificates::make)
}

struct Authority(Certificate, Issuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(params.self_signed(&key).expect("a certificate"), Issuer::new(params, key))
    }

    fn issue(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("names");
        (params.signed_by(&key, &self.1).expect("a certificate"), key)
    }
}

impl Certificates {
    fn make() -> Self {
        let authority = Authority::new("authority");
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let (certificate, key) = authority.issue("localhost");
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier.build().expect("a verifier"))
            .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().expect("a key"))
            .expect("a certificate");
        let (client, foreign) = (authority.issue("client"), Authority::new("foreign").issue("foreign"));
        Self { authority: authority.0, server: Arc::new(server), client, foreign }
    }

    pub(super) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// Returns the certificate authority, so that a client trusts the server.
    pub(super) fn authority(&self) -> String {
        self.authority.pem()
    }

    /// Returns the files that cases find in their home folder.
    pub(super) fn files(&self) -> [(&'static str, String); 7] {
        let (authority, client) = (self.authority.pem(), self.client.0.pem());
        [
            ("x509/client.key", self.client.1.serialize_pem()),
            ("x509/foreign.pem", self.foreign.0.pem()),
            ("x509/foreign.key", self.foreign.1.serialize_pem()),
            ("x509/chain.pem", format!("{client}{authority}")),
            ("x509/backwards.pem", format!("{authority}{client}")),
            ("x509/client.pem", client),
            ("x509/authority.pem", authority),
        ]
    }
}
