//! Sessions of directory buckets: opened with the caller's own credentials, and signing everything else but copies.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use super::directory::is_directory;
use super::error_document;
use super::signature::Signed;
use crate::body::ResponseBody;
use crate::gcs::rfc3339;
use crate::objects::now_us;
use crate::query::Query;
use crate::service::Shared;

/// How long a session lasts, as at S3.
const LASTS_US: u64 = 300_000_000;

/// The header of a session's token.
const TOKEN: &str = "x-amz-s3session-token";

/// The sessions that were opened, by their tokens.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Session>>);

#[derive(Debug, Clone)]
struct Session {
    bucket: String,
    access_key: String,
    secret: String,
    ends_us: u64,
}

impl Sessions {
    /// How many were opened.
    pub(crate) fn opened(&self) -> usize {
        self.map().len()
    }

    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at who signed a request for a directory bucket, and answers one for a session. What goes on has lost its
/// signature, which `s3s` couldn't verify.
pub(super) fn admit(shared: &Shared, head: &mut Parts, bucket: &str) -> Option<Response<ResponseBody>> {
    if !is_directory(bucket) {
        return None;
    }
    let query = Query::parse(head.uri.query());
    let opens = head.method == Method::GET && query.has("session");
    let refusal = match Signed::of(head) {
        // It is a demo store: none is demanded, but for what makes no sense without.
        None if !opens => None,
        None => Some((StatusCode::FORBIDDEN, "AccessDenied", "A session is opened by who signs.")),
        Some(signed) => check(shared, head, bucket, &signed, opens).err(),
    };
    if let Some((status, code, message)) = refusal {
        return Some(error_document(status, code, message));
    }
    if opens {
        return Some(open(shared, bucket));
    }
    for name in [AUTHORIZATION.as_str(), TOKEN, "x-amz-security-token", "x-amz-content-sha256", "x-amz-date"]
    {
        head.headers.remove(name);
    }
    None
}

/// Status, code and message of what is refused.
type Refusal = (StatusCode, &'static str, &'static str);

fn check(
    shared: &Shared,
    head: &Parts,
    bucket: &str,
    signed: &Signed<'_>,
    opens: bool,
) -> Result<(), Refusal> {
    if signed.service() != "s3express" {
        let message = "The authorization header is malformed; the service is wrong; expecting 's3express'";
        return Err((StatusCode::BAD_REQUEST, "AuthorizationHeaderMalformed", message));
    }
    let is_about_bucket = head.method == Method::HEAD && !head.uri.path().trim_matches('/').contains('/');
    let takes_own = opens || is_about_bucket || head.headers.contains_key("x-amz-copy-source");
    let config = &shared.s3_config;
    let secret = match head.headers.get(TOKEN).map(|token| token.to_str().unwrap_or_default()) {
        Some(_) if takes_own => {
            let message = "This operation takes the caller's own credentials and no session's.";
            return Err((StatusCode::FORBIDDEN, "AccessDenied", message));
        }
        None if !takes_own => {
            let message = "Access to a directory bucket takes a session.";
            return Err((StatusCode::FORBIDDEN, "AccessDenied", message));
        }
        Some(token) => {
            let session = shared.directory_sessions.map().get(token).cloned();
            match session
                .filter(|session| session.bucket == bucket && session.access_key == signed.access_key)
            {
                Some(session) if session.ends_us > now_us() => session.secret,
                Some(_) => {
                    let message = "The provided token has expired.";
                    return Err((StatusCode::BAD_REQUEST, "ExpiredToken", message));
                }
                None => {
                    let message = "The provided token is malformed or otherwise invalid.";
                    return Err((StatusCode::BAD_REQUEST, "InvalidToken", message));
                }
            }
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

fn open(shared: &Shared, bucket: &str) -> Response<ResponseBody> {
    if shared.objects.bucket(bucket).is_err() {
        let message = "The specified bucket does not exist";
        return error_document(StatusCode::NOT_FOUND, "NoSuchBucket", message);
    }
    let random = || shared.objects.unguessable_id();
    let session = Session {
        bucket: bucket.to_owned(),
        access_key: random(),
        secret: random(),
        ends_us: now_us() + LASTS_US,
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
    shared.directory_sessions.map().insert(token, session);
    let len = text.len();
    let mut answer = Response::new(ResponseBody::whole(text));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer.headers_mut().insert(CONTENT_LENGTH, len.into());
    answer
}
