//! A cell of the matrix: one fault applied to one request.

use std::time::Duration;

use laneway::Provider;
use laneway_testkit::Expected::{self, Either, Failure, Success};
use laneway_testkit::uploads_open;

use crate::faults::{Class, FAULTS, Fault, NOT_TAKEN};
use crate::operations::{About, Ended, Operation, STRIKES, Strike, Tree, Way, is_partial, strikes_of};
use crate::rig::{Kind, Rig};

/// The number of attempts that a fault hits: the first one, or each of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Often {
    Once,
    /// In these cells the client doesn't retry. Retries would only delay the same result.
    Always,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) strike: Strike,
    pub(crate) fault: Fault,
    pub(crate) often: Often,
    pub(crate) kind: Kind,
    /// Index of the request plus index of the fault. The sum selects the protocol.
    turn: usize,
}

/// Retry limit for faults that pass.
const RETRY_FOR: Duration = Duration::from_secs(20);
/// Stall timeout in cells whose fault makes a connection fall silent.
const STALL_TIMEOUT: Duration = Duration::from_millis(700);
/// The stall timeout for large objects. On a busy machine the gap between two of their parts can be longer.
const STALL_TIMEOUT_LARGE: Duration = Duration::from_secs(3);

/// Over connections that allow one stream, only every fifth fault of a request is tried.
const ONE_STREAM_TURNS: usize = 5;

/// Upper bound on the additional attempts. Laneway retries a refused stream (`NotTaken`) at once up to ten times, and other faults a
/// few times.
const ATTEMPTS_MORE_MAX: u64 = 30;

/// Returns all cells of a kind.
pub(crate) fn cells(kind: Kind) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (place, strike) in STRIKES.into_iter().chain(strikes_of(kind.provider)).enumerate() {
        for (turn, fault) in FAULTS.into_iter().chain([NOT_TAKEN]).enumerate() {
            for often in [Often::Once, Often::Always] {
                cells.push(Cell { strike, fault, often, kind, turn: place + turn });
            }
        }
    }
    cells
}

impl Cell {
    pub(crate) fn name(&self) -> String {
        let Strike { operation, verb, nth, .. } = self.strike;
        let often = if self.often == Often::Once { "once" } else { "always" };
        let action = self.fault.action.replace(' ', "-");
        format!("{}/{verb}:{nth}/{action}/{often}/{}", operation.name(), self.kind.name())
    }

    /// Returns the reason why the fault can't apply to the request, if there is one.
    pub(crate) fn skipped(&self) -> Option<&'static str> {
        let Strike { operation, verb, about, .. } = self.strike;
        let is_content = matches!(about, About::Content | About::Slice | About::Range);
        let asks_for_range = matches!(about, About::Range | About::Slice);
        let is_sent = matches!(verb, "put" | "part");
        let is_azure = self.dialect() == Provider::Azure;
        match self.fault.class {
            _ if is_azure && about == About::Begin => Some("Azure begins an upload without a request"),
            Class::NotTaken if is_azure => Some("Azure has no HTTP/2"),
            Class::Slowness if about == About::Slice || verb == "part" => Some("this would take minutes"),
            Class::Loss if self.fault.action.starts_with("stall") && self.is_session() => {
                Some("the embedded store's session waits for the stalled chunk")
            }
            Class::Loss if self.fault.action.starts_with("stall") && matches!(verb, "copy" | "complete") => {
                Some("a copy or a completion may take minutes, so Laneway waits for it")
            }
            Class::LongLength if about == About::Headers => {
                Some("nothing contradicts the length in a HEAD's answer")
            }
            Class::RangeIgnored | Class::RangeShifted if !asks_for_range || self.opens() => {
                Some("the request has no range")
            }
            Class::Replacement if !is_content && !self.removes_source() => {
                Some("the request reads no object")
            }
            Class::Unreadable if is_content || about == About::Headers => Some("the answer has no document"),
            Class::WrongChecksum if !is_content && !is_sent && about != About::Headers => {
                Some("the answer has no checksum")
            }
            Class::Corruption if about == About::Range && !is_azure => {
                Some("only Azure sends the checksum of a range")
            }
            Class::Corruption if !is_content && !is_sent => Some("documents have no checksum"),
            Class::NoLength | Class::ShortLength if about == About::Headers => Some("headers have no length"),
            _ if self.is_large() && self.fault.is_like_another() => {
                Some("a similar fault covers large objects")
            }
            _ if operation == Operation::CopyLargeAcross
                && self.is_continued()
                && self.often == Often::Always =>
            {
                Some("without retries the copy may already fail at the preceding break")
            }
            _ if !self.is_chosen() => Some("another dialect or protocol covers it"),
            _ if operation == Operation::PutNewLargeFile && self.kind.provider != Provider::Gcs => {
                Some("without sessions it is the same as put-large-file")
            }
            _ => None,
        }
    }

    /// Returns true for the first request of a large object, which asks for the whole object.
    pub(crate) fn opens(&self) -> bool {
        self.strike.about == About::Slice && self.strike.nth == 1
    }

    /// Returns true for the request that removes a move's source.
    pub(crate) fn removes_source(&self) -> bool {
        matches!(self.strike.operation, Operation::Move(_)) && self.strike.about == About::Removal
    }

    /// Returns the dialect of the store that gets the request.
    pub(crate) fn dialect(&self) -> Provider {
        self.strike.operation.dialect(self.strike.about, self.kind.provider)
    }

    /// Returns true if the caller gets bytes before the whole object has arrived.
    pub(crate) fn is_streamed(&self) -> bool {
        self.strike.operation == Operation::ReadLarge
    }

    /// Returns true if the upload uses a resumable session.
    pub(crate) fn is_session(&self) -> bool {
        self.strike.operation == Operation::PutNewLargeFile
    }

    fn is_large(&self) -> bool {
        matches!(self.strike.about, About::Slice | About::Begin)
            || matches!(self.strike.verb, "part" | "complete")
    }

    /// Returns true if the cell is in the sample of cells that run. Each fault hits a request over only one of the two protocols, which
    /// alternate. In GCS's dialect, the fault hits each attempt over HTTP/2, and only the first attempt over HTTP/1.1. In S3's dialect, it
    /// is the other way round. In Azure's dialect, both protocols are HTTP/1.1, and half of the faults of each hit each attempt. Over
    /// connections that allow one stream, only a few faults are tried, and each hits the first attempt.
    fn is_chosen(&self) -> bool {
        if self.kind.one_stream {
            return self.often == Often::Once && self.turn.is_multiple_of(ONE_STREAM_TURNS);
        }
        if self.kind.provider == Provider::Azure {
            let hits_all = (self.turn / 2).is_multiple_of(2);
            return hits_all == (self.often == Often::Always) && self.kind.tls == self.turn.is_multiple_of(2);
        }
        let is_even = (self.kind.provider == Provider::Gcs) == self.kind.tls;
        let is_of_h2 = matches!(self.fault.class, Class::GoAway | Class::NotTaken);
        is_even == (self.often == Often::Always) && self.kind.tls == (is_of_h2 || self.turn.is_multiple_of(2))
    }

    fn stall_timeout(&self) -> Duration {
        match self.fault.action.starts_with("stall") {
            true if self.is_large() => STALL_TIMEOUT_LARGE,
            true => STALL_TIMEOUT,
            false => Duration::from_secs(30),
        }
    }

    fn rule(&self) -> String {
        let Strike { verb, nth, .. } = self.strike;
        match self.often {
            Often::Once => format!("{verb}:{nth} {}", self.fault.action),
            Often::Always => format!("{verb}:{nth}-999999 {}", self.fault.action),
        }
    }

    /// Returns true if the request resumes a body that broke off.
    fn is_continued(&self) -> bool {
        let is_sliced = matches!(self.strike.operation, Operation::GetLargeFile | Operation::CopyLargeAcross);
        is_sliced && self.strike.about == About::Slice && self.strike.nth > 1
    }

    /// Returns the fault's rule. For a request that resumes a download, another rule first breaks the object's first stream.
    fn rules(&self) -> Vec<String> {
        let broken = self.is_continued().then(|| "get:1 truncate@3MiB".to_owned());
        broken.into_iter().chain([self.rule()]).collect()
    }

    /// Runs the cell. Returns a description of its outcome, or of the violation.
    pub(crate) fn run(&self, rig: &Rig) -> Result<String, String> {
        let operation = self.strike.operation;
        rig.endpoint.end_faults();
        rig.clear();
        operation.prepare(rig);
        let retry_for = if self.often == Often::Once { RETRY_FOR } else { Duration::ZERO };
        let client = rig.client(retry_for, self.stall_timeout());
        let before = rig.endpoint.server().counters();
        let began = std::time::Instant::now();
        let rules = self.rules();
        rig.endpoint.set_faults(&rules);
        let ended = operation.carry_out(rig, &client, self.fault.class);
        let took = began.elapsed();
        rig.endpoint.end_faults();
        drop(client);
        if !rig.endpoint.becomes_quiet() {
            return Err(format!("connections are still open after {ended:?}"));
        }
        let after = rig.endpoint.server().counters();
        let requests = after.requests - before.requests;
        let how = format!("{ended:?}, {requests} requests, {took:?}");
        let wrong = |what: String| Err(format!("{what}; {how}"));

        let expected = expected(self);
        let is_right = match &ended {
            Ok(()) => expected.allows(None),
            Err(Ended::Failed { kind, .. }) => expected.allows(Some(kind)),
            Err(Ended::Wrong(_)) => false,
        };
        if !is_right {
            return wrong(format!("{expected:?} was expected"));
        }
        if after.faults_fired - before.faults_fired < rules.len() as u64 {
            return wrong("no request met the fault".into());
        }
        let requests_max = operation.requests_max() + ATTEMPTS_MORE_MAX;
        if requests > requests_max {
            return wrong(format!("{requests_max} requests are enough"));
        }
        if self.kind.one_stream && after.streams_peak > 1 {
            return wrong(format!("{} streams were under way on one connection", after.streams_peak));
        }
        if let Err(what) = operation.leftover(rig, ended.is_ok()) {
            return wrong(what);
        }
        if self.fault.class == Class::Replacement && self.removes_source() && !Way::has_kept_replacement(rig)
        {
            return wrong("another writer's object is gone".into());
        }
        let mut files = rig.files();
        if ended.is_err() && operation.keeps_partial_file() {
            files.retain(|name| !is_partial(name));
        }
        if !files.iter().all(|name| operation.files().contains(&name.as_str())) {
            return wrong(format!("{files:?} are left"));
        }
        let (uploads_before, uploads_after) = (uploads_open(&before), uploads_open(&after));
        let uploads_left = match self.dialect() {
            // A completed upload also ends the uploads of the same blob that earlier cells have left.
            Provider::Azure => uploads_after.saturating_sub(uploads_before),
            _ => uploads_after - uploads_before,
        };
        if uploads_left > uploads_left_max(self) {
            return wrong(format!("{uploads_left} uploads are left"));
        }
        Ok(how)
    }
}

/// Returns the expected outcome of a fault, by the request's subject. This table is independent of the
/// program's code.
pub(crate) fn expected(cell: &Cell) -> Expected {
    let about = cell.strike.about;
    let once = cell.often == Often::Once;
    let (is_gcs, is_s3) = (cell.dialect() == Provider::Gcs, cell.dialect() == Provider::S3);
    let is_azure = cell.dialect() == Provider::Azure;
    let is_sync_across = cell.strike.operation == Operation::Of(Tree::SyncAcross);
    let is_part = matches!(about, About::Slice | About::Range);
    let passes_or = |kinds| if once { Success } else { Failure(kinds) };
    // For a HEAD and for an upload of a part, the headers of S3's and Azure's answers contain everything. So damage to the body
    // changes nothing.
    let is_all_in_head = about == About::Headers && !is_gcs || cell.strike.verb == "part";
    // If a batch fails, Laneway removes its keys one by one.
    let is_batch = matches!(cell.strike.verb, "batch" | "delete-many");
    match cell.fault.class {
        Class::Slowness | Class::NoLength | Class::GoAway => Success,
        // If the store refuses multipart uploads, Laneway writes through a resumable session.
        Class::Refusal if about == About::Begin && once && is_gcs => Success,
        Class::Refusal | Class::Throttle | Class::Failure if is_batch => Success,
        // Other requests on the same connection may fail with this request.
        Class::Break | Class::Loss | Class::LongLength | Class::NotTaken if is_batch => {
            Either(&["transport"])
        }
        // S3 may allow a plain removal but refuse a conditional one. Laneway then compares the object first.
        Class::Refusal if cell.removes_source() && once && is_s3 => Success,
        // If S3 forbids a HEAD, Laneway repeats the HEAD without asking for the checksum. The checksum may need a
        // permission on a KMS key.
        Class::Refusal if cell.strike.verb == "head" && once && is_s3 => Success,
        // If GCS forbids a move by one request, Laneway copies the object and removes it.
        Class::Refusal
            if cell.strike.operation == Operation::Move(Way::Within)
                && cell.strike.verb == "copy"
                && once
                && is_gcs =>
        {
            Success
        }
        Class::Refusal => Failure(&["permission"]),
        // A 503 means failure at Google and throttling at Amazon, and a HEAD has no body to tell them apart. A sync between
        // stores lists both at once, and either may fail first.
        Class::Throttle if is_gcs || about == About::Headers || is_sync_across => {
            passes_or(&["throttled", "server"])
        }
        Class::Throttle => passes_or(&["throttled"]),
        Class::Failure => passes_or(&["server"]),
        Class::Break | Class::NotTaken => passes_or(&["transport"]),
        // Laneway asks the session for its committed length, and gives up if that never grows.
        Class::Loss if cell.is_session() && !once => Either(&["transport", "integrity"]),
        // The answer to a deletion consists of the status alone. An empty listing may end before the position
        // of the fault.
        Class::Loss | Class::LongLength if about == About::Removal => Either(&["transport"]),
        Class::Loss if cell.strike.operation == Operation::SyncUp && !once => Either(&["transport"]),
        Class::Loss if is_all_in_head || about == About::Write && !once => Either(&["transport"]),
        Class::Loss => passes_or(&["transport"]),
        // Bytes that a stream has delivered can't be taken back.
        Class::Corruption | Class::WrongChecksum if cell.is_streamed() => Either(&["integrity"]),
        Class::Corruption => passes_or(&["integrity"]),
        Class::WrongChecksum if about == About::Content || cell.opens() => passes_or(&["integrity"]),
        Class::WrongChecksum if about == About::Write => Either(&["integrity"]),
        Class::WrongChecksum => Success,
        // Azure's structured body states its length too, so Laneway sees that one is wrong and downloads the object again.
        Class::LongLength | Class::ShortLength if cell.opens() && is_azure => {
            Either(&["integrity", "transport"])
        }
        // Two headers state different lengths, and nothing tells which one is right.
        Class::LongLength | Class::ShortLength if cell.opens() => Failure(&["integrity", "transport"]),
        // A listing or a HEAD has already stated the length.
        Class::LongLength
            if matches!(
                cell.strike.operation,
                Operation::SyncDown | Operation::Of(Tree::SyncAcross) | Operation::Move(Way::Across)
            ) =>
        {
            Either(&["integrity", "transport"])
        }
        // The structured body tells another length than the headers, so Laneway downloads the object again.
        Class::LongLength if is_azure && about == About::Content => Either(&["integrity", "transport"]),
        Class::LongLength if is_azure && is_part => passes_or(&["integrity", "transport"]),
        Class::LongLength if about == About::Content => Failure(&["integrity", "invalid_range", "transport"]),
        Class::LongLength if matches!(about, About::Headers | About::Write) => Either(&["transport"]),
        Class::LongLength => passes_or(&["transport"]),
        // Laneway begins the upload again.
        Class::ShortLength | Class::ErrorIn200 | Class::Unreadable if about == About::Begin && once => {
            Success
        }
        Class::ShortLength if is_part => Either(&["transport", "integrity"]),
        Class::ShortLength if about == About::Content => passes_or(&["transport", "integrity"]),
        Class::ShortLength => Either(&["transport", "integrity", "server"]),
        Class::RangeIgnored | Class::RangeShifted => Failure(&["unsupported"]),
        // Laneway doesn't remove another writer's object.
        Class::Replacement if cell.removes_source() => Failure(&["source"]),
        Class::Replacement if is_part => Either(&["precondition"]),
        Class::Replacement => Success,
        Class::ErrorIn200 if is_part => Failure(&["server", "unsupported", "precondition"]),
        Class::ErrorIn200 if about == About::Content => Failure(&["server"]),
        // Laneway looks up the object, which still exists.
        Class::ErrorIn200 if cell.strike.operation == Operation::Delete => Failure(&["server"]),
        // The answer claims success without the details. Laneway doesn't repeat the write, but checks the object.
        Class::ErrorIn200 => Either(&["server", "integrity"]),
        Class::Unreadable => Either(&["server"]),
    }
}

/// Maximum number of attempts to begin an upload if the answers are unreadable.
const BEGINNINGS_MAX: u64 = 3;

/// Returns the number of uploads that may stay open in the store. If the answer to the beginning of an upload is lost,
/// the upload stays open, because Laneway never learns its name. If a connection breaks before the abort and Laneway
/// doesn't retry, an upload stays open too. Azure has no request that aborts an upload.
pub(crate) fn uploads_left_max(cell: &Cell) -> u64 {
    if cell.dialect() == Provider::Azure {
        return u64::from(matches!(cell.strike.verb, "part" | "complete"));
    }
    let breaks_all = cell.kind.tls && matches!(cell.fault.class, Class::Break | Class::Loss);
    match cell.often {
        Often::Once => u64::from(cell.strike.about == About::Begin),
        Often::Always if cell.strike.about == About::Begin => BEGINNINGS_MAX,
        Often::Always => u64::from(breaks_all),
    }
}
