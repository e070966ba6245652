//! The program against malicious stores and wrong listings. Each command ends with a specific error, in bounded time and memory. If a wrong
//! listing lacks an object, no command removes the object's copy.

use std::path::{Path, PathBuf};
use std::{fs, thread};

use laneway_testkit::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, HEADERS, INITIAL_WINDOW_SIZE, PING, SETTINGS, frame, header,
    indexed_header, remembered_header, settings, status, window_update,
};
use laneway_testkit::{Asked, Peer, Played, Program, Run, Scripted, answer};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// Upper bound on the program's memory, thread stacks included. A page of a listing may take 64 MiB. The kernel enforces the limit,
/// because a short-lived program may end before it can be measured.
const MEMORY_MAX: u64 = 256 << 20;

/// The number of bytes in a flood. A program that keeps them all exceeds its memory limit.
const FLOOD: usize = 48 << 20;

/// The program in a home folder, and a file to transfer.
struct Stage {
    laneway: Program,
    home: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("f"), vec![7; 3 << 20]).expect("a file");
        let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
        Self { laneway: laneway.with("LANEWAY_RETRY_FOR", "0s"), home }
    }

    /// Returns the program, with this store as its endpoint in all dialects.
    fn at(&self, url: &str, ca_pem: Option<&str>) -> Program {
        let program = self
            .laneway
            .clone()
            .with("STORAGE_EMULATOR_HOST", url)
            .with("AWS_ENDPOINT_URL_S3", url)
            .with("AZURE_STORAGE_SERVICE_ENDPOINT", format!("{url}/account"));
        let Some(ca_pem) = ca_pem else { return program };
        let path = self.path("ca.pem");
        std::fs::write(&path, ca_pem).expect("written");
        program.with("AWS_CA_BUNDLE", path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

/// Runs a command that must fail, but not for lack of memory.
#[track_caller]
fn fails(program: &Program, command: &[&str], about: &str) -> Run {
    let program = program.clone().with_memory_max(MEMORY_MAX);
    let run = program.run(command.iter().chain(&["--anonymous"]));
    assert!(!lacks_memory(&run), "{about} {command:?}: {:?} {}", run.status, run.stderr);
    assert_eq!(run.status, Some(1), "{about} {command:?}: {} {}", run.text(), run.stderr);
    assert!(run.stderr.contains("laneway: "), "{about} {command:?}: {}", run.stderr);
    run
}

/// Returns true if an allocation failed: for a thread, for an error's text, or before the program started.
fn lacks_memory(run: &Run) -> bool {
    let words = ["memory", "os error 11)", "os error 12)"];
    run.status.is_none() || words.iter().any(|words| run.stderr.contains(words))
}

/// The other tests rely on the memory limit that this test checks.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the system keeps no such limit")]
fn what_takes_more_memory_than_it_may_have_is_found_out() {
    let stage = Stage::new();
    for (mib, is_enough) in [(4, false), (16, false), (256, true)] {
        let program = stage.at("http://127.0.0.1:1", None).with_memory_max(mib << 20);
        let run = program.run([COMMANDS[0], &["--anonymous"]].concat());
        assert_eq!(lacks_memory(&run), !is_enough, "{mib} MiB: {:?} {}", run.status, run.stderr);
    }
}

/// A store that completes HTTP/2's preface and then follows a script.
fn plays(play: impl Fn(&mut dyn Peer) + Send + Sync + 'static) -> Played {
    plays_with(&[], play)
}

fn plays_with(own: &'static [(u16, u32)], play: impl Fn(&mut dyn Peer) + Send + Sync + 'static) -> Played {
    Played::serve(move |peer| {
        // Each side acknowledges the other's settings without reading them.
        if peer.send(&[settings(own), frame(SETTINGS, ACK, 0, &[])].concat()) {
            peer.drain();
            play(peer);
        }
    })
}

/// The commands to try against each store.
const COMMANDS: [&[&str]; 3] =
    [&["ls", "gs://bkt/"], &["cp", "s3://bkt/k", "got"], &["cp", "f", "gs://bkt/k"]];

/// Tries each command against a store, side by side.
fn try_all(about: &str, url: &str, ca_pem: Option<&str>) {
    thread::scope(|scope| {
        for command in COMMANDS {
            scope.spawn(move || {
                let stage = Stage::new();
                fails(&stage.at(url, ca_pem), command, about);
                assert!(!stage.path("got").exists(), "{about}");
            });
        }
    });
}

#[test]
fn frames_without_end_that_bring_nothing() {
    let floods = [
        ("settings", settings(&[])),
        ("settings that change", [settings(&[(4, 1)]), settings(&[(4, 70_000)])].concat()),
        ("pings", frame(PING, 0, 0, &[1; 8])),
        ("unknown frames", frame(99, 0, 0, &[1; 100])),
        ("windows", window_update(0, 1)),
    ];
    for (about, flood) in floods {
        let store = plays(move |peer| {
            peer.flood(&flood, FLOOD / 8);
        });
        try_all(about, store.url(), Some(store.ca_pem()));
    }
}

#[test]
fn heads_without_end_and_heads_that_become_large() {
    let more = frame(CONTINUATION, 0, 1, &header("x-more", &"x".repeat(8000)).repeat(2));
    let endless = plays(move |peer| {
        peer.send(&frame(HEADERS, 0, 1, &status(200)));
        peer.flood(&more, FLOOD);
    });
    try_all("a head without end", endless.url(), Some(endless.ca_pem()));
    let empty = plays(|peer| {
        peer.send(&frame(HEADERS, 0, 1, &status(200)));
        peer.flood(&frame(CONTINUATION, 0, 1, &[]), FLOOD);
    });
    try_all("a head of nothing", empty.url(), Some(empty.ca_pem()));
    let bomb = plays(|peer| {
        let remembered = [status(103), remembered_header("x-bomb", &"b".repeat(4000))].concat();
        peer.send(&frame(HEADERS, END_HEADERS, 1, &remembered));
        let bomb = [status(200), vec![indexed_header(62); 16_000]].concat();
        peer.send(&frame(HEADERS, END_HEADERS, 1, &bomb));
        peer.drain();
    });
    try_all("a small head that is a large one", bomb.url(), Some(bomb.ca_pem()));
}

#[test]
fn informational_answers_without_end() {
    let hints = plays(|peer| {
        peer.flood(&frame(HEADERS, END_HEADERS, 1, &status(103)), FLOOD);
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            let stage = Stage::new();
            let run = fails(&stage.at(hints.url(), Some(hints.ca_pem())), COMMANDS[0], "h2");
            assert!(run.stderr.contains("informational"), "{}", run.stderr);
        });
        scope.spawn(|| try_all("103 over h2", hints.url(), Some(hints.ca_pem())));
        scope.spawn(|| {
            let scripted =
                Scripted::serve(|_| b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n".repeat(1 << 16));
            try_all("103 over h1", &scripted.url(), None);
        });
        scope.spawn(|| {
            let scripted =
                Scripted::serve(|_| [b"HTTP/1.1 200 OK\r\n".to_vec(), b"A: b\r\n".repeat(1 << 20)].concat());
            try_all("headers", &scripted.url(), None);
        });
        scope.spawn(|| {
            let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;".to_vec();
            let scripted = Scripted::serve(move |_| [chunked.clone(), vec![b'x'; 8 << 20]].concat());
            try_all("a chunk's extension", &scripted.url(), None);
        });
        scope.spawn(|| {
            let ended = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n".to_vec();
            let scripted = Scripted::serve(move |_| [ended.clone(), b"A: b\r\n".repeat(1 << 20)].concat());
            try_all("trailers", &scripted.url(), None);
        });
    });
}

#[test]
fn windows_that_overflow_and_bodies_beyond_them() {
    let overflowing = plays(|peer| {
        peer.send(&window_update(0, 0x7fff_ffff).repeat(2));
        peer.drain();
    });
    try_all("the connection's window", overflowing.url(), Some(overflowing.ca_pem()));
    let of_stream = plays(|peer| {
        peer.drain();
        peer.send(&window_update(1, 0x7fff_ffff).repeat(2));
        peer.drain();
    });
    try_all("a stream's window", of_stream.url(), Some(of_stream.ca_pem()));
    let setting = plays_with(&[(INITIAL_WINDOW_SIZE, u32::MAX)], |peer| {
        peer.drain();
    });
    try_all("a window larger than any", setting.url(), Some(setting.ca_pem()));
    // A server that ignores flow control windows.
    let beyond = plays(|peer| {
        peer.send(&frame(HEADERS, END_HEADERS, 1, &status(200)));
        peer.flood(&frame(DATA, 0, 1, &[7; 16_000]), 4 * FLOOD);
    });
    try_all("more than the window", beyond.url(), Some(beyond.ca_pem()));
    // A server that sends many tiny frames, each of which needs a buffer.
    let tiny = plays(|peer| {
        peer.send(&frame(HEADERS, END_HEADERS, 1, &status(200)));
        peer.flood(&frame(DATA, 0, 1, b"x"), FLOOD);
    });
    try_all("a body of tiny frames", tiny.url(), Some(tiny.ca_pem()));
}

/// Large documents that arrive byte by byte, with the expected beginning.
#[test]
fn listings_that_come_in_tiny_chunks_or_have_too_many_entries() {
    let beginnings = [
        ("s3://bkt/", "<ListBucketResult><Contents><Key>%41</Key><Size>1</Size></Contents><Name>"),
        ("gs://bkt/", "{\"items\":[{\"name\":\"a\",\"size\":\"1\"}],\"prefixes\":[\""),
        (
            "az://bkt/",
            "<EnumerationResults><Blobs><Blob><Name>A</Name><Properties><Content-Length>1</Content-Length></Properties></Blob><Name>",
        ),
    ];
    let many = [
        ("s3://bkt/", "<ListBucketResult>", "<Contents><Key>KEY</Key><Size>1</Size></Contents>"),
        ("gs://bkt/", "{\"kind\":\"storage#objects\",\"items\":[", "{\"name\":\"KEY\",\"size\":\"1\"},"),
        (
            "az://bkt/",
            "<EnumerationResults><Blobs>",
            "<Blob><Name>KEY</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>",
        ),
    ];
    const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    thread::scope(|scope| {
        for (url, beginning) in beginnings {
            scope.spawn(move || {
                let whole = format!("{HEAD}{:x}\r\n{beginning}\r\n", beginning.len());
                let scripted =
                    Scripted::serve(move |_| [whole.as_bytes(), &b"1\r\nx\r\n".repeat(3 << 20)].concat());
                let stage = Stage::new();
                fails(&stage.at(&scripted.url(), None), &["ls", url], "byte by byte");
            });
        }
        for (url, beginning, entry) in many {
            scope.spawn(move || {
                let entries: String =
                    (0..400_000).map(|n| entry.replace("KEY", &format!("{n:06}"))).collect();
                let scripted = Scripted::serve(move |_| answer(200, &[], format!("{beginning}{entries}")));
                let stage = Stage::new();
                let run = fails(&stage.at(&scripted.url(), None), &["ls", "-r", url], "many entries");
                assert!(run.stderr.contains("50000 entries"), "{}", run.stderr);
            });
        }
    });
}

/// Answers that claim to be compressed. Laneway stores and verifies objects as they arrive, and doesn't decompress documents.
#[test]
fn gzip_that_is_none_and_gzip_that_nobody_asked_for() {
    let bytes = b"these bytes are not gzip";
    let crc32c = "KCdQbA==";
    let cases: [(&str, &[u8], bool); 2] =
        [("right", bytes, true), ("wrong", b"those bytes are other ones", false)];
    for (about, body, is_right) in cases {
        let scripted = Scripted::serve(move |_| {
            let sum = format!("crc32c={crc32c}");
            let headers =
                [("Content-Encoding", "gzip"), ("x-goog-generation", "1"), ("x-goog-hash", sum.as_str())];
            answer(200, &headers, body)
        });
        let stage = Stage::new();
        let program = stage.at(&scripted.url(), None);
        if is_right {
            program.run(["cp", "gs://bkt/k", "got", "--anonymous"]).succeeds();
            assert_eq!(std::fs::read(stage.path("got")).expect("a file"), body, "{about}");
        } else {
            fails(&program, &["cp", "gs://bkt/k", "got"], about);
            assert!(!stage.path("got").exists());
        }
    }
    let packed = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];
    let scripted = Scripted::serve(move |_| answer(200, &[("Content-Encoding", "gzip")], packed));
    let stage = Stage::new();
    for url in ["gs://bkt/", "s3://bkt/", "az://bkt/"] {
        fails(&stage.at(&scripted.url(), None), &["ls", url], "a listing in gzip");
    }
}

/// Pages of a listing: the keys of each, and the token for the next page.
type Pages = &'static [(&'static [&'static str], Option<&'static str>)];

/// A wrong listing: its fault, its pages, and a part of the expected error.
const LISTINGS: [(&str, Pages, &str); 3] = [
    (
        "a page that leads to itself",
        &[(&["p/a"], Some("1")), (&["p/c"], Some("1"))],
        "repeats an earlier page",
    ),
    ("a page that comes again", &[(&["p/a", "p/b"], Some("1")), (&["p/a", "p/b"], None)], "repeats itself"),
    ("keys that nobody asked for", &[(&["p/a", "q/x"], None)], "the requested prefix"),
];

/// Listings in the store's own order, as at Storj.
const UNSORTED: [Pages; 2] =
    [&[(&["p/c", "p/d"], Some("1")), (&["p/a"], None)], &[(&["p/d", "p/c", "p/a"], None)]];

/// Serves the pages in all dialects, and an object of one byte under any key.
fn serve(pages: Pages) -> Scripted {
    Scripted::serve(move |asked: &Asked| {
        let token = |name: &str| {
            let (_, rest) = asked.target.split_once(&format!("{name}="))?;
            rest.split('&').next()?.parse::<usize>().ok()
        };
        let s3 = asked.target.contains("list-type=2");
        let gcs = asked.target.starts_with("/storage/v1/b/bucket/o?");
        let number = token("continuation-token").or_else(|| token("pageToken")).or_else(|| token("marker"));
        let (keys, next) = pages[number.unwrap_or(0)];
        match (asked.method.as_str(), s3, gcs) {
            ("GET", ..) if asked.target.contains("comp=list") => {
                let of = |key: &&str| {
                    format!(
                        "<Blob><Name>{key}</Name><Properties><Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified>\
                         <Etag>e</Etag><Content-Length>1</Content-Length></Properties></Blob>"
                    )
                };
                let (entries, next): (String, _) = (keys.iter().map(of).collect(), next.unwrap_or_default());
                let body = format!(
                    "<EnumerationResults><Blobs>{entries}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
                );
                answer(200, &[("Content-Type", "application/xml")], body)
            }
            ("GET", true, _) => {
                let of = |key: &&str| {
                    format!(
                        "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                         <ETag>\"e\"</ETag><Size>1</Size></Contents>"
                    )
                };
                let entries: String = keys.iter().map(of).collect();
                let token = next.map(|next| format!("<NextContinuationToken>{next}</NextContinuationToken>"));
                let (is_truncated, token) = (next.is_some(), token.unwrap_or_default());
                let body = format!(
                    "<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{entries}{token}</ListBucketResult>"
                );
                answer(200, &[("Content-Type", "application/xml")], body)
            }
            ("GET", _, true) => {
                let of = |key: &&str| {
                    format!(
                        r#"{{"name":"{key}","bucket":"bucket","size":"1","generation":"1","updated":"2026-01-01T00:00:00Z"}}"#
                    )
                };
                let items = keys.iter().map(of).collect::<Vec<_>>().join(",");
                let token = next.map(|next| format!(r#","nextPageToken":"{next}""#)).unwrap_or_default();
                let body = format!(r#"{{"kind":"storage#objects","items":[{items}]{token}}}"#);
                answer(200, &[("Content-Type", "application/json")], body)
            }
            ("GET" | "HEAD", ..) => answer(200, &[("ETag", "\"e\""), ("x-goog-generation", "1")], "x"),
            _ => answer(403, &[], ""),
        }
    })
}

/// Returns the program in a folder, with all clouds at one server.
fn program_at(server: &Scripted, home: &Path) -> Program {
    Program::new(LANEWAY, home)
        .with("AWS_ENDPOINT_URL", server.url())
        .with("STORAGE_EMULATOR_HOST", server.url())
        .with("AZURE_STORAGE_SERVICE_ENDPOINT", format!("{}/account", server.url()))
        .with("AZURE_STORAGE_KEY", "a2V5")
        .with("AWS_ACCESS_KEY_ID", "laneway")
        .with("AWS_SECRET_ACCESS_KEY", "secret")
        .with("AWS_REGION", "us-east-1")
        .in_folder(home)
}

#[test]
fn an_impossible_listing_ends_every_command_and_removes_nothing() {
    for (about, pages, why) in LISTINGS {
        let server = serve(pages);
        let home = tempfile::tempdir().expect("a folder");
        let program = program_at(&server, home.path());
        for scheme in ["s3", "gs", "az"] {
            let url = format!("{scheme}://bucket/p/");
            let kept = home.path().join(scheme);
            fs::create_dir(&kept).expect("a folder");
            fs::write(kept.join("kept"), "").expect("written");
            for command in [
                &["ls", "-r", &url][..],
                &["du", "-s", &url],
                &["cp", "-r", &url, "copied"],
                &["sync", "--delete", &url, scheme],
                &["verify", &url, scheme],
                &["rm", "-r", "--dry-run", &url],
            ] {
                let run = program.run(command).exits(1);
                // Repeated pages may also come from an unsorted store.
                let is_refused = matches!(command[0], "sync" | "verify") && run.stderr.contains("unsorted");
                assert!(run.stderr.contains(why) || is_refused, "{about}, {command:?}: {}", run.stderr);
            }
            assert!(kept.join("kept").exists(), "{about}: {scheme}");
        }
        // Batch removals are POSTs.
        let asked = server.asked();
        let is_read = |asked: &&Asked| matches!(asked.method.as_str(), "GET" | "HEAD");
        assert_eq!(asked.iter().find(|asked| !is_read(asked)).map(|asked| &asked.target), None, "{about}");
    }
}

#[test]
fn a_listing_without_order_ends_only_what_compares() {
    for pages in UNSORTED {
        let server = serve(pages);
        let home = tempfile::tempdir().expect("a folder");
        let program = program_at(&server, home.path());
        for scheme in ["s3", "gs", "az"] {
            let url = format!("{scheme}://bucket/p/");
            let run = program.run(["ls", "-r", &url]).exits(0);
            let listed = run.text();
            let mut keys: Vec<_> =
                listed.lines().map(|line| line.rsplit('/').next().unwrap_or_default()).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["a", "c", "d"], "{listed}");
            program.run(["rm", "-r", "--dry-run", &url]).exits(0);
            program.run(["cp", "-r", &url, scheme]).exits(0);
            for command in [&["sync", "--delete", &url, scheme][..], &["verify", &url, scheme]] {
                let run = program.run(command).exits(1);
                assert!(run.stderr.contains("unsorted") && run.stderr.contains("cp -r"), "{}", run.stderr);
            }
            let run = program.run(["du", &url]).exits(1);
            assert!(run.stderr.contains("use -s for the total"), "{}", run.stderr);
            program.run(["du", "-s", &url]).exits(0);
        }
    }
}

/// A GCS page holds only the token for the next one.
#[test]
fn a_truncated_s3_page_that_comes_again_is_an_error() {
    let body = "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>p/a</Key><Size>1</Size></Contents></ListBucketResult>";
    let server = Scripted::serve(move |_| answer(200, &[("Content-Type", "application/xml")], body));
    let home = tempfile::tempdir().expect("a folder");
    let program = Program::new(LANEWAY, home.path())
        .with("AWS_ENDPOINT_URL", server.url())
        .with("AWS_ACCESS_KEY_ID", "laneway")
        .with("AWS_SECRET_ACCESS_KEY", "secret")
        .with("AWS_REGION", "us-east-1");
    program
        .run(["ls", "-r", "s3://bucket/p/"])
        .exits(1)
        .complains(&["the listing says that it is truncated, but its next page would begin at"]);
}
