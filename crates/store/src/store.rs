//! The verbs of a store, a file for each group of them.

mod buckets;
mod changing;
mod listing;
mod multipart;
mod reading;
mod resumable;
mod writing;

use std::sync::Arc;

use laneway_lanes::{Lanes, Path, Spare};

use crate::gcs::Gcs;
use crate::s3::S3;
use crate::{
    Capabilities, Condition, Dialect, Error, ErrorKind, Listings, Operation, Provider, ReadAs, Requests,
    Settings, listings,
};

/// One provider with its endpoint and credentials. Buckets are arguments; clones share everything.
///
/// Every verb makes as many attempts as help (see the crate's `judge` rules for which errors do), and every error
/// names the verb, the object, the attempts and the time they took.
#[derive(Clone, Debug)]
pub struct Store {
    dialect: Arc<dyn Dialect>,
    lanes: Lanes,
    /// The customer's key that its reads send.
    read: ReadAs,
    listings: Arc<listings::Tally>,
}

/// Returns what the stores of a cloud can do; `None` for the dialects of callers, whose stores have to be asked.
pub fn capabilities_of(provider: Provider) -> Option<&'static Capabilities> {
    match provider {
        Provider::Gcs => Some(&crate::gcs::CAPABILITIES),
        Provider::S3 => Some(&crate::s3::CAPABILITIES),
        Provider::Other(_) => None,
    }
}

impl Store {
    /// A store whose requests go over `lanes`. Nothing is sent and no credentials are looked for yet.
    ///
    /// # Errors
    /// `Invalid` for an endpoint that is no URL.
    pub fn new(provider: Provider, settings: &Settings, lanes: Lanes) -> Result<Self, Error> {
        let dialect: Arc<dyn Dialect> = match provider {
            Provider::Gcs => Gcs::new(settings, lanes.clone())?,
            Provider::S3 => S3::new(settings, lanes.clone())?,
            Provider::Other(_) => {
                let message = format!("no dialect is registered for {}://", provider.scheme());
                return Err(Error::new(ErrorKind::Invalid, Operation::Open, message));
            }
        };
        Ok(Self::of(dialect, lanes))
    }

    /// Returns a store that speaks a dialect of the caller's, beside others whose requests go over `lanes`.
    pub fn of(dialect: Arc<dyn Dialect>, lanes: Lanes) -> Self {
        Self { dialect, lanes, read: ReadAs::Object, listings: Arc::default() }
    }

    /// The same store as the source of copies: its reads take [`Encryption::source_customer_key`](crate::Encryption).
    #[must_use]
    pub fn as_source(&self) -> Self {
        Self { read: ReadAs::CopySource, ..self.clone() }
    }

    /// Whose protocol it speaks.
    pub fn provider(&self) -> Provider {
        self.dialect.provider()
    }

    /// Returns what stores of its kind can do.
    pub fn capabilities(&self) -> &Capabilities {
        self.dialect.capabilities()
    }

    /// The scheme of its URLs: `gs`, `s3`, or that of a dialect of the caller's.
    pub fn scheme(&self) -> &'static str {
        self.provider().scheme()
    }

    /// Where its requests go, as an URL without credentials: the same text for the same store, whatever bucket or region.
    pub fn endpoint(&self) -> String {
        self.dialect.endpoint()
    }

    /// A digest of what it adds to each upload by itself ([`Settings::kms_key`], [`Settings::headers`], who pays), from
    /// which none of that can be had back: an upload that was begun under another makes another object.
    pub fn fingerprint(&self) -> String {
        self.dialect.fingerprint()
    }

    /// The lanes of its caller, with their memory and counters.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Says how many requests for the bucket's objects are about to come while it is still being found out what they are,
    /// so that connections for them are opened meanwhile; 0 takes back what has not come.
    pub fn anticipate(&self, bucket: &str, requests: usize) {
        self.dialect.anticipate(bucket, requests)
    }

    /// Returns what is known so far of the network path to the bucket's objects.
    pub async fn path(&self, bucket: &str) -> Path {
        self.dialect.path(bucket).await
    }

    /// Returns how many more requests for bulk of the bucket's objects would each get a lane that pays, at any time.
    pub async fn spare(&self, bucket: &str) -> Spare {
        self.dialect.spare(bucket).await
    }

    /// Returns whether the store itself keeps the condition of a write (put, complete, copy, delete), so that no other writer can come
    /// between. Some S3 endpoints don't, as far as is known or seen: there the object is compared before and after.
    pub fn keeps(&self, operation: Operation, condition: &Condition) -> bool {
        self.dialect.keeps(operation, condition)
    }

    /// Returns what listings of it have taken so far.
    pub fn listings(&self) -> Listings {
        self.listings.snapshot()
    }

    /// Returns the requests sent to it so far, in the classes of its price list.
    pub fn requests(&self) -> Requests {
        self.dialect.requests()
    }
}
