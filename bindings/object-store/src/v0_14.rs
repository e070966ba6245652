//! The traits of object_store 0.14.

use std::ops::Range;

use object_store::{Attributes, Extensions, GetResult, GetResultPayload, ListResult, ObjectMeta, PutResult};
use object_store_0_14 as object_store;

#[path = "adapter/store.rs"]
mod store;

pub use store::LanewayStore;

fn put_result(e_tag: Option<String>) -> PutResult {
    PutResult { e_tag, version: None, extensions: Extensions::new() }
}

fn get_result(
    payload: GetResultPayload,
    meta: ObjectMeta,
    range: Range<u64>,
    attributes: Attributes,
) -> GetResult {
    GetResult { payload, meta, range, attributes, extensions: Extensions::new() }
}

fn nothing_listed() -> ListResult {
    ListResult { common_prefixes: Vec::new(), objects: Vec::new(), extensions: Extensions::new() }
}
