//! Listings of objects.

use super::Store;
use crate::{Error, List, ListingLimits, ObjectMeta, Page};

impl Store {
    /// Requests one page of a listing.
    ///
    /// # Errors
    /// `NotFound` if the bucket doesn't exist.
    pub async fn list(&self, list: &List) -> Result<Page, Error> {
        let mut objects = Vec::new();
        let page = self.list_arriving(list, |arrived| objects.extend(arrived)).await?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }

    /// Requests one page of a listing. `out` gets its objects as they arrive, each once and in the page's order. The
    /// returned page has only the objects that `out` didn't get. If a bucket policy forbids [`List::max`], the page may
    /// have more objects than that.
    ///
    /// # Errors
    /// As for [`list`](Self::list); `out` may already have received objects.
    pub async fn list_arriving(
        &self,
        list: &List,
        mut out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        let asked = self.listings.ask();
        let mut arrived = |objects: Vec<ObjectMeta>| {
            asked.came(objects.len());
            out(objects);
        };
        let limits = self.limits.of(&list.bucket);
        let list = &List {
            max: list.max.filter(|_| !limits.refuses_max),
            is_unsorted: list.is_unsorted || limits.is_unsorted,
            ..list.clone()
        };
        let page = match self.dialect.list(list, &mut arrived).await {
            Err(error) if error.is_permission() && list.max.is_some() => {
                let whole = List { max: None, ..list.clone() };
                let page = self.dialect.list(&whole, &mut arrived).await.map_err(|_| error)?;
                let learned = ListingLimits { refuses_max: true, ..ListingLimits::default() };
                self.limits.learn(&list.bucket, learned);
                page
            }
            listed => listed?,
        };
        asked.came(page.objects.len() + page.prefixes.len());
        asked.ended();
        Ok(page)
    }

    /// Returns true if a bucket's listings are in the order of the keys, as far as is known. Listings of S3's directory
    /// buckets aren't.
    pub fn lists_in_order(&self, bucket: &str) -> bool {
        self.dialect.lists_in_order(bucket) && !self.limits.of(bucket).is_unsorted
    }

    /// Returns true if a bucket's listings can start at a key without reading the keys before it, as far as is known.
    /// Older emulators of Azure can't.
    pub fn starts_at_keys(&self, bucket: &str) -> bool {
        self.dialect.starts_at_keys(bucket)
    }

    /// Returns the limits of a bucket's listings, as far as answers have shown them.
    pub fn listing_limits(&self, bucket: &str) -> ListingLimits {
        self.limits.of(bucket)
    }

    /// Remembers further limits of a bucket's listings, in addition to those already known.
    pub fn learn_listing_limits(&self, bucket: &str, learned: ListingLimits) {
        self.limits.learn(bucket, learned);
    }
}
