//! The matrix cells, which are pairs of faults and requests, and the expected outcome of each fault. The table of
//! outcomes is independent of the program.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway::{Bucket, Provider};
use laneway_testkit::Expected::{self, Either, Failure, Success};
use laneway_testkit::uploads_open;

use crate::rig::{KINDS, Kind, Rig};

/// An operation on a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Get,
    GetLarge,
    GetRanges,
    Head,
    Put,
    PutMultipart,
    List,
    ListFolder,
    Delete,
    DeleteStream,
    Copy,
}

/// The requests that faults hit, each given by its operation, verb and number. `batch` stands for the dialect's bulk
/// delete.
const STRIKES: [(Operation, &str); 14] = [
    (Operation::Get, "get:1"),
    (Operation::GetLarge, "get:1"),
    (Operation::GetLarge, "get:2"),
    (Operation::GetRanges, "get:2"),
    (Operation::Head, "head:1"),
    (Operation::Put, "put:1"),
    (Operation::PutMultipart, "begin:1"),
    (Operation::PutMultipart, "part:1"),
    (Operation::PutMultipart, "complete:1"),
    (Operation::List, "list:1"),
    (Operation::ListFolder, "list:1"),
    (Operation::Delete, "delete:1"),
    (Operation::DeleteStream, "batch:1"),
    (Operation::Copy, "copy:1"),
];

const FAULTS: [&str; 22] = [
    "status 503",
    "status 500",
    "status 403",
    "reset",
    "reset@100",
    "drop",
    "cut@100",
    "stall",
    "truncate",
    "lose-answer",
    "length none",
    "length +7",
    "length -1",
    "corrupt",
    "wrong-checksum",
    "range ignored",
    "range shifted",
    "replace",
    "error-in-200",
    "garble",
    "goaway",
    "refuse-stream",
];

/// A fault in a request, once or `always`. With `always` the client doesn't retry, because pauses and retries
/// wouldn't change the outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) operation: Operation,
    pub(crate) request: &'static str,
    pub(crate) fault: &'static str,
    pub(crate) always: bool,
    pub(crate) kind: Kind,
}

/// The ways in which an operation can fail.
#[derive(Debug)]
#[expect(dead_code, reason = "shown in messages")]
pub(crate) enum Ended {
    /// The operation returned an error of this kind.
    Failed { kind: &'static str, text: String },
    /// The operation reported success with a wrong result, or returned an error of the wrong type.
    Wrong(String),
}

pub(crate) type CarryOut = fn(Operation, Bucket) -> Result<(), Ended>;

/// The number of threads for each kind. Cells spend most of their time in pauses.
const THREADS: usize = 4;
const CELLS_MIN: usize = 350;

/// The client's retry time, which is enough for temporary failures.
const RETRY_FOR: Duration = Duration::from_secs(20);
/// The client's stall timeout, for faults that make a connection silent.
const STALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Laneway repeats a request that the server didn't accept at once, up to ten times. It repeats other requests a few
/// times.
const REQUESTS_MAX: u64 = 40;

/// Runs all cells. `turn` shifts the dialect and protocol of each cell.
pub(crate) fn run(turn: usize, carry_out: CarryOut) {
    let (cells, skipped) = cells(turn);
    println!("{} cells; skipped: {skipped:?}", cells.len());
    assert!(cells.len() >= CELLS_MIN, "only {} cells", cells.len());
    let failures = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for kind in KINDS {
            let of_kind: Vec<Cell> = cells.iter().filter(|cell| cell.kind == kind).copied().collect();
            for thread in 0..THREADS {
                let mine: Vec<Cell> = of_kind.iter().skip(thread).step_by(THREADS).copied().collect();
                threads.push(scope.spawn(move || {
                    let rig = Rig::new(kind);
                    mine.into_iter().filter_map(|cell| cell.problem(&rig, carry_out)).collect::<Vec<_>>()
                }));
            }
        }
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(failures.is_empty(), "{} of {} cells:\n{}", failures.len(), cells.len(), failures.join("\n"));
}

/// Returns the cells to run, and the number of skipped cells for each reason.
fn cells(turn: usize) -> (Vec<Cell>, BTreeMap<&'static str, usize>) {
    let (mut cells, mut skipped) = (Vec::new(), BTreeMap::new());
    for (place, (operation, request)) in STRIKES.into_iter().enumerate() {
        for (at, fault) in FAULTS.into_iter().enumerate() {
            for always in [false, true] {
                let kind = KINDS[(turn + place + at + 2 * usize::from(always)) % KINDS.len()];
                let cell = Cell { operation, request, fault, always, kind };
                match cell.skipped() {
                    Some(why) => *skipped.entry(why).or_default() += 1,
                    None => cells.push(cell),
                }
            }
        }
    }
    (cells, skipped)
}

impl Cell {
    /// Returns true if the answer has an object's bytes.
    pub(crate) fn is_content(&self) -> bool {
        matches!(self.operation, Operation::Get | Operation::GetLarge | Operation::GetRanges)
    }

    /// Returns the reason why the fault can't affect the request.
    fn skipped(&self) -> Option<&'static str> {
        let is_sent = matches!(self.request, "put:1" | "part:1");
        let is_headers = self.operation == Operation::Head;
        match self.fault {
            "range ignored" | "range shifted" if !self.asks_for_range() => Some("the request has no range"),
            "replace" if !self.is_content() => Some("the request reads no object that could be replaced"),
            "garble" if self.is_content() || is_headers => Some("the answer has no document"),
            "wrong-checksum" if !self.is_content() && !is_sent && !is_headers => {
                Some("the answer has no checksum")
            }
            "corrupt" if self.operation == Operation::GetRanges => {
                Some("no store tells the checksum of a range")
            }
            "corrupt" if !self.is_content() && !is_sent => Some("documents have no checksum"),
            "length none" | "length -1" | "length +7" if is_headers => {
                Some("nothing contradicts a wrong length in a HEAD's answer")
            }
            "stall" if matches!(self.request, "copy:1" | "complete:1") => {
                Some("a copy or completion may take minutes, so the client waits")
            }
            _ => None,
        }
    }

    /// Returns true if the request opens a large object, and so requests all of it.
    pub(crate) fn opens(&self) -> bool {
        self.operation == Operation::GetLarge && self.request == "get:1"
    }

    /// Returns true if the request is for a range, and doesn't open a large object.
    pub(crate) fn asks_for_range(&self) -> bool {
        self.request == "get:2"
    }

    fn rule(&self) -> String {
        let (verb, nth) = self.request.split_once(':').unwrap_or((self.request, "1"));
        let verb = if verb == "batch" && self.kind.provider == Provider::S3 { "delete-many" } else { verb };
        let last = if self.always { "-999999" } else { "" };
        format!("{verb}:{nth}{last} {}", self.fault)
    }

    /// Runs the cell. Returns the mistake in its outcome, if there is one.
    fn problem(&self, rig: &Rig, carry_out: CarryOut) -> Option<String> {
        rig.endpoint.end_faults();
        rig.prepare(self.operation);
        let retry_for = if self.always { Duration::ZERO } else { RETRY_FOR };
        let stall_timeout = if self.fault == "stall" { STALL_TIMEOUT } else { Duration::from_secs(30) };
        let bucket = rig.bucket(retry_for, stall_timeout);
        let before = rig.endpoint.server().counters();
        rig.endpoint.set_faults(&[self.rule()]);
        let ended = carry_out(self.operation, bucket);
        rig.endpoint.end_faults();
        let expected = expected(self);
        let wrong = |what: &str| Some(format!("{self:?}: {what}; {ended:?}, where {expected:?} is right"));
        if !rig.endpoint.becomes_quiet() {
            return wrong("connections are still open");
        }
        let after = rig.endpoint.server().counters();
        let is_right = match &ended {
            Ok(()) => expected.allows(None),
            Err(Ended::Failed { kind, .. }) => expected.allows(Some(kind)),
            Err(Ended::Wrong(_)) => false,
        };
        if !is_right {
            return wrong("it has ended in another way");
        }
        if after.faults_fired == before.faults_fired {
            return wrong("the fault has hit no request");
        }
        if after.requests - before.requests > REQUESTS_MAX {
            return wrong("it took too many requests");
        }
        // An upload may stay open if the answer to its beginning was lost, or if its abort failed.
        let left_max = u64::from(self.operation == Operation::PutMultipart) * if self.always { 3 } else { 1 };
        if uploads_open(&after) - uploads_open(&before) > left_max {
            return wrong("uploads are left");
        }
        rig.problem(self.operation, ended.is_ok()).and_then(wrong)
    }
}

/// Returns the expected outcome of a fault in a request.
pub(crate) fn expected(cell: &Cell) -> Expected {
    let passes_or = |kinds| if cell.always { Failure(kinds) } else { Success };
    let is_gcs = cell.kind.provider == Provider::Gcs;
    let is_whole = cell.operation == Operation::Get;
    let is_write = matches!(cell.request, "put:1" | "part:1" | "complete:1" | "copy:1");
    // If a batch fails, its keys are deleted one by one. The answer to a delete consists only of the status.
    let is_batch = cell.request == "batch:1";
    let is_removal = is_batch || cell.operation == Operation::Delete;
    match cell.fault {
        "length none" | "goaway" => Success,
        "status 403" | "status 500" | "status 503" if is_batch => Success,
        // If a store refuses multipart uploads, the upload uses a session.
        "status 403" if cell.request == "begin:1" && !cell.always && is_gcs => Success,
        // If S3 forbids a HEAD, Laneway sends it once more without asking for the checksum.
        "status 403" if cell.request == "head:1" && !cell.always && !is_gcs => Success,
        "status 403" => Failure(&["permission"]),
        // On GCS a 503 is a failure, and on S3 it is a throttle. The answer to a HEAD doesn't show which of the
        // two is meant.
        "status 503" => passes_or(&["throttled", "server"]),
        "status 500" => passes_or(&["server"]),
        "reset" | "drop" | "refuse-stream" if is_removal => Either(&["transport"]),
        "reset" | "drop" | "refuse-stream" => passes_or(&["transport"]),
        // The answer to an S3 HEAD consists only of headers, so a fault in the bytes after them has no effect.
        "reset@100" | "cut@100" | "truncate" if cell.operation == Operation::Head && !is_gcs => {
            Either(&["transport"])
        }
        "reset@100" | "cut@100" | "stall" | "truncate" | "lose-answer" if is_removal || is_write => {
            Either(&["transport"])
        }
        "reset@100" | "cut@100" | "stall" | "truncate" | "lose-answer" => passes_or(&["transport"]),
        // Two headers state different lengths, and it is unknown which of them is right.
        "length +7" if is_whole || cell.opens() => Failure(&["integrity", "invalid_range", "transport"]),
        "length +7" if is_write || is_removal => Either(&["transport"]),
        "length +7" => passes_or(&["transport", "integrity"]),
        "length -1" => Either(&["transport", "integrity", "server"]),
        // Bytes that a stream has delivered can't be taken back.
        "corrupt" | "wrong-checksum" if cell.operation == Operation::GetLarge => Either(&["integrity"]),
        "corrupt" => passes_or(&["integrity"]),
        "wrong-checksum" if is_whole => passes_or(&["integrity"]),
        "wrong-checksum" => Either(&["integrity"]),
        "range ignored" | "range shifted" => Failure(&["unsupported"]),
        "replace" if is_whole => Success,
        "replace" => Either(&["precondition"]),
        "error-in-200" if is_whole || cell.is_content() => {
            Failure(&["server", "unsupported", "precondition"])
        }
        "error-in-200" => Either(&["server", "integrity"]),
        "garble" => Either(&["server"]),
        fault => panic!("{fault} is nobody's"),
    }
}
