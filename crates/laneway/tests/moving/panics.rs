//! A process that panics while it holds secrets: in a task of the engine, and with a caller's values in its message.

use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::stream;
use laneway::{ClientBuilder, CustomerKey, Engine, Payload};
use laneway_server::{Config, S3Config, Server};

use crate::stage::BUCKET;

/// The beginning of each secret.
const MARK: &str = "CANARY";
/// The variable that makes the child process panic.
const PANICS: &str = "LANEWAY_TEST_PANICS";

#[test]
fn what_a_panic_shows_of_a_client_at_work_holds_no_secret() {
    if std::env::var_os(PANICS).is_some() {
        return panic_with_everything();
    }
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panics::what_a_panic_shows_of_a_client_at_work_holds_no_secret", "--nocapture"])
        .env(PANICS, "1")
        .env("HOME", home.path())
        .env("RUST_BACKTRACE", "full")
        .env("AWS_ACCESS_KEY_ID", "laneway")
        .env("AWS_SECRET_ACCESS_KEY", format!("{MARK}-key"))
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap();
    let shown = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&shown);
    assert!(!output.status.success(), "{text}");
    for panic in ["the stream panics", "the caller panics with ClientBuilder"] {
        assert!(text.contains(panic), "{panic:?} is not in {text}");
    }
    let hex: String = MARK.bytes().map(|byte| format!("{byte:02x}")).collect();
    // If a secret is at the start of a text, its first letters always look like this in base64.
    let encoded = BASE64_STANDARD.encode(MARK);
    let bytes = MARK.as_bytes().iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    for form in [MARK.to_owned(), hex, encoded, bytes] {
        assert!(!text.contains(&form), "{form:?} is in {text}");
    }
}

fn panic_with_everything() {
    let s3 = S3Config { secret_key: format!("{MARK}-key"), ..S3Config::default() };
    let server = Server::start(Config { s3, ..Config::default() }).unwrap();
    server.create_bucket(BUCKET).unwrap();
    let builder = ClientBuilder::from_env()
        .s3_endpoint(server.url())
        .header("x-own", &format!("{MARK}-header"))
        .unwrap()
        .customer_key(CustomerKey::parse(format!("{MARK:-<32}").as_bytes()).unwrap())
        .service_account_key(format!("{{\"private_key\":\"{MARK}\"}}"))
        .http_proxy(format!("http://user:{MARK}@proxy.test"))
        .no_proxy(["127.0.0.1"])
        .engine(Engine::builder().build());
    let client = builder.clone().build().unwrap();
    let bucket = client.bucket(&format!("s3://{BUCKET}")).unwrap();
    bucket.put("k", "bytes").call().unwrap();
    // The panic happens on the engine's thread. The engine continues.
    let broken = stream::iter((0..1).map(|_| -> std::io::Result<Bytes> { panic!("the stream panics") }));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        bucket.put("broken", Payload::stream(broken)).call()
    }));
    let missing = bucket.get("nothing").call().unwrap_err();
    let (reader, writer) = (pollster::block_on(bucket.open("k").into_future()).unwrap(), bucket.writer("w"));
    let (get, put, ranges) = (bucket.get("k"), bucket.put("k", "x"), bucket.get_ranges("k", [0..1, 2..3]));
    let job = client.copy(laneway::CopyRequest::new(vec![], laneway::Location::Standard));
    panic!(
        "the caller panics with {builder:?} {client:?} {bucket:?} {caught:?} {missing:?} {reader:?} {writer:?} {get:?} {put:?} \
         {ranges:?} {job:?}"
    );
}
