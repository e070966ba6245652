//! Forms by which browsers upload (PostObject). `s3s` reads them, and checks their policies and signatures.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html>

use std::ops::Range;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPIRES, LOCATION};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quick_xml::Reader;
use quick_xml::events::Event;
use s3s::dto::{ObjectCannedACL, PutObjectInput, TimestampFormat};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use super::refusals::{self, Refusal};
use super::{S3Dialect, error_document};
use crate::body::{RequestBody, ResponseBody};
use crate::checksum::from_base64;

/// The maximum size of a form's file in bytes. The whole form is held in memory, and `s3s` makes a copy of the file. The
/// connection counts the form once with its other documents, which have 16 MiB in all.
pub(super) const FILE_BYTES_MAX: u64 = 8 << 20;

/// The maximum size of a form in bytes. `s3s` limits its single fields.
const FORM_BYTES_MAX: usize = FILE_BYTES_MAX as usize + (1 << 20);

/// The part of a form's key that S3 replaces by the name of the file.
const FILE_NAME: &[u8] = b"${filename}";

/// Returns true for the upload of a form.
pub(super) fn is(head: &Parts, key: &str) -> bool {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    head.method == Method::POST && key.is_empty() && kind.starts_with("multipart/form-data")
}

/// The fields of a form that `s3s` doesn't know.
#[derive(Debug, Clone, Default)]
struct UnknownFields {
    acl: Option<String>,
    /// The tags as `x-amz-tagging` writes them.
    tagging: Option<String>,
}

/// Reads a form, and does what `s3s` leaves out. It replaces `${filename}` in the key, and keeps the access control
/// list and the tags for [`set_fields`]. It refuses a policy without a signature, and a policy that expires at a
/// malformed date.
pub(super) async fn prepared(head: &mut Parts, mut body: RequestBody) -> Result<RequestBody, Refusal> {
    let bad = |code, message| Err((StatusCode::BAD_REQUEST, code, message));
    let bytes = match body.collect(FORM_BYTES_MAX).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return bad("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size"),
        Err(_) => return bad("IncompleteBody", "The request body terminated unexpectedly"),
    };
    let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary =
        kind.split_once("boundary=").map_or("", |(_, rest)| rest.split(';').next().unwrap_or(rest));
    let Some(fields) = fields(&bytes, boundary.trim().trim_matches('"')) else {
        let message = "The body of your POST request is not well-formed multipart/form-data.";
        return bad("MalformedPOSTRequest", message);
    };
    let named = |name: &str| fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    if let Some(policy) = named("policy") {
        let is_signed = named("signature").or(named("x-amz-signature")).is_some();
        if !is_signed && named("AWSAccessKeyId").or(named("x-amz-credential")).is_some() {
            let message = "Bucket POST must contain a field named 'signature'. If it is specified, please check the \
                           order of the fields.";
            return bad("InvalidArgument", message);
        }
        if has_malformed_expiration(&bytes[policy.value.clone()]) {
            return bad("InvalidPolicyDocument", "Invalid Policy: Invalid 'expiration' value.");
        }
    }
    let text = |name: &str| named(name).map(|field| String::from_utf8_lossy(&bytes[field.value.clone()]));
    let Some(tagging) = text("tagging").map(|xml| tags(&xml)).map_or(Some(None), |tags| tags.map(Some))
    else {
        let message =
            "The XML you provided was not well-formed or did not validate against our published schema";
        return bad("MalformedXML", message);
    };
    head.extensions.insert(UnknownFields { acl: text("acl").map(Into::into), tagging });
    let file_name = fields.iter().find_map(|field| field.file_name.as_deref());
    let replaced = named("key").and_then(|key| {
        let key = key.value.clone();
        let at = position(&bytes[key.clone()], FILE_NAME)? + key.start;
        Some([&bytes[..at], file_name?.as_bytes(), &bytes[at + FILE_NAME.len()..]].concat())
    });
    Ok(body.replaced(replaced.map_or(bytes, Into::into)))
}

/// A field of a form.
#[derive(Debug, PartialEq, Eq)]
struct Field {
    name: String,
    /// The name of the field's file, without folders.
    file_name: Option<String>,
    /// The position of the value in the form.
    value: Range<usize>,
}

/// Returns the fields up to the file, or `None` if the form is malformed.
fn fields(form: &[u8], boundary: &str) -> Option<Vec<Field>> {
    let delimiter = format!("\r\n--{boundary}");
    let mut fields = Vec::new();
    let mut at = position(form, &delimiter.as_bytes()[2..])? + delimiter.len() - 2;
    while form[at..].starts_with(b"\r\n") {
        let start = at + position(&form[at..], b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&form[at..start]);
        let end = start + position(&form[start..], delimiter.as_bytes())?;
        let name = parameter(&head, "name")?.to_owned();
        let file_name = parameter(&head, "filename").filter(|_| name.eq_ignore_ascii_case("file"));
        let file_name = file_name.and_then(|path| path.rsplit(['/', '\\']).next()).map(str::to_owned);
        let is_last = file_name.is_some();
        fields.push(Field { name, file_name, value: start..end });
        if is_last {
            break;
        }
        at = end + delimiter.len();
    }
    Some(fields)
}

/// Returns a parameter of the header `Content-Disposition`.
fn parameter<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = head.split_once(&format!("; {name}=\""))?;
    rest.split('"').next()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Returns the tags of an XML document in the format of a URL's query, or `None` if the document is malformed.
fn tags(xml: &str) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    let (mut pairs, mut element, mut text) = (Vec::new(), Vec::new(), String::new());
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                element.push(start.local_name().as_ref().to_vec());
                text.clear();
            }
            Event::Empty(_) => text.clear(),
            Event::Text(part) => text.push_str(&part.decode().ok()?),
            Event::GeneralRef(part) => {
                let escaped = format!("&{};", part.decode().ok()?);
                text.push_str(&quick_xml::escape::unescape(&escaped).ok()?);
            }
            Event::End(_) => {
                let encoded = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
                match element.pop()?.as_slice() {
                    b"Key" => pairs.push((encoded, String::new())),
                    b"Value" => pairs.last_mut()?.1 = encoded,
                    _ => {}
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    (element.is_empty() && xml.contains("<Tagging")).then(|| pairs.join("&"))
}

/// Returns true if a policy's date isn't written like `2026-01-31T00:00:00.000Z`. `s3s` also accepts a space instead of
/// the `T`, and time zones.
fn has_malformed_expiration(policy: &[u8]) -> bool {
    let json = std::str::from_utf8(policy).ok().and_then(from_base64);
    let json = json.and_then(|json| serde_json::from_slice::<serde_json::Value>(&json).ok());
    let date = json.as_ref().and_then(|json| json["expiration"].as_str());
    date.is_some_and(|date| date.as_bytes().get(10) != Some(&b'T') || !date.ends_with('Z'))
}

/// Sets the access control list and the tags of a form's object.
pub(super) fn set_fields(input: &mut PutObjectInput, extensions: &Extensions) {
    let fields = extensions.get::<UnknownFields>().cloned().unwrap_or_default();
    input.acl = input.acl.take().or(fields.acl.map(ObjectCannedACL::from));
    input.tagging = input.tagging.take().or(fields.tagging);
}

/// Sets the headers that a PutObject would have in place of the form's fields. Returns an error if a PutObject with
/// these headers would be refused.
pub(super) fn set_headers(
    dialect: &S3Dialect,
    input: &PutObjectInput,
    headers: &mut HeaderMap,
) -> S3Result<()> {
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

/// Changes the answer of `s3s` to a form where it differs from S3's answer.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::base64;

    #[test]
    fn fields_end_at_the_file_whose_name_has_no_folders() {
        let form = "--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk\r\n--b\r\nContent-Disposition: form-data; \
                    name=\"file\"; filename=\"a\\b/c.txt\"\r\n\r\nhello\r\n--b--\r\n";
        let fields = fields(form.as_bytes(), "b").unwrap();
        let found: Vec<_> =
            fields.iter().map(|field| (field.name.as_str(), &form[field.value.clone()])).collect();
        assert_eq!(found, [("key", "k"), ("file", "hello")]);
        assert_eq!(fields[1].file_name.as_deref(), Some("c.txt"));
        for malformed in ["", "--b", "--b\r\n", "--b\r\n\r\n--b", "--b\r\nname\r\n\r\nvalue\r\n--b--"] {
            assert_eq!(super::fields(malformed.as_bytes(), "b").unwrap_or_default(), [], "{malformed:?}");
        }
    }

    #[test]
    fn tags_of_a_form_are_an_xml_document() {
        let tag = |key: &str, value: &str| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
        let xml = format!("<Tagging><TagSet>{}{}</TagSet></Tagging>", tag("a", "1 &amp; 2"), tag("b", ""));
        assert_eq!(tags(&xml).as_deref(), Some("a=1%20%26%202&b="));
        for malformed in ["", "a=b", "<Tagging><TagSet>", "<Tagging></Tag>"] {
            assert_eq!(tags(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn dates_of_policies_are_in_utc_with_a_t() {
        for (date, is_malformed) in [
            ("2127-01-01T00:00:00Z", false),
            ("2127-01-01T00:00:00.000Z", false),
            ("2127-01-01 00:00:00+00:00", true),
            ("soon", true),
        ] {
            let policy = base64(format!("{{\"expiration\": \"{date}\"}}").as_bytes());
            assert_eq!(has_malformed_expiration(policy.as_bytes()), is_malformed, "{date}");
        }
        assert!(!has_malformed_expiration(b"no policy"));
    }
}
