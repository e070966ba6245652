//! Completes error documents as S3 writes them: with the bucket, the key and other details of the request, and the
//! request's ids. <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RANGE};
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use quick_xml::escape::escape;

use crate::body::ResponseBody;
use crate::query::Query;

/// The headers with conditions, in the order in which S3 checks them. The second name is the one in S3's error
/// documents.
const CONDITIONS: [(&str, &str); 8] = [
    ("if-match", "If-Match"),
    ("if-none-match", "If-None-Match"),
    ("if-unmodified-since", "If-Unmodified-Since"),
    ("if-modified-since", "If-Modified-Since"),
    ("x-amz-copy-source-if-match", "x-amz-copy-source-If-Match"),
    ("x-amz-copy-source-if-none-match", "x-amz-copy-source-If-None-Match"),
    ("x-amz-copy-source-if-unmodified-since", "x-amz-copy-source-If-Unmodified-Since"),
    ("x-amz-copy-source-if-modified-since", "x-amz-copy-source-If-Modified-Since"),
];

/// The details of a request that its error document may contain.
pub(super) struct ErrorContext {
    method: Method,
    bucket: String,
    key: String,
    /// The first name in the query. If the request is for a subresource, it is the subresource's name.
    asked_for: Option<String>,
    upload: Option<String>,
    version: Option<String>,
    range: Option<String>,
    condition: Option<&'static str>,
    access_key: Option<String>,
}

impl ErrorContext {
    pub(super) fn of(head: &Parts, bucket: &str, key: &str) -> ErrorContext {
        let query = Query::parse(head.uri.query());
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let credential = header("authorization")
            .and_then(|text| text.split("Credential=").nth(1))
            .or_else(|| query.value("X-Amz-Credential"));
        let is_sent = |(name, _): &&(&str, &str)| head.headers.contains_key(*name);
        ErrorContext {
            method: head.method.clone(),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            asked_for: head.uri.query().and_then(|query| query.split(['=', '&']).next()).map(str::to_owned),
            upload: query.value("uploadId").map(str::to_owned),
            version: query.value("versionId").map(str::to_owned),
            range: header(RANGE.as_str()).map(str::to_owned),
            condition: CONDITIONS.iter().find(is_sent).map(|(_, name)| *name),
            access_key: credential.and_then(|text| text.split('/').next()).map(str::to_owned),
        }
    }

    /// Returns the elements that an error document with this code has, in addition to the code and the message.
    fn elements(&self, code: &str) -> Vec<(&'static str, String)> {
        let (bucket, key) = (|| self.bucket.clone(), || self.key.clone());
        match code {
            "NoSuchBucket"
            | "BucketAlreadyOwnedByYou"
            | "BucketAlreadyExists"
            | "BucketNotEmpty"
            | "InvalidBucketName"
            | "NoSuchTagSet"
            | "NoSuchCORSConfiguration"
            | "ObjectLockConfigurationNotFoundError" => vec![("BucketName", bucket())],
            "NoSuchKey" => vec![("Key", key())],
            "NoSuchVersion" => {
                vec![("Key", key()), ("VersionId", self.version.clone().unwrap_or_default())]
            }
            "NoSuchUpload" => vec![("UploadId", self.upload.clone().unwrap_or_default())],
            "PreconditionFailed" => {
                self.condition.iter().map(|name| ("Condition", (*name).to_owned())).collect()
            }
            "ConditionalRequestConflict" => {
                let condition = self.condition.iter().map(|name| ("Condition", (*name).to_owned()));
                condition.chain([("Key", key())]).collect()
            }
            "InvalidRange" => self.range.iter().map(|range| ("RangeRequested", range.clone())).collect(),
            "InvalidAccessKeyId" => {
                self.access_key.iter().map(|key| ("AWSAccessKeyId", key.clone())).collect()
            }
            "MethodNotAllowed" => {
                let kind = if self.key.is_empty() { "BUCKET" } else { "OBJECT" };
                vec![("Method", self.method.to_string()), ("ResourceType", kind.to_owned())]
            }
            "NotImplemented" => self.asked_for.iter().map(|name| ("Subresource", name.clone())).collect(),
            _ => {
                vec![("Resource", format!("/{}/{}", self.bucket, self.key).trim_end_matches('/').to_owned())]
            }
        }
    }
}

/// Returns the answer. If it is an error with a document, the document is completed.
pub(super) async fn complete(
    answer: Response<ResponseBody>,
    about: &ErrorContext,
    request_id: &str,
    host_id: &str,
) -> Response<ResponseBody> {
    // If an error has additional headers, `s3s` leaves out the `Content-Type` of the document.
    let is_xml = answer.headers().get(CONTENT_TYPE).is_none_or(|of| of.as_bytes().ends_with(b"/xml"));
    let status = answer.status();
    if !is_xml || !(status.is_client_error() || status.is_server_error() || status.is_redirection()) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap_or_default();
    if bytes.is_empty() {
        return Response::from_parts(head, ResponseBody::empty());
    }
    let bytes = match std::str::from_utf8(&bytes) {
        Ok(text) => completed(text, about, request_id, host_id).into_bytes(),
        Err(_) => bytes,
    };
    head.headers.insert(CONTENT_LENGTH, bytes.len().into());
    head.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/xml"));
    Response::from_parts(head, ResponseBody::whole(bytes))
}

fn completed(text: &str, about: &ErrorContext, request_id: &str, host_id: &str) -> String {
    let Some(end) = text.rfind("</Error>") else { return text.to_owned() };
    let has = |name: &str| text.contains(&format!("<{name}>"));
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map_or("", |(code, _)| code);
    let mut more = String::new();
    let mut add = |name: &str, value: &str| {
        if !has(name) {
            more.push_str(&format!("<{name}>{}</{name}>", escape(value)));
        }
    };
    if !text.contains("<Message") {
        add("Message", usual_message(code));
    }
    for (name, value) in about.elements(code) {
        add(name, &value);
    }
    add("RequestId", request_id);
    add("HostId", host_id);
    format!("{}{more}{}", &text[..end], &text[end..])
}

/// Returns S3's usual message for an error code, for errors without a message.
fn usual_message(code: &str) -> &'static str {
    match code {
        "AccessDenied" => "Access Denied",
        "BadDigest" => {
            "The Content-MD5 or checksum value that you specified did not match what the server received."
        }
        "IncompleteBody" => {
            "You did not provide the number of bytes specified by the Content-Length HTTP header."
        }
        "InvalidAccessKeyId" => "The AWS Access Key Id you provided does not exist in our records.",
        "InvalidArgument" => "Invalid Argument",
        "InvalidURI" => "Couldn't parse the specified URI.",
        "MalformedXML" => {
            "The XML you provided was not well-formed or did not validate against our published schema"
        }
        "MethodNotAllowed" => "The specified method is not allowed against this resource.",
        "NotImplemented" => "A header you provided implies functionality that is not implemented",
        "SignatureDoesNotMatch" => {
            "The request signature we calculated does not match the signature you provided. Check your key and signing \
             method."
        }
        _ => "We encountered an internal error. Please try again.",
    }
}

/// Removes a `Range` header that isn't a single valid range of bytes. S3 ignores such a header and sends the whole
/// object.
pub(super) fn drop_malformed_range(headers: &mut http::HeaderMap) {
    let Some(value) = headers.get(RANGE) else { return };
    if !value.to_str().is_ok_and(is_range) {
        headers.remove(RANGE);
    }
}

fn is_range(text: &str) -> bool {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match (first, last) {
        ("", last) => is_number(last),
        (first, "") => is_number(first),
        (first, last) if is_number(first) && is_number(last) => {
            let of = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
            of(first) <= of(last)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn about(headers: &[(&str, &str)], uri: &str) -> ErrorContext {
        let mut request = Request::builder().method("PUT").uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        ErrorContext::of(&request.body(()).unwrap().into_parts().0, "b", "a&b")
    }

    #[test]
    fn a_document_tells_what_it_is_about_and_the_ids() {
        let text = "<Error><Code>NoSuchKey</Code><Message>m</Message></Error>";
        let whole = completed(text, &about(&[], "/b/k"), "R", "H");
        assert_eq!(
            whole,
            "<Error><Code>NoSuchKey</Code><Message>m</Message><Key>a&amp;b</Key><RequestId>R</RequestId><HostId>H</HostId></Error>"
        );
        let failed = "<Error><Code>PreconditionFailed</Code><Message>m</Message></Error>";
        let whole = completed(failed, &about(&[("if-none-match", "*")], "/b/k"), "R", "H");
        assert!(whole.contains("<Condition>If-None-Match</Condition>"), "{whole}");
        let bare = completed("<Error><Code>InternalError</Code></Error>", &about(&[], "/b/k"), "R", "H");
        assert!(bare.contains("<Message>We encountered") && bare.contains("<Resource>/b/a&amp;b<"), "{bare}");
        let unknown = "<Error><Code>InvalidAccessKeyId</Code></Error>";
        let signed =
            about(&[("authorization", "AWS4-HMAC-SHA256 Credential=me/20260101/r/s3/aws4_request")], "/b/k");
        assert!(completed(unknown, &signed, "R", "H").contains("<AWSAccessKeyId>me</AWSAccessKeyId>"));
    }

    #[test]
    fn only_one_range_of_bytes_is_one() {
        for text in ["bytes=0-", "bytes=-5", "bytes=2-5", "bytes=5-5", "bytes=99-100"] {
            assert!(is_range(text), "{text}");
        }
        for text in ["bytes=5-2", "bytes=0-1,3-4", "items=0-1", "bytes=x-", "bytes=-", "bytes", "bytes=1-+2"]
        {
            assert!(!is_range(text), "{text}");
        }
    }
}
