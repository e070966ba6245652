//! `sign`: makes URLs with a signature in the query.

use std::time::SystemTime;

use super::address::{RequestAddress, is_directory};
use super::head::object_target;
use super::{S3, encryption};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::Exchange;
use crate::presign::{as_text, ending};
use crate::{Error, ErrorKind, Method, ObjectId, Operation, SignOptions, SignedUrl};

impl S3 {
    /// Returns a URL of an object, signed at `now` of this machine's clock. It sends a request only to find out the
    /// bucket's region, or to open the session of a directory bucket.
    pub(crate) async fn sign_url(
        &self,
        id: &ObjectId,
        options: &SignOptions,
        now: SystemTime,
    ) -> Result<SignedUrl, Error> {
        let exchange = Exchange::object(self, Operation::Sign, id);
        let invalid = |why: String| exchange.error(ErrorKind::Invalid, why);
        let on = |error: Error| error.on_object(crate::Provider::S3, id);
        let expires_s = options.expires_s().map_err(invalid)?;
        if self.encryption.customer_key.is_some() {
            return Err(invalid(
                "a signed URL can't carry a customer's key; sign it without the key".to_owned(),
            ));
        }
        let mut query = QueryString::new();
        for (name, value) in options.own_query("X-Amz-").map_err(invalid)? {
            query = query.and(name, value);
        }
        // The requester-pays setting may be in the query instead of a header, so that the URL's user needn't send the
        // header (https://docs.aws.amazon.com/AmazonS3/latest/userguide/ObjectsinRequesterPaysBuckets.html).
        for (name, value) in &self.headers {
            query = query.and(name.as_str(), value.to_str().unwrap_or_default());
        }
        let mut headers = options.signed_headers(&self.added_headers).map_err(invalid)?;
        if matches!(options.method, Method::Put | Method::Post) {
            if let Some(key) = &self.kms_key {
                let key = http::HeaderValue::from_str(key).map_err(|_| {
                    invalid("the KMS key has characters that a header can't carry".to_owned())
                })?;
                encryption::with_kms_key(&mut headers, &key);
            }
            encryption::apply(&mut headers, KeyUse::New, &self.encryption);
        }
        // The region must be known before signing. S3 would redirect a URL with the wrong region, but the signature is
        // valid for one region only.
        let region = self.region(&id.bucket, true).await;
        let RequestAddress { origin, target, service, region } =
            self.address.locate(&id.bucket, &region, &object_target(id, &query)).map_err(on)?;
        let session = match is_directory(&id.bucket) && !self.credentials.is_anonymous() {
            true => Some(self.session_until(&id.bucket).await.map_err(on)?),
            false => None,
        };
        if session.is_some() {
            encryption::without_managed(&mut headers);
        }
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.method = http::Method::from_bytes(options.method.name().as_bytes()).unwrap_or_default();
        parts.uri = format!("{origin}{target}").parse().map_err(|e| invalid(format!("no URL: {e}")))?;
        parts.headers = headers;
        let at = self.clock.at(now);
        let (url, end) = self
            .credentials
            .presign(session.as_ref(), (service, &region), expires_s, at, &parts)
            .await
            .map_err(on)?;
        let (expires_at, ends_early) =
            ending(now, expires_s, end, "the credentials that signed it expire at that time");
        let headers = as_text(&parts.headers).map_err(invalid)?;
        Ok(SignedUrl { url, expires_at, ends_early, headers })
    }
}
