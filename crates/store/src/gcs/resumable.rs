//! Resumable sessions: uploads as one stream of bytes, which can be resumed after a failure and can carry
//! preconditions.

use bytes::Bytes;
use http::{Method, StatusCode};
use laneway_lanes::{Body, Origin, ResponseHead};

use super::Gcs;
use super::get::read_resource;
use super::put::{OCTETS, upload_query};
use super::resource::NewObjectResource;
use crate::encode::component;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, ExchangeResponse, OffsetQuery, Outgoing};
use crate::{Appended, Checksums, Error, ErrorKind, ObjectId, Operation, PutOptions, Resumable};

/// The status with which GCS answers a successful cancellation of a session.
const CANCELLED: u16 = 499;

fn begin_request(
    id: &ObjectId,
    len: Option<u64>,
    options: &PutOptions,
    sums: Option<&Checksums>,
    kms_key: Option<&str>,
) -> Result<Outgoing, String> {
    let query = upload_query("resumable", id, options, kms_key)?;
    let content_type = options.content_type.as_deref().unwrap_or(OCTETS);
    let mut resource = NewObjectResource::new(options, sums);
    resource.content_type = Some(content_type);
    let target = format!("/upload/storage/v1/b/{}/o{query}", component(&id.bucket));
    let mut outgoing = Outgoing::new(Method::POST, target)
        .key_use(KeyUse::New)
        .header("content-type", "application/json; charset=UTF-8")
        .and_then(|outgoing| outgoing.header("x-upload-content-type", content_type))
        .and_then(|outgoing| {
            outgoing.header_some("x-upload-content-length", len.map(|l| l.to_string()).as_deref())
        })
        .map_err(|e| e.to_string())?;
    outgoing.body = Body::from(Bytes::from(resource.to_json()));
    Ok(outgoing)
}

/// Returns the `Content-Range` of bytes appended at `offset`. Without bytes, the header asks for the session's state,
/// or ends the session if `total` bytes have arrived.
fn content_range(offset: u64, len: u64, total: Option<u64>) -> String {
    let total = total.map_or("*".to_owned(), |total| total.to_string());
    if len == 0 { format!("bytes */{total}") } else { format!("bytes {offset}-{}/{total}", offset + len - 1) }
}

fn session_request(session: &Resumable, method: Method) -> Result<Outgoing, String> {
    let invalid = || "the session's URL isn't valid".to_owned();
    let uri: http::Uri = session.url.parse().map_err(|_| invalid())?;
    let target = uri.path_and_query().ok_or_else(invalid)?.as_str().to_owned();
    let mut outgoing = Outgoing::new(method, target);
    outgoing.origin = Some(Origin::parse(&session.url).map_err(|_| invalid())?);
    outgoing.also = Some(StatusCode::PERMANENT_REDIRECT);
    Ok(outgoing)
}

/// Returns a request for the state of a session. `total` is the size of the object, if known.
fn status_request(session: &Resumable, total: Option<u64>) -> Result<Outgoing, String> {
    let outgoing = session_request(session, Method::PUT)?;
    outgoing.header("content-range", &content_range(0, 0, total)).map_err(|e| e.to_string())
}

/// Returns the offset of the first byte that a session doesn't have yet, from the `Range: bytes=0-N` of a 308 answer.
/// Without a `Range`, the session has no bytes.
pub(super) fn next_offset(head: &ResponseHead) -> Option<u64> {
    match head.header("range") {
        None => Some(0),
        Some(range) => range.trim().strip_prefix("bytes=0-")?.parse::<u64>().ok()?.checked_add(1),
    }
}

impl Gcs {
    pub(crate) async fn session_begin(
        &self,
        id: &ObjectId,
        len: Option<u64>,
        options: &PutOptions,
        sums: Option<&Checksums>,
    ) -> Result<Resumable, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        let outgoing = begin_request(id, len, options, sums, self.kms_key.as_deref())
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let sent = exchange.send(&outgoing).await?;
        match sent.response.head.header("location") {
            Some(url) => Ok(Resumable { id: id.clone(), url: url.to_owned(), len }),
            None => Err(exchange.nonsense(&sent, "the answer doesn't contain the session's URL")),
        }
    }

    pub(crate) async fn session_append(
        &self,
        session: &Resumable,
        offset: u64,
        body: Body,
        last: bool,
    ) -> Result<Appended, Error> {
        let exchange = Exchange::object(self, Operation::Part, &session.id);
        let total = if last { Some(offset + body.len()) } else { session.len };
        let mut outgoing = session_request(session, Method::PUT)
            .and_then(|o| {
                o.header("content-range", &content_range(offset, body.len(), total))
                    .map_err(|e| e.to_string())
            })
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        outgoing.body = body;
        outgoing.key_use = KeyUse::Object;
        let question = status_request(session, total).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let wants_all = |head: &ResponseHead| {
            head.status == StatusCode::PERMANENT_REDIRECT && next_offset(head) == Some(offset)
        };
        let question = OffsetQuery { outgoing: &question, wants_all: &wants_all };
        match appended(&exchange, session, &exchange.send_asking(&outgoing, question).await?, total)? {
            // The answer said that the session is finished, but the object's description in its body couldn't be read.
            // Asking for the session's state may return the description.
            Appended::Ended => match self.stands(session, total).await {
                Err(error) if error.is_not_found() && last => Ok(Appended::Ended),
                stands => stands,
            },
            stands => Ok(stands),
        }
    }

    pub(crate) async fn session_status(&self, session: &Resumable) -> Result<Appended, Error> {
        self.stands(session, session.len).await
    }

    /// Returns the state of a session. `total` is the size of the object, if known.
    async fn stands(&self, session: &Resumable, total: Option<u64>) -> Result<Appended, Error> {
        let exchange = Exchange::object(self, Operation::Part, &session.id);
        let outgoing = status_request(session, total).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let sent = exchange.send(&outgoing).await?;
        appended(&exchange, session, &sent, total)
    }

    pub(crate) async fn session_cancel(&self, session: &Resumable) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Abort, &session.id);
        let mut outgoing =
            session_request(session, Method::DELETE).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        outgoing.also = StatusCode::from_u16(CANCELLED).ok();
        match exchange.send(&outgoing).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn appended(
    exchange: &Exchange<'_, Gcs>,
    session: &Resumable,
    sent: &ExchangeResponse,
    total: Option<u64>,
) -> Result<Appended, Error> {
    if sent.response.head.status == StatusCode::PERMANENT_REDIRECT {
        return match next_offset(&sent.response.head) {
            Some(next_offset) => Ok(Appended::Continue { next_offset }),
            None => Err(exchange.nonsense(sent, "the session's Range header is invalid")),
        };
    }
    // With a success status the object exists, even if the body that describes it can't be read.
    Ok(match read_resource(exchange, sent, &session.id, total.unwrap_or(0)) {
        Ok(meta) => Appended::Finished(Box::new(meta)),
        Err(error) => {
            tracing::debug!(%error, "an upload session has finished, but the description of its object can't be read");
            Appended::Ended
        }
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn a_session_begins_with_size_type_and_checksum() {
        let id = ObjectId::new("b", "k");
        let sums = Checksums::crc32c(0);
        let request =
            begin_request(&id, Some(9), &PutOptions::default(), Some(&sums), None).expect("a request");
        assert!(request.target.starts_with("/upload/storage/v1/b/b/o?uploadType=resumable&name=k&"));
        assert_eq!(request.headers["x-upload-content-length"], "9");
        assert_eq!(request.headers["x-upload-content-type"], OCTETS);
        assert!(!request.body.is_empty());
    }

    #[test]
    fn the_range_of_an_appended_chunk() {
        assert_eq!(content_range(0, 10, None), "bytes 0-9/*");
        assert_eq!(content_range(10, 5, Some(15)), "bytes 10-14/15");
        assert_eq!(content_range(15, 0, Some(15)), "bytes */15");
        assert_eq!(content_range(0, 0, None), "bytes */*");
    }

    #[test]
    fn a_session_tells_where_it_stands() {
        let head = |range: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(range) = range {
                headers.insert("range", HeaderValue::from_static(range));
            }
            ResponseHead { status: StatusCode::PERMANENT_REDIRECT, headers }
        };
        assert_eq!(next_offset(&head(None)), Some(0));
        assert_eq!(next_offset(&head(Some("bytes=0-99"))), Some(100));
        assert_eq!(next_offset(&head(Some("bytes=5-99"))), None);
    }

    #[test]
    fn a_session_is_reached_where_its_url_says() {
        let session = Resumable {
            id: ObjectId::new("b", "k"),
            url: "https://h:4443/u?upload_id=x%2Fy".into(),
            len: None,
        };
        let request = session_request(&session, Method::PUT).expect("a request");
        assert_eq!(request.target, "/u?upload_id=x%2Fy");
        assert_eq!(request.origin.map(|o| o.to_string()).as_deref(), Some("https://h:4443"));
    }
}
