//! Lists, creates and deletes containers, which are Azure's buckets.

use http::Method;
use serde::Deserialize;

use super::Azure;
use super::headers::container_of;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::listing::Tokens;
use crate::{Error, ErrorKind, NewBucket, Operation, xml};

/// Everything that Delete Container would remove together with the container. Soft-deleted blobs aren't listed: only the
/// container's own soft delete would keep them.
const REMAINS: &str = "snapshots,uncommittedblobs,versions";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EnumerationResults {
    #[serde(default)]
    containers: Containers,
    #[serde(default)]
    blobs: Option<Blobs>,
    next_marker: Option<String>,
}

#[derive(Deserialize, Default)]
struct Containers {
    #[serde(default, rename = "Container")]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Container {
    name: String,
}

#[derive(Deserialize, Default)]
struct Blobs {
    #[serde(default, rename = "Blob")]
    blobs: Vec<serde::de::IgnoredAny>,
}

fn target(bucket: &str, query: QueryString) -> String {
    format!("/{}{query}", container_of(bucket))
}

fn about(method: Method, bucket: &str) -> Outgoing {
    Outgoing::new(method, target(bucket, QueryString::new().and("restype", "container")))
}

impl Azure {
    pub(super) async fn list_buckets(&self) -> Result<Vec<String>, Error> {
        let exchange = Exchange::bucket(self, Operation::List, "");
        let (mut names, mut marker, mut tokens) = (Vec::new(), None, Tokens::default());
        loop {
            let query = QueryString::new().and("comp", "list").and_some("marker", marker.as_deref());
            let sent = exchange.send(&Outgoing::new(Method::GET, format!("/{query}"))).await?;
            let page: EnumerationResults = xml::answer(&sent.response.body, &["EnumerationResults"])
                .map_err(|e| {
                    exchange.nonsense(&sent, format!("the answer isn't a list of containers: {e}"))
                })?;
            names.extend(page.containers.containers.into_iter().map(|container| container.name));
            marker = tokens.next(page.next_marker).map_err(|e| exchange.nonsense(&sent, e))?;
            if marker.is_none() {
                return Ok(names);
            }
        }
    }

    pub(super) async fn make_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::CreateBucket, bucket);
        if new.location.is_some() || new.storage_class.is_some() {
            let message = "a container has no location or storage class of its own: the storage account has";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        exchange.send(&about(Method::PUT, bucket)).await.map(drop)
    }

    /// Deletes a container without blobs, versions and snapshots. The service would delete them too, so Laneway looks for
    /// some first. A blob that another program writes in between is lost.
    pub(super) async fn remove_bucket(&self, bucket: &str) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::DeleteBucket, bucket);
        let (mut marker, mut tokens) = (None, Tokens::default());
        loop {
            let query = QueryString::new()
                .and("restype", "container")
                .and("comp", "list")
                .and("include", REMAINS)
                .and("maxresults", "1")
                .and_some("marker", marker.as_deref());
            let sent = exchange.send(&Outgoing::new(Method::GET, target(bucket, query))).await?;
            let page: EnumerationResults = xml::answer(&sent.response.body, &["EnumerationResults"])
                .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a listing: {e}")))?;
            if page.blobs.is_some_and(|blobs| !blobs.blobs.is_empty()) {
                return Err(exchange.error(ErrorKind::Invalid, "the container isn't empty"));
            }
            marker = tokens.next(page.next_marker).map_err(|e| exchange.nonsense(&sent, e))?;
            if marker.is_none() {
                return exchange.send(&about(Method::DELETE, bucket)).await.map(drop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_names_of_containers() {
        let body = "\u{feff}<?xml version=\"1.0\"?><EnumerationResults ServiceEndpoint=\"x\"><Containers><Container><Name>abc</Name>\
                    <Properties><Etag>1</Etag></Properties></Container></Containers><NextMarker /></EnumerationResults>";
        let page: EnumerationResults = xml::answer(body.as_bytes(), &["EnumerationResults"]).expect("a list");
        assert_eq!(page.containers.containers[0].name, "abc");
        assert_eq!(Tokens::default().next(page.next_marker), Ok(None));
    }

    #[test]
    fn a_container_with_a_blob_is_seen_as_full() {
        let full = "<EnumerationResults><Blobs><Blob><Name>a</Name></Blob></Blobs><NextMarker/></EnumerationResults>";
        let page: EnumerationResults = xml::answer(full.as_bytes(), &["EnumerationResults"]).expect("a page");
        assert_eq!(page.blobs.expect("blobs").blobs.len(), 1);
        let empty = "<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>";
        let page: EnumerationResults =
            xml::answer(empty.as_bytes(), &["EnumerationResults"]).expect("a page");
        assert!(page.blobs.is_none_or(|blobs| blobs.blobs.is_empty()));
    }
}
