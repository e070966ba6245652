//! What has to follow from a fault: a table that knows nothing of the program.

use laneway::Provider;
use laneway_testkit::Expected::{self, Either, Failure, Success};

use crate::cell::{Cell, Often};
use crate::faults::Class;
use crate::operations::{About, Operation, Tree, Way};

/// What has to follow where a fault meets a request, by what the request is about.
pub(crate) fn expected(cell: &Cell) -> Expected {
    let about = cell.strike.about;
    let once = cell.often == Often::Once;
    let is_gcs = cell.dialect() == Provider::Gcs;
    let is_sync_across = cell.strike.operation == Operation::Of(Tree::SyncAcross);
    let is_part = matches!(about, About::Slice | About::Range);
    let passes_or = |kinds| if once { Success } else { Failure(kinds) };
    // The answer to an S3 HEAD or put says all in its head, what comes behind that is nothing to it.
    let is_all_in_head = about == About::Headers && !is_gcs || cell.strike.verb == "part";
    // Keys whose batch fails are removed one by one.
    let is_batch = matches!(cell.strike.verb, "batch" | "delete-many");
    match cell.fault.class {
        Class::Slowness | Class::NoLength | Class::GoAway => Success,
        // A store without multipart uploads is written to in a session.
        Class::Refusal if about == About::Begin && once && is_gcs => Success,
        Class::Refusal | Class::Throttle | Class::Failure if is_batch => Success,
        // Those that were on the same connection may end with it.
        Class::Break | Class::Loss | Class::LongLength | Class::NotTaken if is_batch => {
            Either(&["transport"])
        }
        // To remove it as it was copied takes another permission than to remove it, and then it is compared first.
        Class::Refusal if cell.removes_source() && once && !is_gcs => Success,
        // A HEAD that S3 forbids is sent once more without asking for the checksum, which may need the right to a KMS key.
        Class::Refusal if cell.strike.verb == "head" && once && !is_gcs => Success,
        Class::Refusal => Failure(&["permission"]),
        // Google's 503 is a failure, Amazon's a throttle; a HEAD doesn't say which.
        // A sync across lists both stores at once, and either of them may be the first to fail.
        Class::Throttle if is_gcs || about == About::Headers || is_sync_across => {
            passes_or(&["throttled", "server"])
        }
        Class::Throttle => passes_or(&["throttled"]),
        Class::Failure => passes_or(&["server"]),
        Class::Break | Class::NotTaken => passes_or(&["transport"]),
        // A session is asked what it has, and gives up where that never grows.
        Class::Loss if cell.is_session() && !once => Either(&["transport", "integrity"]),
        // A deletion's answer is its status. An empty listing may end before the place of the fault.
        Class::Loss | Class::LongLength if about == About::Removal => Either(&["transport"]),
        Class::Loss if cell.strike.operation == Operation::SyncUp && !once => Either(&["transport"]),
        Class::Loss if is_all_in_head || about == About::Write && !once => Either(&["transport"]),
        Class::Loss => passes_or(&["transport"]),
        // What has been handed on of a stream can't be taken back.
        Class::Corruption | Class::WrongChecksum if cell.is_streamed() => Either(&["integrity"]),
        Class::Corruption => passes_or(&["integrity"]),
        Class::WrongChecksum if about == About::Content || cell.opens() => passes_or(&["integrity"]),
        Class::WrongChecksum if about == About::Write => Either(&["integrity"]),
        Class::WrongChecksum => Success,
        // Where two places say how long it is, they contradict each other; and nobody knows which is right.
        Class::LongLength | Class::ShortLength if cell.opens() => Failure(&["integrity", "transport"]),
        // A listing or a HEAD has said how long it is.
        Class::LongLength
            if matches!(
                cell.strike.operation,
                Operation::SyncDown | Operation::Of(Tree::SyncAcross) | Operation::Move(Way::Across)
            ) =>
        {
            Either(&["integrity", "transport"])
        }
        Class::LongLength if about == About::Content => Failure(&["integrity", "invalid_range", "transport"]),
        Class::LongLength if matches!(about, About::Headers | About::Write) => Either(&["transport"]),
        Class::LongLength => passes_or(&["transport"]),
        // It is begun again.
        Class::ShortLength | Class::ErrorIn200 | Class::Unreadable if about == About::Begin && once => {
            Success
        }
        Class::ShortLength if is_part => Either(&["transport", "integrity"]),
        Class::ShortLength if about == About::Content => passes_or(&["transport", "integrity"]),
        Class::ShortLength => Either(&["transport", "integrity", "server"]),
        Class::RangeIgnored | Class::RangeShifted => Failure(&["unsupported"]),
        // What another writer has put stays.
        Class::Replacement if cell.removes_source() => Failure(&["source"]),
        Class::Replacement if is_part => Either(&["precondition"]),
        Class::Replacement => Success,
        Class::ErrorIn200 if is_part => Failure(&["server", "unsupported", "precondition"]),
        Class::ErrorIn200 if about == About::Content => Failure(&["server"]),
        // The object is looked for, and is there.
        Class::ErrorIn200 if cell.strike.operation == Operation::Delete => Failure(&["server"]),
        // What says that it was done and doesn't say how is not done again, but looked at.
        Class::ErrorIn200 => Either(&["server", "integrity"]),
        Class::Unreadable => Either(&["server"]),
    }
}

/// How often the beginning of an upload is asked for whose answer can't be read.
const BEGINNINGS_MAX: u64 = 3;

/// How many uploads may be left in the store: one for each beginning whose answer was lost, since nobody knows its name, and
/// one where the connection on which it would have been aborted broke under it, and nothing is tried again.
pub(crate) fn uploads_left_max(cell: &Cell) -> u64 {
    let breaks_all = cell.kind.tls && matches!(cell.fault.class, Class::Break | Class::Loss);
    match cell.often {
        Often::Once => u64::from(cell.strike.about == About::Begin),
        Often::Always if cell.strike.about == About::Begin => BEGINNINGS_MAX,
        Often::Always => u64::from(breaks_all),
    }
}
