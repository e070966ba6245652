//! PutObject.

use futures_util::StreamExt;
use http::{Extensions, HeaderMap, Method};
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Request, S3Response, S3Result, StdError, TrailingHeaders};

use super::checksums::{kind, set_checksum, stored};
use super::object_options::{options_of, tell_encryption};
use super::{
    S3Dialect, ambiguous, conditions, encryption, forms, object_lock, refusal, refusals, storage_error,
    versions,
};
use crate::body::aws_chunked;
use crate::checksum::WantedChecksums;
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, NewObject, now_us};

pub(super) async fn put(
    dialect: &S3Dialect,
    request: S3Request<PutObjectInput>,
) -> S3Result<S3Response<PutObjectOutput>> {
    let S3Request { mut input, method, mut headers, trailing_headers, extensions, .. } = request;
    if method == Method::POST {
        forms::set_fields(&mut input, &extensions);
        forms::set_headers(dialect, &input, &mut headers)?;
    }
    dialect.objects.bucket_to_write(&input.bucket).map_err(refusal)?;
    let precondition =
        conditions::of_write(dialect.habits.conditions.put, input.if_match, input.if_none_match)?;
    let options = options_of!(dialect, input);
    object_lock::check_integrity(dialect, &input.bucket, &options, &headers)?;
    let begun = now_us();
    let announced = dialect.announced(&headers)?;
    let wanted = announced.wanted(None, dialect.config.md5_etags);
    let written = receive(dialect, input.body, wanted, refusals::len(&headers)).await?;
    announced.check(&written.sums, trailers(trailing_headers, &extensions).as_ref())?;
    let checksum = dialect.habits.checksums.then(|| stored(&written.sums, &announced)).flatten();
    let attributes = Attributes {
        content_type: input.content_type,
        content_encoding: content_encoding(input.content_encoding),
        cache_control: input.cache_control,
        content_disposition: input.content_disposition,
        content_language: input.content_language,
        storage_class: input.storage_class.map(|class| class.as_str().to_owned()),
        expires: expires(&headers),
        website_redirect: redirect(input.website_redirect_location)?,
        metadata: input.metadata.unwrap_or_default().into_iter().collect(),
        options,
        ..Default::default()
    };
    dialect.conflict(&input.bucket, &input.key, &precondition, begun)?;
    if precondition.etag_match.is_some() {
        // If the object of `If-Match` doesn't exist, S3 answers 404 instead of 412.
        dialect.objects.find(&input.bucket, &input.key).map_err(refusal)?;
    }
    let encryption = attributes.options.encryption.as_ref();
    let etag = encryption::etag(dialect, &input.bucket, encryption, written.sums.crc32c);
    let new = NewObject { attributes, etag, checksum: checksum.clone(), ..Default::default() };
    let object =
        dialect.objects.commit(&input.bucket, &input.key, written, new, &precondition).map_err(refusal)?;
    let mut output = PutObjectOutput {
        e_tag: Some(ETag::Strong(object.etag.clone())),
        version_id: versions::reported(dialect, &input.bucket, &object),
        ..Default::default()
    };
    tell_encryption!(output, &object.attributes.options.encryption);
    if let Some(checksum) = checksum {
        output.checksum_type = Some(kind(checksum.composite));
        set_checksum!(output, checksum.algorithm, checksum.value);
    }
    Ok(ambiguous::about(S3Response::new(output), &object))
}

/// Stores the bytes of a body.
pub(super) async fn receive(
    dialect: &S3Dialect,
    body: Option<StreamingBlob>,
    wanted: WantedChecksums,
    expected: Option<u64>,
) -> S3Result<WrittenContent> {
    let mut writer = dialect.objects.writer(wanted, expected);
    if let Some(mut body) = body {
        while let Some(bytes) = body.next().await {
            writer.write(&bytes.map_err(broken)?).map_err(storage_error)?;
        }
    }
    Ok(writer.finish())
}

/// Returns the trailers of a body that has been read to its end. Either `s3s` or our own reader of `aws-chunked` frames
/// has them.
pub(super) fn trailers(signed: Option<TrailingHeaders>, extensions: &Extensions) -> Option<HeaderMap> {
    let signed = signed.and_then(|trailers| trailers.take());
    signed.or_else(|| extensions.get::<aws_chunked::Trailers>()?.read().cloned())
}

/// Returns the error for a body that broke off, or whose chunk signatures or payload hash didn't match.
fn broken(error: StdError) -> S3Error {
    let text = error.to_string().to_ascii_lowercase();
    let code = if text.contains("signature") {
        S3ErrorCode::SignatureDoesNotMatch
    } else if text.contains("checksum") || text.contains("sha256") || text.contains("mismatch") {
        S3ErrorCode::BadDigest
    } else {
        S3ErrorCode::IncompleteBody
    };
    S3Error::with_source(code, error)
}

/// Returns the text of the header `Expires`, which may be any text and not only a date.
pub(super) fn expires(headers: &HeaderMap) -> Option<String> {
    headers.get(http::header::EXPIRES).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Checks the location to which a website redirects its visitors.
pub(super) fn redirect(location: Option<String>) -> S3Result<Option<String>> {
    let begins =
        |location: &String| ["/", "http://", "https://"].iter().any(|with| location.starts_with(with));
    if location.as_ref().is_none_or(begins) {
        return Ok(location);
    }
    let message = "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.";
    let mut error = S3Error::with_message(S3ErrorCode::Custom("InvalidRedirectLocation".into()), message);
    error.set_status_code(http::StatusCode::BAD_REQUEST);
    Err(error)
}

/// Removes `aws-chunked` from a content encoding. It describes only the transfer, so it isn't stored with the object.
pub(super) fn content_encoding(header: Option<String>) -> Option<String> {
    let header = header?;
    let codings = header.split(',').map(str::trim);
    let kept: Vec<&str> = codings.filter(|coding| !coding.is_empty() && *coding != "aws-chunked").collect();
    (!kept.is_empty()).then(|| kept.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_chunked_is_taken_off_the_content_encoding() {
        let encoding = |text: &str| content_encoding(Some(text.to_owned()));
        assert_eq!(encoding("aws-chunked"), None);
        assert_eq!(encoding("gzip, aws-chunked").as_deref(), Some("gzip"));
        assert_eq!(encoding("deflate, gzip").as_deref(), Some("deflate, gzip"));
    }
}
