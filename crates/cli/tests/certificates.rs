//! Servers that aren't to be trusted: program and library refuse each at once, with the cause by its name and before anything was sent.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use laneway::{Client, Provider};
use laneway_server::{Config, Server, Tls};
use laneway_testkit::Program;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// What a certificate is to be: whose, and by which name it calls itself.
fn params(host: &str, name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([host.to_owned()]).expect("a name");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// An authority, and its own certificate.
fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = params("authority.test", name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    (params.self_signed(&key).expect("signed").pem(), Issuer::new(params, key))
}

/// A certificate and its key, as PEM.
fn issued(params: &CertificateParams, by: Option<&Issuer<'static, KeyPair>>) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let signed = match by {
        Some(issuer) => params.signed_by(&key, issuer),
        None => params.self_signed(&key),
    };
    (signed.expect("signed").pem(), key.serialize_pem())
}

/// Asks for an object by program and library, in both dialects. Both are told to trust the authority.
fn refused(folder: &Path, url: &str, ca: &Path, words: &[&str]) {
    let laneway =
        Program::new(LANEWAY, folder).with("STORAGE_EMULATOR_HOST", url).with("AWS_ENDPOINT_URL_S3", url);
    for provider in [Provider::Gcs, Provider::S3] {
        let at = format!("{}://bucket", provider.scheme());
        let ca_file = ca.to_str().expect("a path of letters");
        let run = laneway.run(["--anonymous", "--ca-cert", ca_file, "cat", &format!("{at}/k")]).exits(1);
        assert!(!run.stderr.contains("retrying"), "{}", run.stderr);
        run.complains(words);
        let client = Client::builder().anonymous(true).ca_file(ca).gcs_endpoint(url).s3_endpoint(url);
        let client = client.retry_for(Duration::from_secs(60)).build().expect("a client");
        let error = client.bucket(&at).expect("a bucket").head("k").call().expect_err("it is refused");
        assert!(!error.is_retryable(), "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{word:?} is not in {error}");
        }
    }
}

#[test]
fn each_certificate_that_is_not_to_be_trusted_is_refused_with_its_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, pem: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, pem).expect("written");
        path
    };
    let (trusted_pem, trusted) = authority("trusted");
    let (_, unknown) = authority("unknown");
    let ca = write("ca.pem", &trusted_pem);
    let mut expired = params("localhost", "expired");
    (expired.not_before, expired.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let mut early = params("localhost", "early");
    (early.not_before, early.not_after) = (date_time_ymd(2120, 1, 1), date_time_ymd(2121, 1, 1));
    let mut own_authority = params("localhost", "own authority");
    own_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cases: [(CertificateParams, Option<_>, &[&str]); 6] = [
        (expired, Some(&trusted), &["certificate has expired", "not valid after"]),
        (early, Some(&trusted), &["certificate isn't valid yet", "clock"]),
        (
            params("elsewhere.test", "other host"),
            Some(&trusted),
            &["certificate is for another host", "elsewhere.test"],
        ),
        (params("localhost", "itself"), None, &["certificate is self-signed", "--ca-cert"]),
        (own_authority, None, &["certificate is self-signed"]),
        (
            params("localhost", "unknown root"),
            Some(&unknown),
            &["certificate comes from an unknown authority", "--ca-cert"],
        ),
    ];
    for (params, issuer, words) in cases {
        let (cert, key) = issued(&params, issuer);
        let tls = Tls::Files { cert: write("cert.pem", &cert), key: write("key.pem", &key) };
        let server = Server::start(Config { tls: Some(tls), ..Config::default() }).expect("it starts");
        refused(folder.path(), &format!("https://localhost:{}", server.addr().port()), &ca, words);
        assert_eq!(server.counters().requests, 0, "{words:?}: a request was sent");
    }
    // What is right is taken, so that nothing else was wrong with the others.
    let (cert, key) = issued(&params("localhost", "right"), Some(&trusted));
    let tls = Tls::Files { cert: write("cert.pem", &cert), key: write("key.pem", &key) };
    let server = Server::start(Config { tls: Some(tls), ..Config::default() }).expect("it starts");
    let client = Client::builder().anonymous(true).ca_file(&ca);
    let client =
        client.s3_endpoint(format!("https://localhost:{}", server.addr().port())).build().expect("a client");
    let error =
        client.bucket("s3://bucket").expect("a bucket").head("k").call().expect_err("there is nothing");
    assert!(error.is_not_found() && server.counters().requests > 0, "{error}");
}

/// The head of an answer in a version of TLS that is too old, and the alert of a server that has nothing newer.
fn old_answers() -> [Vec<u8>; 3] {
    let hello = |version: u8| {
        let body = [&[3, version][..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
        let handshake = [&[2, 0, 0, body.len() as u8][..], &body].concat();
        [&[22, 3, version, 0, handshake.len() as u8][..], &handshake].concat()
    };
    [hello(1), hello(2), vec![21, 3, 1, 0, 2, 2, 70]]
}

#[test]
fn a_server_that_speaks_only_tls_1_0_or_1_1_is_refused_with_that_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, authority("trusted").0).expect("written");
    for answer in old_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let accepted = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&accepted);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, SeqCst);
                let mut hello = [0; 4096];
                // Read, so that closing is no reset; what the client makes of the answer is what the test looks at.
                let _ = stream.read(&mut hello).and_then(|_| stream.write_all(&answer));
                let _ = stream.read(&mut hello);
            }
        });
        refused(folder.path(), &format!("https://127.0.0.1:{port}"), &ca, &["neither TLS 1.2 nor 1.3"]);
        // Two dialects, by program and library.
        assert_eq!(accepted.load(SeqCst), 4, "it was tried again");
    }
}
