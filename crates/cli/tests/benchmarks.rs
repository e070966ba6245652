//! `laneway bench`: its output, and the page that it leaves, in a real browser.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use laneway_testkit::Program;
use serde_json::Value;

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

fn program(home: &Path) -> Program {
    let temporary = home.join("tmp");
    std::fs::create_dir(&temporary).expect("made");
    Program::new(LANEWAY, home).with("TMPDIR", &temporary).in_folder(home)
}

/// The records of a kind, and their fields.
fn fields(lines: &[Value], kind: &str, bench: Option<&str>) -> (usize, BTreeSet<String>) {
    let records =
        lines.iter().filter(|line| line["kind"] == kind && bench.is_none_or(|b| line["bench"] == b));
    let records: Vec<&Value> = records.collect();
    let names = |record: &Value| record.as_object().expect("an object").keys().cloned().collect();
    let all: Vec<BTreeSet<String>> = records.iter().map(|record| names(record)).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{kind}: {all:?}");
    (all.len(), all.into_iter().next().unwrap_or_default())
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn every_benchmark_prints_the_fields_that_programs_parse() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = program(home.path());
    let small = |words: &[&str]| -> Vec<Value> {
        let run = laneway.run(["--json", "bench"].iter().chain(words).chain(&["--rtt", "0s"]));
        run.succeeds().json()
    };
    let rung = ["kind", "bench", "rung", "error"];
    let with = |more: &[&str]| set(&[&rung[..], more].concat());

    let lines = small(&["slices", "--size", "1MiB", "--runs", "1"]);
    let (count, names) = fields(&lines, "rung", Some("slices"));
    assert_eq!(count, 2);
    let slices = [
        "seconds",
        "transfer_s",
        "mib_s",
        "cpu_s_per_gib",
        "connections",
        "requests",
        "peak_bytes",
        "verified",
        "floor_ratio",
    ];
    assert_eq!(names, with(&slices));
    assert_eq!(fields(&lines, "slices", None), (1, set(&["kind", "store", "size", "rtt_s", "floor_s"])));
    // Each run is a process of its own, whose use of the machine can be told.
    assert!(lines[0]["cpu_s_per_gib"].as_f64().expect("a number") > 0.0, "{}", lines[0]);

    let words = ["mixed", "--large", "1", "--large-size", "1MiB", "--small", "3", "--arrivals", "100/s"];
    let lines = small(&words);
    let mixed =
        ["small_p50_s", "small_p99_s", "small_max_s", "total_s", "connections", "requests", "floor_ratio"];
    assert_eq!(fields(&lines, "rung", Some("mixed")), (4, with(&mixed)));
    let arrivals = [
        "idle_p50_s",
        "idle_p99_s",
        "beside_p50_s",
        "beside_p99_s",
        "beside_max_s",
        "connections",
        "bulk_mib_s",
        "idle_ratio",
    ];
    assert_eq!(fields(&lines, "rung", Some("mixed-arrivals")), (4, with(&arrivals)));

    let plain = ["seconds", "requests", "connections", "round_trips", "floor_ratio"];
    let lines = small(&["commit", "--objects", "3", "--store", "s3"]);
    assert_eq!(fields(&lines, "rung", Some("commit")), (3, with(&plain)));
    let lines = small(&["clean", "--objects", "3"]);
    assert_eq!(fields(&lines, "rung", Some("clean")), (6, with(&plain)));
    let lines = small(&["ranges", "--ranges", "5", "--size", "16MiB"]);
    assert_eq!(fields(&lines, "rung", Some("ranges")), (5, with(&plain)));
    assert_eq!(fields(&lines, "rung", Some("ranges-columns")), (5, with(&plain)));
    let lines = small(&["ladder", "--files", "2", "--runs", "1"]);
    let ladder =
        ["kind", "rung", "seconds", "requests", "connections", "round_trips", "floor_ratio", "error"];
    assert_eq!(fields(&lines, "rung", None), (6, set(&ladder)));
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).expect("read").count(), 0);
}

#[test]
fn what_makes_no_sense_is_said_before_anything_is_measured() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = program(home.path());
    for words in [
        &["slices", "--size", "0"][..],
        &["mixed", "--small", "0"],
        &["mixed", "--arrivals", "often"],
        &["commit", "--objects", "0"],
        &["clean", "--runs", "0"],
        &["ranges", "--ranges", "0"],
        &["ranges", "--size", "1MiB"],
        &["slices", "/tmp"],
        &["mixed", "--rtt", "1ms", "gs://b"],
        &["clean", "--endpoint", "http://127.0.0.1:1", "s3://"],
        &["ladder", "s3://b"],
    ] {
        laneway.run(["bench"].iter().chain(words)).exits(2);
    }
    let nowhere = laneway.run(["bench", "all", "--report", "no/such/folder/r.html"]).exits(1);
    nowhere.complains(&["no/such/folder/r.html"]);
    laneway.run_with_input(["bench", "errand"], b"nonsense").exits(1).complains(&["no order"]);
}

#[test]
fn the_page_of_all_benchmarks_is_whole_and_reads_in_a_browser() {
    let home = tempfile::tempdir().expect("a folder");
    let run = program(home.path())
        .run(["bench", "all", "--quick", "--rtt", "2ms", "--report", "report.html"])
        .succeeds();
    assert!(run.stderr.contains("report.html"), "{}", run.stderr);
    let report = home.path().join("report.html");
    let html = std::fs::read_to_string(&report).expect("a report");
    for id in ["ladder", "slices", "mixed", "mixed-puts", "commit", "clean", "ranges", "ranges-columns"] {
        assert!(html.contains(&format!("<section id=\"{id}\">")), "{id} is missing");
    }
    for part in ["At a glance", "quickest other way", "hyper ", "rustls "] {
        assert!(html.contains(part), "{part} is missing");
    }
    assert!(html.contains("laneway bench all --quick --rtt 2ms --report report.html"));
    assert_eq!(html.matches("<svg").count() % 2, 0, "each plot stands there for a screen and for a phone");
    assert!(html.matches("<figure>").count() >= 20 && !html.contains("<script") && !html.contains("#010"));
    assert!(!html.contains("failed:"), "{}", run.text());

    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium on PATH; the page was not opened in a browser");
        return;
    };
    for (width, shown, hidden) in [(1280, "wide", "narrow"), (390, "narrow", "wide")] {
        for scheme in [1, 0] {
            let probe = home.path().join(format!("probe-{width}-{scheme}.html"));
            std::fs::write(&probe, probed(&html)).expect("written");
            let found = open(&browser, home.path(), &probe, width, scheme);
            let at = format!("at {width} px, scheme {scheme}: {found}");
            assert_eq!(found["width"], width, "{at}");
            assert!(
                found["scroll"].as_i64() <= found["width"].as_i64(),
                "the page itself scrolls sideways {at}"
            );
            assert_eq!(found["sideways"], 0, "tables wider than the page {at}");
            assert!(found[shown].as_i64() > Some(0) && found[hidden] == 0, "{at}");
            assert_eq!(found["unpainted"], 0, "plots without colour {at}");
            assert_eq!(found["dark"], scheme == 0, "{at}");
            assert!(found["contrast"].as_f64() > Some(7.0), "text on the page {at}");
            assert!(found["least"].as_f64() >= Some(10.0), "text of plots is too small {at}");
        }
    }
}

/// The page with a script that tells what a reader would see. It stands in the test's copy only.
fn probed(html: &str) -> String {
    let script = include_str!("benchmarks/probe.js");
    html.replace("</body>", &format!("<script>{script}</script></body>"))
}

fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|p| p.is_file())
}

/// Opens a page and reads what its probe found.
fn open(browser: &Path, home: &Path, page: &Path, width: u32, scheme: u8) -> Value {
    let profile = tempfile::tempdir_in(home).expect("a folder");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg("--disable-dev-shm-usage")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},900", width.max(500)))
        // Of the page's own time, which stands still while anything loads: the probe's message is in by then.
        .arg("--virtual-time-budget=5000")
        .arg("--dump-dom")
        .arg(frame(home, page, width).display().to_string())
        .output()
        .expect("chromium runs");
    let dom = String::from_utf8_lossy(&output.stdout);
    let found = dom.split("<output id=\"found\">").nth(1).and_then(|rest| rest.split("</output>").next());
    let found =
        found.unwrap_or_else(|| panic!("no answer: {dom}\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&found.replace("&quot;", "\"")).expect("JSON")
}

/// A window is never narrower than 500 px, so that a phone's width needs a frame. The probe tells the frame's owner.
fn frame(home: &Path, page: &Path, width: u32) -> PathBuf {
    let path = home.join(format!("frame-{width}.html"));
    let name = page.file_name().expect("a name").to_string_lossy();
    let html = format!(
        "<!doctype html><meta name=\"color-scheme\" content=\"light dark\">\
         <iframe src=\"{name}\" style=\"width:{width}px;height:900px;border:0\"></iframe><output id=\"found\"></output>\
         <script>addEventListener('message', e => document.getElementById('found').textContent = e.data)</script>"
    );
    std::fs::write(&path, html).expect("written");
    path
}
