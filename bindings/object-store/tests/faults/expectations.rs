//! What has to follow from a fault: a table that knows nothing of the program.

use laneway::Provider;
use laneway_testkit::Expected::{self, Either, Failure, Success};

use crate::matrix::{Cell, Operation};

/// What has to follow where a fault meets a request.
pub(crate) fn expected(cell: &Cell) -> Expected {
    let passes_or = |kinds| if cell.always { Failure(kinds) } else { Success };
    let is_gcs = cell.kind.provider == Provider::Gcs;
    let is_whole = cell.operation == Operation::Get;
    let is_write = matches!(cell.request, "put:1" | "part:1" | "complete:1" | "copy:1");
    // Keys whose batch fails are removed one by one, and a deletion's answer is its status.
    let is_batch = cell.request == "batch:1";
    let is_removal = is_batch || cell.operation == Operation::Delete;
    match cell.fault {
        "length none" | "goaway" => Success,
        "status 403" | "status 500" | "status 503" if is_batch => Success,
        // A store without multipart uploads is written to in a session.
        "status 403" if cell.request == "begin:1" && !cell.always && is_gcs => Success,
        "status 403" => Failure(&["permission"]),
        // Google's 503 is a failure, Amazon's a throttle; a HEAD doesn't say which.
        "status 503" => passes_or(&["throttled", "server"]),
        "status 500" => passes_or(&["server"]),
        "reset" | "drop" | "refuse-stream" if is_removal => Either(&["transport"]),
        "reset" | "drop" | "refuse-stream" => passes_or(&["transport"]),
        // The answer to a HEAD of S3's says all in its head, what comes behind that is nothing to it.
        "reset@100" | "cut@100" | "truncate" if cell.operation == Operation::Head && !is_gcs => {
            Either(&["transport"])
        }
        "reset@100" | "cut@100" | "stall" | "truncate" | "lose-answer" if is_removal || is_write => {
            Either(&["transport"])
        }
        "reset@100" | "cut@100" | "stall" | "truncate" | "lose-answer" => passes_or(&["transport"]),
        // Where two places say how long it is, they contradict each other; and nobody knows which is right.
        "length +7" if is_whole || cell.opens() => Failure(&["integrity", "invalid_range", "transport"]),
        "length +7" if is_write || is_removal => Either(&["transport"]),
        "length +7" => passes_or(&["transport", "integrity"]),
        "length -1" => Either(&["transport", "integrity", "server"]),
        // What has been handed on of a stream can't be taken back.
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
