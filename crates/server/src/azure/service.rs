//! Requests about the account: its service properties, its kind, and keys for user delegation SAS tokens.

use std::fmt::Write as _;

use http::header::{
    ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, Response, StatusCode};
use quick_xml::escape::escape;

use super::answer::{XmlElement, XmlWriter, empty, insert};
use super::authorization;
use super::error::{BlobError, BlobResult};
use super::{AzureState, BlobCall, timestamp};
use crate::body::ResponseBody;
use crate::objects::now_us;
use crate::objects::settings::CorsRule;

/// The service properties that a client has set. Of these, the store honours none but returns all.
#[derive(Debug, Default)]
pub(super) struct ServiceProperties(Vec<XmlElement>);

impl ServiceProperties {
    /// Returns the CORS rules of the account.
    fn cors(&self) -> Vec<CorsRule> {
        let rules = self.0.iter().filter(|property| property.name == "Cors").flat_map(|cors| &cors.children);
        let list = |rule: &XmlElement, name: &str| -> Vec<String> {
            let words = rule.text_of(name).unwrap_or_default().split(',').map(str::trim);
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        rules
            .map(|rule| CorsRule {
                id: None,
                // Hosts are the same in upper and lower case, and the origin is compared in lower case too.
                origins: list(rule, "AllowedOrigins")
                    .iter()
                    .map(|origin| origin.to_ascii_lowercase())
                    .collect(),
                methods: list(rule, "AllowedMethods"),
                headers: list(rule, "AllowedHeaders"),
                exposed: list(rule, "ExposedHeaders"),
                max_age_s: rule.text_of("MaxAgeInSeconds").and_then(|seconds| seconds.trim().parse().ok()),
            })
            .collect()
    }
}

/// Answers a preflight, the OPTIONS request that a browser sends before a cross-origin request.
pub(crate) fn preflight(state: &AzureState, headers: &HeaderMap) -> Response<ResponseBody> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let wanted = text(ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let names: Vec<&str> = wanted.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let id = state.request_id();
    let answer = match (text(ORIGIN), text(ACCESS_CONTROL_REQUEST_METHOD)) {
        (Some(origin), Some(method)) => {
            let rules = state.properties().cors();
            let folded = origin.to_ascii_lowercase();
            let rule = rules.iter().find(|rule| rule.permits(&folded, method, &names));
            rule.map(|rule| {
                let mut answer = empty(StatusCode::OK);
                rule.tell(answer.headers_mut(), origin);
                insert(answer.headers_mut(), "access-control-allow-methods", method);
                if !wanted.is_empty() {
                    insert(answer.headers_mut(), "access-control-allow-headers", wanted);
                }
                answer
            })
        }
        _ => {
            let refused =
                BlobError::new("InvalidHeaderValue").saying("A required CORS header is not present.");
            Some(refused.answer(&id))
        }
    };
    let refused = || {
        let refused = BlobError::of_status(403, Some("CorsPreflightFailure"));
        refused.saying("CORS not enabled or no matching rule found for this request.").answer(&id)
    };
    super::complete(answer.unwrap_or_else(refused), &id, None, None)
}

/// Adds the headers that let a page of another origin read an answer.
pub(crate) fn allow_origin(state: &AzureState, origin: &str, method: &str, headers: &mut HeaderMap) {
    let rules = state.properties().cors();
    match rules.iter().find(|rule| rule.permits(&origin.to_ascii_lowercase(), method, &[])) {
        Some(rule) => {
            rule.tell(headers, origin);
            headers.remove(ACCESS_CONTROL_ALLOW_METHODS);
            headers.remove(ACCESS_CONTROL_MAX_AGE);
            if rule.origins.iter().any(|pattern| pattern == "*") {
                headers.remove(VARY);
            }
        }
        // A cache must not keep the answer for other origins.
        None if !rules.is_empty() => insert(headers, "vary", "Origin"),
        None => {}
    }
}

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

pub(super) fn properties(call: &BlobCall<'_>) -> BlobResult {
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

pub(super) async fn set_properties(call: &mut BlobCall<'_>) -> BlobResult {
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
pub(super) fn stats(call: &BlobCall<'_>) -> BlobResult {
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

pub(super) fn account_info(call: &BlobCall<'_>) -> BlobResult {
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
pub(super) async fn delegation_key(call: &mut BlobCall<'_>) -> BlobResult {
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
