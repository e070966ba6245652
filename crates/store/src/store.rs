//! The verbs, a file for each kind of them, and the one place that knows which dialects there are.
//!
//! Another dialect is a variant of [`Dialect`] with its arms in [`Store::new`] and `ask`. What it must be able to do is what the
//! compiler then misses: the trait in `exchange/dialect.rs`, and the verbs of these files under the same names.

mod buckets;
mod changing;
mod listing;
mod multipart;
mod reading;
mod resumable;
mod writing;

use std::sync::Arc;

use laneway_lanes::{Lanes, Path, Spare};

use crate::encryption::Keyed;
use crate::exchange::Dialect as _;
use crate::gcs::Gcs;
use crate::s3::S3;
use crate::{Condition, Error, Listings, Operation, Provider, Requests, Settings, listings};

/// One provider with its endpoint and credentials. Buckets are arguments; clones share everything.
///
/// Every verb makes as many attempts as help (see the crate's `judge` rules for which errors do), and every error
/// names the verb, the object, the attempts and the time they took.
#[derive(Clone, Debug)]
pub struct Store {
    dialect: Dialect,
    /// Whose key its reads take.
    reads: Keyed,
    listings: Arc<listings::Tally>,
}

#[derive(Clone, Debug)]
enum Dialect {
    Gcs(Arc<Gcs>),
    S3(Arc<S3>),
}

/// Has a store's dialect do something, whichever it is.
macro_rules! ask {
    ($store:ident, $dialect:ident => $verb:expr) => {
        match &$store.dialect {
            $crate::store::Dialect::Gcs($dialect) => $verb,
            $crate::store::Dialect::S3($dialect) => $verb,
        }
    };
}

use ask;

impl Store {
    /// A store whose requests go over `lanes`. Nothing is sent and no credentials are looked for yet.
    ///
    /// # Errors
    /// `Invalid` for an endpoint that is no URL.
    pub fn new(provider: Provider, settings: &Settings, lanes: Lanes) -> Result<Self, Error> {
        let dialect = match provider {
            Provider::Gcs => Dialect::Gcs(Gcs::new(settings, lanes)?),
            Provider::S3 => Dialect::S3(S3::new(settings, lanes)?),
        };
        Ok(Self { dialect, reads: Keyed::Object, listings: Arc::default() })
    }

    /// The same store as the source of copies: its reads take [`Encryption::source_customer_key`](crate::Encryption).
    #[must_use]
    pub fn as_source(&self) -> Self {
        Self { reads: Keyed::Source, ..self.clone() }
    }

    /// Whose protocol it speaks.
    pub fn provider(&self) -> Provider {
        ask!(self, dialect => dialect.provider())
    }

    /// The scheme of its URLs: `gs` or `s3`.
    pub fn scheme(&self) -> &'static str {
        self.provider().scheme()
    }

    /// Where its requests go, as an URL without credentials: the same text for the same store, whatever bucket or region.
    pub fn endpoint(&self) -> String {
        ask!(self, dialect => dialect.endpoint())
    }

    /// A digest of what it adds to each upload by itself ([`Settings::kms_key`], [`Settings::headers`], who pays), from
    /// which none of that can be had back: an upload that was begun under another makes another object.
    pub fn fingerprint(&self) -> String {
        ask!(self, dialect => dialect.fingerprint())
    }

    /// What its requests go over.
    pub fn lanes(&self) -> &Lanes {
        ask!(self, dialect => dialect.lanes())
    }

    /// Says how many requests for the bucket's objects are about to come while it is still being found out what they are,
    /// so that connections for them are opened meanwhile; 0 takes back what has not come.
    pub fn anticipate(&self, bucket: &str, requests: usize) {
        ask!(self, dialect => dialect.anticipate(bucket, requests))
    }

    /// What is known so far of the way to the bucket's objects.
    pub async fn path(&self, bucket: &str) -> Path {
        ask!(self, dialect => dialect.path(bucket).await)
    }

    /// Returns how many more requests for bulk of the bucket's objects would each get a lane that pays, at any time.
    pub async fn spare(&self, bucket: &str) -> Spare {
        ask!(self, dialect => dialect.spare(bucket).await)
    }

    /// Whether the store itself keeps the condition of a write (put, complete, copy, delete), so that no other writer can come
    /// between. Some S3 endpoints don't, as far as is known or seen: there the object is compared before and after.
    pub fn keeps(&self, operation: Operation, condition: &Condition) -> bool {
        ask!(self, dialect => dialect.keeps(operation, condition))
    }

    /// What listings of it have taken so far.
    pub fn listings(&self) -> Listings {
        self.listings.snapshot()
    }

    /// What has been asked of it so far, as its price list classes requests.
    pub fn requests(&self) -> Requests {
        ask!(self, dialect => dialect.tally().snapshot())
    }
}
