//! A store with faults, and a bucket in this store for each cell.

use std::sync::LazyLock;
use std::time::Duration;

use laneway::{Bucket, Client, Engine, Provider};
use laneway_testkit::{Endpoint, Wire, config_for_faults, random_bytes};

use crate::matrix::Operation;

/// One call reads ranges that begin at these offsets. They are too far apart to be joined into one request.
pub(crate) const RANGES: [usize; 3] = [10, 2 << 20, 4 << 20];

pub(crate) static SMALL_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(1, 5000));
pub(crate) static RANGED_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(2, (4 << 20) + 2000));
/// An object that is transferred in several requests.
pub(crate) static LARGE_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(3, (17 << 20) + 5));

/// A dialect, over HTTP/1.1 or over TLS. With TLS, ALPN selects HTTP/2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) provider: Provider,
    pub(crate) tls: bool,
}

pub(crate) const KINDS: [Kind; 4] = [
    Kind { provider: Provider::Gcs, tls: false },
    Kind { provider: Provider::S3, tls: true },
    Kind { provider: Provider::Gcs, tls: true },
    Kind { provider: Provider::S3, tls: false },
];

pub(crate) struct Rig {
    pub(crate) endpoint: Endpoint,
    kind: Kind,
}

impl Rig {
    pub(crate) fn new(kind: Kind) -> Self {
        let wire = if kind.tls { Wire::TlsH2 } else { Wire::Plain };
        Self { endpoint: Endpoint::start_with(wire, config_for_faults()), kind }
    }

    /// Returns a bucket of a client with its own engine.
    pub(crate) fn bucket(&self, retry_for: Duration, stall_timeout: Duration) -> Bucket {
        let mut settings = Client::builder()
            .anonymous(true)
            .gcs_endpoint(self.endpoint.url())
            .s3_endpoint(self.endpoint.url())
            .retry_for(retry_for)
            .stall_timeout(stall_timeout);
        if let Some(ca) = self.endpoint.ca_file() {
            settings = settings.ca_file(ca);
        }
        let client = settings.engine(Engine::builder().threads(1).build()).build().unwrap();
        client.bucket(&format!("{}://{}/", self.kind.provider.scheme(), Endpoint::BUCKET)).unwrap()
    }

    /// Stores the objects that an operation reads or replaces.
    pub(crate) fn prepare(&self, operation: Operation) {
        self.endpoint.clear();
        let object: &[u8] = match operation {
            Operation::GetLarge => &LARGE_BYTES,
            Operation::GetRanges => &RANGED_BYTES,
            Operation::Put | Operation::PutMultipart => b"old",
            _ => &SMALL_BYTES,
        };
        self.endpoint.put("k", object);
        for key in ["t/0", "t/1", "u"] {
            self.endpoint.put(key, b"x");
        }
    }

    /// Checks the store's state after an operation that has `succeeded` or failed. Returns the mistake, if there is one.
    pub(crate) fn problem(&self, operation: Operation, succeeded: bool) -> Option<&'static str> {
        let keys = self.endpoint.keys();
        let (old, new): (&[u8], &[u8]) = match operation {
            Operation::Put => (b"old", &SMALL_BYTES),
            Operation::PutMultipart => (b"old", &LARGE_BYTES),
            Operation::Delete => {
                let is_so = if succeeded { keys == ["t/0", "t/1", "u"] } else { keys.len() >= 3 };
                return (!is_so).then_some("other objects are there than after a removal");
            }
            Operation::DeleteStream => {
                let is_so = keys[0] == "k" && (!succeeded || keys.len() == 1);
                return (!is_so).then_some("other objects are there than after a removal");
            }
            Operation::Copy => {
                let there = self.endpoint.stored("copied");
                let is_so = there.as_ref() == Some(&*SMALL_BYTES) || there.is_none() && !succeeded;
                return (!is_so).then_some("the copy is not the object");
            }
            _ => return (keys != ["k", "t/0", "t/1", "u"]).then_some("other objects are there than before"),
        };
        let there = self.endpoint.stored("k").unwrap_or_default();
        let is_so = there == new || there == old && !succeeded;
        (!is_so).then_some("the object is neither what was there nor what was sent")
    }
}
