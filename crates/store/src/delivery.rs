//! Passes the body of a download to the caller's sink, after comparing the answer's head with the request.

pub(crate) mod structured_body;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use laneway_lanes::{Breaks, Response, ResponseHead, Route, Sink, SinkError};
use md5::{Digest as _, Md5};

use self::structured_body::{BodyEvent, StructuredBody, StructuredBodyError, content_of};
use crate::checksum::encode_md5;
use crate::unless::NOT_MODIFIED;
use crate::{
    Checksums, ErrorKind, Get, GetHedge, GetRange, GetSink, HedgeMaker, ObjectId, ObjectMeta, SinkMaker,
    Unless, Version,
};

/// Reads an object's metadata from an answer's head. Each dialect has its own headers.
pub(crate) type HeadReader = fn(&ObjectId, &ResponseHead) -> ObjectMeta;

/// Returns the length of the content of a [structured body](structured_body), or `None` if the body is the content itself.
/// Returns an error for a body that Laneway can't read. Each dialect has its own headers.
pub(crate) type BodyReader = fn(&ResponseHead) -> Result<Option<u64>, String>;

/// Returns the MD5 of the range that an answer carries, if its head has one.
pub(crate) type RangeMd5Reader = fn(&ResponseHead) -> Option<[u8; 16]>;

/// The parts of a request with which the answer's head is compared.
#[derive(Clone)]
struct ExpectedHead {
    reader: HeadReader,
    body: Option<BodyReader>,
    range_md5: Option<RangeMd5Reader>,
    id: ObjectId,
    range: Option<GetRange>,
    version: Option<Version>,
    unless: Option<Unless>,
    /// The object's size, if the caller knows it from elsewhere.
    size: Option<u64>,
}

/// The request of a download, and the state that all its attempts share.
pub(crate) struct Delivery<'a> {
    asked: ExpectedHead,
    pub(crate) maker: SinkMaker<'a>,
    hedge: HedgeMaker<'a>,
    breaks: Option<&'a Breaks>,
    state: Arc<DeliveryState>,
}

/// A second request that is sent while the first one is slow.
pub(crate) struct HedgeRequest {
    /// The byte range to request, if it differs from the first request's.
    pub(crate) range: Option<Range<u64>>,
    pub(crate) sink: Option<Box<dyn Sink>>,
}

/// The object and range that an answer carries, according to its head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeliveredRange {
    /// The whole object's metadata.
    pub(crate) meta: ObjectMeta,
    /// The bytes that the body carries.
    pub(crate) range: Range<u64>,
    checks: BodyChecks,
}

/// The checksums of its bytes that an answer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyChecks {
    /// The bytes have no checksums, or only one of the whole object.
    Nothing,
    /// The body is a [structured body](structured_body).
    Structured,
    /// The head has the MD5 of the range.
    Md5([u8; 16]),
}

/// The reason why an answer is rejected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct RejectedResponse {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    /// True if only the object's size is missing. A caller that finds out the size can then accept the answer.
    pub(crate) lacks_size: bool,
    /// True if the bytes were damaged on the way, so that another attempt may succeed.
    pub(crate) is_damaged: bool,
}

impl From<StructuredBodyError> for RejectedResponse {
    fn from(error: StructuredBodyError) -> Self {
        Self { kind: ErrorKind::Integrity, message: error.to_string(), lacks_size: false, is_damaged: true }
    }
}

#[derive(Default)]
struct DeliveryState {
    /// Bytes that have reached the caller's sink.
    delivered: AtomicU64,
    /// True after a second request was sent while the first one was still running.
    hedged: AtomicBool,
    /// True after a structured body has ended with its last checksum.
    has_last_checksum: AtomicBool,
    described: Mutex<Option<DeliveredRange>>,
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(reader: HeadReader, get: &Get<'a>) -> Self {
        let asked = ExpectedHead {
            reader,
            body: None,
            range_md5: None,
            id: get.id.clone(),
            range: get.range.clone(),
            version: get.version.cloned(),
            unless: get.unless.cloned(),
            size: get.size,
        };
        Self { asked, maker: get.sink, hedge: get.hedge, breaks: get.breaks, state: Arc::default() }
    }

    /// Accepts structured bodies, which `reader` recognizes by an answer's head.
    pub(crate) fn structured(mut self, reader: BodyReader) -> Self {
        self.asked.body = Some(reader);
        self
    }

    /// Compares the MD5 of the range, which `reader` finds in an answer's head.
    pub(crate) fn range_md5(mut self, reader: RangeMd5Reader) -> Self {
        self.asked.range_md5 = Some(reader);
        self
    }

    /// Returns a sink for the next attempt, or `None` if the body is collected in memory.
    pub(crate) fn sink(&self) -> Option<Box<dyn Sink>> {
        Some(self.adapted(self.asked.clone(), self.maker?()))
    }

    /// Returns true if a second request for this body may be sent while the first one runs.
    pub(crate) fn may_be_hedged(&self) -> bool {
        self.maker.is_none() || self.hedge.is_some()
    }

    /// Returns the second request to send while the first one is slow, or `None` if there should be none.
    pub(crate) fn hedge(&self) -> Option<HedgeRequest> {
        if self.maker.is_none() {
            return Some(HedgeRequest { range: None, sink: None });
        }
        let GetHedge::Send(range, sink) = self.hedge?() else { return None };
        self.state.hedged.store(true, Ordering::Release);
        let mut asked = self.asked.clone();
        asked.range = range.clone().map(GetRange::from).or(asked.range);
        let sink = self.adapted(asked, sink);
        Some(HedgeRequest { range, sink: Some(sink) })
    }

    fn adapted(&self, asked: ExpectedHead, inner: Box<dyn GetSink>) -> Box<dyn Sink> {
        let (state, parser) = (Arc::clone(&self.state), BodyParser::Plain);
        Box::new(DeliverySink { asked, left: 0, parser, state, inner })
    }

    /// Returns true if bytes have reached the caller's sink.
    pub(crate) fn delivered(&self) -> bool {
        self.state.delivered.load(Ordering::Acquire) > 0
    }

    /// Returns the counter of broken-off answers, and the number of bytes that this download has delivered. All
    /// downloads of the same body share the counter.
    pub(crate) fn breaks(&self) -> Option<(&Breaks, u64)> {
        Some((self.breaks?, self.state.delivered.load(Ordering::Acquire)))
    }

    /// Returns the object and range that the answer carries. Usually the sink has recorded them. They are read from
    /// `head` if the body was collected in memory, or if a second request was sent.
    pub(crate) fn described(&self, head: &ResponseHead) -> Result<DeliveredRange, RejectedResponse> {
        let seen = self.state.described.lock().unwrap_or_else(|e| e.into_inner()).take();
        if self.state.hedged.load(Ordering::Acquire) {
            // There were two answers, and `state` describes the one that began last. So read this answer's head again.
            // Its range was already checked when its body began.
            return self.asked.describe(head);
        }
        match seen {
            Some(described) => Ok(described),
            None => self.asked.check(head),
        }
    }

    /// Returns the content of an answer's body, if it was collected in memory, and the length of the content that arrived.
    pub(crate) fn content(
        &self,
        response: &Response,
        described: &DeliveredRange,
    ) -> Result<(Bytes, u64), RejectedResponse> {
        let len = described.range.end - described.range.start;
        let is_collected = self.maker.is_none();
        match described.checks {
            BodyChecks::Structured if is_collected => Ok((content_of(&response.body, len)?, len)),
            BodyChecks::Structured => {
                let is_whole = self.state.has_last_checksum.load(Ordering::Acquire);
                Ok((Bytes::new(), if is_whole { len } else { response.sunk.min(len.saturating_sub(1)) }))
            }
            _ if !is_collected => Ok((Bytes::new(), response.sunk)),
            checks => {
                let body = response.body.clone();
                if let BodyChecks::Md5(md5) = checks
                    && body.len() as u64 == len
                {
                    compare_md5(&Md5::digest(&body).into(), &md5)?;
                }
                let arrived = body.len() as u64;
                Ok((body, arrived))
            }
        }
    }
}

impl DeliveredRange {
    /// Returns true if the answer has the store's checksums of the bytes that it carries.
    pub(crate) fn has_checks(&self) -> bool {
        self.checks != BodyChecks::Nothing
    }
}

fn compare_md5(ours: &[u8; 16], theirs: &[u8; 16]) -> Result<(), RejectedResponse> {
    if ours == theirs {
        return Ok(());
    }
    let (ours, theirs) = (encode_md5(*ours), encode_md5(*theirs));
    let message = format!("the MD5 of the range's bytes is {ours}, but the store sent {theirs}");
    Err(RejectedResponse { kind: ErrorKind::Integrity, message, lacks_size: false, is_damaged: true })
}

impl ExpectedHead {
    /// Compares an answer's head with the request.
    fn check(&self, head: &ResponseHead) -> Result<DeliveredRange, RejectedResponse> {
        let described = self.describe(head)?;
        let DeliveredRange { meta, range, .. } = &described;
        let expected = self.range.as_ref().map_or(0..meta.size, |asked| asked.within(meta.size));
        if *range != expected {
            let message = format!(
                "bytes {}-{} were requested, but the server sent {}-{}",
                expected.start, expected.end, range.start, range.end
            );
            return refuse(ErrorKind::Unsupported, message);
        }
        Ok(described)
    }

    /// Does the same, without a comparison of the range.
    fn describe(&self, head: &ResponseHead) -> Result<DeliveredRange, RejectedResponse> {
        let mut meta = (self.reader)(&self.id, head);
        let stored = Some(meta.size).filter(|size| *size > 0);
        let content_len = self.structured_len(head)?;
        let len = content_len.or(head.content_length());
        let range = if let Some((range, total)) = range_of(head, len, self.range.as_ref()) {
            if content_len.is_some_and(|len| len != range.end - range.start) {
                let message = "the length of the answer's content differs from that of its range";
                return refuse(ErrorKind::Server, message);
            }
            let Some(size) = total.or(stored).or(self.size) else {
                return refuse(
                    ErrorKind::Server,
                    "the answer to a range request doesn't state the object's size",
                );
            };
            meta.size = size;
            range
        } else if head.status.as_u16() == 206 && head.content_length() == Some(0) {
            // Azurite answers a range that begins at the end with `bytes 5-4/5`.
            return refuse(ErrorKind::InvalidRange, "the object has none of these bytes");
        } else if head.status.as_u16() == 206 {
            return refuse(ErrorKind::Server, "the answer to a range request has no Content-Range header");
        } else if is_no_object(&meta) {
            return refuse(ErrorKind::Server, "the answer has none of the headers with an object's metadata");
        } else {
            // GCS sends gzip objects from about 8 MiB on with chunked encoding. Then only the header
            // `x-goog-stored-content-length` contains their length.
            let Some(length) = len.or(stored).or(self.size) else {
                let (kind, message) =
                    (ErrorKind::Unsupported, "the answer doesn't state its length".to_owned());
                return Err(RejectedResponse { kind, message, lacks_size: true, is_damaged: false });
            };
            meta.size = length;
            0..length
        };
        if let Some(wanted) = &self.version
            && meta.version.as_ref() != Some(wanted)
        {
            let message = match &meta.version {
                Some(found) => {
                    format!("the object has changed: {wanted} was requested, but the store has {found}")
                }
                None => format!("{wanted} was requested, but the answer doesn't name the object's version"),
            };
            return refuse(ErrorKind::Precondition, message);
        }
        // A server that ignores the condition sends the object although it hasn't changed.
        if self.unless.as_ref().is_some_and(|unless| unless.is_met(&meta)) {
            return refuse(ErrorKind::NotModified, NOT_MODIFIED);
        }
        let md5 = self.range_md5.filter(|_| head.status.as_u16() == 206).and_then(|reader| reader(head));
        let checks = match md5 {
            _ if content_len.is_some() => BodyChecks::Structured,
            Some(md5) => BodyChecks::Md5(md5),
            None => BodyChecks::Nothing,
        };
        Ok(DeliveredRange { meta, range, checks })
    }

    /// Returns the length of the content in a structured body, or `None` if the body isn't structured.
    fn structured_len(&self, head: &ResponseHead) -> Result<Option<u64>, RejectedResponse> {
        let Some(reader) = self.body else { return Ok(None) };
        match reader(head) {
            Ok(len) => Ok(len),
            Err(message) => refuse(ErrorKind::Unsupported, message),
        }
    }
}

/// Returns true if the answer to a whole-object request is an error document or a proxy's page, sent with status 200. A
/// store's answer always has the object's state, time of writing or checksum, and these pages have none of them. A page
/// with an `ETag` or a `Last-Modified` can't be distinguished from an object. The same holds for a page whose content
/// type is missing or isn't XML, JSON or HTML.
pub(crate) fn is_no_object(meta: &ObjectMeta) -> bool {
    const DOCUMENTS: [&str; 4] = ["application/xml", "application/json", "text/xml", "text/html"];
    let says_nothing = meta.version.is_none()
        && meta.etag.is_none()
        && meta.updated.is_none()
        && meta.checksums == Checksums::default();
    let is_document = |kind: String| DOCUMENTS.iter().any(|document| kind.starts_with(document));
    says_nothing && meta.content_type.as_deref().map(str::to_ascii_lowercase).is_some_and(is_document)
}

fn refuse<T>(kind: ErrorKind, message: impl Into<String>) -> Result<T, RejectedResponse> {
    Err(RejectedResponse { kind, message: message.into(), lacks_size: false, is_damaged: false })
}

/// Returns the range that an answer carries. Some servers send a range with status 200. Laneway accepts this if it
/// requested a range and the length of the content, `len`, matches `Content-Range`.
fn range_of(
    head: &ResponseHead,
    len: Option<u64>,
    asked: Option<&GetRange>,
) -> Option<(Range<u64>, Option<u64>)> {
    // If a request asks for the last bytes of an empty object, MinIO answers 206 with `bytes 0--1/0`, and S3 answers
    // 200.
    if matches!(asked, Some(GetRange::Last(_))) && len == Some(0) {
        return Some((0..0, Some(0)));
    }
    let (range, total) = head.header("content-range").and_then(content_range)?;
    let fits = len.is_none_or(|len| len == range.end - range.start);
    (head.status.as_u16() == 206 || (asked.is_some() && fits)).then_some((range, total))
}

/// Reads `bytes 0-9/100` as a half-open range and a total. The total may be `*`, which means unknown.
pub(crate) fn content_range(value: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, total) = value.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse::<u64>().ok()?),
    };
    if last < first || total.is_some_and(|total| last >= total) {
        return None;
    }
    Some((first..last.checked_add(1)?, total))
}

/// Compares a body's bytes with the checksums that came with them.
enum BodyParser {
    Plain,
    Structured(Box<StructuredBody>),
    Md5(Md5, [u8; 16]),
}

struct DeliverySink {
    asked: ExpectedHead,
    /// The number of bytes of the content that haven't arrived yet.
    left: u64,
    parser: BodyParser,
    state: Arc<DeliveryState>,
    inner: Box<dyn GetSink>,
}

impl Sink for DeliverySink {
    fn begin(&mut self, head: &ResponseHead) -> Result<Route, SinkError> {
        let described = self.asked.check(head)?;
        self.left = described.range.end - described.range.start;
        self.parser = match described.checks {
            BodyChecks::Nothing => BodyParser::Plain,
            BodyChecks::Structured => {
                BodyParser::Structured(Box::new(StructuredBody::new(self.left, head.content_length())))
            }
            BodyChecks::Md5(md5) => BodyParser::Md5(Md5::new(), md5),
        };
        let route = self.inner.begin(&described.meta, described.range.clone())?;
        if !matches!(self.parser, BodyParser::Plain) {
            self.inner.expect_checks();
        }
        *self.state.described.lock().unwrap_or_else(|e| e.into_inner()) = Some(described);
        Ok(route)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        match std::mem::replace(&mut self.parser, BodyParser::Plain) {
            BodyParser::Plain => self.deliver(bytes),
            BodyParser::Structured(structured) => self.take_structured(structured, bytes),
            BodyParser::Md5(mut md5, expected) => {
                md5.update(bytes);
                let route = self.deliver(bytes)?;
                if self.left > 0 {
                    self.parser = BodyParser::Md5(md5, expected);
                    return Ok(route);
                }
                compare_md5(&md5.finalize().into(), &expected)?;
                self.inner.checked()
            }
        }
    }
}

impl DeliverySink {
    /// Passes the content on, and compares the checksums between its segments.
    fn take_structured(
        &mut self,
        mut structured: Box<StructuredBody>,
        mut bytes: &[u8],
    ) -> Result<Route, SinkError> {
        let mut route = Route::Stay;
        while let Some(event) = structured.next(&mut bytes).map_err(RejectedResponse::from)? {
            route = match event {
                BodyEvent::Content(content) => self.deliver(content)?,
                BodyEvent::Checked => self.inner.checked()?,
            };
            if route == Route::Stop {
                return Ok(route);
            }
        }
        if structured.is_complete() {
            self.state.has_last_checksum.store(true, Ordering::Release);
        }
        self.parser = BodyParser::Structured(structured);
        Ok(route)
    }

    /// Passes bytes of the content on.
    fn deliver(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        // A chunked body may be longer than its head announced.
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            let message = "the server sent more bytes than the answer's headers announced";
            return refuse(ErrorKind::Integrity, message).map_err(SinkError::from);
        };
        self.left = left;
        self.state.delivered.fetch_add(bytes.len() as u64, Ordering::Release);
        self.inner.write(bytes)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

    use super::*;

    fn head(status: u16, headers: &[(&'static str, &'static str)]) -> ResponseHead {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        ResponseHead { status: StatusCode::from_u16(status).expect("a status"), headers: map }
    }

    fn reader(id: &ObjectId, head: &ResponseHead) -> ObjectMeta {
        let mut meta = ObjectMeta::new(id.clone(), 0);
        meta.version = head.header("etag").map(|etag| Version::ETag(etag.to_owned()));
        meta
    }

    fn check(
        asked: Option<Range<u64>>,
        version: Option<&str>,
        head: &ResponseHead,
    ) -> Result<(u64, Range<u64>), ErrorKind> {
        let version = version.map(|v| Version::ETag(v.to_owned()));
        let asked = ExpectedHead { range: asked.map(GetRange::from), version, ..asked_for(reader) };
        asked.check(head).map(|d| (d.meta.size, d.range)).map_err(|e| e.kind)
    }

    fn asked_for(reader: HeadReader) -> ExpectedHead {
        ExpectedHead {
            reader,
            body: None,
            range_md5: None,
            id: ObjectId::new("b", "k"),
            range: None,
            version: None,
            unless: None,
            size: None,
        }
    }

    #[test]
    fn a_whole_answer_tells_its_size_by_its_length() {
        assert_eq!(check(None, None, &head(200, &[("content-length", "5")])), Ok((5, 0..5)));
        assert_eq!(check(None, None, &head(200, &[])), Err(ErrorKind::Unsupported));
    }

    #[test]
    fn without_a_length_uses_the_stored_size_then_the_callers() {
        let size = |head: &ResponseHead, size| {
            let asked = ExpectedHead { size, ..asked_for(crate::gcs::resource::from_head) };
            asked.describe(head).map(|described| described.meta.size)
        };
        let gzip = ("content-encoding", "gzip");
        let stored =
            [gzip, ("x-goog-stored-content-encoding", "gzip"), ("x-goog-stored-content-length", "9")];
        assert_eq!(size(&head(200, &stored), None), Ok(9));
        let unpacked = head(200, &stored[1..]);
        assert!(
            size(&unpacked, None).is_err_and(|refused| refused.lacks_size),
            "those are not the stored bytes"
        );
        assert_eq!(size(&head(200, &[gzip]), Some(7)), Ok(7));
    }

    #[test]
    fn a_range_that_is_answered_with_200_is_believed_where_it_fits() {
        let answer = |length| head(200, &[("content-length", length), ("content-range", "bytes 2-5/9")]);
        assert_eq!(check(Some(2..6), None, &answer("4")), Ok((9, 2..6)));
        assert_eq!(check(Some(2..6), None, &answer("9")), Err(ErrorKind::Unsupported));
        assert_eq!(check(None, None, &answer("9")), Ok((9, 0..9)));
        assert_eq!(check(Some(3..6), None, &answer("4")), Err(ErrorKind::Unsupported));
    }

    #[test]
    fn a_document_that_tells_nothing_of_an_object_is_none() {
        let describe = |headers: &[_]| {
            let asked = asked_for(crate::gcs::resource::from_head);
            asked.describe(&head(200, headers)).map(|described| described.range).map_err(|e| e.kind)
        };
        let length = ("content-length", "120");
        for document in ["application/xml", "application/json; charset=UTF-8", "Text/HTML; charset=utf-8"] {
            let kind = ("content-type", document);
            assert_eq!(describe(&[length, kind]), Err(ErrorKind::Server), "{document}");
            for described in [
                ("etag", "\"1\""),
                ("last-modified", "Sun, 06 Nov 1994 08:49:00 GMT"),
                ("x-goog-generation", "7"),
                ("x-goog-hash", "crc32c=AAAAAA=="),
            ] {
                assert_eq!(describe(&[length, kind, described]), Ok(0..120), "{document} {described:?}");
            }
        }
        assert_eq!(describe(&[length, ("content-type", "image/png")]), Ok(0..120));
    }

    #[test]
    fn a_range_answer_tells_the_size_of_the_whole() {
        let answer = head(206, &[("content-length", "4"), ("content-range", "bytes 2-5/9")]);
        assert_eq!(check(Some(2..6), None, &answer), Ok((9, 2..6)));
    }

    #[test]
    fn a_range_beyond_the_end_is_cut_at_the_end() {
        let answer = head(206, &[("content-range", "bytes 2-8/9")]);
        assert_eq!(check(Some(2..100), None, &answer), Ok((9, 2..9)));
    }

    #[test]
    fn the_end_of_an_object_is_where_the_answer_says() {
        let came = |last, head: &ResponseHead| {
            let asked = ExpectedHead { range: Some(GetRange::Last(last)), ..asked_for(reader) };
            asked.check(head).map(|d| (d.meta.size, d.range)).map_err(|e| e.kind)
        };
        let end = head(206, &[("content-length", "4"), ("content-range", "bytes 5-8/9")]);
        assert_eq!(came(4, &end), Ok((9, 5..9)));
        assert_eq!(came(5, &end), Err(ErrorKind::Unsupported));
        let whole = head(206, &[("content-length", "9"), ("content-range", "bytes 0-8/9")]);
        assert_eq!(came(12, &whole), Ok((9, 0..9)));
        // A server that ignores the range sends the whole object.
        assert_eq!(came(12, &head(200, &[("content-length", "9")])), Ok((9, 0..9)));
        assert_eq!(came(4, &head(200, &[("content-length", "9")])), Err(ErrorKind::Unsupported));
        let nothing = [("content-length", "0"), ("content-range", "bytes 0--1/0")];
        assert_eq!(came(4, &head(206, &nothing)), Ok((0, 0..0)));
        assert_eq!(came(4, &head(200, &nothing[..1])), Ok((0, 0..0)));
    }

    #[test]
    fn what_the_reader_has_is_refused_where_the_server_sends_it_all_the_same() {
        let asked = |unless| ExpectedHead { unless: Some(unless), ..asked_for(reader) };
        let answer = head(200, &[("content-length", "5"), ("etag", "b")]);
        let kind = |etag: &str| {
            asked(Unless::Version(Version::ETag(etag.to_owned()))).describe(&answer).map_err(|e| e.kind)
        };
        assert_eq!(kind("b"), Err(ErrorKind::NotModified));
        assert_eq!(kind("W/b"), Err(ErrorKind::NotModified));
        assert!(kind("a").is_ok());
    }

    #[test]
    fn a_range_answer_without_bytes_is_a_range_outside_the_object() {
        let answer = head(206, &[("content-length", "0"), ("content-range", "bytes 5-4/5")]);
        assert_eq!(check(Some(5..9), None, &answer), Err(ErrorKind::InvalidRange));
    }

    #[test]
    fn another_range_than_the_one_asked_for_is_refused() {
        let answer = head(206, &[("content-range", "bytes 0-3/9")]);
        assert_eq!(check(Some(2..6), None, &answer), Err(ErrorKind::Unsupported));
        assert_eq!(
            check(Some(2..6), None, &head(200, &[("content-length", "9")])),
            Err(ErrorKind::Unsupported)
        );
        assert_eq!(check(Some(0..9), None, &head(200, &[("content-length", "9")])), Ok((9, 0..9)));
    }

    #[test]
    fn a_part_of_an_object_is_refused_if_the_whole_was_requested() {
        let part = head(206, &[("content-length", "5"), ("content-range", "bytes 4-8/9")]);
        assert_eq!(check(None, None, &part), Err(ErrorKind::Unsupported));
        let whole = head(206, &[("content-length", "9"), ("content-range", "bytes 0-8/9")]);
        assert_eq!(check(None, None, &whole), Ok((9, 0..9)));
    }

    #[test]
    fn an_answer_of_another_version_is_refused() {
        let answer = head(200, &[("content-length", "5"), ("etag", "b")]);
        assert_eq!(check(None, Some("a"), &answer), Err(ErrorKind::Precondition));
        assert_eq!(check(None, Some("b"), &answer), Ok((5, 0..5)));
        assert_eq!(
            check(None, Some("b"), &head(200, &[("content-length", "5")])),
            Err(ErrorKind::Precondition)
        );
    }

    #[test]
    fn a_content_range_that_makes_no_sense_is_refused() {
        assert_eq!(content_range("bytes 0-9/100"), Some((0..10, Some(100))));
        assert_eq!(content_range("bytes 0-9/*"), Some((0..10, None)));
        assert_eq!(content_range("bytes 9-0/100"), None);
        assert_eq!(content_range("bytes 0-9/5"), None);
        assert_eq!(content_range("bytes */5"), None);
        assert_eq!(content_range("bytes 0-18446744073709551615/*"), None);
    }
}
