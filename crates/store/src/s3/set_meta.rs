//! `set_meta`: a copy of an object onto itself, with another description.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html>

use http::Method;

use super::S3;
use super::conditions::unquoted;
use super::copy::{Copied, NO_PROGRESS_MAX, source};
use super::head::object_target;
use super::headers::describe;
use crate::encode::Query;
use crate::encryption::Keyed;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, MetaChange, ObjectId, ObjectMeta, Operation, PutOptions, Version, xml};

/// The largest object that one request copies.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/copy-object.html>
const COPY_BYTES_MAX: u64 = 5 << 30;

fn request(
    id: &ObjectId,
    options: &PutOptions,
    version: Option<&Version>,
    kms_key: Option<&str>,
) -> Result<Outgoing, String> {
    let outgoing = source(Outgoing::new(Method::PUT, object_target(id, &Query::new())), id, version)?;
    let mut outgoing = describe(outgoing, options, kms_key)
        .and_then(|outgoing| outgoing.header("x-amz-metadata-directive", "REPLACE"))
        .map_err(|e| e.to_string())?
        .keyed(Keyed::Copy);
    outgoing.no_progress = Some(NO_PROGRESS_MAX);
    outgoing.doubtful = true;
    Ok(outgoing)
}

impl S3 {
    pub(crate) async fn set_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        if id.version.is_some() {
            let message = "S3 changes no version: what is changed is another one";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        let meta = self.head(id, None).await.map_err(|e| e.within(Operation::SetMeta))?;
        if meta.size > COPY_BYTES_MAX {
            let message = "it is larger than 5 GiB, and S3 changes an object's description by copying it";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        // A weak tag can't be a condition.
        let version = meta
            .version
            .as_ref()
            .filter(|version| !matches!(version, Version::ETag(tag) if tag.starts_with("W/")));
        let options = change.in_lower_case().applied(&meta);
        let outgoing = request(id, &options, version, self.kms_key.as_deref())
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let sent = exchange.send(&outgoing).await?;
        let copied: Copied = xml::read(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer is no copy result: {e}")))?;
        let mut changed = ObjectMeta::new(id.clone(), meta.size);
        changed.etag = copied.etag.as_deref().map(unquoted);
        changed.version = changed.etag.clone().map(Version::ETag);
        changed.metadata = Some(options.metadata);
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mentioned_is_sent_again() {
        let id = ObjectId::new("b", "a b");
        let mut meta = ObjectMeta::new(id.clone(), 1);
        meta.content_type = Some("text/plain".into());
        meta.storage_class = Some("STANDARD_IA".into());
        meta.metadata = Some([("kept".to_owned(), "1".to_owned())].into());
        let options = MetaChange::default().cache_control("no-store").applied(&meta);
        let request = request(&id, &options, Some(&Version::ETag("e".into())), None).expect("a request");
        assert_eq!(request.target, "/a%20b");
        for (name, value) in [
            ("x-amz-copy-source", "/b/a%20b"),
            ("x-amz-copy-source-if-match", "\"e\""),
            ("x-amz-metadata-directive", "REPLACE"),
            ("content-type", "text/plain"),
            ("cache-control", "no-store"),
            ("x-amz-storage-class", "STANDARD_IA"),
            ("x-amz-meta-kept", "1"),
        ] {
            assert_eq!(request.headers[name], value, "{name}");
        }
        assert!(!request.headers.contains_key("x-amz-tagging-directive"), "tags stay");
    }
}
