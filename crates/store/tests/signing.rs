//! Signed URLs: equal to those of boto3 and google-cloud-storage for the same time and key (`interop/signing.py` writes
//! them), signed by IAM, and accepted by the embedded server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderMap;
use laneway_lanes::{Lanes, Origin, Request};
use laneway_server::Server;
use laneway_store::{
    AccessKey, BearerToken, CredentialProvider, Environment, ErrorKind, ExpiringKey, Method, ObjectId,
    Provided, Provider, Settings, SignOptions, SignedUrl, Store,
};
use laneway_testkit::{Asked, Scripted, answer};
use serde::Deserialize;

#[derive(Deserialize)]
struct Cases {
    s3: Vec<Case>,
    gcs: Vec<Case>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Case {
    name: String,
    bucket: String,
    key: String,
    endpoint: Option<String>,
    path_style: Option<bool>,
    session_token: Option<String>,
    requester_pays: bool,
    method: Option<String>,
    expires_s: Option<u64>,
    headers: BTreeMap<String, String>,
    query: BTreeMap<String, String>,
    url: String,
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
}

/// The time in the cases: 2026-11-22T13:30:05Z.
fn at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_354_205)
}

fn lanes() -> Lanes {
    let retry_for = Duration::from_millis(500);
    Lanes::start(laneway_lanes::LanesConfig { retry_for, ..Default::default() }).expect("lanes")
}

fn options(method: Method, seconds: u64) -> SignOptions {
    SignOptions { method, expires: Duration::from_secs(seconds), ..SignOptions::default() }
}

/// Returns settings whose only GCS credentials are this file.
fn google(adc: &serde_json::Value) -> (Settings, tempfile::TempDir) {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("adc.json");
    std::fs::write(&path, adc.to_string()).expect("a file");
    let path = path.display().to_string();
    (Settings::from_environment(Environment::of([("GOOGLE_APPLICATION_CREDENTIALS", path)])), home)
}

fn service_account() -> serde_json::Value {
    let key = std::fs::read_to_string(folder().join("credentials/private_key.pem")).expect("a key");
    serde_json::json!({"type": "service_account", "client_email": "signer@laneway.iam.gserviceaccount.com", "private_key": key})
}

impl Case {
    fn options(&self) -> SignOptions {
        let pairs = |map: &BTreeMap<String, String>| map.clone().into_iter().collect();
        SignOptions {
            headers: pairs(&self.headers),
            query: pairs(&self.query),
            ..options(
                self.method.as_deref().unwrap_or("GET").parse().expect("a method"),
                self.expires_s.unwrap_or(3600),
            )
        }
    }

    async fn signed(&self, provider: Provider, settings: Settings) -> String {
        let store = Store::new(provider, &settings, lanes()).expect("a store");
        let id = ObjectId::new(&self.bucket, &self.key);
        let signed =
            store.sign(&id, &self.options(), at()).await.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let mut sent: Vec<_> = self.headers.keys().map(|name| name.to_ascii_lowercase()).collect();
        sent.sort_unstable();
        let mut named: Vec<_> = signed.headers.into_iter().map(|(name, _)| name).collect();
        named.sort_unstable();
        assert_eq!(named, sent, "{}", self.name);
        signed.url
    }
}

#[tokio::test]
async fn urls_are_those_of_boto3_and_google_cloud_storage() {
    let text = std::fs::read_to_string(folder().join("signing/cases.json")).expect("cases");
    let cases: Cases = serde_json::from_str(&text).expect("cases");
    assert!(cases.s3.len() >= 13 && cases.gcs.len() >= 10);
    for case in &cases.s3 {
        let mut key = AccessKey::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        key.session_token = case.session_token.clone();
        let settings = Settings {
            access_key: Some(key),
            region: Some("eu-west-1".to_owned()),
            s3_endpoint: case.endpoint.clone(),
            s3_path_style: case.path_style,
            request_payer: case.requester_pays,
            ..Settings::default()
        };
        assert_eq!(case.signed(Provider::S3, settings).await, case.url, "{}", case.name);
    }
    let (settings, _home) = google(&service_account());
    for case in &cases.gcs {
        let settings = Settings { gcs_endpoint: case.endpoint.clone(), ..settings.clone() };
        assert_eq!(case.signed(Provider::Gcs, settings).await, case.url, "{}", case.name);
    }
}

/// Sends a request by a URL, and returns the answer's status and body.
async fn asked(
    lanes: &Lanes,
    url: &str,
    method: &str,
    headers: &[(String, String)],
    body: &str,
) -> (u16, String) {
    let origin = Origin::parse(url).expect("an origin");
    let uri: http::Uri = url.parse().expect("a URL");
    let target = uri.path_and_query().expect("a target").as_str().parse().expect("a target");
    let mut request = Request::new(origin, method.parse().expect("a method"), target);
    request.headers = headers
        .iter()
        .map(|(name, value)| {
            (
                http::HeaderName::try_from(name).expect("a name"),
                http::HeaderValue::try_from(value).expect("a value"),
            )
        })
        .collect::<HeaderMap>();
    request.body = laneway_lanes::Body::from(bytes::Bytes::from(body.to_owned()));
    let response = lanes.exchange(request).await.expect("an answer");
    (response.head.status.as_u16(), String::from_utf8_lossy(&response.body).into_owned())
}

#[test]
fn the_embedded_server_takes_a_url_for_its_method_until_it_ends() {
    // The server has its own runtime.
    let server = Server::start(laneway_server::Config::default()).expect("a server");
    server.create_bucket("bkt").expect("a bucket");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(is_taken_until_it_ends(&server));
}

async fn is_taken_until_it_ends(server: &Server) {
    let s3 = Settings {
        access_key: Some(AccessKey::new("laneway", "lanewaysecret")),
        s3_endpoint: Some(server.url()),
        ..Settings::default()
    };
    let (gcs, _home) = google(&service_account());
    let gcs = Settings { gcs_endpoint: Some(server.url()), ..gcs };
    let lanes = lanes();
    let id = ObjectId::new("bkt", "a//b c+é");
    for (provider, settings) in [(Provider::S3, &s3), (Provider::Gcs, &gcs)] {
        let store = Store::new(provider, settings, lanes.clone()).expect("a store");
        let sign = async |options: SignOptions, now: SystemTime| -> SignedUrl {
            store.sign(&id, &options, now).await.unwrap_or_else(|e| panic!("{e}"))
        };
        let now = SystemTime::now();
        let mut typed = options(Method::Put, 60);
        typed.headers = vec![("Content-Type".to_owned(), "text/x-signed".to_owned())];
        let put = sign(typed, now).await;
        assert_eq!(asked(&lanes, &put.url, "PUT", &put.headers, "bytes").await.0, 200, "{provider:?}");
        let get = sign(options(Method::Get, 60), now).await;
        assert_eq!(asked(&lanes, &get.url, "GET", &[], "").await, (200, "bytes".to_owned()));
        let head = sign(options(Method::Head, 60), now).await;
        assert_eq!(asked(&lanes, &head.url, "HEAD", &[], "").await.0, 200);

        let (status, code, unsent) = match provider {
            Provider::Gcs => (400, "ExpiredToken", 400),
            _ => (403, "Request has expired", 403),
        };
        let late = sign(options(Method::Get, 60), now - Duration::from_secs(62)).await;
        let (refused, body) = asked(&lanes, &late.url, "GET", &[], "").await;
        assert!(refused == status && body.contains(code), "{provider:?}: {refused} {body}");
        // The signed headers must be sent.
        assert_eq!(asked(&lanes, &put.url, "PUT", &[], "bytes").await.0, unsent, "{provider:?}");
        if provider == Provider::S3 {
            assert_eq!(asked(&lanes, &get.url, "PUT", &[], "bytes").await.0, 403);
            let more = [("x-amz-meta-a".to_owned(), "b".to_owned())];
            let (refused, body) = asked(&lanes, &get.url, "GET", &more, "").await;
            assert!(refused == 403 && body.contains("not signed"), "{body}");
            let long = get.url.replace("X-Amz-Expires=60", "X-Amz-Expires=604801");
            let (refused, body) = asked(&lanes, &long, "GET", &[], "").await;
            assert!(refused == 400 && body.contains("AuthorizationQueryParametersError"), "{body}");
        }
        let delete = sign(options(Method::Delete, 60), now).await;
        assert_eq!(asked(&lanes, &delete.url, "DELETE", &[], "").await.0, 204);
        assert_eq!(asked(&lanes, &get.url, "GET", &[], "").await.0, 404);
    }
}

/// A provider of tokens, and of a key that expires ten minutes after the cases' time.
struct Broker;

impl CredentialProvider for Broker {
    fn name(&self) -> &str {
        "broker"
    }

    fn access_key(&self) -> Provided<'_, ExpiringKey> {
        let end = SystemTime::now() + Duration::from_secs(600);
        Box::pin(async move {
            Ok(ExpiringKey::new(AccessKey::new("id", "hush").session_token("token")).expires_at(end))
        })
    }

    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        Box::pin(async { Ok(BearerToken::new("hush")) })
    }
}

#[tokio::test]
async fn a_url_ends_with_the_temporary_key_that_signed_it_and_says_so() {
    let settings = Settings {
        credential_provider: Some(Arc::new(Broker)),
        region: Some("eu-west-1".to_owned()),
        s3_endpoint: Some("http://127.0.0.1:9".to_owned()),
        ..Settings::default()
    };
    let store = Store::new(Provider::S3, &settings, lanes()).expect("a store");
    let (id, now) = (ObjectId::new("bkt", "k"), SystemTime::now());
    let long = store.sign(&id, &options(Method::Get, 3600), now).await.expect("a URL");
    assert!(long.ends_early.is_some() && long.expires_at < now + Duration::from_secs(660));
    assert!(long.url.contains("X-Amz-Security-Token=token&X-Amz-Signature="), "{}", long.url);
    let short = store.sign(&id, &options(Method::Get, 60), now).await.expect("a URL");
    assert_eq!((short.ends_early, short.expires_at), (None, now + Duration::from_secs(60)));

    let store = Store::new(Provider::Gcs, &settings, lanes()).expect("a store");
    let error = store.sign(&id, &options(Method::Get, 60), now).await.expect_err("a token signs nothing");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    let message = error.to_string();
    assert!(
        message.contains("broker") && message.contains("gs://bkt/k") && !message.contains("hush"),
        "{message}"
    );
}

#[tokio::test]
async fn iam_signs_for_an_account_that_is_impersonated() {
    let server = Scripted::serve(|asked: &Asked| {
        let json = [("Content-Type", "application/json")];
        if asked.target.ends_with(":signBlob") {
            return answer(200, &json, r#"{"keyId":"1","signedBlob":"AAEC/w=="}"#);
        }
        answer(200, &json, r#"{"access_token":"mine","expires_in":3600}"#)
    });
    let account = "projects/-/serviceAccounts/robot@laneway.iam.gserviceaccount.com";
    let (settings, _home) = google(&serde_json::json!({
        "type": "impersonated_service_account",
        "service_account_impersonation_url": format!("{}/v1/{account}:generateAccessToken", server.url()),
        "delegates": ["one@laneway.iam.gserviceaccount.com"],
        "source_credentials": {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
            "token_uri": format!("{}/token", server.url())},
    }));
    let store = Store::new(Provider::Gcs, &settings, lanes()).expect("a store");
    let day = options(Method::Get, 86_400);
    let signed = store.sign(&ObjectId::new("bkt", "k"), &day, at()).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(
        signed.url.contains("X-Goog-Credential=robot%40laneway.iam.gserviceaccount.com%2F20261122%2Fauto")
    );
    assert!(signed.url.ends_with("&X-Goog-Signature=000102ff"), "{}", signed.url);
    // Google's keys are certain to be valid for half a day.
    assert_eq!(signed.expires_at, at() + Duration::from_secs(12 * 3600));
    assert!(signed.ends_early.is_some_and(|why| why.contains("12 hours")));

    let asked = server.asked();
    let signing = asked.iter().find(|asked| asked.target.ends_with(":signBlob")).expect("IAM was asked");
    assert_eq!((signing.method.as_str(), signing.header("authorization")), ("POST", Some("Bearer mine")));
    let body: serde_json::Value = serde_json::from_slice(&signing.body).expect("JSON");
    let payload = BASE64_STANDARD.decode(body["payload"].as_str().expect("a payload")).expect("base64");
    let payload = String::from_utf8(payload).expect("text");
    assert!(
        payload.starts_with("GOOG4-RSA-SHA256\n20261122T133005Z\n20261122/auto/storage/goog4_request\n"),
        "{payload}"
    );
    assert_eq!(body["delegates"][0], "one@laneway.iam.gserviceaccount.com");
}

#[tokio::test]
async fn who_cannot_sign_is_told_why() {
    let user = serde_json::json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"});
    let id = ObjectId::new("bkt", "k");
    let refused = async |provider, settings: &Settings, options: &SignOptions| {
        let store = Store::new(provider, settings, lanes()).expect("a store");
        store.sign(&id, options, at()).await.expect_err("no URL")
    };
    let hour = options(Method::Get, 3600);
    let (login, _home) = google(&user);
    let error = refused(Provider::Gcs, &login, &hour).await;
    assert!(
        error.kind() == ErrorKind::Unauthenticated && error.to_string().contains("service account"),
        "{error}"
    );
    let anonymous = Settings { anonymous: true, ..Settings::default() };
    for provider in [Provider::Gcs, Provider::S3] {
        let region = Settings { region: Some("eu-west-1".to_owned()), ..anonymous.clone() };
        let error = refused(provider, &region, &hour).await;
        assert!(
            error.kind() == ErrorKind::Unauthenticated && error.to_string().contains("anonymous"),
            "{error}"
        );
    }
    let keyed = Settings { access_key: Some(AccessKey::new("a", "b")), ..Settings::default() };
    for long in [options(Method::Get, 604_801), options(Method::Get, 0)] {
        assert_eq!(refused(Provider::S3, &keyed, &long).await.kind(), ErrorKind::Invalid);
    }
}
