//! Large uploads that are killed, and the same command again.

use std::fs;
use std::path::PathBuf;

use laneway_server::{Config, Counters, Faults, GcsConfig, Server, Storage};
use laneway_testkit::{Changes, Endpoint, Program, Run, Running, Wire, random_bytes, recorded_parts};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const PART: u64 = 16 << 20;
const PARTS: u64 = 5;
const SIZE: u64 = (PARTS - 1) * PART + 12_345;
/// What crosses the network beside parts at most.
const SLACK: u64 = 64 << 10;

/// How a large file is sent in parts.
#[derive(Clone, Copy)]
struct Case {
    wire: Wire,
    scheme: &'static str,
    /// Whether it goes through a resumable session, here because the server has nothing else.
    is_session: bool,
}

const CASES: [Case; 4] = [
    Case { wire: Wire::Plain, scheme: "s3", is_session: false },
    Case { wire: Wire::TlsH2, scheme: "s3", is_session: false },
    Case { wire: Wire::TlsH2, scheme: "gs", is_session: false },
    Case { wire: Wire::TlsH2, scheme: "gs", is_session: true },
];

/// A file, a server to send it to, and the command that does.
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

    /// Starts the command, lets the store take so many more parts, and sends the program a signal.
    fn stop_after(&self, parts: u64, signal: &str) -> Run {
        self.faults(&[format!("part:{}-999 stall", parts + 1)]);
        let (had, before) = (self.recorded(), self.count("part"));
        let changes = Changes::of(&self.journals);
        let running = self.endpoint.program(LANEWAY).start(&self.arguments);
        // The request that is the first to stall comes after the journal has been begun, and of a session after the
        // chunks before it.
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
        assert!(self.endpoint.server().store().keys("bucket").is_empty(), "an object of half the parts");
        self.tells_no_secret(&run);
        run
    }

    /// Waits until the server has read and forgotten whatever a program that is gone had sent.
    fn all_is_quiet(&self) {
        self.faults(&[]);
        let server = self.endpoint.server();
        assert!(server.wait_until(Running::TIME_MAX, |counters| counters.connections_open == 0));
    }

    /// How many parts the journal tells of.
    fn recorded(&self) -> u64 {
        recorded_parts(&self.journals).len() as u64
    }

    /// The same command to its end, which sends all but the parts that the store has.
    fn finish(&self, there: u64) {
        let kept: u64 = match self.case.is_session {
            true => there * PART,
            false => recorded_parts(&self.journals).iter().sum(),
        };
        self.finish_with(PARTS - there, SIZE - kept);
    }

    /// The same command to its end, which sends only so many bytes in so many parts.
    fn finish_with(&self, parts: u64, bytes: u64) {
        let before = self.count("part");
        let run = self.endpoint.program(LANEWAY).run(&self.arguments).succeeds();
        assert_eq!(run.record("item")["verified"], "crc32c");
        let summary = run.record("summary");
        assert_eq!(summary["bytes"].as_u64(), Some(SIZE));
        let sent = summary["network_bytes"].as_u64().expect("a number");
        assert!((bytes..=bytes + SLACK).contains(&sent), "{sent} sent, {bytes} missing");
        assert_eq!(self.count("part") - before, parts, "parts sent again");
        assert!(self.endpoint.server().store().read("bucket", "big").expect("it is there") == self.bytes);
        let counters = self.endpoint.server().counters();
        assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0), "an upload stays open");
        assert_eq!(fs::read_dir(&self.journals).expect("read").count(), 0, "a journal stays");
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
        let came = |counters: &laneway_server::Counters| counters.requests_by_verb.contains_key("complete");
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
    let stalls = |counters: &Counters| counters.requests_by_verb.get("part").is_some_and(|count| *count > 2);
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
