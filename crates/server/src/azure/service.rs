//! Requests about the account: its service properties, its kind, and keys for user delegation SAS tokens.

use std::fmt::Write as _;

use http::StatusCode;
use quick_xml::escape::escape;

use super::answer::{XmlElement, XmlWriter, empty, insert};
use super::authorization::{self, Access};
use super::error::{BlobError, BlobResult};
use super::{Call, timestamp};
use crate::objects::now_us;

/// The service properties that a client has set. Of these, the store honours none but returns all.
#[derive(Debug, Default)]
pub(super) struct ServiceProperties(Vec<XmlElement>);

/// The properties of a new account.
const DEFAULTS: [(&str, &str); 7] = [
    (
        "Logging",
        "<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>",
    ),
    (
        "HourMetrics",
        "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>",
    ),
    (
        "MinuteMetrics",
        "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>",
    ),
    ("Cors", "<Cors />"),
    ("DefaultServiceVersion", ""),
    ("DeleteRetentionPolicy", "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>"),
    ("StaticWebsite", "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>"),
];

pub(super) fn properties(call: &Call<'_>) -> BlobResult {
    let mut document = XmlWriter::new();
    document.begin("StorageServiceProperties");
    let properties = call.state.properties();
    for (name, default) in DEFAULTS {
        match properties.0.iter().find(|property| property.name == name) {
            Some(property) => document.raw(&written(property)),
            None => document.raw(default),
        }
    }
    Ok(document.answer())
}

/// Returns an element as XML.
fn written(element: &XmlElement) -> String {
    let mut text = format!("<{}>{}", element.name, escape(&element.text));
    for child in &element.children {
        text.push_str(&written(child));
    }
    let _ = write!(text, "</{}>", element.name);
    text
}

pub(super) async fn set_properties(call: &mut Call<'_>) -> BlobResult {
    let bytes = call.document().await?;
    let document = XmlElement::parse(&bytes, "StorageServiceProperties")?;
    let is_known = |property: &XmlElement| DEFAULTS.iter().any(|(name, _)| *name == property.name);
    if !document.children.iter().all(is_known) {
        return Err(BlobError::new("InvalidXmlDocument"));
    }
    let mut properties = call.state.properties();
    for property in document.children {
        properties.0.retain(|present| present.name != property.name);
        properties.0.push(property);
    }
    Ok(empty(StatusCode::ACCEPTED))
}

/// Returns the state of the copy in another region, which is always complete. Only the secondary endpoint has this request.
pub(super) fn stats(call: &Call<'_>) -> BlobResult {
    if !call
        .head
        .uri
        .path()
        .trim_start_matches('/')
        .starts_with(&format!("{}-secondary", call.target.account))
    {
        return Err(BlobError::of_parameter("InvalidQueryParameterValue", "comp", "stats"));
    }
    let mut document = XmlWriter::new();
    document.begin("StorageServiceStats");
    document.begin("GeoReplication");
    document.element("Status", "live");
    document.element("LastSyncTime", &timestamp::http(now_us()));
    Ok(document.answer())
}

pub(super) fn account_info(call: &Call<'_>) -> BlobResult {
    let mut answer = empty(StatusCode::OK);
    let headers = answer.headers_mut();
    insert(headers, "x-ms-sku-name", "Standard_RAGRS");
    insert(headers, "x-ms-account-kind", "StorageV2");
    insert(headers, "x-ms-is-hns-enabled", "false");
    let _ = call;
    Ok(answer)
}

/// The object and tenant of the only user.
const USER: &str = "00000000-0000-0000-0000-000000000001";
const TENANT: &str = "00000000-0000-0000-0000-000000000002";
/// The maximum validity of a user delegation key.
const KEY_VALID_US: u64 = 7 * 24 * 60 * 60 * 1_000_000;

/// Returns a key for user delegation SAS tokens. Only a bearer token may request it.
pub(super) async fn delegation_key(call: &mut Call<'_>) -> BlobResult {
    if call.access != (Access::Full { by_key: false }) {
        return Err(BlobError::unauthenticated("Only authentication scheme Bearer is supported."));
    }
    let bytes = call.document().await?;
    let document = XmlElement::parse(&bytes, "KeyInfo")?;
    let invalid = |name: &'static str| BlobError::new("InvalidXmlNodeValue").with("XmlNodeName", name);
    let now = now_us();
    let time = |name: &'static str| document.text_of(name).and_then(timestamp::parse);
    let expires = time("Expiry").ok_or_else(|| invalid("Expiry"))?;
    let starts = match document.text_of("Start") {
        None | Some("") => now,
        Some(_) => time("Start").ok_or_else(|| invalid("Start"))?,
    };
    if expires <= now || expires <= starts || expires > now + KEY_VALID_US || starts > now + KEY_VALID_US {
        return Err(invalid("Expiry"));
    }
    let (starts, expires) = (timestamp::seconds(starts), timestamp::seconds(expires));
    let fields = [USER, TENANT, &starts, &expires, "b", call.version()];
    let mut answer = XmlWriter::new();
    answer.begin("UserDelegationKey");
    let names = ["SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService", "SignedVersion"];
    for (name, value) in names.into_iter().zip(fields) {
        answer.element(name, value);
    }
    answer.element("Value", &authorization::delegation_key(call.state, &fields));
    Ok(answer.answer())
}
