//! `cp -z`: files that are stored compressed.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::process::Command;

use laneway_testkit::{Endpoint, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

fn write(endpoint: &Endpoint, name: &str, bytes: &[u8]) {
    let path = endpoint.folder().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, bytes).expect("written");
}

/// What `gunzip` makes of bytes.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("made");
    file.write_all(bytes).and_then(|()| file.rewind()).expect("written");
    let run = Command::new("gzip").arg("-dc").stdin(file).output().expect("gzip runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

#[test]
fn files_of_some_extensions_are_stored_compressed() {
    let page = "<p>\n".repeat(10_000);
    for scheme in ["gs", "s3"] {
        for wire in [Wire::Plain, Wire::TlsH2] {
            let endpoint = Endpoint::start(wire);
            let laneway = endpoint.program(LANEWAY);
            write(&endpoint, "site/index.html", page.as_bytes());
            write(&endpoint, "site/robots.txt", b"");
            write(&endpoint, "site/logo.svg", page.as_bytes());
            let url = format!("{scheme}://bucket/p");
            let run = laneway.run(["cp", "--json", "-r", "-z", "html,.txt", "site", &url]).succeeds();
            assert_eq!(run.record("summary")["unverified"], serde_json::Value::Null);

            let stored = |key: &str| endpoint.server().store().read("bucket", key).expect("it is there");
            assert_eq!(gunzip(&stored("p/index.html")), page.as_bytes());
            assert_eq!(gunzip(&stored("p/robots.txt")), b"");
            assert_eq!(stored("p/logo.svg"), page.as_bytes());

            let stat = |name: &str| {
                laneway.run(["stat", "--json", &format!("{url}/{name}")]).succeeds().record("object")
            };
            let (html, svg) = (stat("index.html"), stat("logo.svg"));
            assert_eq!(
                (&html["content_encoding"], &html["content_type"]),
                (&"gzip".into(), &"text/html".into())
            );
            assert_eq!(html["cache_control"], "no-transform");
            assert!(svg["content_encoding"].is_null() && svg["cache_control"].is_null(), "{svg}");

            laneway.run(["cp", &format!("{url}/index.html"), "back"]).succeeds();
            let back = fs::read(endpoint.folder().join("back")).expect("it came back");
            assert_eq!(gunzip(&back), page.as_bytes());
            let cat = laneway.run(["cat", &format!("{url}/index.html")]).succeeds();
            assert_eq!(cat.stdout, back);
        }
    }
}

#[test]
fn a_move_compresses_too() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    write(&endpoint, "a.txt", b"text");
    laneway
        .run(["mv", "-z", "txt", "--cache-control", "max-age=60", "a.txt", "gs://bucket/a.txt"])
        .succeeds();
    assert_eq!(gunzip(&endpoint.server().store().read("bucket", "a.txt").expect("there")), b"text");
    let object = laneway.run(["stat", "--json", "gs://bucket/a.txt"]).succeeds().record("object");
    assert_eq!(object["cache_control"], "max-age=60");
    assert!(!endpoint.folder().join("a.txt").exists());
}
