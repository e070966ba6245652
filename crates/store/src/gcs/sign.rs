//! `sign`: makes URLs of the XML API with Google's V4 signature in the query.

use std::time::{Duration, SystemTime};

use super::Gcs;
use crate::credentials::goog4;
use crate::encode::{component, path};
use crate::exchange::Exchange;
use crate::presign::{as_text, ending};
use crate::{Error, ErrorKind, Method, ObjectId, Operation, SignOptions, SignedUrl};

/// An IAM signature is certain to be valid for this long. Afterwards Google may replace the key that it keeps for the
/// account (<https://cloud.google.com/storage/docs/authentication/creating-signatures>).
const ROTATED_AFTER: Duration = Duration::from_secs(12 * 3600);

impl Gcs {
    /// Returns a URL of an object, signed at `now`.
    pub(crate) async fn sign_url(
        &self,
        id: &ObjectId,
        options: &SignOptions,
        now: SystemTime,
    ) -> Result<SignedUrl, Error> {
        let exchange = Exchange::object(self, Operation::Sign, id);
        let invalid = |why: String| exchange.error(ErrorKind::Invalid, why);
        let on = |error: Error| error.on_object(crate::Provider::Gcs, id);
        let expires_s = options.expires_s().map_err(invalid)?;
        if self.encryption.customer_key.is_some() {
            return Err(invalid(
                "a signed URL can't carry a customer's key; sign it without the key".to_owned(),
            ));
        }
        let mut query = options.own_query("X-Goog-").map_err(invalid)?.to_vec();
        // The query parameter `userProject` takes the place of the header, so that the URL's user needn't send the
        // header.
        if let Some(project) = self.headers.get("x-goog-user-project").and_then(|value| value.to_str().ok()) {
            query.push(("userProject".to_owned(), project.to_owned()));
        }
        let mut headers = options.signed_headers(&self.added_headers).map_err(invalid)?;
        if let (Some(key), Method::Put | Method::Post) = (&self.kms_key, options.method) {
            let key = http::HeaderValue::from_str(key)
                .map_err(|_| invalid("the KMS key has characters that a header can't carry".to_owned()))?;
            headers.insert("x-goog-encryption-kms-key-name", key);
        }
        let signer = self.credentials.signer().await.map_err(on)?;
        let target = format!("{}/{}/{}", self.endpoint.base, component(&id.bucket), path(&id.key));
        let unsigned = goog4::UrlToSign {
            method: options.method.name(),
            origin: &self.endpoint.origin.to_string(),
            path: &target,
            query: &query,
            headers: &headers,
            email: signer.email(),
            expires_s,
        };
        let unsigned = unsigned.at(now).map_err(invalid)?;
        let signature = signer.sign(&unsigned.string_to_sign).await.map_err(on)?;
        let end = signer.is_rotated().then(|| now + ROTATED_AFTER);
        let why = "Google may replace the account's key after 12 hours";
        let (expires_at, ends_early) = ending(now, expires_s, end, why);
        let headers = as_text(&headers).map_err(invalid)?;
        Ok(SignedUrl { url: unsigned.signed(&signature), expires_at, ends_early, headers })
    }
}
