//! The program under the embedded store's faults. Each fault disturbs each command once, in one dialect and protocol. The command succeeds
//! completely or fails with the right class. `crates/laneway/tests/fault_matrix` tries all faults through the library.

use std::fs;
use std::path::PathBuf;

use laneway_testkit::Expected::{self, Either, Failure, Success};
use laneway_testkit::{Endpoint, Run, Wire, config_for_faults, inverted, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const SIZE: usize = 5000;
const KINDS: [(Wire, &str); 4] =
    [(Wire::Plain, "s3"), (Wire::TlsH2, "gs"), (Wire::TlsH2, "s3"), (Wire::Plain, "gs")];

/// A command that a fault disturbs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Command {
    Download,
    Upload,
    Cat,
    List,
    Remove,
    Sync,
    /// A move inside the store.
    Move,
    Verify,
    /// Several commands with a manifest. The fault disturbs one of them.
    Run,
}

use Command::*;

const COMMANDS: [Command; 9] = [Download, Upload, Cat, List, Remove, Sync, Move, Verify, Run];

/// The lines run concurrently, so each uses its own keys.
const LINES: &str = "cp source STORE://bucket/new\ncp STORE://bucket/t/k STORE://bucket/copied\nrm STORE://bucket/u/k\n\
    setmeta --content-type a/b STORE://bucket/v\nverify STORE://bucket/t STORE://bucket/w\n";

/// Faults that every command survives.
const PASSING: [&str; 17] = [
    "status 429",
    "status 429 retry-after 1s",
    "status 503",
    "status 503 retry-after 1s",
    "status 500",
    "status 502",
    "reset",
    "drop",
    "cut",
    "reset@100",
    "drop@100",
    "cut@100",
    "truncate@0",
    "truncate",
    "slow 40KB/s",
    "goaway",
    "refuse-stream",
];

const OTHERS: [&str; 12] = [
    "status 403",
    "lose-answer",
    "length none",
    "length +7",
    "length -1",
    "corrupt",
    "wrong-checksum",
    "replace",
    "error-in-200",
    "garble",
    "malformed",
    "delay 50ms",
];

/// Returns the expected outcome in a dialect, or `None` if the fault can't apply to the command's request.
fn expected(command: Command, fault: &str, scheme: &str) -> Option<Expected> {
    let is_content = matches!(command, Download | Cat);
    // In the answer to a deletion, only the status matters, not the body.
    let is_removal = command == Remove;
    Some(match fault {
        // If GCS refuses to move an object in one request, Laneway copies the object and then removes the source.
        "status 403" if command == Move && scheme == "gs" => Success,
        "status 403" => Failure(&["permission"]),
        "delay 50ms" | "length none" => Success,
        "lose-answer" => Success,
        _ if PASSING.contains(&fault) && is_removal => Either(&["transport"]),
        _ if PASSING.contains(&fault) => Success,
        "corrupt" | "wrong-checksum" if !is_content && !matches!(command, Upload | Run) => return None,
        "corrupt" => Success,
        "wrong-checksum" if is_content => Success,
        "wrong-checksum" => Either(&["integrity"]),
        "replace" if is_content => Success,
        "garble" | "malformed" if is_content => return None,
        "replace" => return None,
        "length +7" if is_content => Failure(&["integrity", "invalid_range", "transport"]),
        "length +7" => Either(&["transport"]),
        "length -1" if is_content => Success,
        "length -1" => Either(&["transport", "integrity", "server"]),
        "error-in-200" if is_content || is_removal => Failure(&["server"]),
        "error-in-200" => Either(&["server", "integrity"]),
        "garble" | "malformed" => Either(&["server", "integrity"]),
        fault => panic!("no outcome is listed for {fault}"),
    })
}

fn run_again() -> Vec<String> {
    ["run", "--json", "--manifest", "manifest", "lines"].map(str::to_owned).to_vec()
}

/// A store of one kind, and a folder.
struct Rig {
    endpoint: Endpoint,
    scheme: &'static str,
    bytes: Vec<u8>,
}

impl Rig {
    fn new((wire, scheme): (Wire, &'static str)) -> Self {
        let endpoint = Endpoint::start_with(wire, config_for_faults());
        let bytes = random_bytes(1, SIZE);
        fs::create_dir(endpoint.folder().join("out")).expect("made");
        fs::write(endpoint.folder().join("source"), &bytes).expect("written");
        Self { endpoint, scheme, bytes }
    }

    fn out(&self) -> PathBuf {
        self.endpoint.folder().join("out")
    }

    fn prepare(&self) {
        self.endpoint.clear();
        for key in ["t/k", "u/k", "v", "w/k"] {
            self.endpoint.put(key, &self.bytes);
        }
        for entry in fs::read_dir(self.out()).expect("read") {
            fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
        fs::write(self.endpoint.folder().join("lines"), LINES.replace("STORE", self.scheme))
            .expect("written");
        // The previous run's manifest.
        let _ = fs::remove_file(self.endpoint.folder().join("manifest"));
    }

    fn run(&self, command: Command, fault: &str) -> Run {
        let url = |key: &str| format!("{}://bucket/{key}", self.scheme);
        let (verb, arguments) = match command {
            Download => ("get", vec!["cp".into(), "--json".into(), url("t/k"), "out/k".into()]),
            Upload => ("put", vec!["cp".into(), "--json".into(), "source".into(), url("new")]),
            Cat => ("get", vec!["cat".into(), url("t/k")]),
            List => ("list", vec!["ls".into(), "--json".into(), url("t/")]),
            Remove => ("delete", vec!["rm".into(), "--json".into(), url("t/k")]),
            Sync => ("list", vec!["sync".into(), "--json".into(), url("t"), "out".into()]),
            Move => ("copy", vec!["mv".into(), "--json".into(), url("t/k"), url("moved")]),
            Verify => ("list", vec!["verify".into(), "--json".into(), url("t"), url("u")]),
            Run => ("put", run_again()),
        };
        self.endpoint.set_faults(&[format!("{verb}:1 {fault}")]);
        let run = self.endpoint.program(LANEWAY).run(arguments);
        self.endpoint.end_faults();
        run
    }

    /// Returns true if a second run without faults completes the remaining commands.
    fn ends_when_begun_again(&self) -> bool {
        let run = self.endpoint.program(LANEWAY).run(run_again());
        run.status == Some(0) && self.endpoint.stored("new").is_some_and(|there| there == self.bytes)
    }

    /// Checks a command's output and the state that it leaves, and describes what is wrong.
    fn problem(&self, command: Command, run: &Run, succeeded: bool) -> Option<String> {
        let stored = |key| self.endpoint.stored(key);
        // Another writer may have replaced the object meanwhile.
        let is_right = |there: &[u8]| there == self.bytes || there == inverted(&self.bytes);
        let names: Vec<_> = fs::read_dir(self.out())
            .expect("read")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        let file = fs::read(self.out().join("k")).ok();
        let is_so = match command {
            Download | Sync if succeeded => file.is_some_and(|file| is_right(&file)) && names == ["k"],
            Download | Sync => names.is_empty(),
            Upload => {
                let there = stored("new");
                there.as_ref().is_none_or(|there| *there == self.bytes) && (there.is_some() || !succeeded)
            }
            Cat if succeeded => is_right(&run.stdout),
            // Bytes already written to standard output can't be taken back.
            Cat => self.bytes.starts_with(&run.stdout),
            List => {
                !succeeded || run.json().iter().any(|record| record["url"].to_string().ends_with("t/k\""))
            }
            Remove => !succeeded || stored("t/k").is_none(),
            Move => {
                let [source, moved] = ["t/k", "moved"].map(stored);
                let is_one = |there: &Option<Vec<u8>>| there.as_deref().is_none_or(is_right);
                let is_moved = source.is_none() && moved.is_some();
                is_one(&source) && is_one(&moved) && (is_moved || !succeeded && source.is_some())
            }
            // The prefixes are equal, so `verify` must not report a difference.
            Verify => !succeeded || run.record("summary")["files"] == 1,
            Run => {
                let content_type = self
                    .endpoint
                    .server()
                    .store()
                    .object(Endpoint::BUCKET, "v")
                    .and_then(|object| object.attributes.content_type.clone());
                let others_are_done = stored("copied").is_some_and(|there| is_right(&there))
                    && stored("u/k").is_none()
                    && content_type.as_deref() == Some("a/b");
                let new = stored("new");
                let is_whole = new.as_ref().is_none_or(|there| *there == self.bytes);
                others_are_done && is_whole && (new.is_some() || !succeeded) && self.ends_when_begun_again()
            }
        };
        (!is_so).then(|| format!("wrong result: {names:?}, {} bytes", run.stdout.len()))
    }
}

/// Runs one command under a fault. Returns a description if the outcome is wrong.
fn failure(rig: &Rig, command: Command, fault: &str, expected: Expected) -> Option<String> {
    rig.prepare();
    let before = rig.endpoint.server().counters().faults_fired;
    let run = rig.run(command, fault);
    let wrong = |what: String| {
        Some(format!("{command:?} {fault} {}: {what}; {:?} {}", rig.scheme, run.status, run.stderr))
    };
    if rig.endpoint.server().counters().faults_fired == before {
        return wrong("no request met the fault".into());
    }
    let kinds = match (run.status, expected) {
        (Some(0), Success | Either(_)) => None,
        (Some(1), Failure(kinds) | Either(kinds)) => Some(kinds),
        _ => return wrong(format!("{expected:?} was expected")),
    };
    if let Some(kinds) = kinds {
        if !run.stderr.lines().any(|line| line.starts_with("laneway: ")) {
            return wrong("stderr has no error".into());
        }
        // `cat` writes objects to standard output, so it prints no records.
        let records = if command == Cat { Vec::new() } else { run.json() };
        let classes: Vec<&str> = records.iter().filter_map(|record| record["class"].as_str()).collect();
        if command != Cat && (classes.is_empty() || !classes.iter().all(|class| kinds.contains(class))) {
            return wrong(format!("{classes:?} where {kinds:?} are right"));
        }
    }
    rig.problem(command, &run, kinds.is_none()).and_then(wrong)
}

#[test]
fn every_command_survives_every_fault_or_fails_with_its_class() {
    let rows: Vec<_> = PASSING.into_iter().chain(OTHERS).enumerate().collect();
    let failures = std::thread::scope(|scope| {
        let work = |(place, kind)| {
            let rows = &rows;
            scope.spawn(move || {
                let rig = Rig::new(kind);
                let mut failures = Vec::new();
                for (turn, fault) in rows {
                    for (at, command) in COMMANDS.into_iter().enumerate() {
                        let expected =
                            expected(command, fault, kind.1).filter(|_| (turn + at) % KINDS.len() == place);
                        failures
                            .extend(expected.and_then(|expected| failure(&rig, command, fault, expected)));
                    }
                }
                failures
            })
        };
        let threads: Vec<_> = KINDS.into_iter().enumerate().map(work).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it ended")).collect::<Vec<_>>()
    });
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}
