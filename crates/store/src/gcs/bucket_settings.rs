//! Settings of buckets: fields of the bucket's resource
//! (<https://cloud.google.com/storage/docs/json_api/v1/buckets/patch>).

use bytes::Bytes;
use http::{HeaderValue, Method};
use laneway_lanes::Body;
use serde_json::{Value, json};

use super::Gcs;
use crate::encode::{Query, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{BucketSetting, Error, Operation};

fn field(setting: BucketSetting) -> &'static str {
    match setting {
        BucketSetting::Versioning => "versioning",
        BucketSetting::Lifecycle => "lifecycle",
    }
}

impl Gcs {
    pub(crate) async fn read_setting(&self, bucket: &str, setting: BucketSetting) -> Result<Value, Error> {
        let exchange = Exchange::bucket(self, Operation::BucketSettings, bucket);
        let query = Query::new().and("fields", field(setting));
        let target = format!("/storage/v1/b/{}{query}", component(bucket));
        let sent = exchange.send(&Outgoing::new(Method::GET, target)).await?;
        let mut resource: Value = serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer is no bucket: {e}")))?;
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
        let query = Query::new().and("fields", field(setting));
        let mut outgoing =
            Outgoing::new(Method::PATCH, format!("/storage/v1/b/{}{query}", component(bucket)));
        outgoing.headers.insert("content-type", HeaderValue::from_static("application/json"));
        let document = json!({field(setting): value});
        outgoing.body = Body::from(Bytes::from(document.to_string()));
        exchange.send(&outgoing).await.map(drop)
    }
}
