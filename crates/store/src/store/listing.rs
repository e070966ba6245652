//! Listings of objects.

use super::Store;
use crate::{Error, List, ObjectMeta, Page};

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
    /// returned page holds the objects that arrived last.
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
        let page = self.dialect.list(list, &mut arrived).await?;
        asked.came(page.objects.len() + page.prefixes.len());
        asked.ended();
        Ok(page)
    }

    /// Returns true if a bucket's listings come in the order of its keys. Listings of S3's directory buckets don't.
    pub fn lists_in_order(&self, bucket: &str) -> bool {
        self.dialect.lists_in_order(bucket)
    }
}
