//! The verbs of a store, with a file for each group of verbs.

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
use crate::listing::LimitsByBucket;
use crate::s3::S3;
use crate::{
    Capabilities, Condition, Dialect, Error, ErrorKind, Listings, Operation, Provider, ReadAs, Requests,
    Settings, listings,
};

/// One provider with its endpoint and credentials. Buckets are arguments. Clones share everything.
///
/// Every verb makes as many attempts as help; the crate's `judge` module has the rules. Every error names the verb, the
/// object, the attempts and the time they took.
#[derive(Clone, Debug)]
pub struct Store {
    dialect: Arc<dyn Dialect>,
    lanes: Lanes,
    /// The customer's key that reads send.
    read: ReadAs,
    listings: Arc<listings::Tally>,
    /// The limits of buckets' listings, as far as they are known.
    limits: Arc<LimitsByBucket>,
}

/// Returns the capabilities of a cloud's stores. `None` for callers' dialects, whose stores tell them.
pub fn capabilities_of(provider: Provider) -> Option<&'static Capabilities> {
    match provider {
        Provider::Gcs => Some(&crate::gcs::CAPABILITIES),
        Provider::S3 => Some(&crate::s3::CAPABILITIES),
        Provider::Other(_) => None,
    }
}

impl Store {
    /// Returns a store whose requests use `lanes`. It sends nothing yet, and looks for no credentials yet.
    ///
    /// # Errors
    /// `Invalid` if the endpoint isn't a URL.
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

    /// Returns a store with a dialect of the caller. `lanes` are the lanes that the caller's other stores use too.
    pub fn of(dialect: Arc<dyn Dialect>, lanes: Lanes) -> Self {
        Self { dialect, lanes, read: ReadAs::Object, listings: Arc::default(), limits: Arc::default() }
    }

    /// Returns the same store as the source of copies: its reads send
    /// [`Encryption::source_customer_key`](crate::Encryption).
    #[must_use]
    pub fn as_source(&self) -> Self {
        Self { read: ReadAs::CopySource, ..self.clone() }
    }

    /// Returns the kind of store.
    pub fn provider(&self) -> Provider {
        self.dialect.provider()
    }

    /// Returns the capabilities of this kind of store.
    pub fn capabilities(&self) -> &Capabilities {
        self.dialect.capabilities()
    }

    /// Returns the scheme of its URLs: `gs`, `s3`, or that of the caller's dialect.
    pub fn scheme(&self) -> &'static str {
        self.provider().scheme()
    }

    /// Returns the URL of the requests, without credentials. The same store always has the same URL, whatever the
    /// bucket or region.
    pub fn endpoint(&self) -> String {
        self.dialect.endpoint()
    }

    /// Returns a digest of the settings that a store adds to each upload ([`Settings::kms_key`], [`Settings::headers`],
    /// who pays). The settings can't be recovered from it. An upload that was begun under another digest makes a
    /// different object.
    pub fn fingerprint(&self) -> String {
        self.dialect.fingerprint()
    }

    /// Returns the lanes of its requests, with their measurements and counters.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Announces how many requests for the bucket's objects will follow, so that connections open before the requests
    /// are ready. 0 cancels the announcement.
    pub fn anticipate(&self, bucket: &str, requests: usize) {
        self.dialect.anticipate(bucket, requests)
    }

    /// Returns the measurements so far of the network path to the bucket's objects.
    pub async fn path(&self, bucket: &str) -> Path {
        self.dialect.path(bucket).await
    }

    /// Returns how many more bulk requests for the bucket's objects would each gain from a lane of their own. The
    /// answer may change at any time.
    pub async fn spare(&self, bucket: &str) -> Spare {
        self.dialect.spare(bucket).await
    }

    /// Returns whether the store itself enforces the condition of a write (put, complete, copy, delete), so that no
    /// other writer can interfere. Some S3 endpoints are known, or have proved, not to enforce it. For those, Laneway
    /// compares the object before and after the write.
    pub fn keeps(&self, operation: Operation, condition: &Condition) -> bool {
        self.dialect.keeps(operation, condition)
    }

    /// Returns the totals of its listings so far.
    pub fn listings(&self) -> Listings {
        self.listings.snapshot()
    }

    /// Returns the requests sent so far, in the classes of its price list.
    pub fn requests(&self) -> Requests {
        self.dialect.requests()
    }
}
