//! Large downloads and uploads that are killed and then continued by the same command. Jobs with `--manifest`.

use std::fs;
use std::path::{Path, PathBuf};

use laneway_server::{Config, Faults, GcsConfig, Server, ServerCounters, Storage};
use laneway_testkit::{
    Changes, Endpoint, Program, Run, Running, Wire, claimed, differences, files_below, random_bytes,
    recorded_parts, seed_tree,
};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const MIB: u64 = 1 << 20;
/// Upper bound on the bytes fetched twice. At the end of a download, Laneway shortens up to 32 streams. Each may have received one read
/// buffer too much.
const SLACK: u64 = 4 * MIB;

/// Waits until the folder's journals record this many bytes. Returns false if the program ended first.
fn wait_for_claims(running: &Running, changes: &Changes, folder: &Path, bytes: u64) -> bool {
    changes.wait_while_runs(running, || claimed(folder) >= bytes)
}

fn copied(folder: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir_all(&to).expect("made");
    for entry in fs::read_dir(folder).expect("read") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
    to
}

/// Kills a download with SIGKILL at ten points drawn from `seed`. After each kill, a copy of the partial file is resumed to the end.
fn killed_again_and_again(wire: Wire, scheme: &str, seed: u64, size: u64, bytes_per_second: u64) {
    let config = Config { bandwidth: Some(bytes_per_second), ..Config::default() };
    let endpoint = Endpoint::start_with(wire, config);
    let laneway = endpoint.program(LANEWAY);
    let bytes = random_bytes(seed, size as usize);
    endpoint.server().store().put("bucket", "big", &bytes).expect("stored");
    let source = format!("{scheme}://bucket/big");
    let out = endpoint.folder().join("out");
    fs::create_dir(&out).expect("made");
    let mut points: Vec<u64> =
        random_bytes(seed + 1, 10).iter().map(|byte| size * u64::from(*byte) / 270).collect();
    points.sort_unstable();
    let mut kills = 0;
    for point in points {
        let changes = Changes::of(&out);
        let running = laneway.start(["cp", &source, "out/big"]);
        if !wait_for_claims(&running, &changes, &out, point.max(claimed(&out)).max(1)) {
            break;
        }
        running.signal("-KILL");
        assert_eq!(running.end().status, None, "killed");
        assert!(!out.join("big").exists(), "no half file under the final name");
        kills += 1;
        let missing = size - claimed(&out);
        let copy = copied(&out, endpoint.folder().join(format!("copy-{kills}")));
        let run = laneway.run(["cp", "--json", &source, &format!("copy-{kills}/big")]).succeeds();
        let summary = run.record("summary");
        let fetched = summary["network_bytes"].as_u64().expect("a number");
        assert!((missing..=missing + SLACK).contains(&fetched), "{fetched} fetched, {missing} missing");
        assert_eq!(run.record("item")["verified"], "crc32c");
        assert!(fs::read(copy.join("big")).expect("read") == bytes, "kill {kills}");
        assert_eq!(fs::read_dir(&copy).expect("read").count(), 1, "nothing else stays");
        fs::remove_dir_all(copy).expect("removed");
    }
    // If the machine stalls the test for seconds, a download may end before its kill.
    assert!(kills >= 3, "killed {kills} times only");
    laneway.run(["cp", &source, "out/big"]).succeeds();
    assert!(fs::read(out.join("big")).expect("read") == bytes);
    assert_eq!(fs::read_dir(&out).expect("read").count(), 1);
}

/// `LANEWAY_SOAK_DOWNLOAD_MIB` replaces the size of 48 MiB. A download still takes a second or two.
#[test]
fn a_download_that_is_killed_ten_times_is_resumed_exactly_each_time() {
    let size = std::env::var("LANEWAY_SOAK_DOWNLOAD_MIB").map_or(48, |mib| mib.parse().expect("MiB")) * MIB;
    killed_again_and_again(Wire::Plain, "s3", 7, size, size.min(512 << 20));
    killed_again_and_again(Wire::TlsH2, "gs", 11, size, size.min(512 << 20));
}

#[test]
fn an_interrupted_download_says_what_is_kept_and_the_same_command_goes_on() {
    let faults = Faults::parse(["get stall@8MiB"]).expect("a rule");
    let endpoint = Endpoint::start_with(Wire::Plain, Config { faults, ..Config::default() });
    let laneway = endpoint.program(LANEWAY);
    let size = 64 * MIB;
    let bytes = random_bytes(1, size as usize);
    endpoint.server().store().put("bucket", "big", &bytes).expect("stored");
    for verb in ["cp", "mv"] {
        let out = endpoint.folder().join(verb);
        fs::create_dir(&out).expect("made");
        let arguments = [verb, "--json", "s3://bucket/big", &format!("{verb}/")];
        let changes = Changes::of(&out);
        let running = laneway.start(arguments);
        assert!(wait_for_claims(&running, &changes, &out, 6 * MIB));
        running.signal("-INT");
        let run = running.end().exits(130);
        assert!(
            run.stderr.contains("the same command") && run.stderr.contains("will be reused"),
            "{}",
            run.stderr
        );
        let kept = claimed(&out);
        endpoint.server().set_faults(Faults::default());
        let run = laneway.run(arguments).succeeds();
        let fetched = run.record("summary")["network_bytes"].as_u64().expect("a number");
        assert!(fetched <= size - kept + SLACK, "{fetched} fetched, {kept} kept");
        assert!(fs::read(out.join("big")).expect("read") == bytes);
        assert_eq!(fs::read_dir(&out).expect("read").count(), 1);
        endpoint.server().set_faults(Faults::parse(["get stall@8MiB"]).expect("a rule"));
    }
    assert!(endpoint.server().store().keys("bucket").is_empty(), "moved");
}

#[test]
fn an_interrupted_tree_is_completed_in_the_same_folder() {
    let stalling = || Faults::parse(["get stall@8MiB"]).expect("a rule");
    for (verb, scheme) in [("cp", "gs"), ("mv", "s3")] {
        let endpoint = Endpoint::start_with(Wire::Plain, Config { faults: stalling(), ..Config::default() });
        let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
        let bytes = random_bytes(1, 32 << 20);
        endpoint.server().store().put("bucket", "tree/d/big", &bytes).expect("stored");
        endpoint.server().store().put("bucket", "tree/small", b"x").expect("stored");
        let out = endpoint.folder().join("new");
        // The test leaves partial files of an object that doesn't exist at the next run. It leaves others in the tree's own
        // folder, as an earlier version of the program did.
        let left = ["new/tree/d", "new/d"].map(|folder| endpoint.folder().join(folder));
        for folder in &left {
            fs::create_dir_all(folder).expect("made");
        }
        let arguments = [verb, "-r", &format!("{scheme}://bucket/tree"), "new"];
        let changes = Changes::of(&left[1]);
        let running = laneway.start(arguments);
        assert!(wait_for_claims(&running, &changes, &left[1], 4 * MIB));
        running.signal("-INT");
        running.end().exits(130);
        let parts = files_below(&left[1]);
        assert_eq!(parts.len(), 2, "a part and its journal: {parts:?}");
        for part in &parts {
            fs::copy(left[1].join(part), left[0].join(part)).expect("copied");
            let (gone, ending) = part.rsplit_once('.').expect("an ending");
            let gone = gone.replace("big", "gone").replace(|c: char| c.is_ascii_digit(), "0");
            fs::copy(left[1].join(part), left[1].join(format!("{gone}.{ending}"))).expect("copied");
        }
        fs::write(out.join("theirs.part"), "not ours").expect("written");
        endpoint.server().set_faults(Faults::default());
        laneway.run(arguments).succeeds();
        assert_eq!(files_below(&out), ["d/big", "small", "theirs.part"], "{verb}");
        assert!(fs::read(out.join("d/big")).expect("read") == bytes);
        let rest = endpoint.server().store().keys("bucket").len();
        assert_eq!(rest, if verb == "mv" { 0 } else { 2 });
    }
}

const PART: u64 = 16 << 20;
const PARTS: u64 = 5;
const SIZE: u64 = (PARTS - 1) * PART + 12_345;
/// Upper bound on the bytes that cross the network in addition to the parts.
const UPLOAD_SLACK: u64 = 64 << 10;

/// A method of sending a large file in parts.
#[derive(Clone, Copy)]
struct Case {
    wire: Wire,
    scheme: &'static str,
    /// True for a resumable session, because the server offers nothing else.
    is_session: bool,
}

const CASES: [Case; 4] = [
    Case { wire: Wire::Plain, scheme: "s3", is_session: false },
    Case { wire: Wire::TlsH2, scheme: "s3", is_session: false },
    Case { wire: Wire::TlsH2, scheme: "gs", is_session: false },
    Case { wire: Wire::TlsH2, scheme: "gs", is_session: true },
];

/// A file, a server, and the command that uploads it.
struct Scene {
    case: Case,
    endpoint: Endpoint,
    bytes: Vec<u8>,
    arguments: [String; 5],
    journals: PathBuf,
}

impl Scene {
    fn new(case: Case) -> Self {
        let gcs = GcsConfig { xml: !case.is_session, ..GcsConfig::default() };
        let endpoint = Endpoint::start_with(case.wire, Config { gcs, ..Config::default() });
        let bytes = random_bytes(1, SIZE as usize);
        fs::write(endpoint.folder().join("big"), &bytes).expect("written");
        let journals = endpoint.program(LANEWAY).home().join(".local/state/laneway/uploads");
        fs::create_dir_all(&journals).expect("made");
        let arguments =
            ["cp", "--json", "-vv", "big", &format!("{}://bucket/big", case.scheme)].map(str::to_owned);
        Self { case, endpoint, bytes, arguments, journals }
    }

    fn faults(&self, rules: &[String]) {
        let faults = Faults::parse(rules.iter().map(String::as_str)).expect("rules");
        self.endpoint.server().set_faults(faults);
    }

    fn count(&self, verb: &str) -> u64 {
        self.endpoint.server().counters().requests_by_verb.get(verb).copied().unwrap_or_default()
    }

    /// Starts the command, lets the store accept this many more parts, and sends the program a signal.
    fn stop_after(&self, parts: u64, signal: &str) -> Run {
        self.faults(&[format!("part:{}-999 stall", parts + 1)]);
        let (had, before) = (self.recorded(), self.count("part"));
        let changes = Changes::of(&self.journals);
        let running = self.endpoint.program(LANEWAY).start(&self.arguments);
        // When the first request stalls, the program has begun the journal. A session has also sent the earlier chunks.
        let timeout = Running::TIME_MAX;
        assert!(self.endpoint.server().wait_until(timeout, |counters| {
            counters.requests_by_verb.get("part").is_some_and(|count| *count > before + parts)
        }));
        if !self.case.is_session {
            assert!(changes.wait_while_runs(&running, || self.recorded() == had + parts), "it ended");
        }
        running.signal(signal);
        let run = running.end();
        self.all_is_quiet();
        assert!(self.endpoint.server().store().keys("bucket").is_empty(), "an incomplete object is visible");
        self.tells_no_secret(&run);
        run
    }

    /// Waits until the server has handled everything that the ended program sent.
    fn all_is_quiet(&self) {
        self.faults(&[]);
        let server = self.endpoint.server();
        assert!(server.wait_until_idle(Running::TIME_MAX));
    }

    /// Returns the number of parts in the journal.
    fn recorded(&self) -> u64 {
        recorded_parts(&self.journals).len() as u64
    }

    /// Runs the same command to its end. This run must send only the parts that the store lacks.
    fn finish(&self, there: u64) {
        let kept: u64 = match self.case.is_session {
            true => there * PART,
            false => recorded_parts(&self.journals).iter().sum(),
        };
        self.finish_with(PARTS - there, SIZE - kept);
    }

    /// Runs the same command to its end. This run must send exactly this many parts and bytes.
    fn finish_with(&self, parts: u64, bytes: u64) {
        let before = self.count("part");
        let run = self.endpoint.program(LANEWAY).run(&self.arguments).succeeds();
        assert_eq!(run.record("item")["verified"], "crc32c");
        let summary = run.record("summary");
        assert_eq!(summary["bytes"].as_u64(), Some(SIZE));
        let sent = summary["network_bytes"].as_u64().expect("a number");
        assert!((bytes..=bytes + UPLOAD_SLACK).contains(&sent), "{sent} sent, {bytes} missing");
        assert_eq!(self.count("part") - before, parts, "parts sent again");
        assert!(self.endpoint.server().store().read("bucket", "big").expect("it is there") == self.bytes);
        let counters = self.endpoint.server().counters();
        assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0), "an upload is still open");
        assert_eq!(fs::read_dir(&self.journals).expect("read").count(), 0, "a journal is left");
        self.tells_no_secret(&run);
    }

    fn tells_no_secret(&self, run: &Run) {
        for word in ["upload_id", "uploadId", "upload-id"] {
            assert!(!run.stderr.contains(word) && !run.text().contains(word), "{}", run.stderr);
        }
    }
}

#[test]
fn an_upload_that_is_killed_sends_only_the_parts_that_are_missing() {
    for case in CASES {
        for there in [0, 1, 3] {
            let scene = Scene::new(case);
            assert_eq!(scene.stop_after(there, "-KILL").status, None);
            scene.finish(there);
            assert_eq!(
                scene.count("begin"),
                if case.is_session { 2 } else { 1 },
                "the server had no multipart"
            );
        }
    }
}

#[test]
fn an_upload_that_is_killed_again_and_again_gets_on_each_time() {
    for case in [CASES[0], CASES[2], CASES[3]] {
        let scene = Scene::new(case);
        for _ in 0..3 {
            assert_eq!(scene.stop_after(1, "-KILL").status, None);
        }
        scene.finish(3);
    }
}

#[test]
fn an_upload_that_is_killed_before_it_is_completed_is_only_completed() {
    for case in [CASES[0], CASES[2]] {
        let scene = Scene::new(case);
        scene.faults(&["complete status 503".to_owned()]);
        let running = scene.endpoint.program(LANEWAY).start(&scene.arguments);
        let timeout = Running::TIME_MAX;
        let came =
            |counters: &laneway_server::ServerCounters| counters.requests_by_verb.contains_key("complete");
        assert!(scene.endpoint.server().wait_until(timeout, came));
        running.signal("-KILL");
        running.end();
        scene.all_is_quiet();
        scene.finish(PARTS);
    }
}

#[test]
fn an_interrupted_upload_says_what_is_kept_and_the_same_command_goes_on() {
    for case in CASES {
        let scene = Scene::new(case);
        let run = scene.stop_after(2, "-INT").exits(130);
        assert!(
            run.stderr.contains("the same command") && run.stderr.contains("will be reused"),
            "{}",
            run.stderr
        );
        scene.finish(2);
    }
}

#[test]
fn a_journal_is_for_its_owners_eyes_only() {
    use std::os::unix::fs::PermissionsExt as _;

    for case in [CASES[0], CASES[3]] {
        let scene = Scene::new(case);
        scene.stop_after(1, "-KILL");
        for entry in fs::read_dir(&scene.journals).expect("read") {
            let mode = entry.expect("an entry").metadata().expect("looked at").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

#[test]
fn a_file_changed_after_a_kill_is_sent_anew_without_leftovers() {
    for case in CASES {
        let mut scene = Scene::new(case);
        scene.stop_after(2, "-KILL");
        scene.bytes = random_bytes(2, SIZE as usize);
        fs::write(scene.endpoint.folder().join("big"), &scene.bytes).expect("written");
        scene.finish_with(PARTS, SIZE);
    }
}

#[test]
fn a_session_goes_on_in_its_job_after_the_store_was_restarted() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = random_bytes(3, SIZE as usize);
    fs::write(folder.path().join("big"), &bytes).expect("written");
    let start = |listen, rules: &[&str]| {
        let gcs = GcsConfig { xml: false, ..GcsConfig::default() };
        let faults = Faults::parse(rules.iter().copied()).expect("rules");
        let storage = Storage::Disk(folder.path().join("store"));
        Server::start(Config { listen, gcs, storage, faults, ..Config::default() }).expect("a server")
    };
    let first = start(Config::default().listen, &["part:3-999 stall"]);
    first.create_bucket("bucket").expect("a bucket");
    let program =
        Program::new(LANEWAY, folder.path().join("home")).with("STORAGE_EMULATOR_HOST", first.url());
    let running = program.in_folder(folder.path()).start(["cp", "--json", "big", "gs://bucket/big"]);
    let stalls =
        |counters: &ServerCounters| counters.requests_by_verb.get("part").is_some_and(|count| *count > 2);
    assert!(first.wait_until(Running::TIME_MAX, stalls));
    let address = first.addr();
    drop(first);
    let second = start(address, &[]);
    running.end().succeeds();
    assert!(second.store().read("bucket", "big").expect("it is there") == bytes);
    let counters = second.counters();
    let of = |verb: &str| counters.requests_by_verb.get(verb).copied().unwrap_or_default();
    assert_eq!((of("begin"), of("part"), counters.resumable_open), (0, PARTS - 2, 0));
}

const FILES: usize = 400;

/// Runs that are killed again and again complete the work step by step, until nothing is left to do.
#[test]
fn a_copy_that_is_killed_goes_on_where_its_manifest_ends() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    let (tree, back) = (endpoint.folder().join("tree"), endpoint.folder().join("back"));
    seed_tree(&tree, 7, FILES);
    for (command, prefix) in [
        (["cp", "-r", "tree", "s3://bucket/p", "--manifest", "up"], "p/"),
        (["cp", "-r", "s3://bucket/p", "back", "--manifest", "down"], ""),
    ] {
        let done = || match prefix {
            "" => fs::read_to_string(endpoint.folder().join("down")).unwrap_or_default().lines().count(),
            _ => endpoint.server().store().keys("bucket").len(),
        };
        for kill in 1..4 {
            let running = laneway.start(command);
            let reached = endpoint
                .server()
                .wait_until(laneway_testkit::Running::TIME_MAX, |_| done() >= kill * FILES / 5);
            assert!(reached, "{command:?}: {}", done());
            running.signal("-KILL");
            running.end();
        }
        laneway.run(command).succeeds();
        let manifest = fs::read_to_string(endpoint.folder().join(command[5])).expect("a manifest");
        let lines: Vec<serde_json::Value> =
            manifest.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let of = |outcome: &str| lines.iter().filter(|line| line["outcome"] == outcome).count();
        assert!(of("done") >= FILES && of("skipped") > 0, "{} done, {} skipped", of("done"), of("skipped"));
        let again = laneway.run(command.iter().chain(&["--json"])).succeeds();
        let summary = again.record("summary");
        assert_eq!((&summary["files"], &summary["skipped"]), (&0.into(), &FILES.into()), "{summary}");
    }
    // A killed process leaves temporary files, which no run mistakes for files of the tree.
    let different = differences(&tree, &back).into_iter().filter(|name| !name.ends_with(".part"));
    assert_eq!(different.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_manifest_of_another_command_is_refused_and_named() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    for key in ["a", "b"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    laneway.run(["rm", "s3://bucket/a", "--manifest", "m"]).succeeds();
    let other = laneway.run(["rm", "s3://bucket/b", "--manifest", "m"]).exits(1);
    other.complains(&["m:1", "another job: remove s3://bucket/a"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["b"]);
    laneway.run(["rm", "s3://bucket/a", "--manifest", "m"]).succeeds();
    // Each command of a run may have its own manifest.
    let run = laneway
        .run_with_input(["run", "-"], b"rm s3://bucket/b --manifest n\nmv s3://bucket/b d --manifest m\n");
    run.exits(1).complains(&["-:2: ", "another job"]);
    let manifest = fs::read_to_string(endpoint.folder().join("n")).expect("a manifest");
    assert!(manifest.contains("\"key\":\"b\"") && manifest.contains("\"outcome\":\"done\""), "{manifest}");
}
