//! `buckets.insert` (<https://cloud.google.com/storage/docs/json_api/v1/buckets/insert>) and `buckets.delete`
//! (<https://cloud.google.com/storage/docs/json_api/v1/buckets/delete>).

use bytes::Bytes;
use http::Method;
use laneway_lanes::Body;
use serde::Serialize;

use super::Gcs;
use crate::encode::{QueryString, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, NewBucket, Operation};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewBucketResource<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_class: Option<&'a str>,
}

fn insert(bucket: &str, project: &str, new: &NewBucket) -> Result<Outgoing, String> {
    let query = QueryString::new().and("project", project);
    let resource = NewBucketResource {
        name: bucket,
        location: new.location.as_deref(),
        storage_class: new.storage_class.as_deref(),
    };
    let document = serde_json::to_vec(&resource).map_err(|e| e.to_string())?;
    let mut outgoing = Outgoing::new(Method::POST, format!("/storage/v1/b{query}"))
        .header("content-type", "application/json")
        .map_err(|e| e.to_string())?;
    outgoing.body = Body::from(Bytes::from(document));
    Ok(outgoing)
}

impl Gcs {
    pub(crate) async fn make_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::CreateBucket, bucket);
        let invalid = |e: &str| exchange.error(ErrorKind::Invalid, e);
        let Some(project) = self.project.as_deref() else {
            return Err(invalid(
                "no Google Cloud project is set: give --project, or set GOOGLE_CLOUD_PROJECT",
            ));
        };
        let outgoing = insert(bucket, project, new).map_err(|e| invalid(&e))?;
        exchange.send(&outgoing).await?;
        Ok(())
    }

    pub(crate) async fn remove_bucket(&self, bucket: &str) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::DeleteBucket, bucket);
        let target = format!("/storage/v1/b/{}", component(bucket));
        exchange.send(&Outgoing::new(Method::DELETE, target)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_made_in_a_project_and_where_it_is_wanted() {
        let new = NewBucket { location: Some("EU".into()), storage_class: None };
        let outgoing = insert("lake", "my project", &new).expect("a request");
        assert_eq!(outgoing.target, "/storage/v1/b?project=my%20project");
        assert_eq!(outgoing.body.len(), br#"{"name":"lake","location":"EU"}"#.len() as u64);
    }
}
