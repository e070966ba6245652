//! `laneway bench`: its output, and its HTML page in a real browser.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use laneway_testkit::Program;
use serde_json::Value;

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

fn program(home: &Path) -> Program {
    let temporary = home.join("tmp");
    std::fs::create_dir(&temporary).expect("made");
    // The `PATH` is an empty folder, so the program doesn't find the tools of this machine.
    let path = home.join("bin");
    std::fs::create_dir(&path).expect("made");
    Program::new(LANEWAY, home).with("TMPDIR", &temporary).with("PATH", &path).in_folder(home)
}

/// Returns the number of records of a kind, and their fields.
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
        let quick = ["--rtt", "0s", "--decide-for", "0s"];
        let run = laneway.run(["--json", "bench"].iter().chain(words).chain(&quick));
        run.succeeds().json()
    };
    let rung = ["kind", "bench", "rung", "group", "compared", "error"];
    let with = |more: &[&str]| set(&[&rung[..], more].concat());

    let lines = small(&["slices", "--size", "1MiB", "--runs", "1"]);
    let (count, names) = fields(&lines, "rung", Some("slices"));
    assert_eq!(count, 3);
    let slices = [
        "seconds",
        "transfer_s",
        "mib_s",
        "cpu_s_per_gib",
        "connections",
        "resent_segments",
        "requests",
        "peak_bytes",
        "verified",
        "floor_ratio",
        "size",
        "path",
    ];
    assert_eq!(names, with(&slices));
    assert_eq!(
        fields(&lines, "slices", None),
        (1, set(&["kind", "store", "size", "path", "rtt_s", "floor_s"]))
    );
    // Each run is its own process, so that its use of the CPU can be measured.
    assert!(lines[0]["cpu_s_per_gib"].as_f64().expect("a number") > 0.0, "{}", lines[0]);

    let words = [
        "mixed",
        "--large",
        "1",
        "--large-size",
        "1MiB",
        "--small",
        "3",
        "--arrivals",
        "100/s",
        "--runs",
        "1",
    ];
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
        "beside_total_s",
        "connections",
        "bulk_mib_s",
        "idle_ratio",
    ];
    assert_eq!(fields(&lines, "rung", Some("mixed-arrivals")), (4, with(&arrivals)));

    let plain = ["seconds", "requests", "connections", "round_trips", "floor_ratio"];
    let lines = small(&["commit", "--objects", "3", "--store", "s3"]);
    assert_eq!(fields(&lines, "rung", Some("commit")), (3, with(&plain)));
    let lines = small(&["clean", "--objects", "3"]);
    assert_eq!(fields(&lines, "rung", Some("clean")), (10, with(&plain)));
    let listed = small(&["list", "--objects", "1200"]);
    assert_eq!(fields(&listed, "rung", Some("list")), (10, with(&plain)));
    let one = &lines[0]["compared"]["seconds"];
    assert_eq!((&one["runs"]["runs"], one["laneway"]["ratio"].is_f64()), (&3.into(), true), "{one}");
    let lines = small(&["ranges", "--ranges", "5", "--size", "16MiB"]);
    assert_eq!(fields(&lines, "rung", Some("ranges")), (5, with(&plain)));
    assert_eq!(fields(&lines, "rung", Some("ranges-columns")), (5, with(&plain)));
    let lines = small(&["ladder", "--files", "2", "--runs", "1"]);
    assert_eq!(fields(&lines, "rung", Some("ladder")), (6, with(&plain)));
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).expect("read").count(), 0);
}

/// Puts a shell script on the `PATH` of [`program`].
fn tool(home: &Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = home.join("bin").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn a_rival_program_that_fails_or_does_nothing_is_reported() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = program(home.path());
    // s5cmd fails, gcloud reports success but does nothing, and rclone exists but doesn't run.
    tool(
        home.path(),
        "s5cmd",
        "[ $1 = version ] && echo v9.8.7-abc && exit; echo 'no such endpoint' >&2; exit 4",
    );
    tool(home.path(), "gcloud", "[ $1 = --version ] && echo Google Cloud SDK 1.2.3; exit 0");
    tool(home.path(), "rclone", "exit 127");
    let words =
        ["--json", "bench", "ladder", "--files", "2", "--runs", "1", "--rtt", "0s", "--report", "r.html"];
    let lines = laneway.run(words).succeeds().json();
    let found = |rung: &str| {
        let row = lines.iter().find(|line| line["rung"] == rung).unwrap_or(&Value::Null);
        row["error"].as_str().map(str::to_owned)
    };
    assert_eq!(found("program-s5cmd").as_deref(), Some("s5cmd ended badly: exit status 4: no such endpoint"));
    let gcloud = found("program-gcloud").expect("a failure");
    assert!(gcloud.starts_with("the store must hold 2 objects of 0 bytes; it holds 0"), "{gcloud}");
    // Laneway's own program has a row beside them, in both dialects.
    for (rung, group) in
        [("program-laneway-gcs", "GCS, whole programs"), ("program-laneway-s3", "S3, whole programs")]
    {
        let row = lines.iter().find(|line| line["rung"] == rung).expect("a row");
        assert_eq!(
            (&row["error"], &row["group"], row["requests"].as_u64()),
            (&Value::Null, &group.into(), Some(2))
        );
    }
    assert!(!lines.iter().any(|line| line["rung"] == "program-rclone"));
    let page = std::fs::read_to_string(home.path().join("r.html")).expect("a page");
    assert!(page.contains("gcloud 1.2.3; s5cmd 9.8.7") && page.contains("no such endpoint"));
}

#[test]
fn installed_programs_list_and_clean_beside_this_one_and_are_counted() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = program(home.path());
    tool(home.path(), "s5cmd", "[ $1 = version ] && echo v1.0.0 && exit; echo one; echo two");
    for (bench, why) in [("list", "2 of 30 keys were listed"), ("clean", "30 objects are still there")] {
        let words = ["--json", "bench", bench, "--objects", "30", "--runs", "1", "--rtt", "0s"];
        let lines = laneway.run(words).succeeds().json();
        let row = |rung: &str| lines.iter().find(|line| line["rung"] == rung).expect("a row").clone();
        assert!(row("program-s5cmd")["error"].as_str().expect("a failure").contains(why), "{lines:?}");
        let own = row("program-laneway-s3");
        assert_eq!((&own["error"], &own["group"]), (&Value::Null, &"S3, whole programs".into()));
        assert!(own["requests"].as_u64() > Some(0), "{own}");
    }
}

#[test]
fn the_demo_shows_three_jobs_and_nothing_that_its_page_lacks() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = program(home.path());
    let run = laneway.run(["demo", "--size", "1MiB", "--runs", "1", "--report", "r.html"]).succeeds();
    let text = run.text();
    assert!(text.lines().count() <= 30, "more than a screen: {text}");
    let page = std::fs::read_to_string(home.path().join("r.html")).expect("a page");
    for job in [
        "1. 100 small downloads during 4 large ones of 40 MiB each",
        "2. 50 uploads of 4.7 KB",
        "3. One download of 1.00 MiB",
    ] {
        assert!(text.contains(job), "{job}: {text}");
    }
    // Each bar's row ends with its time and the unit.
    let figures = text.lines().filter(|line| line.starts_with("   ") && line.contains('█'));
    let figures: Vec<&str> = figures.filter_map(|line| line.split_whitespace().rev().nth(1)).collect();
    assert_eq!(figures.len(), 11, "{text}");
    assert!(figures.iter().all(|figure| page.contains(&format!(">{figure} s<"))), "{figures:?}");
    let results = text.lines().filter(|line| line.contains(" as fast as ") || line.contains("Unclear: "));
    let ratios: Vec<&str> = results.filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert!(ratios.len() == 3 && ratios.iter().all(|ratio| page.contains(ratio)), "{text}");
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).expect("read").count(), 0);

    let lines =
        laneway.run(["--json", "demo", "--size", "1MiB", "--runs", "1", "--no-report"]).succeeds().json();
    assert_eq!(
        lines.iter().map(|line| line["kind"].as_str()).collect::<Vec<_>>(),
        [Some("demo"), Some("job"), Some("job"), Some("job")]
    );
    assert!(lines[1]["methods"][0]["is_laneway"] == true && lines[1]["ratio"].is_f64(), "{}", lines[1]);
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
        &["list", "--objects", "0"],
        &["ranges", "--ranges", "0"],
        &["ranges", "--size", "1MiB"],
        &["slices", "/tmp"],
        &["mixed", "--rtt", "1ms", "gs://b"],
        &["mixed", "--loss", "1%", "gs://b"],
        &["mixed", "--queue", "1MiB", "--endpoint", "http://127.0.0.1:1"],
        &["clean", "--endpoint", "http://127.0.0.1:1", "s3://"],
        &["ladder", "s3://b"],
        &["mixed", "--h1-only", "s3://b"],
        &["links", "--link", "20ms,1Gbit/s"],
        &["links", "--runs", "0"],
    ] {
        laneway.run(["bench"].iter().chain(words)).exits(2);
    }
    let nowhere = laneway.run(["bench", "all", "--report", "no/such/folder/r.html"]).exits(1);
    nowhere.complains(&["no/such/folder/r.html"]);
    laneway
        .run_with_input(["bench", "errand"], b"nonsense")
        .exits(1)
        .complains(&["describe a run of a benchmark"]);
}

#[test]
fn a_link_is_measured_in_each_course_and_a_line_says_how_to_repeat_it() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = program(home.path());
    // On this link, a run takes the least time: about two seconds.
    let link = "2ms,250Mbit/s,256KiB,0.1%";
    let words = ["--json", "bench", "links", "--link", link, "--runs", "1", "--report", "r.html"];
    let lines = laneway.run(words).succeeds().json();
    for course in ["down-h1", "down-h2", "up-h1"] {
        let of_course = |line: &&Value| line["course"] == course && line["link"] == link;
        let lines: Vec<&Value> = lines.iter().filter(of_course).collect();
        let rungs: Vec<_> = lines.iter().map(|line| line["rung"].as_str()).collect();
        assert_eq!(rungs, [Some("pool-50"), Some("laneway"), None], "{course}");
        let floors = ["floor_s", "p99_floor_s", "total_floor_s"].map(|name| lines[2][name].as_f64());
        let took = ["small_p50_s", "small_p99_s", "total_s"].map(|name| lines[1][name].as_f64());
        assert!(floors[0] > Some(0.0), "{course}: {floors:?}");
        assert!(floors.iter().zip(&took).all(|(floor, took)| floor <= took), "{course}: {floors:?} {took:?}");
        let command = lines[2]["command"].as_str().expect("a command");
        assert!(command.contains(" --rtt 2ms --bandwidth 250Mbit/s --queue 256KiB --loss 0.1%"), "{command}");
        if course != "down-h1" {
            continue;
        }
        // A link without delay. Its server doesn't offer HTTP/2.
        let quick =
            command.replace(" --rtt 2ms --bandwidth 250Mbit/s --queue 256KiB --loss 0.1%", " --rtt 0s");
        let again = ["--json"].into_iter().chain(quick.split(' ').skip(1)).chain(["--runs", "1"]);
        let again = laneway.run(again).succeeds().json();
        let error = |name| again.iter().find(|line| line["rung"] == name).expect("a rung")["error"].clone();
        assert_eq!(error("laneway"), Value::Null);
        assert_eq!(error("http2"), "the server doesn't offer HTTP/2");
    }
    let page = std::fs::read_to_string(home.path().join("r.html")).expect("a page");
    for part in
        ["<section id=\"links\">", "upload over HTTP/1.1", "unclear</h2>", "--large-size 11MiB --small 60"]
    {
        assert!(page.contains(part), "{part} is missing");
    }
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
    for id in
        ["ladder", "slices", "mixed", "mixed-puts", "commit", "clean", "list", "ranges", "ranges-columns"]
    {
        assert!(html.contains(&format!("<section id=\"{id}\">")), "{id} is missing");
    }
    // One run per method proves nothing, and the page says so.
    let sections = [
        "<b>0</b> wins",
        "<b>0</b> ties",
        "<b>0</b> behind",
        "unclear</h2>",
        "id=\"mixed\"",
        "<figure>",
        "id=\"ladder\"",
        "id=\"method\"",
    ];
    let places = sections.map(|part| html.find(part).unwrap_or_else(|| panic!("the page lacks {part}")));
    assert!(places.is_sorted(), "{places:?}");
    for part in ["hyper ", "rustls ", "laneway bench all --quick --rtt 2ms --report report.html"] {
        assert!(html[places[7]..].contains(part), "{part} is missing");
    }
    assert!(
        run.text().contains("\n0 wins\n") && run.text().contains(" unclear: Small downloads"),
        "{}",
        run.text()
    );
    assert_eq!(html.matches("<svg").count() % 2, 0, "each plot has a form for screens and one for phones");
    assert!(html.matches("<figure>").count() >= 15 && !html.contains("<script"));
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

/// Adds a script to the page that reports what a reader would see. Only the test's copy of the page has this script.
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

/// Opens a page and returns its probe's findings.
fn open(browser: &Path, home: &Path, page: &Path, width: u32, scheme: u8) -> Value {
    let profile = tempfile::tempdir_in(home).expect("a folder");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg("--disable-dev-shm-usage")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},900", width.max(500)))
        // The page's virtual time stops while anything loads, so the probe's message arrives within this budget.
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

/// A window is at least 500 px wide, so a phone's width needs a frame. The probe sends its message to the frame's
/// parent.
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
