//! Entry points for the fuzzers in `crates/fuzz`, and compiled only for them. Each accepts any bytes and panics if a
//! property doesn't hold.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use laneway_lanes::ResponseHead;

use crate::delivery::content_range;
use crate::listing::cutter::Cutter;
use crate::listing::fuzzing::CHUNKS;
use crate::timestamp::{iso8601_basic, rfc3339, to_rfc3339};
use crate::{checksum, judge};

pub use crate::aws_files::fuzzing::ini;
pub use crate::delivery::structured_body::fuzzing::structured_body;
pub use crate::gcs::fuzzing::{gcs_batch, gcs_error, gcs_headers, gcs_listing};
pub use crate::s3::fuzzing::{s3_error, s3_headers, s3_listing};

/// Splits a JSON document with an array of objects while it arrives. If the whole input is JSON, the entries and the
/// remaining document must equal those that `serde_json` finds.
pub fn json_cutter(input: &[u8]) {
    let (entries, rest) = cut(|| Cutter::json("items"), input);
    let Ok(serde_json::Value::Object(mut whole)) = serde_json::from_slice(input) else { return };
    let text = String::from_utf8_lossy(input);
    // `serde_json` keeps only the last of several fields with one name, and decodes escapes in names. So an input is
    // compared only if it contains `items` once and no backslash.
    let is_plain = text.matches("items").count() == 1 && !text.contains('\\');
    let Some(serde_json::Value::Array(items)) = whole.get_mut("items").filter(|_| is_plain) else { return };
    if !items.iter().all(serde_json::Value::is_object) {
        return;
    }
    let items = std::mem::take(items);
    let parsed: Vec<serde_json::Value> =
        entries.iter().map(|entry| serde_json::from_slice(entry).expect("an entry is JSON")).collect();
    assert_eq!(parsed, items);
    let rest: serde_json::Value = serde_json::from_slice(&rest).expect("the rest is JSON");
    assert_eq!(rest, serde_json::Value::Object(whole));
}

/// Splits XML entries while they arrive. Each result must be a whole entry, and no byte may be lost or added.
pub fn xml_cutter(input: &[u8]) {
    let (entries, rest) = cut(|| Cutter::xml("<E>", "</E>"), input);
    assert!(entries.iter().all(|entry| entry.starts_with(b"<E>") && entry.ends_with(b"</E>")));
    let bytes: usize = entries.iter().map(Vec::len).sum();
    assert_eq!(bytes + rest.len(), input.len());
}

fn cut(cutter: impl Fn() -> Cutter, input: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let cut = |chunk_bytes: usize| {
        let mut cutter = cutter();
        let entries: Vec<_> = input.chunks(chunk_bytes).flat_map(|chunk| cutter.take(chunk)).collect();
        (entries, cutter.into_rest())
    };
    let whole = cut(CHUNKS[0]);
    for chunk_bytes in &CHUNKS[1..] {
        assert_eq!(cut(*chunk_bytes), whole, "in chunks of {chunk_bytes}");
    }
    whole
}

/// Parses a `Content-Range`.
pub fn range(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Some((range, total)) = content_range(text) {
        assert!(range.start < range.end && total.is_none_or(|total| range.end <= total), "{text:?}");
    }
}

/// Parses times in the formats of documents and headers. If a time is written and parsed again, the result must be the
/// same second.
pub fn timestamp(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Some(time) = rfc3339(text) {
        let again = rfc3339(&to_rfc3339(time)).expect("what was written is a time");
        let lost = time.duration_since(again).expect("it isn't later");
        assert!(lost.as_secs() == 0, "{text:?}");
        let _ = iso8601_basic(time);
    }
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1 << 31);
    let _ = judge::retry_after(Some(text), now);
}

/// Parses checksums in base64. If a checksum is parsed and written again, the text must be the same, apart from
/// surrounding white space.
pub fn checksum(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Some(crc32c) = checksum::decode_crc32c(text) {
        assert_eq!(checksum::encode_crc32c(crc32c), text.trim());
    }
    if let Some(md5) = checksum::decode_md5(text) {
        assert_eq!(checksum::encode_md5(md5), text.trim());
    }
    let _ = (checksum::decode_crc64(text), checksum::of_etag(text));
    let _ = checksum::PartsAlgorithm::ALL.map(|algorithm| algorithm.decode(text));
}

/// Makes a head from lines of the form `name: value`. The first byte selects the status.
pub(crate) fn drawn_head(input: &[u8]) -> ResponseHead {
    let (status, lines) = input.split_first().unwrap_or((&0, &[]));
    let status = [200, 206, 204, 308, 404][usize::from(*status) % 5];
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())) {
            headers.append(name, value);
        }
    }
    ResponseHead { status: StatusCode::from_u16(status).expect("a status"), headers }
}
