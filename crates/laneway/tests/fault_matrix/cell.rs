//! A cell of the matrix: one fault applied to one request.

use std::time::Duration;

use laneway::Provider;
use laneway_testkit::uploads_open;

use crate::expectations::{expected, uploads_left_max};
use crate::faults::{Class, FAULTS, Fault, NOT_TAKEN};
use crate::operations::{About, Ended, Operation, STRIKES, Strike, Way, is_partial, strikes_of};
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
        match self.fault.class {
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
            Class::Corruption if about == About::Range => Some("no store reports the checksum of a range"),
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
                Some("on S3 it is the same as put-large-file")
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
    /// is the other way round. Over connections that allow one stream, only a few faults are tried, and each hits the first attempt.
    fn is_chosen(&self) -> bool {
        if self.kind.one_stream {
            return self.often == Often::Once && self.turn.is_multiple_of(ONE_STREAM_TURNS);
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
        let uploads_left = uploads_open(&after) - uploads_open(&before);
        if uploads_left > uploads_left_max(self) {
            return wrong(format!("{uploads_left} uploads are left"));
        }
        Ok(how)
    }
}
