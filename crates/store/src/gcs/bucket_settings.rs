//! Settings of buckets: fields of the bucket's resource
//! (<https://cloud.google.com/storage/docs/json_api/v1/buckets/patch>).

use bytes::Bytes;
use http::{HeaderValue, Method};
use laneway_lanes::Body;
use serde_json::{Value, json};

use super::Gcs;
use crate::encode::{QueryString, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{BucketSetting, Error, ErrorKind, Operation};

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
