//! How many requests were sent, in the classes that stores' price lists know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::Method;

use crate::Operation;

/// Requests sent to a store, every attempt counted that went onto a connection. Where a class has a price, S3 and GCS draw the same lines:
/// <https://aws.amazon.com/s3/pricing/>, <https://cloud.google.com/storage/pricing#operations-by-class>.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Requests {
    /// What writes, copies or lists: S3's "PUT, COPY, POST, LIST", GCS's class A.
    pub writes: u64,
    /// What reads an object or asks for its metadata: S3's "GET and all other", GCS's class B.
    pub reads: u64,
    /// Deletions, and uploads given up.
    pub deletes: u64,
}

/// [`Requests`] as they are counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    writes: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
    deletes: Arc<AtomicU64>,
}

impl Tally {
    /// Where a request is counted once it is sent.
    pub(crate) fn class(&self, operation: Operation, method: &Method) -> Arc<AtomicU64> {
        let class = match (operation, method) {
            (Operation::List | Operation::ListParts | Operation::ListUploads, _) => &self.writes,
            // Many at once are a POST on both, and as free as one.
            (Operation::Delete | Operation::Abort, _) | (_, &Method::DELETE) => &self.deletes,
            // Also what a write reads back to be sure of itself.
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
        let tally = Tally::default();
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
