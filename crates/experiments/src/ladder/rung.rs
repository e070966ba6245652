//! The methods, from the slowest one to Laneway.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method};
use laneway::{CopyRequest, Event, Location, Outcome, Provider};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::work::Work;
use crate::Failure;
use crate::rival::{Error, Protocol, Rival, Tally, all};
use crate::turns::Rung;

/// A method to upload many small files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Way {
    /// A resumable upload for each file, one after another, with both requests on new connections.
    Resumable,
    /// One request for each file on a new connection, one after another.
    Single,
    /// One request for each file on one kept-alive connection, one after another.
    KeepAlive,
    /// One request for each file, all at once, each on a new HTTP/1.1 connection.
    Concurrent,
    /// One request for each file, all at once on one HTTP/2 connection.
    Http2,
    /// Laneway's library.
    Laneway,
}

/// All methods, from the slowest to the fastest.
pub(super) const RUNGS: [Rung<Way>; 6] = [
    rung(Way::Resumable, "resumable", "resumable uploads, each request on a new connection"),
    rung(Way::Single, "single", "one request for each file, on a new connection"),
    rung(Way::KeepAlive, "keepalive", "one kept-alive connection"),
    rung(Way::Concurrent, "concurrent", "all files at once, each on a new connection"),
    rung(Way::Http2, "http2", "all files at once on one HTTP/2 connection"),
    rung(Way::Laneway, "laneway", "Laneway"),
];

/// The number of methods at the start of [`RUNGS`] that upload one file after another, each on a new connection.
pub(super) const ONE_BY_ONE: usize = 2;

const fn rung(method: Way, name: &'static str, description: &'static str) -> Rung<Way> {
    Rung { method, name, description, group: "" }
}

impl Way {
    /// Uploads all files. No connection is open at the start, and none is kept open at the end.
    pub(super) async fn upload(self, work: &Work) -> Result<Tally, Failure> {
        match self {
            Self::Resumable => resumable(work).await,
            Self::Single => single(work).await,
            Self::KeepAlive => keepalive(work).await,
            Self::Concurrent => concurrent(work).await,
            Self::Http2 => http2(work).await,
            Self::Laneway => by_laneway(work).await,
        }
    }
}

/// Makes a resumable upload for each file, one file after another, with both requests on new connections. Google's Ruby
/// gem does this.
pub(super) async fn resumable(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    for name in work.files.names() {
        let session = begin_resumable(work, &rival, name).await?;
        let content = work.files.read(name)?;
        // `session` is only a path and query. Use the endpoint's address, which is known to work. The session
        // URL of an emulator may contain a different address.
        let request = work.site.request(Method::PUT, &session, content)?;
        rival.connect_h1().await?.send(request).await?.succeeded()?;
    }
    Ok(rival.tally())
}

/// Begins a session and returns its path and query.
async fn begin_resumable(work: &Work, rival: &Rival, name: &str) -> Result<String, Failure> {
    let key = work.key(name);
    let key = utf8_percent_encode(&key, NON_ALPHANUMERIC);
    let target = format!("{}&name={key}", work.site.upload_target("resumable"));
    let mut request = work.site.request(Method::POST, &target, Bytes::from_static(b"{}"))?;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=UTF-8"));
    headers.insert("x-upload-content-type", HeaderValue::from_static("application/octet-stream"));
    headers.insert("x-upload-content-length", work.files.size().into());
    let answer = rival.connect_h1().await?.send(request).await?.succeeded()?;
    let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.and_then(|url| url.parse::<http::Uri>().ok()).ok_or(Error::NoSession)?;
    Ok(location.path_and_query().map_or("/", |target| target.as_str()).to_owned())
}

/// Sends one request for each file on a new connection, one after another.
pub(super) async fn single(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    for name in work.files.names() {
        let request = work.upload_request(name)?;
        rival.connect_h1().await?.send(request).await?.succeeded()?;
    }
    Ok(rival.tally())
}

/// Sends one request for each file on one kept-alive connection, one after another.
async fn keepalive(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    for name in work.files.names() {
        // Many servers close a connection after some number of requests. Then open a new connection, as any client with
        // keep-alive does.
        if !connection.is_usable().await {
            connection = rival.connect_h1().await?;
        }
        connection.send(work.upload_request(name)?).await?.succeeded()?;
    }
    Ok(rival.tally())
}

/// Sends one request for each file, all at once, each on a new HTTP/1.1 connection.
pub(super) async fn concurrent(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    let mut uploads = JoinSet::new();
    for name in work.files.names() {
        let (rival, request) = (rival.clone(), work.upload_request(name)?);
        uploads.spawn(async move { rival.connect_h1().await?.send(request).await?.succeeded() });
    }
    all(uploads).await?;
    Ok(rival.tally())
}

/// Sends one request for each file, all at once on one HTTP/2 connection. The connection queues requests above the
/// server's stream limit.
pub(super) async fn http2(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H2);
    let connection = rival.connect_h2().await?;
    let mut uploads = JoinSet::new();
    for name in work.files.names() {
        let (mut connection, request) = (connection.clone(), work.upload_request(name)?);
        uploads.spawn(async move { connection.send(request).await?.succeeded() });
    }
    all(uploads).await?;
    Ok(rival.tally())
}

/// Uploads the folder with Laneway's library, as a program that has just started does. The measured time covers
/// creating the client and copying the folder. This method calls the library in this process, and doesn't start the
/// program `laneway`. The rivals here don't start a process either, so a process start would count against Laneway
/// alone. Installed programs are compared with the program `laneway`.
async fn by_laneway(work: &Work) -> Result<Tally, Failure> {
    let client = work.site.laneway(None)?;
    let folder = Location::from(work.files.folder());
    // A destination without a final slash is the new name of the folder.
    let destination =
        Location::object(Provider::Gcs, work.site.bucket.clone(), work.prefix.trim_end_matches('/'));
    let mut job = client.copy(CopyRequest::new(vec![folder], destination).recursive(true));
    let mut failure = None;
    while let Some(event) = job.next().await {
        match event {
            Event::Item(item) => {
                if let Outcome::Failed(error) = item.outcome {
                    failure = failure.or(Some(error));
                }
            }
            Event::Done(summary) => {
                return match failure {
                    Some(error) => Err(error.into()),
                    None => Ok(Tally { requests: summary.requests, connections: summary.connections }),
                };
            }
            _ => {}
        }
    }
    Err(Failure::Unfinished)
}
