//! Buckets and their settings: CreateBucket (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html>)
//! and DeleteBucket (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html>). S3 sends settings as
//! XML. Laneway converts between this XML and the JSON of `aws s3api`, in which a list has the plural of its elements'
//! name (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html>).

use bytes::Bytes;
use http::{Method, StatusCode};
use laneway_lanes::Body;
use serde_json::{Map, Value, json};

use super::S3;
use crate::checksum::{encode_md5, md5_of};
use crate::encode::{QueryString, xml_text};
use crate::exchange::{Exchange, Outgoing};
use crate::{BucketSetting, Error, ErrorKind, NewBucket, Operation, xml};

/// The region in which S3 creates a bucket if the request has no location constraint.
const WITHOUT_CONSTRAINT: &str = "us-east-1";

fn create_request(region: &str) -> Result<Outgoing, String> {
    let mut outgoing = Outgoing::new(Method::PUT, "");
    if region != WITHOUT_CONSTRAINT {
        let region = xml_text(region).ok_or("the location contains control characters")?;
        let document = format!(
            "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
        );
        outgoing = outgoing.header("content-type", "application/xml").map_err(|e| e.to_string())?;
        outgoing.body = Body::from(Bytes::from(document));
    }
    Ok(outgoing)
}

impl S3 {
    pub(crate) async fn make_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::CreateBucket, bucket);
        let invalid = |e: &str| exchange.error(ErrorKind::Invalid, e);
        if new.storage_class.is_some() {
            return Err(invalid(
                "on S3 a bucket has no storage class; give the storage class when you write objects",
            ));
        }
        // Requests go to the endpoint of the configured region, and that endpoint can create buckets only in its own
        // region.
        let region = self.regions.of(bucket);
        if new.location.as_deref().is_some_and(|location| location != &*region) {
            return Err(invalid(&format!(
                "requests go to {region}, and its endpoint can't create buckets in other regions"
            )));
        }
        let outgoing = create_request(&region).map_err(|e| invalid(&e))?;
        exchange.send(&outgoing).await?;
        Ok(())
    }

    pub(crate) async fn remove_bucket(&self, bucket: &str) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::DeleteBucket, bucket);
        exchange.send(&Outgoing::new(Method::DELETE, "")).await?;
        Ok(())
    }
}

/// The elements that S3 repeats, once for each entry of a list.
const LISTED: [&str; 4] = ["Rule", "Transition", "NoncurrentVersionTransition", "Tag"];

/// The elements that hold numbers and booleans.
const NUMBERS: [&str; 6] = [
    "Days",
    "NoncurrentDays",
    "NewerNoncurrentVersions",
    "ObjectSizeGreaterThan",
    "ObjectSizeLessThan",
    "DaysAfterInitiation",
];

const BOOLEANS: [&str; 1] = ["ExpiredObjectDeleteMarker"];

/// The maximum depth of a document that is read. S3's documents have five levels.
const DEPTH_MAX: usize = 16;

fn names_of_setting(setting: BucketSetting) -> (&'static str, &'static str) {
    match setting {
        BucketSetting::Versioning => ("versioning", "VersioningConfiguration"),
        BucketSetting::Lifecycle => ("lifecycle", "LifecycleConfiguration"),
    }
}

/// Returns true if an element is an entry of a list. A `Tag` is an entry only inside `And`. Elsewhere it is the
/// filter's only condition.
fn is_listed(parent: &str, name: &str) -> bool {
    LISTED.contains(&name) && (name != "Tag" || parent == "And")
}

/// Writes JSON as the content of an element.
///
/// # Errors
/// Returns an error that names the part without an XML form.
fn write_setting(value: &Value, out: &mut String) -> Result<(), String> {
    match value {
        Value::Null => {}
        Value::Bool(value) => out.push_str(&value.to_string()),
        Value::Number(value) => out.push_str(&value.to_string()),
        Value::String(text) => out.push_str(&xml_text(text).ok_or("a text holds control characters")?),
        Value::Array(_) => return Err("there is a list where S3 expects none".to_owned()),
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if !is_name {
                    return Err(format!("{name:?} isn't the name of an S3 setting"));
                }
                match value {
                    Value::Array(entries) => {
                        let one = name.strip_suffix('s').unwrap_or(name);
                        for entry in entries {
                            write_element(one, entry, out)?;
                        }
                    }
                    value => write_element(name, value, out)?,
                }
            }
        }
    }
    Ok(())
}

fn write_element(name: &str, value: &Value, out: &mut String) -> Result<(), String> {
    out.push_str(&format!("<{name}>"));
    write_setting(value, out)?;
    out.push_str(&format!("</{name}>"));
    Ok(())
}

/// Reads a document as JSON.
///
/// # Errors
/// Returns the reason why it can't be read.
fn read_setting(body: &[u8], root: &str) -> Result<Value, String> {
    let _: serde::de::IgnoredAny = xml::answer(body, &[root])?;
    let mut open: Vec<(String, Map<String, Value>)> = Vec::new();
    let mut whole = Value::Null;
    xml::elements(body, |step| {
        match step {
            xml::XmlStep::Begin(name) if open.len() < DEPTH_MAX => open.push((name.to_owned(), Map::new())),
            xml::XmlStep::Begin(_) => return Err("its elements are nested too deeply".to_owned()),
            xml::XmlStep::End(text) => {
                let Some((name, fields)) = open.pop() else { return Err("it ends too early".to_owned()) };
                let value =
                    if fields.is_empty() { leaf_value(&name, text.trim()) } else { Value::Object(fields) };
                match open.last_mut() {
                    Some((parent, above)) if is_listed(parent, &name) => {
                        let list = above.entry(format!("{name}s")).or_insert_with(|| json!([]));
                        list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
                    }
                    Some((_, above)) => drop(above.insert(name, value)),
                    None => whole = value,
                }
            }
        }
        Ok(())
    })?;
    Ok(if whole.is_object() { whole } else { json!({}) })
}

fn leaf_value(name: &str, text: &str) -> Value {
    let number = || text.parse::<u64>().ok().filter(|_| NUMBERS.contains(&name));
    let boolean = || text.parse::<bool>().ok().filter(|_| BOOLEANS.contains(&name));
    match (number(), boolean()) {
        (Some(number), _) => number.into(),
        (_, Some(boolean)) => boolean.into(),
        _ => text.into(),
    }
}

impl S3 {
    pub(crate) async fn read_setting(&self, bucket: &str, setting: BucketSetting) -> Result<Value, Error> {
        let exchange = Exchange::bucket(self, Operation::BucketSettings, bucket);
        let (name, root) = names_of_setting(setting);
        let outgoing = Outgoing::new(Method::GET, QueryString::new().and(name, "").to_string());
        match exchange.send(&outgoing).await {
            Ok(sent) => read_setting(&sent.response.body, root)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't its {name}: {e}"))),
            Err(error) if error.code() == Some("NoSuchLifecycleConfiguration") => Ok(json!({})),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn write_setting(
        &self,
        bucket: &str,
        setting: BucketSetting,
        value: Option<&Value>,
    ) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::BucketSettings, bucket);
        let (name, root) = names_of_setting(setting);
        let target = QueryString::new().and(name, "").to_string();
        let Some(value) = value else {
            // S3 has no such request. A server that ignores the query would delete the bucket.
            if setting == BucketSetting::Versioning {
                let message = "S3 can't remove the versioning of a bucket, only suspend it";
                return Err(exchange.error(ErrorKind::Invalid, message));
            }
            let outgoing =
                Outgoing { also: Some(StatusCode::NO_CONTENT), ..Outgoing::new(Method::DELETE, target) };
            return exchange.send(&outgoing).await.map(drop);
        };
        let mut document = format!("<{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        write_setting(value, &mut document).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        document.push_str(&format!("</{root}>"));
        let mut outgoing = Outgoing::new(Method::PUT, target);
        outgoing.body = Body::from(Bytes::from(document));
        let md5 = md5_of(&outgoing.body).map(encode_md5);
        let outgoing = outgoing
            .header("content-type", "application/xml")
            .and_then(|outgoing| outgoing.header_some("content-md5", md5.as_deref()))
            .map_err(|e| exchange.unsendable(&e))?;
        exchange.send(&outgoing).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_another_region_than_the_first_names_it() {
        let first = create_request(WITHOUT_CONSTRAINT).expect("a request");
        assert!(first.body.is_empty() && first.method == Method::PUT && first.target.is_empty());
        let other = create_request("eu-west-1").expect("a request");
        assert!(!other.body.is_empty() && other.headers["content-type"] == "application/xml");
        assert!(create_request("\u{1}").is_err());
    }

    #[test]
    fn a_lifecycle_is_the_same_after_a_round_trip() {
        let rules = json!({"Rules": [
            {
                "ID": "a<b",
                "Status": "Enabled",
                "Filter": {"And": {"Prefix": "logs/", "Tags": [{"Key": "k", "Value": "1"}, {"Key": "l", "Value": "2"}]}},
                "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}, {"Days": 90, "StorageClass": "DEEP_ARCHIVE"}],
                "Expiration": {"ExpiredObjectDeleteMarker": true},
            },
            {"ID": "one", "Status": "Disabled", "Filter": {"Tag": {"Key": "k", "Value": "7"}}, "Expiration": {"Days": 1}},
        ]});
        let mut document = String::from("<LifecycleConfiguration>");
        write_setting(&rules, &mut document).expect("a document");
        document += "</LifecycleConfiguration>";
        assert!(
            document.contains("<ID>a&lt;b</ID>") && document.contains("<Transition><Days>30</Days>"),
            "{document}"
        );
        assert_eq!(read_setting(document.as_bytes(), "LifecycleConfiguration"), Ok(rules));
        let empty = read_setting(b"<VersioningConfiguration xmlns=\"x\"/>", "VersioningConfiguration");
        assert_eq!(empty, Ok(json!({})));
        assert!(read_setting(b"<html></html>", "LifecycleConfiguration").is_err());
        assert!(write_setting(&json!({"a b": 1}), &mut String::new()).is_err());
        assert!(write_setting(&json!([1]), &mut String::new()).is_err());
    }
}
