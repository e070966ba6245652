//! Sessions of directory buckets. The caller's own credentials open a session. The session's credentials sign all other
//! requests except copies.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use super::directory::is_directory;
use super::error_document;
use super::refusals::Refusal;
use super::signature::SignatureHeader;
use crate::body::ResponseBody;
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
}
