//! Malicious stores: keys that escape the folder, links that appear during a download, redirects, and documents that grow
//! when they are decoded.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway::{Client, CopyRequest, Engine, ListRequest, Location, Provider, SyncRequest};
use laneway_testkit::{Scripted, answer};

use crate::stage::{ALL_DIALECTS, BUCKET, DIALECTS, Place, Report, Stage, at_once, noise};

/// Returns keys that escape a folder or aren't valid file names, and keys that only look unsafe.
fn hostile_keys() -> Vec<String> {
    let climbing = [
        "..",
        ".",
        "../x",
        "../../x",
        "a/..",
        "a/../..",
        "a/../../x",
        "./x",
        "a/./x",
        "a/.",
        "../outside/f",
        "/etc/x",
    ];
    let empty = ["/", "//", "//x", "a//x", "a///x", "x//", "/../x", "/./x", "//../x", "a//../../x"];
    let control = [
        "nul\0l",
        "nul/\0/x",
        "\0",
        "line\nfeed",
        "car\rriage",
        "esc\u{1b}[2J",
        "bell\u{7}",
        "tab\t",
        "\u{202e}txt.exe",
        "\u{feff}bom",
    ];
    let escaped = [
        "%2e%2e/x",
        "..%2fx",
        "%2e%2e%2fx",
        "..%00/x",
        "..\\x",
        "..\\..\\x",
        "C:\\x",
        "c:x",
        "\\\\host\\share",
        "..;/x",
    ];
    let special = [
        "~/x",
        "~root/x",
        "$HOME/x",
        "`id`",
        "$(id)",
        "-rf",
        "--help",
        "con",
        "nul",
        "aux.txt",
        "x.",
        "x ",
        " x",
        "*",
        "?",
        "[a]",
        "a|b",
        "a;b",
        ".bashrc",
        ".laneway-0123456789abcdef.part",
        ".x.laneway-0123456789abcdef.journal",
        "...",
        "..x",
        "x..",
    ];
    let groups = climbing.iter().chain(&empty).chain(&control).chain(&escaped).chain(&special);
    let long = ["n".repeat(255), "n".repeat(256), "d/".repeat(400) + "x"];
    groups.map(|key| (*key).to_owned()).chain(long).collect()
}

/// Returns the content below a folder: the bytes of files and the targets of links. The folder `but` is left
/// out.
fn snapshot(below: &Path, but: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path == but {
            continue;
        }
        let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            found.extend(snapshot(&path, but));
            found.insert(path, Vec::new());
        } else if kind.is_symlink() {
            let to = std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
            found.insert(path, to);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

#[test]
fn no_key_leads_out_of_the_destination_in_any_job() {
    at_once(&ALL_DIALECTS, |kind| {
        let keys = hostile_keys();
        assert!(keys.len() >= 60, "{}", keys.len());
        let stage = Stage::new(kind);
        let stored: Vec<_> = keys
            .iter()
            .filter(|key| stage.server.store().put(BUCKET, &format!("t/{key}"), key.as_bytes()).is_ok())
            .collect();
        assert!(stored.len() >= 60, "{} of {}", stored.len(), keys.len());
        stage.object("t/good", b"good");
        stage.file("outside/f", "theirs");
        let out = stage.path("deep/er/out");
        std::fs::create_dir_all(&out).unwrap();
        symlink(stage.path("outside"), out.join("link")).unwrap();
        stage.object("t/link/f", b"evil");
        let before = snapshot(stage.dir.path(), &out);
        let named = || {
            let urls = stored.iter().map(|key| stage.url(&format!("t/{key}"))).collect();
            CopyRequest::new(urls, Location::Local(out.clone()))
        };
        let directions: [(&str, &dyn Fn() -> Report); 4] = [
            ("cp -r", &|| {
                stage.copy(
                    CopyRequest::new(vec![stage.url("t")], Location::Local(out.clone()))
                        .recursive(true)
                        .contents(true),
                )
            }),
            ("cp of a pattern", &|| stage.cp(stage.url("t/**"), Place::from(out.clone()))),
            ("cp of names", &|| stage.copy(named())),
            ("sync --delete", &|| {
                Report::of(
                    stage
                        .client
                        .sync(SyncRequest::new(stage.url("t"), Location::Local(out.clone())).delete(true)),
                )
            }),
        ];
        for (way, run) in directions {
            let report = run();
            assert!(report.summary.failed > 0 || !report.warnings.is_empty(), "{kind:?} {way}: {report:?}");
            assert_eq!(snapshot(stage.dir.path(), &out), before, "{kind:?} {way} wrote elsewhere");
            assert!(std::fs::symlink_metadata(out.join("link")).unwrap().is_symlink(), "{kind:?} {way}");
            if way != "cp of names" {
                assert_eq!(std::fs::read(out.join("good")).unwrap(), b"good", "{kind:?} {way}");
            }
            std::fs::remove_dir_all(&out).unwrap();
            std::fs::create_dir_all(&out).unwrap();
            symlink(stage.path("outside"), out.join("link")).unwrap();
        }
    });
}

/// A file's folder is replaced by a link during the download.
#[test]
fn a_link_that_is_laid_while_a_download_runs_is_not_followed() {
    at_once(&ALL_DIALECTS, |kind| {
        for size in [1000, 20 << 20] {
            let stage = Stage::with_faults(kind, &["get delay 1s"]);
            stage.object("t/sub/f", &noise(size, 1));
            stage.file("outside/f", "theirs");
            let (out, moved) = (stage.path("out"), stage.path("moved"));
            std::fs::create_dir_all(out.join("sub")).unwrap();
            let before = snapshot(&stage.path("outside"), &out);
            std::thread::scope(|scope| {
                let request = CopyRequest::new(vec![stage.url("t")], Location::Local(out.clone()));
                let job = scope.spawn(|| stage.copy(request.recursive(true).contents(true)));
                stage.wait_for("get", 1);
                std::fs::rename(out.join("sub"), &moved).unwrap();
                symlink(stage.path("outside"), out.join("sub")).unwrap();
                job.join().unwrap();
            });
            assert_eq!(snapshot(&stage.path("outside"), &out), before, "{kind:?} {size}");
            assert!(std::fs::symlink_metadata(out.join("sub")).unwrap().is_symlink(), "{kind:?} {size}");
        }
    });
}

fn client(scripted: &Scripted) -> Client {
    let settings = Client::builder()
        .gcs_endpoint(scripted.url())
        .s3_endpoint(scripted.url())
        .azure_endpoint(format!("{}/account", scripted.url()))
        .anonymous(true);
    settings.retry_for(Duration::ZERO).engine(Engine::builder().build()).build().unwrap()
}

/// If only an answer names a URL or a path, Laneway sends no request to that URL and writes no file to that
/// path.
#[test]
fn no_redirect_is_followed_to_another_host() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Scripted::serve(|_| answer(200, &[("ETag", "\"e\"")], "evil"));
        let to = format!("{}/bucket/k", elsewhere.url());
        let scripted = Scripted::serve(move |_| answer(status, &[("Location", &to)], ""));
        let dir = tempfile::tempdir().unwrap();
        let (source, out) = (dir.path().join("source"), dir.path().join("out"));
        std::fs::write(&source, "mine").unwrap();
        for provider in [Provider::Gcs, Provider::S3, Provider::Azure] {
            let url = || Location::object(provider, BUCKET, "k");
            let down = CopyRequest::new(vec![url()], Location::from(out.as_path()));
            let up = CopyRequest::new(vec![Location::from(source.as_path())], url());
            for request in [down, up] {
                let report = Report::of(client(&scripted).copy(request));
                assert_eq!(
                    (report.summary.files, report.failures().len()),
                    (0, 1),
                    "{provider:?} {status}: {report:?}"
                );
            }
            assert!(client(&scripted).stat(&url()).is_err(), "{provider:?} {status}");
        }
        assert!(elsewhere.asked().is_empty() && !out.exists(), "{status}: {:?}", elsewhere.asked());
    }
}

/// Manifests that don't match the job. Laneway refuses them before it sends a request or changes anything.
#[test]
fn manifests_that_others_have_written_are_refused() {
    let stage = Stage::new(DIALECTS[0]);
    stage.object("k", b"good");
    let at = stage.file("other", "").with_file_name("manifest");
    let job = || {
        let request = CopyRequest::new(vec![stage.url("k")], Location::Local(stage.path("out")));
        stage.copy(request.manifest(at.clone()))
    };
    job().all_done();
    let whole = std::fs::read_to_string(&at).unwrap();
    let (first, item) = whole.split_once('\n').unwrap();
    let with = |line: &str, from: &str, to: &str| {
        assert!(line.contains(from), "{from} is not in {line}");
        line.replace(from, to)
    };
    let deep = "[".repeat(200_000);
    let cases = [
        ("another format", format!("{}\n{item}", with(first, "\"format\":1", "\"format\":2"))),
        (
            "an enormous format",
            format!("{}\n{item}", with(first, "\"format\":1", "\"format\":99999999999999999999")),
        ),
        ("another job", format!("{}\n{item}", with(first, "\"job\":\"copy\"", "\"job\":\"remove\""))),
        ("foreign JSON", "{\"name\": \"mine\", \"version\": 3}\n".to_owned()),
        ("depth without end", format!("{deep}\n")),
        (
            "an enormous size",
            format!("{first}\n{}", with(item, "\"source_size\":4", "\"source_size\":1e400")),
        ),
        ("a size below none", format!("{first}\n{}", with(item, "\"source_size\":4", "\"source_size\":-4"))),
        ("depth in an item", format!("{first}\n{{\"kind\":\"item\",\"x\":{deep}\n")),
        ("a line without end", format!("{first}\n{{\"kind\":\"{}", "x".repeat(3 << 20))),
    ];
    for (about, text) in cases {
        std::fs::write(&at, &text).unwrap();
        let asked = stage.server.counters().requests;
        let (_, why) = job().failure();
        assert!(why.contains("manifest"), "{about}: {why}");
        assert_eq!(stage.server.counters().requests, asked, "{about}");
        assert_eq!(std::fs::read_to_string(&at).unwrap(), text, "{about}: the manifest is unchanged");
    }
}

/// Small documents that would become large or deeply nested when decoded.
#[test]
fn documents_that_grow_or_have_no_end_of_depth_are_errors() {
    let laughs: String = (1..20).map(|n| format!("<!ENTITY l{n} \"&l{};&l{};\">", n - 1, n - 1)).collect();
    let entry = "<Contents><Key>&l19;</Key><Size>1</Size></Contents>";
    let bomb = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY l0 \"ha\">{laughs}]><ListBucketResult>{entry}</ListBucketResult>"
    );
    let outside = format!(
        "<!DOCTYPE x [<!ENTITY l19 SYSTEM \"file:///etc/passwd\">]><ListBucketResult>{entry}</ListBucketResult>"
    );
    let deep = format!("<ListBucketResult>{}", "<a>".repeat(300_000));
    let of_azure = |document: &str| {
        let names = [
            ("ListBucketResult", "EnumerationResults"),
            ("Contents", "Blob"),
            ("Key", "Name"),
            ("Size", "Content-Length"),
        ];
        names.iter().fold(document.to_owned(), |document, (of_s3, own)| document.replace(of_s3, own))
    };
    let [azure_bomb, azure_outside, azure_deep] = [&bomb, &outside, &deep].map(|document| of_azure(document));
    let deep_json = format!("{{\"prefixes\":{}", "[".repeat(300_000));
    let cases = [
        (Provider::S3, bomb),
        (Provider::S3, outside),
        (Provider::S3, deep),
        (Provider::Gcs, deep_json),
        (Provider::Azure, azure_bomb),
        (Provider::Azure, azure_outside),
        (Provider::Azure, azure_deep),
    ];
    for (provider, body) in cases {
        let beginning: String = body.chars().take(60).collect();
        let scripted = Scripted::serve(move |_| answer(200, &[], &body));
        let mut listing =
            client(&scripted).list(ListRequest::new(Location::object(provider, BUCKET, "")).recursive(true));
        let listed: Vec<_> = std::iter::from_fn(|| listing.next_blocking()).take(3).collect();
        assert!(matches!(listed[..], [Err(_)]), "{beginning}: {listed:?}");
    }
}
