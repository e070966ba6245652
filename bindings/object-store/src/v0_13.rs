//! The traits of object_store 0.13.

use std::ops::Range;

use object_store::{Attributes, GetResult, GetResultPayload, ListResult, ObjectMeta, PutResult};
use object_store_0_13 as object_store;

#[path = "adapter/store.rs"]
mod store;

pub use store::LanewayStore;

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
