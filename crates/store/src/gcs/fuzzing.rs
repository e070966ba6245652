//! Entry points for fuzzers: possible answers of a GCS server.

use http::{HeaderMap, StatusCode};
use laneway_lanes::ResponseHead;
use serde_json::{Value, json};

use super::{batch, failure, list, resource, resumable};
use crate::drawn_head::drawn_head;
use crate::listing::fuzzing::{page, page_in_any_chunks};
use crate::{List, ObjectId};

/// Parses two pages of a listing: the input itself, and a document with one object for each line of the input.
pub fn gcs_listing(input: &[u8]) {
    let list = List::new("b", "");
    page_in_any_chunks(&list, input, list::GcsPageParser::new);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let names: Vec<&str> = text.lines().filter(|name| !name.is_empty()).collect();
    let item = |name: &&str| json!({"name": name, "size": "1", "metadata": {(name.to_string()): [name, {"items": [name]}]}});
    let items: Vec<Value> = names.iter().map(item).collect();
    let document = json!({"kind": "storage#objects", "items": items, "prefixes": names}).to_string();
    let found = page(&list, document.as_bytes(), 13, list::GcsPageParser::new()).expect("a page");
    let keys: Vec<&str> = found.objects.iter().map(|object| object.id.key.as_str()).collect();
    assert_eq!(keys, names);
    assert_eq!(found.prefixes, names);
}

/// Parses the input as the body of an error answer, with any error status.
pub fn gcs_error(input: &[u8]) {
    let Some((status, body)) = input.split_first() else { return };
    let status = StatusCode::from_u16(400 + u16::from(*status) % 200).expect("a status");
    let read = failure::read(&ResponseHead { status, headers: HeaderMap::new() }, body);
    let _ = (failure::kind(&read), crate::judge::is_passing(&read));
}

/// Parses the headers that describe an object, and those of an upload session.
pub fn gcs_headers(input: &[u8]) {
    let head = drawn_head(input);
    let _ = resource::from_head(&ObjectId::new("b", "k"), &head);
    let _ = resumable::next_offset(&head);
}

/// Parses the answers of a batch. The input's first line is the content type.
pub fn gcs_batch(input: &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (content_type, body) = input.split_at(at);
    let Ok(content_type) = std::str::from_utf8(content_type) else { return };
    let answers = batch::answers(content_type, body);
    assert!(answers.len() <= body.len());
}
