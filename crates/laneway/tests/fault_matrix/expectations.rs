//! The expected outcomes of faults. This table is independent of the program's code.

use laneway::Provider;
use laneway_testkit::Expected::{self, Either, Failure, Success};

use crate::cell::{Cell, Often};
use crate::faults::Class;
use crate::operations::{About, Operation, Tree, Way};

/// Returns the expected outcome of a fault, by the request's subject.
pub(crate) fn expected(cell: &Cell) -> Expected {
    let about = cell.strike.about;
    let once = cell.often == Often::Once;
    let is_gcs = cell.dialect() == Provider::Gcs;
    let is_sync_across = cell.strike.operation == Operation::Of(Tree::SyncAcross);
    let is_part = matches!(about, About::Slice | About::Range);
    let passes_or = |kinds| if once { Success } else { Failure(kinds) };
    // For a HEAD and for an upload of a part, the headers of S3's answer contain everything. So damage to the body
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
        Class::Refusal if cell.removes_source() && once && !is_gcs => Success,
        // If S3 forbids a HEAD, Laneway repeats the HEAD without asking for the checksum. The checksum may need a
        // permission on a KMS key.
        Class::Refusal if cell.strike.verb == "head" && once && !is_gcs => Success,
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
/// doesn't retry, an upload stays open too.
pub(crate) fn uploads_left_max(cell: &Cell) -> u64 {
    let breaks_all = cell.kind.tls && matches!(cell.fault.class, Class::Break | Class::Loss);
    match cell.often {
        Often::Once => u64::from(cell.strike.about == About::Begin),
        Often::Always if cell.strike.about == About::Begin => BEGINNINGS_MAX,
        Often::Always => u64::from(breaks_all),
    }
}
