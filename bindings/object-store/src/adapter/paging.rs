//! Implements object_store's listing page by page.

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use laneway::Listed;

use super::LanewayStore;
use super::errors::not_supported;
use super::listing::{entry, listing_error};
use super::nothing_listed;
use super::object_store::Result;
use super::object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use super::object_store::path::Path;

/// The default number of entries on a page, which is also that of GCS and S3.
const PAGE: usize = 1000;

#[async_trait]
impl PaginatedListStore for LanewayStore {
    /// A page's token is the last name on the page, so it never expires.
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        opts: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        let PaginatedListOptions { offset, delimiter, max_keys, page_token, .. } = opts;
        let prefix = prefix.unwrap_or_default();
        let after = page_token.into_iter().chain(offset).max();
        let (mut result, mut last, mut count) = (nothing_listed(), None, 0);
        let max = max_keys.unwrap_or(PAGE);
        match delimiter.as_deref() {
            None => {
                let mut list = self.bucket().list(prefix);
                if let Some(after) = &after {
                    list = list.start_after(after);
                }
                while count < max
                    && let Some(meta) = list.try_next().await.map_err(listing_error)?
                {
                    count += 1;
                    result.objects.extend(entry(&meta).transpose()?);
                    last = Some(meta.id.key);
                }
            }
            Some("/") => {
                let mut list = self.bucket().list_dir(prefix);
                if let Some(after) = &after {
                    list = list.start_after(after);
                }
                while count < max
                    && let Some(listed) = list.try_next().await.map_err(listing_error)?
                {
                    count += 1;
                    let name = match listed {
                        Listed::Object(meta) => {
                            result.objects.extend(entry(&meta).transpose()?);
                            meta.id.key
                        }
                        Listed::Prefix(prefix) => {
                            result.common_prefixes.push(Path::parse(&prefix)?);
                            prefix
                        }
                        _ => continue,
                    };
                    last = last.max(Some(name));
                }
            }
            Some(other) => {
                return Err(not_supported(format!(
                    "Laneway can't list by the delimiter {other:?}, only by \"/\""
                )));
            }
        }
        Ok(PaginatedListResult { result, page_token: last.filter(|_| count == max) })
    }
}
