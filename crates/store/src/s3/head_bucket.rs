//! Finds out a bucket's region with HeadBucket, whose answer contains the region with any status
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html>).

use std::sync::Arc;

use http::Method;

use super::S3;
use crate::Operation;
use crate::exchange::{Exchange, HttpDialect as _, Outgoing};

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
