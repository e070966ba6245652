//! Resumable uploads. A client begins a session, sends chunks in order, and can ask for the session's state.
//!
//! If a chunk is interrupted, the bytes that have arrived are kept, as in GCS. The client asks for the state and
//! continues from there.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::{Deserialize, Serialize};

use super::answer::{ApiError, ApiResult, empty};
use super::upload::{ExpectedChecksums, check_bucket, options, stored};
use super::{JsonCall, check_name, conditions, describe, encryption};
use crate::body::ResponseBody;
use crate::objects::content::DataFile;
use crate::objects::precondition::Precondition;
use crate::objects::uploads::{LoadedSession, SessionRecord};
use crate::objects::writer::ContentWriter;
use crate::objects::{Attributes, NewObject, Object, Objects};

/// The length of every chunk but the last must be a multiple of this.
const CHUNK_BYTES: u64 = 256 << 10;
/// The maximum number of sessions. When it is reached, finished sessions are forgotten, and requests to them return 404
/// instead of the object. If all sessions are open, no new session can begin.
const SESSIONS_MAX: usize = 10_000;
/// The status 308, which GCS calls "Resume Incomplete".
const INCOMPLETE: StatusCode = StatusCode::PERMANENT_REDIRECT;

/// The sessions of a server. With a store on disk, they survive a restart.
pub(crate) struct ResumableSessions {
    map: Mutex<HashMap<String, Arc<ResumableSession>>>,
    objects: Arc<Objects>,
}

#[derive(Serialize, Deserialize)]
struct ResumableSession {
    bucket: String,
    key: String,
    attributes: Attributes,
    precondition: Precondition,
    expected: ExpectedChecksums,
    /// Locked while a chunk is received. A second request with the same chunk waits, and then the session already has
    /// its bytes.
    #[serde(skip)]
    state: tokio::sync::Mutex<SessionState>,
}

#[derive(Default)]
enum SessionState {
    Open {
        writer: Box<ContentWriter>,
        total: Option<u64>,
    },
    /// A session from an earlier run of the server. Before it continues, its bytes are read once to compute their
    /// checksums.
    Left {
        data: Arc<DataFile>,
        total: Option<u64>,
    },
    Done(Arc<Object>),
    #[default]
    Failed,
}

/// The JSON form in which a session is saved.
#[derive(Serialize)]
struct SessionSnapshot<'a> {
    session: &'a ResumableSession,
    total: Option<u64>,
    done: Option<&'a Object>,
}

#[derive(Deserialize)]
struct LoadedSnapshot {
    session: ResumableSession,
    total: Option<u64>,
    done: Option<Object>,
}

impl ResumableSessions {
    /// Returns the sessions of a store, including those of an earlier run.
    ///
    /// # Errors
    /// Fails if a session of an earlier run can't be read.
    pub(crate) fn of(objects: &Arc<Objects>) -> io::Result<Self> {
        let left = objects.sessions.take_left().into_iter();
        let map = left.map(|left| Ok((left.id.clone(), Arc::new(ResumableSession::left(objects, left)?))));
        Ok(Self { map: Mutex::new(map.collect::<io::Result<_>>()?), objects: objects.clone() })
    }

    /// Returns the number of sessions that are neither finished nor cancelled.
    pub(crate) fn open(&self) -> usize {
        self.map().values().filter(|session| session.is_open()).count()
    }

    /// Returns the ids of a bucket's open sessions that aren't receiving a chunk now, each with the number of bytes it
    /// has.
    pub(crate) fn open_in(&self, bucket: &str) -> Vec<(String, u64)> {
        let size = |session: &ResumableSession| match &*session.state.try_lock().ok()? {
            SessionState::Open { writer, .. } => Some(writer.size()),
            SessionState::Left { data, .. } => Some(data.size()),
            SessionState::Done(_) | SessionState::Failed => None,
        };
        let map = self.map();
        let of_bucket = map.iter().filter(|(_, session)| session.bucket == bucket);
        of_bucket.filter_map(|(id, session)| Some((id.clone(), size(session)?))).collect()
    }

    fn insert(&self, id: String, session: ResumableSession) -> Result<(), ApiError> {
        let mut map = self.map();
        if map.len() >= SESSIONS_MAX {
            map.retain(|id, session| {
                let is_open = session.is_open();
                if !is_open {
                    self.objects.sessions.end(id);
                }
                is_open
            });
        }
        if map.len() >= SESSIONS_MAX {
            self.objects.sessions.end(&id);
            return Err(ApiError::too_many_uploads());
        }
        map.insert(id, Arc::new(session));
        Ok(())
    }

    /// Forgets all sessions.
    pub(crate) fn clear(&self) {
        let ids: Vec<String> = self.map().keys().cloned().collect();
        for id in ids {
            self.remove(&id);
        }
    }

    fn remove(&self, id: &str) -> Option<Arc<ResumableSession>> {
        let removed = self.map().remove(id)?;
        self.objects.sessions.end(id);
        Some(removed)
    }

    /// Saves an open session, if the store is on disk.
    fn keep(
        &self,
        id: &str,
        session: &ResumableSession,
        writer: &mut ContentWriter,
        total: Option<u64>,
    ) -> Result<(), ApiError> {
        let keep = |data: &DataFile| {
            let said = serde_json::to_value(SessionSnapshot { session, total, done: None })?;
            self.objects.sessions.keep(id, &SessionRecord { data: Some(data.name.clone()), said })
        };
        let kept = writer.data().and_then(|data| data.map_or(Ok(()), |data| keep(data)));
        kept.map_err(|error| ApiError::io(&error))
    }

    /// Saves the fact that a session has become an object. If that fails, the next start of the server finds the object
    /// and draws the same conclusion.
    fn keep_done(&self, id: &str, session: &ResumableSession, object: &Object) {
        let said = serde_json::to_value(SessionSnapshot { session, total: None, done: Some(object) });
        if let Ok(said) = said {
            let _ = self.objects.sessions.keep(id, &SessionRecord { data: None, said });
        }
    }

    fn map(&self) -> MutexGuard<'_, HashMap<String, Arc<ResumableSession>>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ResumableSessions {
    /// The bytes of open sessions stay on disk for the next run.
    fn drop(&mut self) {
        self.objects.close();
    }
}

impl ResumableSession {
    /// Returns true if the session is open. A session that is receiving a chunk counts as open.
    fn is_open(&self) -> bool {
        let is_open =
            |state: &SessionState| matches!(state, SessionState::Open { .. } | SessionState::Left { .. });
        self.state.try_lock().map_or(true, |state| is_open(&state))
    }

    fn left(objects: &Objects, left: LoadedSession) -> io::Result<Self> {
        let LoadedSnapshot { mut session, total, done } = serde_json::from_value(left.said)?;
        // If the server was killed while it finished the session, it may have created the object but not recorded the
        // session's end.
        let made = |data: &Arc<DataFile>| {
            let object = objects.find(&session.bucket, &session.key).ok();
            object.filter(|object| object.content.is_in(data)).map(|object| without_content(&object))
        };
        let state = match (done, left.data) {
            (Some(done), _) => SessionState::Done(Arc::new(done)),
            (None, Some(data)) => made(&data).map_or(SessionState::Left { data, total }, SessionState::Done),
            (None, None) => SessionState::Failed,
        };
        *session.state.get_mut() = state;
        Ok(session)
    }
}

/// Returns an object's metadata without its content. Otherwise a finished session would keep the bytes of an object
/// that has been deleted since.
fn without_content(object: &Object) -> Arc<Object> {
    Arc::new(Object { content: Default::default(), ..Object::clone(object) })
}

pub(super) async fn begin(mut call: JsonCall<'_>) -> ApiResult {
    check_bucket(&call)?;
    let metadata = call.json_body().await?;
    let key = metadata["name"].as_str().or(call.query.value("name"));
    let key = key.ok_or_else(|| ApiError::required("Required parameter: name"))?.to_owned();
    check_name(&key)?;
    let header = |name: &str| call.head.headers.get(name).and_then(|value| value.to_str().ok());
    let mut attributes = Attributes {
        content_type: header("x-upload-content-type").map(str::to_owned),
        options: options(&call)?,
        ..Default::default()
    };
    describe(&call, &mut attributes, &metadata)?;
    let total = conditions::number("X-Upload-Content-Length", header("x-upload-content-length"))?;
    let expected = ExpectedChecksums::in_headers(&call.head.headers)?.and_metadata(&metadata)?;
    let precondition = conditions::in_query(&call.query)?;
    // GCS checks the condition when the session begins and when it ends.
    let present = call.state.objects.find(call.bucket, &key).ok();
    precondition.check(present.as_deref()).map_err(|failed| {
        ApiError::refused(crate::objects::StoreError::Precondition(failed), call.bucket, &key)
    })?;
    let mut writer = Box::new(call.state.objects.writer(expected.wanted(&call.state.config), total));
    let mut session = ResumableSession {
        bucket: call.bucket.to_owned(),
        key,
        attributes,
        precondition,
        expected,
        state: Default::default(),
    };
    let id = call.state.objects.unguessable_id();
    call.state.sessions.keep(&id, &session, &mut writer, total)?;
    *session.state.get_mut() = SessionState::Open { writer, total };
    let url = format!(
        "{}/upload/storage/v1/b/{}/o?uploadType=resumable&upload_id={id}",
        call.base_url(),
        call.bucket
    );
    call.state.sessions.insert(id.clone(), session)?;
    let mut answer = empty(StatusCode::OK);
    if let Ok(url) = HeaderValue::try_from(url) {
        answer.headers_mut().insert(LOCATION, url);
    }
    if let Ok(id) = HeaderValue::try_from(id) {
        answer.headers_mut().insert("x-guploader-uploadid", id);
    }
    Ok(answer)
}

pub(super) async fn append(mut call: JsonCall<'_>) -> ApiResult {
    let (id, session) = find(&call)?;
    let range = ChunkRange::of(&call.head.headers)?;
    let mut state = session.state.lock().await;
    reopen(&call, &session, &mut state).await?;
    let (writer, total) = match &mut *state {
        SessionState::Open { writer, total } => (writer, total),
        SessionState::Left { .. } => {
            return Err(ApiError::gone("The upload session can't be continued yet."));
        }
        SessionState::Done(object) => return Ok(stored(&call, object)),
        SessionState::Failed => {
            return Err(ApiError::gone("The upload session has failed and can't be continued."));
        }
    };
    if let Some(announced) = range.total {
        if total.is_some_and(|known| known != announced) {
            return Err(ApiError::invalid("The total size differs from what was announced before."));
        }
        if total.is_none() {
            call.state.sessions.keep(&id, &session, writer, range.total)?;
        }
        *total = Some(announced);
    }
    if let Some(first) = range.first {
        encryption::admit_to(encryption::sent(&call.head.headers)?.as_ref(), &session.attributes.options)?;
        if first > writer.size() {
            // The chunk begins after the last received byte, so bytes in between are missing. The answer states the
            // offset at which to continue.
            return Ok(incomplete(writer.size(), &call.head.headers));
        }
        // Skip the bytes of this chunk that the session already has.
        let mut surplus = writer.size() - first;
        let mut received = 0;
        while let Some(bytes) = call.body.next().await {
            let bytes = bytes.map_err(ApiError::interrupted)?;
            received += bytes.len() as u64;
            let skipped = surplus.min(bytes.len() as u64);
            surplus -= skipped;
            if total.is_some_and(|total| first + received > total) {
                return Err(ApiError::invalid("More bytes came than the total size announces."));
            }
            writer.write(&bytes[skipped as usize..]).map_err(|error| ApiError::io(&error))?;
        }
        let announced = range.last.map(|last| last + 1 - first);
        if announced.is_some_and(|announced| announced != received) {
            return Err(ApiError::invalid("The body's length differs from its Content-Range."));
        }
        if range.last.is_none() && total.is_none() {
            // A request without Content-Range has the whole object.
            *total = Some(first + received);
        } else if total.is_none_or(|total| first + received < total) && received % CHUNK_BYTES != 0 {
            return Err(ApiError::invalid("All chunks but the last must be multiples of 256 KiB."));
        }
    }
    if *total != Some(writer.size()) {
        return Ok(incomplete(writer.size(), &call.head.headers));
    }
    let SessionState::Open { writer, .. } = std::mem::replace(&mut *state, SessionState::Failed) else {
        return Err(ApiError::gone("The upload session has failed and can't be continued."));
    };
    let object = match finish(&call, &session, *writer) {
        Ok(object) => object,
        Err(problem) => {
            call.state.objects.sessions.end(&id);
            return Err(problem);
        }
    };
    call.state.sessions.keep_done(&id, &session, &object);
    *state = SessionState::Done(without_content(&object));
    Ok(stored(&call, &object))
}

/// Opens a session of an earlier run again. The session may have many bytes, so another thread reads them.
async fn reopen(
    call: &JsonCall<'_>,
    session: &ResumableSession,
    state: &mut SessionState,
) -> Result<(), ApiError> {
    let SessionState::Left { data, total } = state else { return Ok(()) };
    let (objects, data, total) = (call.state.objects.clone(), data.clone(), *total);
    let wanted = session.expected.wanted(&call.state.config);
    let reading = tokio::task::spawn_blocking(move || objects.writer_after(wanted, data));
    let writer = reading.await.map_err(io::Error::other).flatten().map_err(|error| ApiError::io(&error))?;
    *state = SessionState::Open { writer: Box::new(writer), total };
    Ok(())
}

/// Makes an object from the received bytes.
fn finish(
    call: &JsonCall<'_>,
    session: &ResumableSession,
    writer: ContentWriter,
) -> Result<Arc<Object>, ApiError> {
    let written = writer.finish();
    session.expected.check(&written.sums)?;
    let attributes = final_attributes(session, &call.head.headers);
    let new = NewObject { attributes, ..Default::default() };
    let objects = &call.state.objects;
    objects
        .commit(&session.bucket, &session.key, written, new, &session.precondition)
        .map_err(|refused| ApiError::refused(refused, &session.bucket, &session.key))
}

pub(super) fn cancel(call: &JsonCall<'_>) -> ApiResult {
    let id = call.query.value("upload_id").unwrap_or_default();
    match call.state.sessions.remove(id) {
        // GCS answers the cancellation of a session with 499 ("Client Closed Request").
        Some(_) => Ok(empty(StatusCode::from_u16(499).unwrap_or(StatusCode::OK))),
        None => Err(ApiError::not_found("No such upload session.")),
    }
}

fn find(call: &JsonCall<'_>) -> Result<(String, Arc<ResumableSession>), ApiError> {
    let id =
        call.query.value("upload_id").ok_or_else(|| ApiError::required("Required parameter: upload_id"))?;
    let session = call.state.sessions.map().get(id).cloned();
    session
        .filter(|session| session.bucket == call.bucket)
        .map(|session| (id.to_owned(), session))
        .ok_or_else(|| ApiError::not_found("No such upload session."))
}

fn final_attributes(session: &ResumableSession, headers: &HeaderMap) -> Attributes {
    let mut attributes = session.attributes.clone();
    if attributes.content_type.is_none() {
        let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        attributes.content_type = sent.map(str::to_owned);
    }
    attributes
}

/// Returns 308 with the received range. The HTTP libraries of some clients would follow a 308 as a redirect. These
/// clients send `X-GUploader-No-308`, and get a 200 with a header that stands for 308.
fn incomplete(persisted: u64, headers: &HeaderMap) -> Response<ResponseBody> {
    let disguised = headers.get("x-guploader-no-308").is_some_and(|value| value == "yes");
    let mut answer = empty(if disguised { StatusCode::OK } else { INCOMPLETE });
    if disguised {
        answer.headers_mut().insert("x-http-status-code-override", HeaderValue::from_static("308"));
    }
    if persisted > 0
        && let Ok(range) = HeaderValue::try_from(format!("bytes=0-{}", persisted - 1))
    {
        answer.headers_mut().insert(RANGE, range);
    }
    answer
}

/// The `Content-Range` of a chunk: `bytes 0-99/100`, `bytes 0-99/*`, `bytes */100`, `bytes */*`, or none.
#[derive(Debug, PartialEq, Eq)]
struct ChunkRange {
    /// The offset of the chunk's first byte. `None` means that the request only asks for the session's state.
    first: Option<u64>,
    last: Option<u64>,
    total: Option<u64>,
}

impl ChunkRange {
    fn of(headers: &HeaderMap) -> Result<ChunkRange, ApiError> {
        let Some(value) = headers.get(CONTENT_RANGE) else {
            return Ok(ChunkRange { first: Some(0), last: None, total: None });
        };
        let text = value.to_str().unwrap_or_default();
        let mut range = ChunkRange::parse(text)
            .ok_or_else(|| ApiError::invalid(format!("Invalid Content-Range: '{text}'")))?;
        // Before any bytes have arrived, `bytes */0` does more than ask for the state: it uploads an empty object.
        if range.first.is_none() && range.total == Some(0) && headers.contains_key(CONTENT_LENGTH) {
            range.first = Some(0);
        }
        Ok(range)
    }

    fn parse(text: &str) -> Option<ChunkRange> {
        let (range, total) = text.strip_prefix("bytes")?.trim_start().split_once('/')?;
        let total = match total {
            "*" => None,
            total => Some(total.parse().ok()?),
        };
        if range == "*" {
            return Some(ChunkRange { first: None, last: None, total });
        }
        let (first, last) = range.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let fits = first <= last && total.is_none_or(|total| last < total);
        fits.then_some(ChunkRange { first: Some(first), last: Some(last), total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read() {
        let range = |first, last, total| Some(ChunkRange { first, last, total });
        assert_eq!(ChunkRange::parse("bytes 0-99/100"), range(Some(0), Some(99), Some(100)));
        assert_eq!(ChunkRange::parse("bytes 0-99/*"), range(Some(0), Some(99), None));
        assert_eq!(ChunkRange::parse("bytes */100"), range(None, None, Some(100)));
        assert_eq!(ChunkRange::parse("bytes */*"), range(None, None, None));
        for wrong in ["", "bytes 5-4/9", "bytes 0-9/9", "bytes 0-9", "items 0-9/10", "bytes -9/10"] {
            assert_eq!(ChunkRange::parse(wrong), None, "{wrong}");
        }
    }
}
