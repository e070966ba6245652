//! Sessions of directory buckets. The caller's own credentials open a session. The session's credentials sign all other
//! requests except copies.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::buckets::is_directory;
use super::error_document;
use super::refusals::Refusal;
use crate::body::ResponseBody;
use crate::checksum::hex;
use crate::gcs::rfc3339;
use crate::objects::now_us;
use crate::query::Query;
use crate::s3::S3State;

/// The lifetime of a session in microseconds: 5 minutes, as on S3.
const LASTS_US: u64 = 300_000_000;

/// The header of a session's token.
const TOKEN: &str = "x-amz-s3session-token";

/// The sessions of a server.
#[derive(Debug, Default)]
pub(crate) struct DirectorySessions(Mutex<SessionTable>);

/// The sessions by token. An expired session is kept for another 5 minutes, so that its error differs from that of an
/// unknown token. After that time, it is removed when another session is opened.
#[derive(Debug, Default)]
struct SessionTable {
    sessions: HashMap<String, DirectorySession>,
    opened: usize,
}

#[derive(Debug, Clone)]
struct DirectorySession {
    bucket: String,
    access_key: String,
    secret: String,
    ends_us: u64,
}

impl DirectorySessions {
    /// Returns the number of sessions that have been opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.table().opened
    }

    fn table(&self) -> std::sync::MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    /// Adds a session that was opened at `now_us`.
    fn open(&mut self, now_us: u64, token: String, session: DirectorySession) {
        self.sessions.retain(|_, session| session.ends_us.saturating_add(LASTS_US) > now_us);
        self.sessions.insert(token, session);
        self.opened += 1;
    }

    /// Returns the secret key of the session with this token.
    fn secret(&self, now_us: u64, token: &str, bucket: &str, access_key: &str) -> Result<String, Refusal> {
        let session = self.sessions.get(token);
        match session.filter(|session| session.bucket == bucket && session.access_key == access_key) {
            Some(session) if session.ends_us > now_us => Ok(session.secret.clone()),
            Some(_) => Err((StatusCode::BAD_REQUEST, "ExpiredToken", "The provided token has expired.")),
            None => {
                let message = "The provided token is malformed or otherwise invalid.";
                Err((StatusCode::BAD_REQUEST, "InvalidToken", message))
            }
        }
    }
}

/// Checks the signature of a request for a directory bucket, and answers requests for a session. If the request passes,
/// its signature is removed, because `s3s` couldn't verify it.
pub(super) fn admit(state: &S3State, head: &mut Parts, bucket: &str) -> Option<Response<ResponseBody>> {
    if !is_directory(bucket) {
        return None;
    }
    let query = Query::parse(head.uri.query());
    let opens = head.method == Method::GET && query.has("session");
    let refusal = match SignatureHeader::of(head) {
        // This demo store accepts unsigned requests, except to open a session.
        None if !opens => None,
        None => Some((StatusCode::FORBIDDEN, "AccessDenied", "Opening a session needs a signature.")),
        Some(signed) => check(state, head, bucket, &signed, opens).err(),
    };
    if let Some((status, code, message)) = refusal {
        return Some(error_document(status, code, message));
    }
    if opens {
        return Some(open(state, bucket));
    }
    for name in [AUTHORIZATION.as_str(), TOKEN, "x-amz-security-token", "x-amz-content-sha256", "x-amz-date"]
    {
        head.headers.remove(name);
    }
    None
}

fn check(
    state: &S3State,
    head: &Parts,
    bucket: &str,
    signed: &SignatureHeader<'_>,
    opens: bool,
) -> Result<(), Refusal> {
    if signed.service() != "s3express" {
        let message = "The authorization header is malformed; the service is wrong; expecting 's3express'";
        return Err((StatusCode::BAD_REQUEST, "AuthorizationHeaderMalformed", message));
    }
    let is_about_bucket = head.method == Method::HEAD && !head.uri.path().trim_matches('/').contains('/');
    let takes_own = opens || is_about_bucket || head.headers.contains_key("x-amz-copy-source");
    let config = &state.config;
    let secret = match head.headers.get(TOKEN).map(|token| token.to_str().unwrap_or_default()) {
        Some(_) if takes_own => {
            let message = "This operation needs the caller's own credentials, not a session's.";
            return Err((StatusCode::FORBIDDEN, "AccessDenied", message));
        }
        None if !takes_own => {
            let message = "Access to a directory bucket needs a session.";
            return Err((StatusCode::FORBIDDEN, "AccessDenied", message));
        }
        Some(token) => {
            let sessions = state.sessions.table();
            sessions.secret(now_us(), token, bucket, signed.access_key)?
        }
        None if signed.access_key == config.access_key => config.secret_key.clone(),
        None => {
            let message = "The AWS Access Key Id you provided does not exist in our records.";
            return Err((StatusCode::FORBIDDEN, "InvalidAccessKeyId", message));
        }
    };
    match signed.is_by(&secret, head) {
        true => Ok(()),
        false => {
            let message = "The request signature we calculated does not match the signature you provided.";
            Err((StatusCode::FORBIDDEN, "SignatureDoesNotMatch", message))
        }
    }
}

fn open(state: &S3State, bucket: &str) -> Response<ResponseBody> {
    if state.objects.bucket(bucket).is_err() {
        let message = "The specified bucket does not exist";
        return error_document(StatusCode::NOT_FOUND, "NoSuchBucket", message);
    }
    let random = || state.objects.unguessable_id();
    let now = now_us();
    let session = DirectorySession {
        bucket: bucket.to_owned(),
        access_key: random(),
        secret: random(),
        ends_us: now + LASTS_US,
    };
    let token = random();
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><CreateSessionResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Credentials>\
         <SessionToken>{token}</SessionToken><SecretAccessKey>{}</SecretAccessKey><AccessKeyId>{}</AccessKeyId>\
         <Expiration>{}</Expiration></Credentials></CreateSessionResult>",
        session.secret,
        session.access_key,
        rfc3339(session.ends_us)
    );
    state.sessions.table().open(now, token, session);
    let len = text.len();
    let mut answer = Response::new(ResponseBody::whole(text));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer.headers_mut().insert(CONTENT_LENGTH, len.into());
    answer
}

/// The characters that aren't encoded in a signed query.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The parsed `Authorization` header.
///
/// Verifies requests that are signed for a service other than `s3`, which `s3s` doesn't verify
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignatureHeader<'a> {
    pub(super) access_key: &'a str,
    /// The credential scope: `DATE/REGION/SERVICE/aws4_request`.
    scope: &'a str,
    headers: Vec<&'a str>,
    signature: &'a str,
}

impl<'a> SignatureHeader<'a> {
    /// Parses the header. Returns `None` for a request without a signature, or with another kind of signature.
    pub(super) fn of(head: &'a Parts) -> Option<SignatureHeader<'a>> {
        let header = head.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("AWS4-HMAC-SHA256")?;
        let field = |name: &str| {
            header.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='))
        };
        let (access_key, scope) = field("Credential")?.split_once('/')?;
        let headers = field("SignedHeaders")?.split(';').collect();
        Some(SignatureHeader { access_key, scope, headers, signature: field("Signature")? })
    }

    /// Returns the service for which the request is signed.
    pub(super) fn service(&self) -> &'a str {
        self.scope.rsplit('/').nth(1).unwrap_or_default()
    }

    /// Returns true if the signature was made with this secret.
    fn is_by(&self, secret: &str, head: &Parts) -> bool {
        let Some(request) = self.canonical(head) else { return false };
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let hash = hex(digest(&SHA256, request.as_bytes()).as_ref());
        let signed = format!("AWS4-HMAC-SHA256\n{}\n{}\n{hash}", text("x-amz-date"), self.scope);
        let key = self
            .scope
            .split('/')
            .fold(format!("AWS4{secret}").into_bytes(), |key, part| signature_mac(&key, part));
        hex(&signature_mac(&key, &signed)) == self.signature
    }

    fn canonical(&self, head: &Parts) -> Option<String> {
        let mut request =
            format!("{}\n{}\n{}\n", head.method, head.uri.path(), canonical_query(head.uri.query()));
        for name in &self.headers {
            let value = match head.headers.get(*name) {
                Some(value) => value.to_str().ok()?.split_whitespace().collect::<Vec<_>>().join(" "),
                None if *name == HOST => head.uri.authority()?.to_string(),
                None => return None,
            };
            request.push_str(&format!("{name}:{value}\n"));
        }
        let payload = head.headers.get("x-amz-content-sha256")?.to_str().ok()?;
        Some(format!("{request}\n{}\n{payload}", self.headers.join(";")))
    }
}

/// Returns the query's parameters in their canonical order and encoding.
fn canonical_query(text: Option<&str>) -> String {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let encoded = |text: &str| percent_encoding::percent_encode(&decoded(text), UNRESERVED).to_string();
    let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<String> = pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            format!("{}={}", encoded(name), encoded(value))
        })
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

fn signature_mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(table: &mut SessionTable, now_us: u64, token: &str) {
        let session = DirectorySession {
            bucket: "b--x-s3".to_owned(),
            access_key: "key".to_owned(),
            secret: "secret".to_owned(),
            ends_us: now_us + LASTS_US,
        };
        table.open(now_us, token.to_owned(), session);
    }

    #[test]
    fn a_session_ends_is_told_from_one_that_never_was_and_is_forgotten() {
        let mut table = SessionTable::default();
        open(&mut table, 0, "first");
        let code = |table: &SessionTable, now_us, bucket, key| {
            table.secret(now_us, "first", bucket, key).map_err(|(_, code, _)| code)
        };
        assert_eq!(code(&table, LASTS_US - 1, "b--x-s3", "key"), Ok("secret".to_owned()));
        assert_eq!(code(&table, 0, "other--x-s3", "key"), Err("InvalidToken"));
        assert_eq!(code(&table, 0, "b--x-s3", "other"), Err("InvalidToken"));
        assert_eq!(code(&table, LASTS_US, "b--x-s3", "key"), Err("ExpiredToken"));
        open(&mut table, 2 * LASTS_US - 1, "second");
        assert_eq!(code(&table, 2 * LASTS_US - 1, "b--x-s3", "key"), Err("ExpiredToken"));
        open(&mut table, 2 * LASTS_US, "third");
        assert_eq!(code(&table, 2 * LASTS_US, "b--x-s3", "key"), Err("InvalidToken"));
    }

    #[test]
    fn however_long_sessions_are_opened_only_those_of_two_lifetimes_are_kept() {
        let mut table = SessionTable::default();
        for second in 0..10_000 {
            open(&mut table, second * 1_000_000, &second.to_string());
        }
        assert_eq!((table.opened, table.sessions.len()), (10_000, 600));
    }

    /// The example in S3's own documentation: a GET with a range.
    #[test]
    fn amazons_own_example_is_verified() {
        let (mut head, ()) = http::Request::builder()
            .uri("/test.txt")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("range", "bytes=0-9")
            .header(
                "x-amz-content-sha256",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            )
            .header("x-amz-date", "20130524T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
                 SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
                 Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            )
            .body(())
            .unwrap()
            .into_parts();
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let signed = SignatureHeader::of(&head).unwrap();
        assert_eq!((signed.access_key, signed.service()), ("AKIAIOSFODNN7EXAMPLE", "s3"));
        assert!(signed.is_by(secret, &head));
        assert!(!signed.is_by("another", &head));
        head.headers.insert("range", "bytes=0-8".parse().unwrap());
        assert!(!SignatureHeader::of(&head).unwrap().is_by(secret, &head));
    }

    #[test]
    fn queries_are_sorted_and_encoded() {
        assert_eq!(canonical_query(Some("b=%7e+&a&c=/")), "a=&b=~%2B&c=%2F");
        assert_eq!(canonical_query(None), "");
    }
}
