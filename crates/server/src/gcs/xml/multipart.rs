//! Multipart uploads of the XML API.

use std::sync::Arc;

use http::header::ETAG;
use http::{HeaderName, HeaderValue, StatusCode};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::{ApiError, ApiResult, XmlCall, XmlDocument, attributes, empty, quoted, receive, stored};
use crate::checksum::base64;
use crate::gcs::media::insert;
use crate::gcs::resource::rfc3339;
use crate::gcs::upload::ExpectedChecksums;
use crate::gcs::{check_name, encryption};
use crate::objects::precondition::Precondition;
use crate::objects::uploads::{AssemblyError, NamedPart, OpenUpload, UploadPart};
use crate::objects::{NewObject, now_us, uploads};

/// The maximum size of a list of parts. It is enough for 10,000 parts with their ETags.
const COMPLETION_BYTES_MAX: usize = 4 << 20;
const PARTS_MAX: u32 = 10_000;

pub(super) fn begin(call: &XmlCall<'_>) -> ApiResult {
    check_name(call.key)?;
    let attributes = attributes(call.state, &call.head.headers)?;
    let begun = call.state.objects.begin_upload(call.bucket, call.key, attributes, None);
    let upload = begun.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    let mut document = XmlDocument::open("InitiateMultipartUploadResult");
    document.element("Bucket", call.bucket);
    document.element("Key", call.key);
    document.element("UploadId", &upload.id);
    Ok(document.close())
}

pub(super) async fn part(mut call: XmlCall<'_>) -> ApiResult {
    let upload = find(&call)?;
    let number = call.query.value("partNumber").and_then(|number| number.parse().ok());
    let number = number
        .filter(|number| (1..=PARTS_MAX).contains(number))
        .ok_or_else(|| ApiError::invalid(format!("partNumber must be a number from 1 to {PARTS_MAX}")))?;
    encryption::admit_to(encryption::sent(&call.head.headers)?.as_ref(), &upload.attributes.options)?;
    let expected = ExpectedChecksums::in_headers(&call.head.headers)?;
    let written = receive(call.state, &mut call.body, &expected).await?;
    let sums = written.sums.clone();
    let etag = sums
        .md5
        .map_or_else(|| format!("{:08x}-{:x}", sums.crc32c, sums.size), |md5| crate::checksum::hex(&md5));
    let mut answer = empty(StatusCode::OK);
    insert(answer.headers_mut(), ETAG, &quoted(&etag));
    let name = HeaderName::from_static("x-goog-hash");
    let hashes = [
        Some(format!("crc32c={}", base64(&sums.crc32c.to_be_bytes()))),
        sums.md5.map(|md5| format!("md5={}", base64(&md5))),
    ];
    for hash in hashes.into_iter().flatten() {
        if let Ok(hash) = HeaderValue::try_from(hash) {
            answer.headers_mut().append(name.clone(), hash);
        }
    }
    let part = UploadPart { number, etag, written, modified_us: now_us() };
    call.state.objects.uploads.keep(&upload, part).map_err(|error| ApiError::io(&error))?;
    Ok(answer)
}

pub(super) async fn complete(mut call: XmlCall<'_>) -> ApiResult {
    let upload = find(&call)?;
    if super::conditions::in_headers(&call.head.headers)? != Precondition::default() {
        return Err(ApiError::invalid("Multipart uploads take no preconditions."));
    }
    let body = call.body.collect(COMPLETION_BYTES_MAX).await.map_err(ApiError::interrupted)?;
    let body = body.ok_or_else(|| ApiError::parse("the list of parts is larger than 4 MiB"))?;
    let named = parse(&body).ok_or_else(|| ApiError::parse("the list of parts can't be read"))?;
    let selected =
        uploads::select_parts(&upload.parts(), &named, call.state.config.part_size_min).map_err(misfit)?;
    let new = NewObject {
        attributes: upload.attributes.clone(),
        etag: Some(uploads::etag_of_parts(&selected)),
        components: Some(selected.len() as u32),
        ..Default::default()
    };
    let written = uploads::join_parts(&selected);
    let object = call
        .state
        .objects
        .commit(call.bucket, call.key, written, new, &Precondition::default())
        .map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    call.state.objects.uploads.remove(&upload.id);
    let mut document = XmlDocument::open("CompleteMultipartUploadResult");
    document.element("Location", &format!("{}/{}/{}", call.state.url, call.bucket, call.key));
    document.element("Bucket", call.bucket);
    document.element("Key", call.key);
    document.element("ETag", &quoted(&object.etag));
    let mut answer = document.close();
    for (name, value) in stored(&object).headers() {
        if name.as_str().starts_with("x-goog-") {
            answer.headers_mut().append(name, value.clone());
        }
    }
    Ok(answer)
}

pub(super) fn abort(call: &XmlCall<'_>) -> ApiResult {
    let upload = find(call)?;
    call.state.objects.uploads.remove(&upload.id);
    Ok(empty(StatusCode::NO_CONTENT))
}

pub(super) fn list_parts(call: &XmlCall<'_>) -> ApiResult {
    let upload = find(call)?;
    let number = |name, otherwise| {
        super::conditions::number(name, call.query.value(name)).map(|n| n.unwrap_or(otherwise))
    };
    let after = number("part-number-marker", 0)?;
    let max = number("max-parts", 1000)?.min(1000) as usize;
    let parts: Vec<_> =
        upload.parts().values().filter(|part| u64::from(part.number) > after).cloned().collect();
    let mut document = XmlDocument::open("ListPartsResult");
    document.element("Bucket", call.bucket);
    document.element("Key", call.key);
    document.element("UploadId", &upload.id);
    document.element("MaxParts", &max.to_string());
    document.element("IsTruncated", if parts.len() > max { "true" } else { "false" });
    if let Some(last) = parts.iter().take(max).next_back() {
        document.element("NextPartNumberMarker", &last.number.to_string());
    }
    for part in parts.iter().take(max) {
        document.begin("Part");
        document.element("PartNumber", &part.number.to_string());
        document.element("LastModified", &rfc3339(part.modified_us));
        document.element("ETag", &quoted(&part.etag));
        document.element("Size", &part.written.sums.size.to_string());
        document.end();
    }
    Ok(document.close())
}

pub(super) fn list_uploads(call: &XmlCall<'_>) -> ApiResult {
    let found = call.state.objects.bucket(call.bucket);
    found.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let prefix = call.query.value("prefix").unwrap_or_default();
    let mut document = XmlDocument::open("ListMultipartUploadsResult");
    document.element("Bucket", call.bucket);
    document.element("IsTruncated", "false");
    for upload in call.state.objects.uploads.of(call.bucket) {
        if upload.key.starts_with(prefix) {
            document.begin("Upload");
            document.element("Key", &upload.key);
            document.element("UploadId", &upload.id);
            document.element("Initiated", &rfc3339(upload.initiated_us));
            document.end();
        }
    }
    Ok(document.close())
}

fn find(call: &XmlCall<'_>) -> Result<Arc<OpenUpload>, ApiError> {
    let id = call.query.value("uploadId").unwrap_or_default();
    let upload = call.state.objects.uploads.find(call.bucket, call.key, id);
    upload.ok_or_else(|| ApiError::not_found("The requested upload was not found."))
}

fn misfit(misfit: AssemblyError) -> ApiError {
    let (reason, message) = match misfit {
        AssemblyError::Empty => ("parseError", "You must specify at least one part.".to_owned()),
        AssemblyError::Order => {
            ("invalidPartOrder", "The list of parts was not in ascending order.".to_owned())
        }
        AssemblyError::Unknown { number } => {
            ("invalidPart", format!("Part {number} is missing or its entity tag doesn't match."))
        }
        AssemblyError::Unequal { number } => ("invalidPart", format!("Part {number} has another size.")),
        AssemblyError::TooSmall { number, size } => (
            "entityTooSmall",
            format!("Part {number} has {size} bytes, which is below the smallest allowed size."),
        ),
    };
    ApiError { reason: reason.into(), ..ApiError::invalid(message) }
}

/// Reads the parts of a `CompleteMultipartUpload` document, in any namespace.
fn parse(body: &[u8]) -> Option<Vec<NamedPart>> {
    let mut reader = Reader::from_reader(body);
    let mut parts = Vec::new();
    let (mut number, mut etag, mut element) = (None, None, Vec::new());
    let mut text = String::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                element = start.local_name().as_ref().to_vec();
                text.clear();
            }
            Event::Text(chunk) => text.push_str(&chunk.decode().ok()?),
            // The quotes of an ETag may be written as `&quot;`. Clients use no other entities here.
            Event::GeneralRef(reference) if &*reference == b"quot" => text.push('"'),
            Event::GeneralRef(_) => return None,
            Event::End(end) => match end.local_name().as_ref() {
                b"PartNumber" if element == b"PartNumber" => number = Some(text.trim().parse().ok()?),
                b"ETag" if element == b"ETag" => etag = Some(text.trim().trim_matches('"').to_owned()),
                b"Part" => parts.push(NamedPart { number: number.take()?, etag: etag.take() }),
                _ => {}
            },
            Event::Eof => return Some(parts),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_with_quotes_in_any_form_and_any_namespace() {
        let body = br#"<?xml version="1.0"?><CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part>
            <Part><ETag>&quot;b&quot;</ETag><PartNumber>2</PartNumber></Part>
            <Part><PartNumber>3</PartNumber></Part></CompleteMultipartUpload>"#;
        let named = parse(body).unwrap();
        let etags: Vec<_> = named.iter().map(|part| (part.number, part.etag.as_deref())).collect();
        assert_eq!(etags, [(1, Some("a")), (2, Some("b")), (3, None)]);
    }

    #[test]
    fn what_is_no_list_of_parts_is_refused() {
        for body in ["<Part><PartNumber>x</PartNumber></Part>", "<Part></Part>", "<Part>", "<a></b>"] {
            let found = parse(body.as_bytes());
            assert!(found.is_none_or(|parts| parts.is_empty()), "{body}");
        }
    }
}
