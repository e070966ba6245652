//! The store that an experiment runs against, and the objects and buckets that it leaves there.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use laneway::{Event, ListRequest, Location, Outcome, Provider, RemoveRequest};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::rival::{Http1, Protocol, Rival};
use crate::site::Site;

/// The store of an experiment.
#[derive(Clone, Debug)]
pub enum Target {
    /// A store in this process, in memory, with TLS and HTTP/2.
    Embedded(Imitated),
    /// An external store.
    Remote(Remote),
}

impl Target {
    /// Returns the conditions that the embedded store simulates, or `None` for an external store.
    pub fn imitated(&self) -> Option<Imitated> {
        match self {
            Self::Embedded(imitated) => Some(*imitated),
            Self::Remote(_) => None,
        }
    }
}

/// The conditions that the embedded store simulates, and the API that clients use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Imitated {
    /// The round-trip time.
    pub rtt: Duration,
    /// Bytes per second that all connections share in each direction. `None` sets no limit.
    pub bandwidth: Option<u64>,
    /// Bytes that may wait in the queue before the link. `None` is the number of bytes that the link sends in a round
    /// trip.
    pub queue: Option<u64>,
    /// Share of packets that are lost at random, from 0 to 0.5.
    pub loss: f64,
    /// Maximum bytes per second that each connection receives and sends. `None` sets no limit.
    pub connection_bandwidth: Option<u64>,
    /// `true` offers no HTTP/2.
    pub h1_only: bool,
    /// The provider whose API is used.
    pub provider: Provider,
}

impl Imitated {
    /// Bytes of a segment in simulated slow start. It is the payload of an Ethernet frame, minus the headers of IP and
    /// TCP with TCP's timestamps.
    pub(crate) const SEGMENT: u32 = 1448;

    /// The default link, like that to a neighbouring region. Two cores can send several times its rate, including TLS
    /// on both ends, so the processor doesn't limit a run.
    pub const USUAL: Self = Self {
        rtt: Duration::from_millis(20),
        bandwidth: Some(125_000_000),
        queue: None,
        loss: 0.0,
        connection_bandwidth: None,
        h1_only: false,
        provider: Provider::Gcs,
    };

    /// Simulates GCS with this round trip, without a bandwidth limit.
    pub fn at(rtt: Duration) -> Self {
        Self { rtt, bandwidth: None, ..Self::USUAL }
    }
}

/// An external store. An experiment writes its objects under a unique prefix and removes them at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remote {
    /// The provider whose API the store speaks.
    pub provider: Provider,
    /// The store's base URL.
    pub endpoint: String,
    /// The bucket. With `None` (GCS only), the experiment uses a bucket with a fixed name. If the bucket doesn't exist,
    /// the experiment creates it, and removes it at the end.
    pub bucket: Option<String>,
    /// The prefix in the bucket, or empty for its root.
    pub prefix: String,
    /// The AWS region that requests are signed for.
    pub region: String,
    /// `true` sends no credentials. Otherwise requests to S3 are signed. Among GCS servers, only Google's own hosts
    /// receive the application default credentials. Any other TLS endpoint receives only the credentials in
    /// `GOOGLE_APPLICATION_CREDENTIALS`, and a plain-HTTP endpoint receives none.
    pub anonymous: bool,
    /// The round trip of a simulated path, or zero for a real path. It is needed because a simulated path doesn't delay
    /// TCP handshakes, so clients can't learn the round trip from them.
    pub imitated_rtt: Duration,
    /// PEM files of certificates to trust in addition to the platform's.
    pub ca_files: Vec<PathBuf>,
}

impl Remote {
    /// Google's own endpoint.
    pub const GOOGLE: &str = "https://storage.googleapis.com";
    /// The default region.
    pub const REGION: &str = "us-east-1";

    /// Describes a server with GCS's JSON API, on which a bucket will be created.
    pub fn gcs(endpoint: impl Into<String>) -> Self {
        Self {
            provider: Provider::Gcs,
            endpoint: endpoint.into(),
            bucket: None,
            prefix: String::new(),
            region: Self::REGION.to_owned(),
            anonymous: false,
            imitated_rtt: Duration::ZERO,
            ca_files: Vec::new(),
        }
    }
}

/// After a stop, requests in flight may still create objects, so the prefix is checked several times. The constants are
/// the maximum number of checks, the number of consecutive checks that must find nothing, and the time between two
/// checks.
const LOOKS_MAX: usize = 20;

const LOOKS_QUIET: usize = 3;

const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

/// Counts the objects under a prefix.
///
/// # Errors
/// Returns the store's error.
pub(crate) async fn count_objects(site: &Site, prefix: &str) -> Result<usize, Failure> {
    let client = site.laneway(None)?;
    let at = Location::object(site.provider, site.bucket.clone(), prefix);
    let mut listing = client.list(ListRequest::new(at).recursive(true));
    let mut count = 0;
    while let Some(entry) = listing.next().await {
        match entry {
            Ok(_) => count += 1,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(count)
}

/// Removes everything under a prefix with Laneway. This removal isn't measured, so it uses the fastest method.
///
/// # Errors
/// Returns the first failure. The other objects have been removed as far as possible.
pub(crate) async fn clear_objects(site: &Site, prefix: &str) -> Result<(), Failure> {
    let client = site.laneway(None)?;
    let targets = vec![Location::object(site.provider, site.bucket.clone(), prefix)];
    let mut job = client.remove(RemoveRequest::new(targets).recursive(true));
    let mut failure = None;
    while let Some(event) = job.next().await {
        if let Event::Item(item) = event
            && let Outcome::Failed(error) = item.outcome
            // A method that failed at its first request has left no objects, so it isn't an error to find none.
            && !error.is_not_found()
        {
            failure = failure.or(Some(error));
        }
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Removes everything under a prefix after work there was cancelled. Requests in flight may still create objects.
/// Multipart uploads of the `parted` keys may be unfinished, and a listing doesn't show them.
///
/// # Errors
/// Returns the errors of [`clear`].
pub(crate) async fn clear_after_a_stop(site: &Site, prefix: &str, parted: &[String]) -> Result<(), Failure> {
    clear_objects(site, prefix).await?;
    let mut quiet = 0;
    for _ in 0..LOOKS_MAX {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        quiet = if count_objects(site, prefix).await? == 0 { quiet + 1 } else { 0 };
        match quiet {
            0 => clear_objects(site, prefix).await?,
            LOOKS_QUIET => break,
            _ => {}
        }
    }
    if site.provider == Provider::S3 && !parted.is_empty() {
        let mut connection = Rival::new(site, Protocol::H1).connect_h1().await?;
        for key in parted {
            abandon_uploads(site, key, &mut connection).await?;
        }
    }
    Ok(())
}

/// Aborts the multipart uploads of a key. (MinIO lists them only by a whole key, not by a prefix.)
async fn abandon_uploads(site: &Site, key: &str, connection: &mut Http1) -> Result<(), Failure> {
    let listing = connection.send(site.uploads(key).await?).await?.succeeded()?;
    for (key, id) in uploads_in(&String::from_utf8_lossy(&listing.body)) {
        let answer = connection.send(site.abandon(key, id).await?).await?;
        // A missing upload isn't an error, because it may have been completed or aborted just before.
        if answer.status != StatusCode::NOT_FOUND {
            answer.succeeded()?;
        }
    }
    Ok(())
}

/// Extracts keys and ids from S3's listing of uploads. Doesn't unescape them, because keys of an experiment have no special characters.
fn uploads_in(listing: &str) -> Vec<(&str, &str)> {
    fn within<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
        text.split_once(open)?.1.split_once(close).map(|(inside, _)| inside)
    }
    let uploads = listing.split("<Upload>").skip(1);
    uploads
        .filter_map(|upload| {
            Some((within(upload, "<Key>", "</Key>")?, within(upload, "<UploadId>", "</UploadId>")?))
        })
        .collect()
}

/// Creates the site's bucket, and returns whether it is new.
///
/// # Errors
/// Returns the server's error.
pub(crate) async fn create_bucket(site: &Site) -> Result<bool, Failure> {
    let name = serde_json::json!({ "name": site.bucket }).to_string();
    let target = format!("{}?project=laneway-bench", site.buckets_target());
    let mut request = site.request(Method::POST, &target, name.into())?;
    let json = http::HeaderValue::from_static("application/json; charset=UTF-8");
    request.headers_mut().insert(http::header::CONTENT_TYPE, json);
    let answer = Rival::new(site, Protocol::H1).connect_h1().await?.send(request).await?;
    if answer.status == StatusCode::CONFLICT {
        return Ok(false);
    }
    answer.succeeded()?;
    Ok(true)
}

/// Removes the site's bucket, which must be empty.
///
/// # Errors
/// Returns the server's error.
pub(crate) async fn remove_bucket(site: &Site) -> Result<(), Failure> {
    let request = site.request(Method::DELETE, &site.bucket_target(), Bytes::new())?;
    Rival::new(site, Protocol::H1).connect_h1().await?.send(request).await?.succeeded()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Remote;

    #[test]
    fn after_a_stop_neither_objects_nor_begun_uploads_are_left() {
        let server = laneway_server::Server::start(laneway_server::Config::default()).unwrap();
        server.create_bucket("lake").unwrap();
        server.store().put("lake", "u/up/small", b"x").unwrap();
        server.store().put("lake", "another", b"x").unwrap();
        let remote = Remote { provider: Provider::S3, anonymous: true, ..Remote::gcs(server.url()) };
        crate::stage::runtime().unwrap().block_on(async {
            let site = Site::prepare(&remote, "lake", "u").await.unwrap();
            let mut connection = Rival::new(&site, Protocol::H1).connect_h1().await.unwrap();
            let begin = site.request(Method::POST, "/lake/u/up/large?uploads=", Bytes::new()).unwrap();
            connection.send(begin).await.unwrap().succeeded().unwrap();
            let begun = async |connection: &mut Http1| {
                let listing = connection.send(site.uploads("u/up/large").await.unwrap()).await.unwrap();
                uploads_in(&String::from_utf8_lossy(&listing.body)).len()
            };
            assert_eq!(begun(&mut connection).await, 1);
            clear_after_a_stop(&site, "u/", &["u/up/large".to_owned()]).await.unwrap();
            assert_eq!(begun(&mut connection).await, 0);
        });
        assert_eq!(server.store().keys("lake"), ["another"]);
    }

    #[test]
    fn uploads_are_found_in_a_listing() {
        let upload = |n| format!("<Upload><Key>p/{n}</Key><UploadId>id-{n}==</UploadId><Owner/></Upload>");
        let listing =
            format!("<ListMultipartUploadsResult><Prefix>p/</Prefix>{}{}</List...>", upload(1), upload(2));
        assert_eq!(uploads_in(&listing), [("p/1", "id-1=="), ("p/2", "id-2==")]);
        assert_eq!(uploads_in("<ListMultipartUploadsResult/>"), []);
    }
}
