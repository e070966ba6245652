//! An object as the JSON API and the media headers describe it. Text fields are read leniently: a server may send a
//! number, `null`, an array or an object instead.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use laneway_lanes::ResponseHead;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::checksum::{decode_crc32c, decode_md5, encode_crc32c, encode_md5};
use crate::timestamp::{rfc3339, to_rfc3339};
use crate::{Checksums, ObjectId, ObjectMeta, PutOptions, Retention, RetentionMode, Version};

/// The fields of an object resource that Laneway reads. Requesting only these makes an answer a third as long. This
/// matters when a thousand small answers share a connection's first congestion window.
pub(crate) const FIELDS: &str = "bucket,name,size,generation,metageneration,etag,crc32c,md5Hash,contentType,\
contentEncoding,cacheControl,contentDisposition,contentLanguage,storageClass,updated,metadata,kmsKeyName,\
customerEncryption,retention,temporaryHold,eventBasedHold,customTime";

/// The additional fields in a listing of all versions.
pub(crate) const FIELDS_OF_VERSIONS: &str = "timeDeleted,softDeleteTime,hardDeleteTime";

/// An object resource. As in the JSON form of protocol buffers, fields with their default value may be left out, such
/// as the size of an empty object.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectResource<'a> {
    #[serde(borrow)]
    bucket: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    size: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    generation: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    metageneration: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    etag: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    crc32c: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    md5_hash: Cow<'a, str>,
    content_type: Option<String>,
    content_encoding: Option<String>,
    cache_control: Option<String>,
    content_disposition: Option<String>,
    content_language: Option<String>,
    custom_time: Option<String>,
    storage_class: Option<String>,
    #[serde(borrow, deserialize_with = "text")]
    updated: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    time_created: Cow<'a, str>,
    time_deleted: Option<String>,
    soft_delete_time: Option<String>,
    hard_delete_time: Option<String>,
    #[serde(deserialize_with = "texts")]
    metadata: BTreeMap<String, String>,
    kms_key_name: Option<String>,
    customer_encryption: Option<CustomerEncryption>,
    retention: Option<ObjectRetention>,
    temporary_hold: bool,
    event_based_hold: bool,
}

/// The customer's key that encrypts an object.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomerEncryption {
    encryption_algorithm: String,
    key_sha256: Option<String>,
}

/// The retention of an object.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRetention {
    mode: String,
    retain_until_time: String,
}

impl From<Retention> for ObjectRetention {
    fn from(retention: Retention) -> Self {
        let Retention { mode, until } = retention;
        Self { mode: mode.gcs_name().to_owned(), retain_until_time: to_rfc3339(until) }
    }
}

impl ObjectRetention {
    fn retention(&self) -> Option<Retention> {
        let (mode, until) = (RetentionMode::named(&self.mode)?, rfc3339(&self.retain_until_time)?);
        Some(Retention { mode, until })
    }
}

impl<'a> ObjectResource<'a> {
    /// Returns the name of the object.
    pub(crate) fn name(&self) -> Cow<'a, str> {
        self.name.clone()
    }

    /// Returns the metadata of one version of an object.
    pub(crate) fn into_version(self, id: ObjectId) -> Option<ObjectMeta> {
        let is_latest = self.time_deleted.is_none() && self.soft_delete_time.is_none();
        let time = |text: &Option<String>| text.as_deref().and_then(rfc3339);
        let (soft_deleted, hard_deleted) = (time(&self.soft_delete_time), time(&self.hard_delete_time));
        let id = id.at_version(&*self.generation);
        let meta = self.into_meta(id, 0).filter(|meta| meta.version.is_some())?;
        Some(ObjectMeta { is_latest: Some(is_latest), soft_deleted, hard_deleted, ..meta })
    }

    /// Returns the metadata of the requested object. `size` is used if the answer doesn't contain the size. Returns
    /// `None` if the answer describes another object or none, because GCS doesn't send such an answer.
    pub(crate) fn into_meta(self, id: ObjectId, size: u64) -> Option<ObjectMeta> {
        let named = |found: &str, asked: &str| found.is_empty() || found == asked;
        if !named(&self.bucket, &id.bucket) || !named(&self.name, &id.key) {
            return None;
        }
        let number = |field: &str, left_out| match field {
            "" => Some(left_out),
            field => field.parse::<u64>().ok().map(Some),
        };
        let (announced, generation) = (number(&self.size, None)?, number(&self.generation, None)?);
        if self.name.is_empty() && announced.is_none() && generation.is_none() {
            return None;
        }
        let mut meta = ObjectMeta::new(id, announced.unwrap_or(size));
        meta.version = generation.map(Version::Generation);
        meta.metageneration = self.metageneration.parse().ok();
        meta.etag = Some(self.etag.into_owned()).filter(|etag| !etag.is_empty());
        meta.checksums.crc32c = decode_crc32c(&self.crc32c);
        meta.checksums.md5 = decode_md5(&self.md5_hash);
        meta.content_type = self.content_type;
        meta.content_encoding = self.content_encoding.filter(|encoding| !encoding.is_empty());
        meta.cache_control = self.cache_control;
        meta.content_disposition = self.content_disposition;
        meta.content_language = self.content_language;
        meta.custom_time = self.custom_time.as_deref().and_then(rfc3339);
        meta.storage_class = self.storage_class;
        meta.updated = rfc3339(&self.updated);
        meta.created = rfc3339(&self.time_created);
        meta.metadata = Some(self.metadata);
        meta.kms_key = self.kms_key_name;
        if let Some(CustomerEncryption { encryption_algorithm, key_sha256 }) = self.customer_encryption {
            meta.encryption = Some(format!("customer {encryption_algorithm}"));
            meta.customer_key = key_sha256;
        }
        meta.retention = self.retention.as_ref().and_then(ObjectRetention::retention);
        meta.legal_hold = self.temporary_hold || self.event_based_hold;
        Some(meta)
    }
}

/// The resource that is sent to create an object.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewObjectResource<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    crc32c: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    md5_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_disposition: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_language: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) custom_time: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<ObjectRetention>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    temporary_hold: bool,
}

impl<'a> NewObjectResource<'a> {
    pub(crate) fn new(options: &'a PutOptions, sums: Option<&Checksums>) -> Self {
        Self {
            crc32c: sums.and_then(|sums| sums.crc32c).map(encode_crc32c),
            md5_hash: sums.and_then(|sums| sums.md5).map(encode_md5),
            content_type: options.content_type.as_deref(),
            content_encoding: options.content_encoding.as_deref(),
            cache_control: options.cache_control.as_deref(),
            content_disposition: options.content_disposition.as_deref(),
            content_language: options.content_language.as_deref(),
            storage_class: options.storage_class.as_deref(),
            custom_time: options.custom_time.map(|time| to_rfc3339(time).into()),
            metadata: Some(&options.metadata).filter(|metadata| !metadata.is_empty()),
            retention: options.retention.map(ObjectRetention::from),
            temporary_hold: options.legal_hold,
        }
    }

    /// Returns true if no field is set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the resource as JSON.
    pub(crate) fn to_json(&self) -> String {
        // Strings and maps of strings can always be written as JSON.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// Reads the metadata in the headers of a media or XML answer. The size is that of the stored object, or 0 if the
/// answer doesn't contain it.
pub(crate) fn from_head(id: &ObjectId, head: &ResponseHead) -> ObjectMeta {
    let text = |name: &str| head.header(name).map(str::to_owned);
    let number = |name: &str| head.header(name).and_then(|value| value.parse::<u64>().ok());
    let mut meta = ObjectMeta::new(id.clone(), number("x-goog-stored-content-length").unwrap_or(0));
    meta.version = number("x-goog-generation").map(Version::Generation);
    meta.metageneration = number("x-goog-metageneration");
    meta.checksums = hashes(head);
    meta.etag = head.header("etag").map(|etag| etag.trim_matches('"').to_owned());
    meta.content_type = text("content-type");
    meta.content_encoding = text("x-goog-stored-content-encoding")
        .or_else(|| text("content-encoding"))
        .filter(|e| e != "identity");
    meta.cache_control = text("cache-control");
    meta.content_disposition = text("content-disposition");
    meta.content_language = text("content-language");
    meta.storage_class = text("x-goog-storage-class");
    meta.encryption = text("x-goog-encryption-algorithm").map(|algorithm| format!("customer {algorithm}"));
    meta.customer_key = text("x-goog-encryption-key-sha256");
    meta.updated = head.header("last-modified").and_then(|date| httpdate::parse_http_date(date).ok());
    // If there are no such headers, the metadata is unknown: the answer to a write never contains it.
    let metadata: BTreeMap<_, _> = head
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix("x-goog-meta-")?;
            Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        })
        .collect();
    meta.metadata = Some(metadata).filter(|metadata| !metadata.is_empty());
    // If the server has decompressed the object, the size and the checksums in the headers don't describe the bytes
    // that it sends.
    if head.header("x-goog-stored-content-encoding").is_some_and(|e| e == "gzip")
        && head.header("content-encoding") != Some("gzip")
    {
        meta.size = 0;
        meta.checksums = Checksums::default();
    }
    meta
}

/// Reads `x-goog-hash: crc32c=…,md5=…`, in one header or in two.
pub(crate) fn hashes(head: &ResponseHead) -> Checksums {
    let mut sums = Checksums::default();
    let values = head.headers.get_all("x-goog-hash").iter().filter_map(|value| value.to_str().ok());
    for hash in values.flat_map(|value| value.split(',')) {
        match hash.trim().split_once('=') {
            Some(("crc32c", value)) => sums.crc32c = decode_crc32c(value),
            Some(("md5", value)) => sums.md5 = decode_md5(value),
            _ => {}
        }
    }
    sums
}

/// Converts a JSON value to text. A string is returned as it is, `null` becomes an empty text, and any other value is
/// written as JSON.
pub(super) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Reads a text field, borrowed from the answer if possible.
pub(super) fn text<'de, D: Deserializer<'de>, T: From<Cow<'de, str>>>(field: D) -> Result<T, D::Error> {
    field.deserialize_any(LenientText).map(T::from)
}

struct LenientText;

impl<'de> Visitor<'de> for LenientText {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok("".into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(text_of(value.into()).into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(text_of(number.into()).into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(text_of(number.into()).into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(text_of(number.into()).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(values)).map(|value| text_of(value).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(fields)).map(|value| text_of(value).into())
    }
}

/// Reads a field that is an object with text fields.
fn texts<'de, D: Deserializer<'de>>(field: D) -> Result<BTreeMap<String, String>, D::Error> {
    let fields = Option::<BTreeMap<String, Value>>::deserialize(field)?.unwrap_or_default();
    Ok(fields.into_iter().map(|(name, value)| (name, text_of(value))).collect())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

    use super::*;

    fn head(headers: &[(&'static str, &'static str)]) -> ResponseHead {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        ResponseHead { status: StatusCode::OK, headers: map }
    }

    #[test]
    fn a_resource_becomes_metadata() {
        let json = r#"{"kind":"storage#object","name":"a/b","bucket":"b","size":"9","generation":"1700000000000001",
            "metageneration":"2","etag":"CAE=","crc32c":"4waSgw==","md5Hash":"JfnnlDI7RTiF9RgfG2JNCw==","contentType":"text/plain",
            "storageClass":"STANDARD","updated":"2026-11-21T09:04:05.250Z","timeCreated":"2026-11-20T09:04:05Z",
            "metadata":{"K":"v"}}"#;
        let resource: ObjectResource<'_> = serde_json::from_str(json).expect("JSON");
        let meta = resource.clone().into_meta(ObjectId::new("b", "a/b"), 0).expect("metadata");
        assert_eq!(meta.size, 9);
        assert_eq!(meta.version, Some(Version::Generation(1_700_000_000_000_001)));
        assert_eq!(meta.checksums.crc32c, Some(0xe306_9283));
        assert!(meta.checksums.md5.is_some());
        assert_eq!(meta.metadata.expect("metadata")["K"], "v");
        assert_eq!(meta.updated, rfc3339("2026-11-21T09:04:05.25Z"));
        assert_eq!(meta.created, rfc3339("2026-11-20T09:04:05Z"));
        assert!(resource.into_meta(ObjectId::new("b", "other"), 0).is_none());
    }

    fn meta(json: &str, size: u64) -> Option<ObjectMeta> {
        serde_json::from_str::<ObjectResource<'_>>(json)
            .expect("JSON")
            .into_meta(ObjectId::new("b", "k"), size)
    }

    #[test]
    fn an_empty_objects_size_and_a_writes_generation_may_be_left_out() {
        let empty = meta(r#"{"name":"k","generation":"5","crc32c":"AAAAAA=="}"#, 0).expect("metadata");
        assert_eq!((empty.size, empty.version), (0, Some(Version::Generation(5))));
        let written = meta(r#"{"name":"k","crc32c":"4waSgw=="}"#, 9).expect("metadata");
        assert_eq!((written.size, written.version), (9, None));
        assert_eq!(meta("{}", 9), None, "of no object at all");
        assert_eq!(meta(r#"{"name":"k","size":"many"}"#, 9), None);
    }

    #[test]
    fn numbers_and_nulls_stand_for_their_text() {
        let json =
            r#"{"name":"k","size":9,"generation":17,"etag":null,"metadata":{"a":1,"b":null},"md5Hash":null}"#;
        let meta = meta(json, 0).expect("metadata");
        assert_eq!((meta.size, meta.version, meta.etag), (9, Some(Version::Generation(17)), None));
        assert_eq!(meta.metadata.expect("metadata")["a"], "1");
    }

    #[test]
    fn encryption_and_retention_are_read_and_written() {
        let json = r#"{"name":"k","bucket":"b","size":"9","generation":"1","temporaryHold":true,
            "customerEncryption":{"encryptionAlgorithm":"AES256","keySha256":"s"},
            "retention":{"mode":"Locked","retainUntilTime":"2027-01-31T00:00:00Z"}}"#;
        let resource: ObjectResource<'_> = serde_json::from_str(json).expect("JSON");
        let meta = resource.into_meta(ObjectId::new("b", "k"), 0).expect("metadata");
        assert_eq!(meta.encryption.as_deref(), Some("customer AES256"));
        assert_eq!(meta.customer_key.as_deref(), Some("s"));
        assert!(meta.legal_hold);
        let until = rfc3339("2027-01-31T00:00:00Z").expect("a time");
        let retention = Some(Retention { mode: RetentionMode::Compliance, until });
        assert_eq!(meta.retention, retention);
        let options = PutOptions { retention, legal_hold: true, ..PutOptions::default() };
        assert_eq!(
            NewObjectResource::new(&options, None).to_json(),
            r#"{"retention":{"mode":"Locked","retainUntilTime":"2027-01-31T00:00:00Z"},"temporaryHold":true}"#
        );
    }

    #[test]
    fn media_headers_become_metadata() {
        let head = head(&[
            ("x-goog-generation", "17"),
            ("x-goog-hash", "crc32c=4waSgw=="),
            ("x-goog-hash", "md5=JfnnlDI7RTiF9RgfG2JNCw=="),
            ("x-goog-stored-content-length", "9"),
            ("x-goog-stored-content-encoding", "identity"),
            ("x-goog-meta-k", "v"),
            ("etag", "\"abc\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        let meta = from_head(&ObjectId::new("b", "k"), &head);
        assert_eq!((meta.size, meta.version), (9, Some(Version::Generation(17))));
        assert_eq!(meta.checksums.crc32c, Some(0xe306_9283));
        assert!(meta.checksums.md5.is_some());
        assert_eq!(meta.content_encoding, None);
        assert_eq!(meta.etag.as_deref(), Some("abc"));
        assert_eq!(meta.metadata.expect("metadata")["k"], "v");
    }

    #[test]
    fn one_hash_header_may_hold_both_hashes() {
        let sums = hashes(&head(&[("x-goog-hash", "crc32c=AAAAAA==,md5=1B2M2Y8AsgTpgAmY7PhCfg==")]));
        assert_eq!(sums.crc32c, Some(0));
        assert!(sums.md5.is_some());
    }

    #[test]
    fn a_decompressed_answer_has_no_checksum() {
        let stored = [("x-goog-hash", "crc32c=4waSgw=="), ("x-goog-stored-content-encoding", "gzip")];
        assert!(from_head(&ObjectId::new("b", "k"), &head(&stored)).checksums.is_empty());
        let as_stored = [stored[0], stored[1], ("content-encoding", "gzip")];
        let meta = from_head(&ObjectId::new("b", "k"), &head(&as_stored));
        assert_eq!(meta.checksums.crc32c, Some(0xe306_9283));
        assert_eq!(meta.content_encoding.as_deref(), Some("gzip"));
    }

    #[test]
    fn a_new_resource_says_only_what_was_given() {
        let options = PutOptions::default().content_type("a/b");
        let resource = NewObjectResource::new(&options, Some(&Checksums::crc32c(0)));
        assert_eq!(resource.to_json(), r#"{"crc32c":"AAAAAA==","contentType":"a/b"}"#);
        assert!(NewObjectResource::new(&PutOptions::default(), None).is_empty());
    }
}
