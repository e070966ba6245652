//! The regions of buckets. Laneway assumes the configured region until the store reports another one, in an error or in
//! answer to a lookup. HeadBucket's answer contains the region with any status
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html>).

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use http::Method;

use super::S3;
use crate::Operation;
use crate::exchange::{Exchange, HttpDialect as _, Outgoing};

/// S3's default region.
const HOME: &str = "us-east-1";

/// The known regions of buckets.
#[derive(Debug)]
pub(super) struct Regions {
    /// The region that is assumed for a bucket until the store reports another.
    home: Arc<str>,
    /// `true` if the user configured `home`, and `false` if it is a guess.
    is_configured: bool,
    buckets: RwLock<HashMap<String, BucketRegion>>,
    /// Locked during a lookup, so that concurrent requests look up a region only once.
    pub(super) asking: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default, Debug)]
struct BucketRegion {
    region: Option<Arc<str>>,
    /// `true` if the store reported that the bucket is in another region, without naming it.
    is_lost: bool,
    was_asked: bool,
    /// The number of lookups that got no answer.
    failures: u8,
}

/// After this many lookups without an answer, requests go to the configured or default region.
const FAILURES_MAX: u8 = 3;

impl Regions {
    pub(super) fn new(configured: Option<&str>) -> Self {
        Self {
            home: configured.unwrap_or(HOME).into(),
            is_configured: configured.is_some(),
            buckets: RwLock::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the region of a bucket, or the default if it is unknown.
    pub(super) fn of(&self, bucket: &str) -> Arc<str> {
        self.place(bucket).region.unwrap_or_else(|| Arc::clone(&self.home))
    }

    /// Returns true if the region must be looked up before a request for the bucket. That is necessary if the store has
    /// reported that the bucket is in another region. It is also necessary if the region is a guess and the request has
    /// a body, which a wrong guess would send twice. `has_regions` is true if the endpoint depends on the region.
    pub(super) fn must_ask(&self, bucket: &str, has_regions: bool, has_body: bool) -> bool {
        let place = self.place(bucket);
        let is_guess = !self.is_configured && has_regions && place.region.is_none();
        !bucket.is_empty() && !place.was_asked && (place.is_lost || (is_guess && has_body))
    }

    /// Records the region that the store reported, and returns whether it is new.
    pub(super) fn found(&self, bucket: &str, region: &str) -> bool {
        let is_new = *self.of(bucket) != *region;
        self.change(bucket, |place| {
            place.region = Some(region.into());
            place.is_lost = false;
        });
        is_new
    }

    /// Records that the bucket is in another region. Returns `true` if its region can still be looked up, or if the
    /// store has reported it since.
    pub(super) fn lost(&self, bucket: &str) -> bool {
        let place = self.place(bucket);
        self.change(bucket, |place| place.is_lost = true);
        !place.was_asked || place.region.is_some()
    }

    /// Records the store's answer to a lookup. The store isn't asked again, even if the answer names no region.
    pub(super) fn asked(&self, bucket: &str, region: Option<&str>) {
        self.change(bucket, |place| {
            place.was_asked = true;
            place.region = region.map(Arc::from).or(place.region.take());
        });
    }

    /// Records that a lookup got no answer. The next request asks again, unless lookups have failed too often.
    pub(super) fn unanswered(&self, bucket: &str) {
        self.change(bucket, |place| {
            place.failures += 1;
            place.was_asked = place.failures >= FAILURES_MAX;
        });
    }

    /// Returns the number of lookups that got no answer.
    pub(super) fn failures(&self, bucket: &str) -> u8 {
        self.place(bucket).failures
    }

    fn place(&self, bucket: &str) -> BucketRegion {
        let buckets = self.buckets.read().unwrap_or_else(|e| e.into_inner());
        buckets.get(bucket).cloned().unwrap_or_default()
    }

    fn change(&self, bucket: &str, change: impl FnOnce(&mut BucketRegion)) {
        let mut buckets = self.buckets.write().unwrap_or_else(|e| e.into_inner());
        change(buckets.entry(bucket.to_owned()).or_default());
    }
}

impl S3 {
    /// Returns the region of a bucket, for a request with or without a body. If the region is unknown and the request
    /// has a body, it asks the store first, because a wrong guess would send the body twice.
    pub(super) async fn region(&self, bucket: &str, has_body: bool) -> Arc<str> {
        let must_ask = || self.regions.must_ask(bucket, self.address.has_regions(bucket), has_body);
        if must_ask() {
            let failures = self.regions.failures(bucket);
            let _alone = self.regions.asking.lock().await;
            // If a lookup fails, the requests that waited for it continue with the default region. Otherwise they would
            // make one lookup after another.
            if must_ask() && self.regions.failures(bucket) == failures {
                match Box::pin(self.ask_for_region(bucket)).await {
                    Some(region) => {
                        tracing::debug!(bucket, region, "asked the store for a bucket's region");
                        self.regions.asked(bucket, region.as_deref());
                    }
                    None => self.regions.unanswered(bucket),
                }
            }
        }
        self.regions.of(bucket)
    }

    /// Sends one HEAD without retries. If it fails, the request that needs the region will fail too and report the
    /// error. Returns `None` if the store didn't answer or failed, and `Some(None)` if its answer doesn't contain the
    /// region.
    async fn ask_for_region(&self, bucket: &str) -> Option<Option<String>> {
        let outgoing = Outgoing::new(Method::HEAD, "");
        let outgoing = Exchange::bucket(self, Operation::Head, bucket).with_added_headers(&outgoing);
        let (mut request, _) = self.signed(bucket, &self.regions.of(bucket), &outgoing, None).await.ok()?;
        request.sent = Some(self.tally().class(Operation::Head, &outgoing.method));
        let answer = self.lanes().exchange(request).await.ok()?;
        let region = answer.head.header("x-amz-bucket-region").map(str::to_owned);
        (region.is_some() || !answer.head.status.is_server_error()).then_some(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_configured_region_the_store_is_asked_before_a_body_is_sent() {
        let regions = Regions::new(None);
        assert!(!regions.must_ask("b", true, false), "a read is redirected for nothing");
        assert!(!regions.must_ask("b", false, true), "a server of its own has one region");
        assert!(!regions.must_ask("", true, true), "no bucket");
        assert!(regions.must_ask("b", true, true));
        regions.asked("b", Some("eu-west-3"));
        assert!(!regions.must_ask("b", true, true));
        assert_eq!((&*regions.of("b"), &*regions.of("c")), ("eu-west-3", "us-east-1"));
    }

    #[test]
    fn what_a_read_was_told_needs_no_asking() {
        let regions = Regions::new(None);
        assert!(regions.found("b", "eu-west-3"));
        assert!(!regions.found("b", "eu-west-3"), "nothing new");
        assert!(!regions.must_ask("b", true, true));
    }

    #[test]
    fn a_question_that_nobody_answered_is_asked_again() {
        let regions = Regions::new(None);
        for failures in 1..=FAILURES_MAX {
            assert!(regions.must_ask("b", true, true), "after {} failures", failures - 1);
            regions.unanswered("b");
        }
        assert!(!regions.must_ask("b", true, true), "the request itself may fare better");
        assert_eq!(regions.failures("b"), FAILURES_MAX);
        regions.unanswered("c");
        regions.asked("c", Some("eu-west-3"));
        assert_eq!((&*regions.of("c"), regions.must_ask("c", true, true)), ("eu-west-3", false));
    }

    #[test]
    fn a_configured_region_is_believed_until_the_store_says_that_it_is_wrong() {
        let regions = Regions::new(Some("eu-west-1"));
        assert!(!regions.must_ask("b", true, true));
        assert!(regions.lost("b"));
        assert!(regions.must_ask("b", false, false));
        regions.asked("b", None);
        assert!(!regions.must_ask("b", true, true) && !regions.lost("b"), "it has no more to say");
        assert_eq!(&*regions.of("b"), "eu-west-1");
    }
}
