//! Listings of objects.

use super::Store;
use crate::{Error, List, ObjectMeta, Page};

impl Store {
    /// One page of a listing.
    ///
    /// # Errors
    /// `NotFound` when there is no such bucket.
    pub async fn list(&self, list: &List) -> Result<Page, Error> {
        let mut objects = Vec::new();
        let page = self.list_arriving(list, |arrived| objects.extend(arrived)).await?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }

    /// One page of a listing, its objects handed to `out` as they arrive, each once and in the page's order. The page
    /// that is returned holds those that came last.
    ///
    /// # Errors
    /// As [`list`](Self::list)'s; `out` may have had objects by then.
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
        let page = self.dialect.list(list, &mut arrived).await?;
        asked.came(page.objects.len() + page.prefixes.len());
        asked.ended();
        Ok(page)
    }

    /// Whether listings of a bucket come in the order of its keys: those of S3's directory buckets don't.
    pub fn lists_in_order(&self, bucket: &str) -> bool {
        self.dialect.lists_in_order(bucket)
    }
}
