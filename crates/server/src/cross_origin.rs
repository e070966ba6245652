//! Cross-origin requests of browsers: a bucket's CORS rules, preflight requests, and the headers of answers.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/cors.html>,
//! <https://cloud.google.com/storage/docs/cross-origin>

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::azure::AzureState;
use crate::body::ResponseBody;
use crate::objects::Objects;
use crate::objects::settings::CorsRule;
use crate::route::{Api, RequestRoute};
use crate::{azure, gcs, s3};

impl CorsRule {
    pub(crate) fn permits(&self, origin: &str, method: &str, headers: &[&str]) -> bool {
        let is_listed = |header: &&str| self.headers.iter().any(|pattern| fits_any_case(pattern, header));
        self.origins.iter().any(|pattern| fits(pattern, origin))
            && self.methods.iter().any(|permitted| permitted == method || permitted == "*")
            && headers.iter().all(is_listed)
    }

    pub(crate) fn tell(&self, headers: &mut HeaderMap, origin: &str) {
        let is_open = self.origins.iter().any(|pattern| pattern == "*");
        set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, if is_open { "*" } else { origin });
        set(headers, ACCESS_CONTROL_ALLOW_METHODS, &self.methods.join(", "));
        if !self.exposed.is_empty() {
            set(headers, ACCESS_CONTROL_EXPOSE_HEADERS, &self.exposed.join(", "));
        }
        if let Some(seconds) = self.max_age_s {
            set(headers, ACCESS_CONTROL_MAX_AGE, &seconds.to_string());
        }
        if !is_open {
            set(headers, ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
        set(headers, VARY, "Origin, Access-Control-Request-Headers, Access-Control-Request-Method");
    }
}

/// Answers a preflight: the OPTIONS request that a browser sends before a cross-origin request.
pub(crate) fn preflight(
    objects: &Objects,
    route: &RequestRoute,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    let (origin, method) = (text(headers, ORIGIN), text(headers, ACCESS_CONTROL_REQUEST_METHOD));
    let wanted = text(headers, ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let mut answer = gcs::answer::empty(StatusCode::OK);
    // The JSON API permits every origin. A bucket's CORS rules don't apply to it.
    if let Api::Json(_) = route.call {
        if let Some(origin) = origin {
            let allowed = answer.headers_mut();
            set(allowed, ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            set(allowed, ACCESS_CONTROL_ALLOW_METHODS, "DELETE,GET,HEAD,PATCH,POST,PUT");
            set(allowed, ACCESS_CONTROL_ALLOW_HEADERS, &wanted.join(","));
            set(allowed, ACCESS_CONTROL_MAX_AGE, "3600");
            set(allowed, VARY, "Origin");
        }
        return answer;
    }
    let rules =
        objects.bucket(&route.bucket).map(|bucket| bucket.settings().cors.clone()).unwrap_or_default();
    let found = origin.zip(method).and_then(|(origin, method)| {
        rules.iter().find(|rule| rule.permits(origin, method, &wanted)).map(|rule| (rule, origin))
    });
    match found {
        Some((rule, origin)) => {
            rule.tell(answer.headers_mut(), origin);
            if !wanted.is_empty() {
                set(answer.headers_mut(), ACCESS_CONTROL_ALLOW_HEADERS, &wanted.join(", "));
            }
            answer
        }
        // The XML API of GCS answers without CORS headers, and the browser then refuses the request.
        None if route.call == Api::Xml => answer,
        None if origin.is_none() || method.is_none() => s3::preflight_refused(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            "Insufficient information. Origin request header needed.",
        ),
        None if rules.is_empty() => {
            let message = "CORSResponse: CORS is not enabled for this bucket.";
            s3::preflight_refused(StatusCode::FORBIDDEN, "AccessForbidden", message)
        }
        None => {
            let message = "CORSResponse: This CORS request is not allowed. This is usually because the evalution of \
                           Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers \
                           are not whitelisted by the resource's CORS spec.";
            s3::preflight_refused(StatusCode::FORBIDDEN, "AccessForbidden", message)
        }
    }
}

/// The properties of a cross-origin request on which the CORS headers of its answer depend.
pub(crate) struct CorsRequest {
    origin: String,
    method: String,
    bucket: String,
    is_json: bool,
    is_azure: bool,
}

impl CorsRequest {
    /// Returns the properties, if the request has an `Origin` header.
    pub(crate) fn of(head: &http::request::Parts, route: &RequestRoute) -> Option<CorsRequest> {
        Some(CorsRequest {
            origin: text(&head.headers, ORIGIN)?.to_owned(),
            method: head.method.to_string(),
            bucket: route.bucket.clone(),
            is_json: matches!(route.call, Api::Json(_)),
            is_azure: route.call == Api::Azure,
        })
    }

    /// Adds the CORS headers that let a web page read the answer.
    pub(crate) fn tell(&self, objects: &Objects, azure: &AzureState, headers: &mut HeaderMap) {
        // Azure's rules belong to the account and not to the container.
        if self.is_azure {
            return azure::allow_origin(azure, &self.origin, &self.method, headers);
        }
        if self.is_json {
            set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, &self.origin);
            let exposed = "Content-Length, Content-Type, Date, ETag, Location, Range, Server, X-Goog-Hash, \
                           X-Goog-Generation, X-GUploader-UploadID";
            set(headers, ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            set(headers, VARY, "Origin");
            return;
        }
        let Ok(bucket) = objects.bucket(&self.bucket) else { return };
        let settings = bucket.settings();
        if let Some(rule) = settings.cors.iter().find(|rule| rule.permits(&self.origin, &self.method, &[])) {
            rule.tell(headers, &self.origin);
        }
    }
}

fn text(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn set(headers: &mut HeaderMap, name: http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Returns true if a text matches a pattern with at most one `*`.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end)
        }
        None => pattern == text,
    }
}

fn fits_any_case(pattern: &str, text: &str) -> bool {
    fits(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_permits_what_its_patterns_fit() {
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        let rule = CorsRule {
            origins: list(&["https://*.example.com"]),
            methods: list(&["GET", "PUT"]),
            headers: list(&["x-amz-*", "Content-Type"]),
            ..CorsRule::default()
        };
        for (origin, method, headers, expected) in [
            ("https://a.example.com", "GET", &[][..], true),
            ("https://a.example.com", "PUT", &["X-Amz-Date", "content-type"], true),
            ("https://a.example.com", "PUT", &["authorization"], false),
            ("https://a.example.com", "DELETE", &[], false),
            ("https://example.com", "GET", &[], false),
        ] {
            assert_eq!(rule.permits(origin, method, headers), expected, "{origin} {method} {headers:?}");
        }
    }
}
