//! Buckets and their settings, which are fields of the bucket's resource: `buckets.insert`
//! (<https://cloud.google.com/storage/docs/json_api/v1/buckets/insert>), `buckets.delete`
//! (<https://cloud.google.com/storage/docs/json_api/v1/buckets/delete>) and `buckets.patch`
//! (<https://cloud.google.com/storage/docs/json_api/v1/buckets/patch>).

use bytes::Bytes;
use http::{HeaderValue, Method};
use laneway_lanes::Body;
use serde::Serialize;
use serde_json::{Value, json};

use super::Gcs;
use crate::encode::{QueryString, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{BucketSetting, Error, ErrorKind, NewBucket, Operation};

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

fn field(setting: BucketSetting) -> &'static str {
    match setting {
        BucketSetting::Versioning => "versioning",
        BucketSetting::Lifecycle => "lifecycle",
    }
}

/// Returns the value that a request sends. Files for `gsutil lifecycle set` have the rules inside a field `lifecycle`.
/// GCS removes all rules if a lifecycle has no `rule`, so Laneway refuses such a value.
///
/// # Errors
/// Returns an error that names the missing field.
fn sendable(setting: BucketSetting, value: &Value) -> Result<&Value, &'static str> {
    if setting != BucketSetting::Lifecycle {
        return Ok(value);
    }
    let value = value.get("lifecycle").unwrap_or(value);
    match value["rule"].is_array() {
        true => Ok(value),
        false => Err("the lifecycle has no list `rule`; clear the lifecycle to remove all rules"),
    }
}

impl Gcs {
    pub(crate) async fn read_setting(&self, bucket: &str, setting: BucketSetting) -> Result<Value, Error> {
        let exchange = Exchange::bucket(self, Operation::BucketSettings, bucket);
        let query = QueryString::new().and("fields", field(setting));
        let target = format!("/storage/v1/b/{}{query}", component(bucket));
        let sent = exchange.send(&Outgoing::new(Method::GET, target)).await?;
        let mut resource: Value = serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a bucket resource: {e}")))?;
        Ok(match resource[field(setting)].take() {
            Value::Null => json!({}),
            value => value,
        })
    }

    pub(crate) async fn write_setting(
        &self,
        bucket: &str,
        setting: BucketSetting,
        value: Option<&Value>,
    ) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::BucketSettings, bucket);
        let value = value.map(|value| sendable(setting, value)).transpose();
        let value = value.map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let query = QueryString::new().and("fields", field(setting));
        let mut outgoing =
            Outgoing::new(Method::PATCH, format!("/storage/v1/b/{}{query}", component(bucket)));
        outgoing.headers.insert("content-type", HeaderValue::from_static("application/json"));
        let document = json!({field(setting): value});
        outgoing.body = Body::from(Bytes::from(document.to_string()));
        exchange.send(&outgoing).await.map(drop)
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

    #[test]
    fn a_lifecycle_needs_rules_and_may_be_in_the_form_of_gsutil() {
        fn lifecycle(value: &Value) -> Result<&Value, &'static str> {
            sendable(BucketSetting::Lifecycle, value)
        }
        let rules = json!({"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]});
        assert_eq!(lifecycle(&rules), Ok(&rules));
        assert_eq!(lifecycle(&json!({"lifecycle": rules})), Ok(&rules));
        for value in [json!({}), json!([]), json!("text"), json!({"Rules": []}), json!({"lifecycle": null})] {
            assert!(lifecycle(&value).is_err(), "{value}");
        }
        let versioning = json!({"enabled": true});
        assert_eq!(sendable(BucketSetting::Versioning, &versioning), Ok(&versioning));
    }
}
