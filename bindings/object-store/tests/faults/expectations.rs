//! The expected outcome of each fault: a table that is independent of the program.

use laneway::Provider;
use laneway_testkit::Expected::{self, Either, Failure, Success};

use crate::matrix::{Cell, Operation};

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
