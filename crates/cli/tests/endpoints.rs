//! An endpoint that is written wrongly gets one line that names where it was written and how to write it.

use std::fs;

use laneway_testkit::{Endpoint, Program, Scripted, Wire, answer};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const CURE: &str = "https://";

fn plain() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

/// Lists and uploads at a port that wants TLS, in plain HTTP. The second job has several files, of which the first says it
/// for all.
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
    // Protocol version, length, fatal, unexpected message.
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
