//! Writes the heads of HTTP/1.1 requests, and parses those of answers.

use std::io::Write as _;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::error::{Error, Kind};
use crate::proxy::Proxy;
use crate::{Request, ResponseHead};

/// The maximum length of an answer's head, including the informational heads before it. If it is longer, the request fails. GCS and S3 send
/// up to about 10 KiB, including up to 8 KiB of user metadata.
const HEAD_MAX: usize = 64 * 1024;

/// The maximum number of informational answers (1xx) to one request. They are skipped, since Laneway never requests any. If there are more,
/// the request fails.
pub(crate) const INFORMATIONAL_MAX: usize = 16;

/// The maximum number of headers in an answer.
const HEADERS_MAX: usize = 256;

/// The number of bytes that are copied and searched for the end of the head at a time. The number is small, so hardly any bytes of a body
/// after the head are copied.
const LOOK: usize = 4096;

/// The head of an answer. `keep_alive` is true if the connection may be used again after the body.
pub(super) struct H1Head {
    pub(super) head: ResponseHead,
    pub(super) keep_alive: bool,
}

/// The number of bytes of a read that belong to the head. `complete` is true if they contain its end.
struct HeadBytes {
    bytes: usize,
    complete: bool,
}

/// Reads the heads that answer one request: first informational ones (1xx), if any, then the final one.
#[derive(Debug, Default)]
pub(super) struct Heads {
    collected: Vec<u8>,
    /// The length and the number of the informational heads so far.
    skipped: usize,
    informational: usize,
}

impl Heads {
    /// Consumes the part of `read` that belongs to the current head. Returns the length of this part, and the final head once it is
    /// complete.
    pub(super) fn feed(&mut self, read: &[u8]) -> Result<(usize, Option<H1Head>), Error> {
        let used = collect(&mut self.collected, read)?;
        if is_tls(&self.collected) {
            return Err(Error::new(
                Kind::Scheme,
                "the server uses TLS on this port; use https:// instead of http://",
            ));
        }
        if self.skipped + self.collected.len() > HEAD_MAX {
            return Err(too_long());
        }
        if !used.complete {
            return Ok((used.bytes, None));
        }
        let answer = parse(&self.collected)?;
        if !answer.head.status.is_informational() {
            return Ok((used.bytes, Some(answer)));
        }
        if answer.head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::new(
                Kind::Protocol,
                "the server switches protocols (101), which wasn't requested",
            ));
        }
        self.informational += 1;
        if self.informational > INFORMATIONAL_MAX {
            let why = format!("the server sends more than {INFORMATIONAL_MAX} informational answers");
            return Err(Error::new(Kind::Protocol, why));
        }
        self.skipped += self.collected.len();
        self.collected.clear();
        Ok((used.bytes, None))
    }

    /// Returns false if a part of the next head has been consumed.
    pub(super) fn is_between(&self) -> bool {
        self.collected.is_empty()
    }
}

/// Returns whether the bytes are a TLS record: an alert or a handshake (RFC 8446, section 5.1). A TLS port answers a request without TLS
/// with such a record. No HTTP status line begins with these bytes.
fn is_tls(answer: &[u8]) -> bool {
    const ALERT: u8 = 21;
    const HANDSHAKE: u8 = 22;
    const VERSION_MAJOR: u8 = 3;
    matches!(answer, [ALERT | HANDSHAKE, VERSION_MAJOR, ..])
}

fn too_long() -> Error {
    Error::new(Kind::Protocol, format!("the answer's head is longer than {HEAD_MAX} bytes"))
}

/// Returns the request's head as it is sent.
pub(super) fn encode(request: &Request, proxy: Option<&Proxy>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024 + usize::try_from(request.body.len()).unwrap_or(0).min(16 * 1024));
    let target = request.target.path_and_query().map_or("/", |t| t.as_str());
    // Writing to a Vec can't fail.
    let _ = match proxy {
        Some(_) => write!(out, "{} {}{target} HTTP/1.1\r\n", request.method, request.origin),
        None => write!(out, "{} {target} HTTP/1.1\r\n", request.method),
    };
    if !request.headers.contains_key(HOST) {
        let _ = write!(out, "host: {}\r\n", request.origin.authority());
    }
    if let Some(authorization) = proxy.and_then(Proxy::authorization) {
        let _ = write!(out, "{PROXY_AUTHORIZATION}: {authorization}\r\n");
    }
    for (name, value) in &request.headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if let Some(length) = request.undeclared_length() {
        let _ = write!(out, "{CONTENT_LENGTH}: {length}\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Parses the seconds of `Keep-Alive: timeout=5, max=100`.
pub(super) fn keep_alive_timeout(value: &str) -> Option<Duration> {
    let parameters = value.split(',').filter_map(|parameter| parameter.split_once('='));
    let mut timeouts = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"));
    timeouts.next()?.1.trim().trim_matches('"').parse().ok().map(Duration::from_secs)
}

/// Copies the part of `read` that belongs to the head to `collected`.
fn collect(collected: &mut Vec<u8>, read: &[u8]) -> Result<HeadBytes, Error> {
    let before = collected.len();
    let look = &read[..read.len().min(LOOK)];
    collected.extend_from_slice(look);
    // The four bytes of the head's end may be divided between this read and the previous one.
    let from = before.saturating_sub(3);
    if let Some(at) = collected[from..].windows(4).position(|w| w == b"\r\n\r\n") {
        collected.truncate(from + at + 4);
        return Ok(HeadBytes { bytes: collected.len() - before, complete: true });
    }
    if collected.len() > HEAD_MAX {
        return Err(too_long());
    }
    Ok(HeadBytes { bytes: look.len(), complete: false })
}

/// Parses a complete head.
fn parse(bytes: &[u8]) -> Result<H1Head, Error> {
    let broken = |why: &str| Error::new(Kind::Protocol, format!("the answer isn't HTTP/1.1: {why}"));
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    parsed.parse(bytes).map_err(|e| broken(&e.to_string()))?;
    let status = parsed.code.and_then(|c| StatusCode::from_u16(c).ok()).ok_or_else(|| broken("no status"))?;
    let mut map = HeaderMap::with_capacity(parsed.headers.len());
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|e| broken(&e.to_string()))?;
        map.append(name, HeaderValue::from_bytes(header.value).map_err(|e| broken(&e.to_string()))?);
    }
    let says = |token: &str| {
        let values = map.get_all(http::header::CONNECTION).iter().filter_map(|v| v.to_str().ok());
        values.flat_map(|v| v.split(',')).any(|v| v.trim().eq_ignore_ascii_case(token))
    };
    let keep_alive = if parsed.version == Some(0) { says("keep-alive") } else { !says("close") };
    Ok(H1Head { head: ResponseHead { status, headers: map }, keep_alive })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::{Body, Origin};

    #[test]
    fn a_request_names_host_and_length_once() {
        let origin = Origin::parse("http://h:9000").unwrap();
        let mut request = Request::new(origin, Method::PUT, "/b/k?x=1".parse().unwrap());
        request.body = Body::from("abc");
        let text = String::from_utf8(encode(&request, None)).unwrap();
        assert_eq!(text, "PUT /b/k?x=1 HTTP/1.1\r\nhost: h:9000\r\ncontent-length: 3\r\n\r\n");
        request.headers.insert(HOST, HeaderValue::from_static("other"));
        assert!(!String::from_utf8(encode(&request, None)).unwrap().contains("h:9000"));
    }

    #[test]
    fn a_head_split_anywhere_is_found_and_the_body_left_alone() {
        let bytes = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody";
        for cut in 1..bytes.len() {
            let (mut collected, mut rest): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
            let mut complete = false;
            for part in [&bytes[..cut], &bytes[cut..]] {
                if complete {
                    rest.extend_from_slice(part);
                    continue;
                }
                let used = collect(&mut collected, part).unwrap();
                complete = used.complete;
                rest.extend_from_slice(&part[used.bytes..]);
            }
            assert!(complete && rest == b"body", "cut at {cut}");
            assert_eq!(parse(&collected).unwrap().head.header("a"), Some("b"));
        }
    }

    #[test]
    fn informational_heads_are_skipped_and_bounded_in_number_and_in_total() {
        let feed_all = |bytes: &[u8]| {
            let (mut heads, mut at) = (Heads::default(), 0);
            while at < bytes.len() {
                match heads.feed(&bytes[at..]) {
                    Ok((_, Some(answer))) => return Ok(answer.head.status.as_u16()),
                    Ok((used, None)) => at += used,
                    Err(e) => return Err(e.to_string()),
                }
            }
            Err("incomplete".to_owned())
        };
        let answers = |n: usize, fields: &str| {
            let one = format!("HTTP/1.1 103 Early Hints\r\n{fields}\r\n");
            format!("{}HTTP/1.1 204 No Content\r\n\r\n", one.repeat(n))
        };
        assert_eq!(feed_all(answers(INFORMATIONAL_MAX, "").as_bytes()), Ok(204));
        let many = feed_all(answers(INFORMATIONAL_MAX + 1, "").as_bytes()).unwrap_err();
        assert!(many.contains("informational"), "{many}");
        let long = format!("Link: {}\r\n", "x".repeat(HEAD_MAX / 8));
        let long = feed_all(answers(9, &long).as_bytes()).unwrap_err();
        assert!(long.contains("longer than"), "{long}");
        let switched = feed_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").unwrap_err();
        assert!(switched.contains("101"), "{switched}");
    }

    #[test]
    fn a_tls_record_instead_of_an_answer_is_the_wrong_scheme_however_it_comes() {
        let alert = [0x15, 3, 3, 0, 2, 2, 50];
        let handshake = [0x16, 3, 1, 0, 80];
        let kind = |parts: &[&[u8]]| {
            let mut heads = Heads::default();
            parts.iter().find_map(|part| heads.feed(part).err()).map(|e| e.kind())
        };
        assert_eq!(kind(&[&alert]), Some(Kind::Scheme));
        assert_eq!(kind(&[&handshake]), Some(Kind::Scheme));
        assert_eq!(kind(&[&alert[..1], &alert[1..]]), Some(Kind::Scheme));
        assert_eq!(kind(&[b"HTTP/1.1 400 Bad\r\nA: \x15\x03\r\n\r\n"]), Some(Kind::Protocol));
        assert_eq!(kind(&[b"HTTP/1.1 400 Bad Request\r\n\r\n"]), None);
    }

    #[test]
    fn connection_close_and_http_1_0_end_the_connection() {
        let keep = |head: &str| parse(head.as_bytes()).unwrap().keep_alive;
        assert!(keep("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(!keep("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n"));
        assert!(!keep("HTTP/1.0 200 OK\r\n\r\n"));
    }

    #[test]
    fn how_long_an_idle_connection_is_kept_is_read_where_it_is_announced() {
        let secs = |value| keep_alive_timeout(value).map(|timeout| timeout.as_secs());
        assert_eq!(secs("timeout=5"), Some(5));
        assert_eq!(secs("max=100, Timeout = \"72\""), Some(72));
        assert_eq!((secs("max=100"), secs("timeout=soon"), secs("")), (None, None, None));
    }

    #[test]
    fn garbage_and_endless_heads_are_refused() {
        assert!(parse(b"SSH-2.0\r\n\r\n").is_err());
        let mut collected = Vec::new();
        let endless = [b'a'; LOOK];
        assert!((0..40).any(|_| collect(&mut collected, &endless).is_err()));
    }
}
