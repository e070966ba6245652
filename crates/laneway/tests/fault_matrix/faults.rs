//! The faults of the matrix.

/// A fault as the embedded store's grammar writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) action: &'static str,
    pub(crate) class: Class,
}

impl Fault {
    /// Whether a fault that takes the same way through the program stands beside it. Large objects take their time.
    pub(crate) fn is_like_another(self) -> bool {
        const LIKE: [&str; 9] = [
            "status 429",
            "status 503 retry-after 1s",
            "status 502",
            "drop",
            "cut",
            "drop@100",
            "cut@100",
            "truncate@0",
            "malformed",
        ];
        LIKE.contains(&self.action)
    }
}

/// What a fault does, as far as what has to follow depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// The store asks for a pause.
    Throttle,
    /// The store fails.
    Failure,
    /// The store refuses.
    Refusal,
    /// There is no answer, or the request broke off: nothing has been done.
    Break,
    /// The answer ends before its end, or doesn't come: what was asked for may have been done.
    Loss,
    /// It takes longer.
    Slowness,
    /// A bit of the bytes is wrong.
    Corruption,
    /// The length isn't said.
    NoLength,
    /// The answer says that it is longer than it is.
    LongLength,
    /// The answer says that it is one byte shorter than it is.
    ShortLength,
    /// A range is asked for, and the whole comes.
    RangeIgnored,
    /// Another range comes.
    RangeShifted,
    /// The checksum in the answer's headers is wrong.
    WrongChecksum,
    /// Another writer has replaced the object.
    Replacement,
    /// An error in an answer whose status is 200.
    ErrorIn200,
    /// The answer can't be read.
    Unreadable,
    /// The connection takes no more requests.
    GoAway,
    /// The request is not taken.
    NotTaken,
}

use Class::*;

const fn fault(action: &'static str, class: Class) -> Fault {
    Fault { action, class }
}

pub(crate) const FAULTS: [Fault; 31] = [
    fault("status 429", Throttle),
    fault("status 429 retry-after 1s", Throttle),
    fault("status 503", Throttle),
    fault("status 503 retry-after 1s", Throttle),
    fault("status 500", Failure),
    fault("status 502", Failure),
    fault("status 403", Refusal),
    fault("reset", Break),
    fault("drop", Break),
    fault("cut", Break),
    fault("stall", Loss),
    fault("reset@100", Loss),
    fault("drop@100", Loss),
    fault("cut@100", Loss),
    fault("stall@100", Loss),
    fault("truncate@0", Loss),
    fault("truncate", Loss),
    fault("length +7", LongLength),
    fault("lose-answer", Loss),
    fault("slow 40KB/s", Slowness),
    fault("corrupt", Corruption),
    fault("length none", NoLength),
    fault("length -1", ShortLength),
    fault("range ignored", RangeIgnored),
    fault("range shifted", RangeShifted),
    fault("wrong-checksum", WrongChecksum),
    fault("replace", Replacement),
    fault("error-in-200", ErrorIn200),
    fault("garble", Unreadable),
    fault("malformed", Unreadable),
    fault("goaway", GoAway),
];

pub(crate) const NOT_TAKEN: Fault = fault("refuse-stream", NotTaken);
