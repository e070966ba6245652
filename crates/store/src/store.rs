//! The type [`Store`] and its verbs. Each group of verbs has its own file.

mod buckets;
mod listing;
mod reads;
mod uploads;
mod writes;

use std::sync::Arc;

use laneway_lanes::{Lanes, Path, Spare};

use crate::azure::Azure;
use crate::gcs::Gcs;
use crate::listing::LimitsByBucket;
use crate::listing::totals::ListingTally;
use crate::s3::S3;
use crate::{
    Capabilities, Condition, Dialect, Error, ErrorKind, Listings, Operation, Provider, ReadAs, Requests,
    Settings,
};

/// A client of one provider, with an endpoint and credentials. Each verb takes the bucket as an argument. Clones share
/// all state.
///
/// Every verb retries errors that may be temporary; the crate's `judge` module has the rules. Every error names the
/// verb, the object, the number of attempts and the time that they took.
#[derive(Clone, Debug)]
pub struct Store {
    dialect: Arc<dyn Dialect>,
    lanes: Lanes,
    /// Selects the customer's key that reads send.
    read: ReadAs,
    listings: Arc<ListingTally>,
    /// The limits of the listings of each bucket, as far as answers have shown them.
    limits: Arc<LimitsByBucket>,
}

/// Returns the capabilities of a cloud's stores. Returns `None` for a caller's own dialect, whose capabilities only its
/// [`Store`] knows.
pub fn capabilities_of(provider: Provider) -> Option<&'static Capabilities> {
    match provider {
        Provider::Gcs => Some(&crate::gcs::CAPABILITIES),
        Provider::S3 => Some(&crate::s3::CAPABILITIES),
        Provider::Azure => Some(&crate::azure::CAPABILITIES),
        Provider::Other(_) => None,
    }
}

impl Store {
    /// Returns a store whose requests use `lanes`. It sends no request and doesn't search for credentials yet.
    ///
    /// # Errors
    /// `Invalid` if the endpoint isn't a URL.
    pub fn new(provider: Provider, settings: &Settings, lanes: Lanes) -> Result<Self, Error> {
        let dialect: Arc<dyn Dialect> = match provider {
            Provider::Gcs => Gcs::new(settings, lanes.clone())?,
            Provider::S3 => S3::new(settings, lanes.clone())?,
            Provider::Azure => Azure::new(settings, lanes.clone())?,
            Provider::Other(_) => {
                let message = format!("no dialect is registered for {}://", provider.scheme());
                return Err(Error::new(ErrorKind::Invalid, Operation::Open, message));
            }
        };
        Ok(Self::of(dialect, lanes))
    }

    /// Returns a store with the caller's own dialect. `lanes` are the lanes that the caller's other stores also use.
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

    /// Returns the scheme of its URLs: `gs`, `s3`, `az`, or that of the caller's dialect.
    pub fn scheme(&self) -> &'static str {
        self.provider().scheme()
    }

    /// Returns the URL of the requests, without credentials. The URL of a store is the same for all buckets and
    /// regions.
    pub fn endpoint(&self) -> String {
        self.dialect.endpoint()
    }

    /// Returns a digest of the settings that a store adds to each upload ([`Settings::kms_key`], [`Settings::headers`],
    /// who pays). The settings can't be recovered from it. An upload must not be resumed if the digest has changed,
    /// because the object would be different.
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

    /// Returns the measurements of the network path to the bucket's objects: round trip, protocol and rate.
    pub async fn path(&self, bucket: &str) -> Path {
        self.dialect.path(bucket).await
    }

    /// Returns the number of additional large requests for the bucket's objects that would raise the rate, because each
    /// would get its own lane. The answer may change at any time.
    pub async fn spare(&self, bucket: &str) -> Spare {
        self.dialect.spare(bucket).await
    }

    /// Returns true if the store itself enforces the condition of a write (put, complete, copy, delete), so that no
    /// other writer can change the object in between. Some S3 endpoints are known not to enforce it, or have shown that
    /// they don't. For those, Laneway compares the object before and after the write.
    pub fn keeps(&self, operation: Operation, condition: &Condition) -> bool {
        self.dialect.keeps(operation, condition)
    }

    /// Returns the totals of this store's listings so far.
    pub fn listings(&self) -> Listings {
        self.listings.snapshot()
    }

    /// Returns the numbers of requests sent so far, by the classes of the store's price list.
    pub fn requests(&self) -> Requests {
        self.dialect.requests()
    }
}
