//! Endpoints, credentials and certificates. For a wrong endpoint the program prints one line: where it was configured, and the
//! right form. Program and library refuse an untrusted server at once and before they send anything. The error names the cause.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use std::{fs, thread};

use laneway::{Client, Provider};
use laneway_server::{Config, Server, Tls};
use laneway_testkit::{Endpoint, Program, Scripted, Wire, answer, random_bytes};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const CURE: &str = "https://";

fn plain() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

/// Lists and uploads in plain HTTP at a port that expects TLS. The second job has several files, but reports the cause only once, for the
/// first file.
fn asked_in_plain_http(url: &str) -> (String, String) {
    let (endpoint, laneway) = plain();
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    for n in 0..5 {
        fs::write(endpoint.folder().join(format!("d/{n}")), "x").expect("written");
    }
    let laneway = laneway.with("AWS_ENDPOINT_URL_S3", url).with("STORAGE_EMULATOR_HOST", url);
    let listed = laneway.run(["ls", "gs://bucket"]).exits(1).complains(&["gs://bucket", CURE]);
    let copied = laneway.run(["cp", "-r", "d", "s3://bucket/"]).exits(1);
    (listed.stderr, copied.stderr)
}

#[test]
fn http_to_a_port_that_answers_with_a_tls_alert_names_https_at_once() {
    // A TLS alert: version, length, fatal, unexpected message.
    let alert = Scripted::serve(|_| vec![0x15, 3, 1, 0, 2, 2, 10]);
    let (listed, copied) = asked_in_plain_http(&alert.url());
    assert!(listed.contains("1 attempt in"), "{listed}");
    assert!(
        copied.contains(CURE) && copied.contains("1 failed, ") && copied.contains("not done"),
        "{copied}"
    );
}

#[test]
fn http_to_a_port_whose_server_says_that_it_wants_https_names_it_at_once() {
    for words in [
        "Client sent an HTTP request to an HTTPS server.\n",
        "<html><center>The plain HTTP request was sent to HTTPS port</center></html>",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
    ] {
        let server = Scripted::serve(move |_| answer(400, &[("Connection", "close")], words));
        let (listed, copied) = asked_in_plain_http(&server.url());
        assert!(listed.contains("1 attempt in"), "{listed}");
        assert!(
            copied.contains(CURE) && copied.contains("1 failed, ") && copied.contains("not done"),
            "{copied}"
        );
    }
}

#[test]
fn http_to_a_port_that_closes_without_a_word_names_https() {
    for wire in [Wire::TlsH1, Wire::TlsH2] {
        let endpoint = Endpoint::start(wire);
        let url = endpoint.url().replace("https://", "http://");
        let laneway = endpoint.program(LANEWAY);
        for s in ["gs", "s3"] {
            let ls = ["ls", "--retry-for", "0", "--gcs-endpoint", &url, "--s3-endpoint", &url];
            let bucket = format!("{s}://bucket");
            laneway.run(ls.iter().chain(&[bucket.as_str()])).exits(1).complains(&[&bucket, CURE]);
        }
    }
}

#[test]
fn https_to_a_port_that_speaks_plain_http_names_http_at_once() {
    let (endpoint, laneway) = plain();
    let tls = endpoint.url().replace("http://", "https://");
    let run = laneway.run(["ls", "gs://bucket", "--gcs-endpoint", &tls]).exits(1);
    let run = run.complains(&[&tls, "http://"]);
    assert!(run.stderr.contains("1 attempt in"), "{}", run.stderr);
}

#[test]
fn an_s3_endpoint_without_a_scheme_is_named_and_shown_how_to_write() {
    let (endpoint, laneway) = plain();
    let bare = endpoint.url().replace("http://", "");
    let forms = [endpoint.url(), format!("https://{bare}")];
    for variable in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] {
        let laneway = laneway.clone().without("AWS_ENDPOINT_URL_S3").with(variable, &bare);
        let run = laneway.run(["ls", "s3://bucket"]).exits(1);
        run.complains(&[&format!("{variable}:"), &forms[0], &forms[1]]);
    }
    let run = laneway.run(["ls", "s3://bucket", "--s3-endpoint", &bare]).exits(1);
    run.complains(&["--s3-endpoint:", &forms[0], &forms[1]]);
    assert_eq!(endpoint.server().counters().requests, 0);
}

#[test]
fn an_emulators_host_without_a_scheme_is_asked_in_plain_http() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    let laneway = laneway.with("STORAGE_EMULATOR_HOST", endpoint.url().replace("http://", ""));
    assert_eq!(laneway.run(["ls", "gs://bucket"]).succeeds().text(), "gs://bucket/k\n");
}

#[test]
fn what_a_variable_says_wrongly_is_named_with_it() {
    let (_endpoint, laneway) = plain();
    let run = laneway.clone().with("HTTPS_PROXY", "nothing://").run(["ls", "s3://bucket"]);
    run.complains(&["HTTPS_PROXY", "nothing://"]);
    for url in ["ftp://x", "http:/x"] {
        let run = laneway.clone().with("AWS_ENDPOINT_URL_S3", url).run(["ls", "s3://bucket"]);
        run.complains(&["AWS_ENDPOINT_URL_S3", url]);
        let run = laneway.clone().with("STORAGE_EMULATOR_HOST", url).run(["ls", "gs://bucket"]);
        run.complains(&["STORAGE_EMULATOR_HOST", url]);
    }
}

#[test]
fn an_endpoint_that_is_no_url_is_named() {
    let (_endpoint, laneway) = plain();
    let run = laneway.run(["--s3-endpoint", "nonsense", "ls", "s3://bucket"]);
    assert_ne!(run.status, Some(0));
    run.complains(&["nonsense"]);
}

/// Starts a server with one object, and returns the program of a user with this AWS configuration. No environment variable
/// names the server or its keys.
fn configured(wire: Wire, config: impl FnOnce(&Endpoint) -> String) -> (Endpoint, Program) {
    let endpoint = Endpoint::start(wire);
    let program = [
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
    ]
    .iter()
    .fold(endpoint.program(LANEWAY), |program, name| program.without(name));
    fs::write(endpoint.folder().join("f"), random_bytes(1, 1000)).expect("written");
    endpoint.program(LANEWAY).run(["cp", "f", "s3://bucket/f"]).succeeds();
    fs::create_dir_all(program.home().join(".aws")).expect("made");
    fs::write(program.home().join(".aws/config"), config(&endpoint)).expect("written");
    (endpoint, program)
}

fn keys() -> String {
    let keys = laneway_server::S3Config::default();
    format!("aws_access_key_id = {}\naws_secret_access_key = {}\n", keys.access_key, keys.secret_key)
}

#[test]
fn a_profile_sets_endpoint_keys_and_trusted_certificates() {
    let (_endpoint, laneway) = configured(Wire::TlsH2, |endpoint| {
        let ca = endpoint.ca_file().expect("certificates").display().to_string();
        let url = endpoint.url();
        format!(
            "[profile here]\nregion = us-east-1\nca_bundle = {ca}\nservices = local\n{}[services local]\ns3 =\n  endpoint_url = {url}\n",
            keys()
        )
    });
    let laneway = laneway.without("SSL_CERT_FILE").without("AWS_CA_BUNDLE");
    let run = laneway.run(["ls", "s3://bucket/", "--profile", "here"]).succeeds();
    assert_eq!(run.lines(), ["s3://bucket/f"]);
    laneway.clone().with("AWS_PROFILE", "here").run(["stat", "s3://bucket/f"]).succeeds();
}

#[test]
fn a_profile_that_is_missing_is_told_and_nobody_else_is_tried() {
    let (endpoint, laneway) = configured(Wire::Plain, |_| format!("[default]\n{}", keys()));
    let laneway = laneway.with("AWS_PROFILE", "typo").with("AWS_ENDPOINT_URL", endpoint.url());
    let run = laneway.run(["ls", "s3://bucket/"]).exits(1);
    assert!(run.stderr.contains("AWS_PROFILE names the profile \"typo\""), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let run = laneway.run(["ls", "s3://bucket/", "--profile", "gone"]).exits(1);
    assert!(run.stderr.contains("--profile names the profile \"gone\""), "{}", run.stderr);
}

#[test]
fn a_role_that_cannot_be_assumed_is_one_line_with_its_cause() {
    let (endpoint, laneway) = configured(Wire::Plain, |_| {
        format!("[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = gone\n{}", keys())
    });
    let run = laneway.with("AWS_ENDPOINT_URL", endpoint.url()).run(["ls", "s3://bucket/"]).exits(1);
    assert!(run.stderr.contains("role_arn of profile \"default\" in "), "{}", run.stderr);
    assert!(run.stderr.contains("its source_profile \"gone\" doesn't exist"), "{}", run.stderr);
    assert!(!run.stderr.contains(&laneway_server::S3Config::default().secret_key), "{}", run.stderr);
}

#[test]
fn a_program_that_gives_keys_leaves_standard_input_to_the_upload() {
    let (endpoint, laneway) = configured(Wire::Plain, |endpoint| {
        let script = endpoint.folder().join("keys.sh").display().to_string();
        format!("[default]\nregion = us-east-1\ncredential_process = sh {script}\n")
    });
    let keys = laneway_server::S3Config::default();
    let document = format!(
        r#"{{"Version":1,"AccessKeyId":"{}","SecretAccessKey":"{}"}}"#,
        keys.access_key, keys.secret_key
    );
    fs::write(endpoint.folder().join("keys.sh"), format!("cat >/dev/null\necho '{document}'\n"))
        .expect("written");
    let laneway = laneway.with("AWS_ENDPOINT_URL", endpoint.url());
    let bytes = random_bytes(2, 1 << 20);
    // Before the upload the program asks whether the object exists.
    laneway.run_with_input(["cp", "-n", "-", "s3://bucket/piped"], &bytes).succeeds();
    assert!(laneway.run(["cat", "s3://bucket/piped"]).succeeds().stdout == bytes);
}

#[test]
fn the_option_for_addressing_goes_before_the_profiles() {
    let (_endpoint, laneway) = configured(Wire::Plain, |endpoint| {
        let url = endpoint.url();
        format!("[default]\nendpoint_url = {url}\ns3 =\n  addressing_style = virtual\n{}", keys())
    });
    let laneway = laneway.with("AWS_REGION", "us-east-1");
    laneway.run(["ls", "s3://bucket/", "--s3-addressing", "path"]).succeeds();
    laneway.run(["ls", "s3://bucket/", "--s3-addressing", "both"]).exits(2);
}

/// The program reads the MFA code from the terminal, not from standard input's buffer, and sends it to STS.
#[cfg(target_os = "linux")]
#[test]
fn an_mfa_code_is_asked_for_on_the_terminal() {
    use std::io::{Read as _, Write as _};

    use laneway_testkit::{Scripted, answer};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let keys_of_the_role = {
        let keys = laneway_server::S3Config::default();
        let (id, secret) = (keys.access_key, keys.secret_key);
        format!(
            "<AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>T</SessionToken>"
        )
    };
    let sts = Scripted::serve(move |_| {
        let handed = format!(
            "<Credentials>{keys_of_the_role}<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>"
        );
        answer(
            200,
            &[],
            format!("<AssumeRoleResponse><AssumeRoleResult>{handed}</AssumeRoleResult></AssumeRoleResponse>"),
        )
    });
    let (endpoint, laneway) = configured(Wire::Plain, |_| {
        let role =
            "role_arn = arn:aws:iam::1:role/r\nmfa_serial = arn:aws:iam::1:mfa/me\nsource_profile = base\n";
        format!("[profile m]\n{role}[profile base]\n{}", keys())
    });
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("text");
    // The first terminal that a session leader opens becomes its controlling terminal.
    let line = format!("exec \"$0\" \"$@\" <{name} 2>{name}");
    let running = Program::new("setsid", laneway.home())
        .with("AWS_ENDPOINT_URL_S3", endpoint.url())
        .with("AWS_ENDPOINT_URL_STS", sts.url())
        .with("AWS_REGION", laneway_server::S3Config::default().region)
        .start(["--wait", "/bin/sh", "-c", &line, LANEWAY, "ls", "s3://bucket/", "--profile", "m"]);
    let (mut terminal, mut seen) = (fs::File::from(terminal), Vec::new());
    while !String::from_utf8_lossy(&seen).contains("MFA code of arn:aws:iam::1:mfa/me:") {
        let mut bytes = [0; 256];
        let read = terminal.read(&mut bytes).unwrap_or(0);
        assert!(read > 0, "it ended without a question: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..read]);
    }
    terminal.write_all(b"123456\n").expect("typed");
    assert_eq!(running.end().succeeds().lines(), ["s3://bucket/f"]);
    let asked = String::from_utf8(sts.asked()[0].body.clone()).expect("a form");
    assert!(asked.contains("TokenCode=123456") && asked.contains("SerialNumber="), "{asked}");
}

/// Parameters of a certificate for a host, with a common name.
fn params(host: &str, name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([host.to_owned()]).expect("a name");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Creates an authority and its own certificate.
fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = params("authority.test", name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    (params.self_signed(&key).expect("signed").pem(), Issuer::new(params, key))
}

/// Issues a certificate, and returns it and its key as PEM.
fn issued(params: &CertificateParams, by: Option<&Issuer<'static, KeyPair>>) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let signed = match by {
        Some(issuer) => params.signed_by(&key, issuer),
        None => params.self_signed(&key),
    };
    (signed.expect("signed").pem(), key.serialize_pem())
}

/// Requests an object through program and library, in both dialects. Both trust the authority, and both must refuse.
fn refused(folder: &Path, url: &str, ca: &Path, words: &[&str]) {
    let laneway =
        Program::new(LANEWAY, folder).with("STORAGE_EMULATOR_HOST", url).with("AWS_ENDPOINT_URL_S3", url);
    for provider in [Provider::Gcs, Provider::S3] {
        let at = format!("{}://bucket", provider.scheme());
        let ca_file = ca.to_str().expect("a path of letters");
        let run = laneway.run(["--anonymous", "--ca-cert", ca_file, "cat", &format!("{at}/k")]).exits(1);
        assert!(!run.stderr.contains("retrying"), "{}", run.stderr);
        assert!(!run.stderr.contains("OtherError"), "{}", run.stderr);
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
        (
            own_authority,
            None,
            &["certificate is self-signed", "CA:TRUE", "basicConstraints=CA:FALSE", "--ca-cert"],
        ),
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
    // A valid certificate is accepted, so each one above fails only for its own defect.
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

/// The start of an answer in an outdated version of TLS, and the alert of a server that supports nothing newer.
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
                // Read the request first, because closing a socket with unread data resets the connection.
                let _ = stream.read(&mut hello).and_then(|_| stream.write_all(&answer));
                let _ = stream.read(&mut hello);
            }
        });
        refused(folder.path(), &format!("https://127.0.0.1:{port}"), &ca, &["neither TLS 1.2 nor 1.3"]);
        // Program and library each tried both dialects once.
        assert_eq!(accepted.load(SeqCst), 4, "it was tried again");
    }
}
