//! Counts the sent requests, in the classes of the stores' price lists.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::Method;

use crate::Operation;

/// The numbers of requests sent to a store. Every attempt that was sent on a connection is counted. S3 and GCS have the
/// same price classes for the same requests: <https://aws.amazon.com/s3/pricing/>,
/// <https://cloud.google.com/storage/pricing#operations-by-class>.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Requests {
    /// Writes, copies and listings: S3's "PUT, COPY, POST, LIST", GCS's class A.
    pub writes: u64,
    /// Reads of objects and of their metadata: S3's "GET and all other", GCS's class B.
    pub reads: u64,
    /// Deletes, and aborted uploads.
    pub deletes: u64,
}

/// The counters behind [`Requests`].
#[derive(Debug, Default)]
pub(crate) struct RequestTally {
    writes: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
    deletes: Arc<AtomicU64>,
}

impl RequestTally {
    /// Returns the counter for a request.
    pub(crate) fn class(&self, operation: Operation, method: &Method) -> Arc<AtomicU64> {
        let class = match (operation, method) {
            (Operation::List | Operation::ListParts | Operation::ListUploads, _) => &self.writes,
            // A bulk delete is a POST on both stores, but it is free of charge, like a single delete.
            (Operation::Delete | Operation::Abort, _) | (_, &Method::DELETE) => &self.deletes,
            // The reads with which Laneway checks a write are counted as reads, because the stores charge for them as
            // such.
            (_, &Method::GET | &Method::HEAD) => &self.reads,
            _ => &self.writes,
        };
        Arc::clone(class)
    }

    pub(crate) fn snapshot(&self) -> Requests {
        Requests {
            writes: self.writes.load(Relaxed),
            reads: self.reads.load(Relaxed),
            deletes: self.deletes.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_as_the_price_lists_class_them() {
        let tally = RequestTally::default();
        for (operation, method) in [
            (Operation::Put, Method::PUT),
            (Operation::Put, Method::POST),
            (Operation::Copy, Method::PUT),
            (Operation::List, Method::GET),
            (Operation::ListParts, Method::GET),
            (Operation::Begin, Method::POST),
            (Operation::Part, Method::PUT),
            (Operation::Complete, Method::POST),
            (Operation::Get, Method::GET),
            (Operation::Head, Method::HEAD),
            (Operation::Head, Method::GET),
            (Operation::Put, Method::HEAD),
            (Operation::Delete, Method::DELETE),
            (Operation::Delete, Method::POST),
            (Operation::Abort, Method::DELETE),
        ] {
            tally.class(operation, &method).fetch_add(1, Relaxed);
        }
        assert_eq!(tally.snapshot(), Requests { writes: 8, reads: 4, deletes: 3 });
    }
}
