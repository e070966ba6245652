//! The faults of the matrix.

/// A fault, in the syntax of the embedded store's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) action: &'static str,
    pub(crate) class: Class,
}

impl Fault {
    /// Returns true if a similar fault takes the same path through the program. Such faults aren't tried with
    /// large objects, which take long.
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

/// The effect of a fault. Faults of one class have the same expected outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// The store asks the client to slow down.
    Throttle,
    /// The store reports an internal failure.
    Failure,
    /// The store denies permission.
    Refusal,
    /// The request breaks off or gets no answer. The store has done nothing.
    Break,
    /// The answer is cut or missing. The store may have done the work.
    Loss,
    /// The answer is slow.
    Slowness,
    /// One bit of the body is flipped.
    Corruption,
    /// The answer doesn't state its length.
    NoLength,
    /// The stated length is longer than the body.
    LongLength,
    /// The stated length is one byte shorter than the body.
    ShortLength,
    /// The store ignores the range and sends the whole object.
    RangeIgnored,
    /// The store sends another range.
    RangeShifted,
    /// The checksum in the answer's headers is wrong.
    WrongChecksum,
    /// Another writer has replaced the object.
    Replacement,
    /// The status is 200 and the body holds an error.
    ErrorIn200,
    /// The answer can't be read.
    Unreadable,
    /// The server ends the connection with GOAWAY.
    GoAway,
    /// The server refuses the stream unprocessed.
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
