//! Implements the traits of object_store 0.13.

use std::ops::Range;

use async_trait::async_trait;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    Attributes, GetResult, GetResultPayload, ListResult, MultipartId, ObjectMeta, PutMultipartOptions,
    PutPayload, PutResult, Result,
};
use object_store_0_13 as object_store;

#[path = "adapter/store.rs"]
mod store;

pub use store::LanewayStore;
use store::multipart;

fn put_result(e_tag: Option<String>) -> PutResult {
    PutResult { e_tag, version: None }
}

fn get_result(
    payload: GetResultPayload,
    meta: ObjectMeta,
    range: Range<u64>,
    attributes: Attributes,
) -> GetResult {
    GetResult { payload, meta, range, attributes }
}

fn nothing_listed() -> ListResult {
    ListResult { common_prefixes: Vec::new(), objects: Vec::new() }
}

// In object_store 0.14, this trait has one more method than in 0.13. So each version has its own implementation,
// outside `adapter`.
#[async_trait]
impl MultipartStore for LanewayStore {
    async fn create_multipart(&self, path: &Path) -> Result<MultipartId> {
        multipart::create(self.bucket(), path, PutMultipartOptions::default()).await
    }

    async fn put_part(
        &self,
        path: &Path,
        id: &MultipartId,
        part_idx: usize,
        data: PutPayload,
    ) -> Result<PartId> {
        multipart::put_part(self.bucket(), path, id, part_idx, data).await
    }

    async fn complete_multipart(
        &self,
        path: &Path,
        id: &MultipartId,
        parts: Vec<PartId>,
    ) -> Result<PutResult> {
        multipart::complete(self.bucket(), path, id, parts).await
    }

    async fn abort_multipart(&self, path: &Path, id: &MultipartId) -> Result<()> {
        multipart::abort(self.bucket(), path, id).await
    }
}
