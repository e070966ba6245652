//! Forms by which browsers upload (PostObject). `s3s` reads them, and checks their policies and signatures.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html>

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPIRES, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use s3s::dto::{PutObjectInput, TimestampFormat};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use super::refusals::{self, Refusal};
use super::{Dialect, error_document};
use crate::body::ResponseBody;

/// The maximum size of a form's file in bytes. `s3s` holds the whole file in memory. The connection counts it with its
/// other documents, which have 16 MiB in all.
pub(super) const FILE_BYTES_MAX: u64 = 8 << 20;

/// Returns true for the upload of a form.
pub(super) fn is(head: &Parts, key: &str) -> bool {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    head.method == Method::POST && key.is_empty() && kind.starts_with("multipart/form-data")
}

/// Sets the headers that a PutObject would have in place of the form's fields, and refuses what a PutObject is refused
/// for.
pub(super) fn set_headers(
    dialect: &Dialect,
    input: &PutObjectInput,
    headers: &mut HeaderMap,
) -> S3Result<()> {
    if input.key.contains("${filename}") {
        return Err(s3_error!(
            NotImplemented,
            "This store doesn't replace ${{filename}} in the key of a form."
        ));
    }
    headers.remove(CONTENT_LENGTH);
    let mut set = |name: HeaderName, value: &str| -> S3Result<()> {
        let value =
            HeaderValue::from_str(value).map_err(|_| s3_error!(InvalidArgument, "Invalid form field"))?;
        headers.insert(name, value);
        Ok(())
    };
    let class = input.storage_class.as_ref().map(|class| class.as_str());
    for (name, value) in [
        ("content-md5", input.content_md5.as_deref()),
        ("x-amz-acl", input.acl.as_ref().map(|acl| acl.as_str())),
        ("x-amz-checksum-crc32", input.checksum_crc32.as_deref()),
        ("x-amz-checksum-crc32c", input.checksum_crc32c.as_deref()),
        ("x-amz-checksum-crc64nvme", input.checksum_crc64nvme.as_deref()),
        ("x-amz-checksum-sha1", input.checksum_sha1.as_deref()),
        ("x-amz-checksum-sha256", input.checksum_sha256.as_deref()),
        ("x-amz-storage-class", class),
    ] {
        if let Some(value) = value {
            set(HeaderName::from_static(name), value)?;
        }
    }
    let mut date = Vec::new();
    if let Some(expires) = &input.expires
        && expires.format(TimestampFormat::HttpDate, &mut date).is_ok()
    {
        set(EXPIRES, &String::from_utf8_lossy(&date))?;
    }
    for (name, value) in input.metadata.iter().flatten() {
        let name = HeaderName::try_from(format!("x-amz-meta-{name}"))
            .map_err(|_| s3_error!(InvalidArgument, "Invalid form field"))?;
        set(name, value)?;
    }
    let refusal = refusals::of_new_object(&Method::POST, headers)
        .or_else(|| refusals::of_acl(headers, dialect.accept_unenforced))
        .or_else(|| refusals::checksum_refusal(headers).filter(|_| dialect.habits.checksums));
    refusal.map_or(Ok(()), |refusal| Err(refused(refusal)))
}

fn refused((status, code, message): Refusal) -> S3Error {
    let mut error = S3Error::with_message(S3ErrorCode::Custom(code.into()), message);
    error.set_status_code(status);
    error
}

/// Returns the answer to a form as S3 gives it, where that of `s3s` differs.
pub(super) async fn finished(answer: Response<ResponseBody>) -> Response<ResponseBody> {
    let (mut head, body) = answer.into_parts();
    if let Some(location) = head.headers.get(LOCATION).and_then(|value| value.to_str().ok())
        && let Some((before, etag)) = location.rsplit_once("&etag=")
        && let Ok(quoted) = HeaderValue::from_str(&format!("{before}&etag=%22{etag}%22"))
    {
        head.headers.insert(LOCATION, quoted);
    }
    if head.status != StatusCode::BAD_REQUEST {
        return Response::from_parts(head, body);
    }
    let bytes = body.collect().await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let is_unmet = text.contains("<Code>InvalidPolicyDocument<")
        && (text.contains("Policy condition") || text.contains("Bucket in form field"));
    if is_unmet {
        let message = "Invalid according to Policy: Policy Condition failed";
        return error_document(StatusCode::FORBIDDEN, "AccessDenied", message);
    }
    Response::from_parts(head, ResponseBody::whole(bytes))
}
