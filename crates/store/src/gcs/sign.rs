//! `sign`: makes URLs of the XML API with Google's V4 signature, `GOOG4-RSA-SHA256`, in the query
//! (<https://cloud.google.com/storage/docs/authentication/canonical-requests>).

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use http::HeaderMap;

use super::Gcs;
use crate::credentials::sigv4::{canonical_headers, written};
use crate::digest::{hex, hex_sha256};
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
        let unsigned = UrlToSign {
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

/// A URL to be signed.
struct UrlToSign<'a> {
    pub(crate) method: &'a str,
    /// Scheme and host, such as `https://storage.googleapis.com`.
    pub(crate) origin: &'a str,
    /// The path, percent-encoded.
    pub(crate) path: &'a str,
    /// The query's names and values, not encoded yet.
    pub(crate) query: &'a [(String, String)],
    /// The headers of the request, without `Host`.
    pub(crate) headers: &'a HeaderMap,
    /// The service account's email address.
    pub(crate) email: &'a str,
    pub(crate) expires_s: u64,
}

/// A URL without its signature, and the text to sign.
pub(crate) struct UnsignedUrl {
    pub(crate) string_to_sign: String,
    url: String,
}

impl UrlToSign<'_> {
    /// Returns the text to sign at `now`.
    ///
    /// # Errors
    /// Returns the part that can't be signed.
    pub(crate) fn at(&self, now: SystemTime) -> Result<UnsignedUrl, String> {
        let host = self.origin.split_once("://").map_or(self.origin, |(_, host)| host);
        let headers = canonical_headers(host, self.headers)?;
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let (time, date) = written(now)?;
        let scope = format!("{date}/auto/storage/goog4_request");

        let mut query: Vec<String> = self
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain([
                ("X-Goog-Algorithm", "GOOG4-RSA-SHA256"),
                ("X-Goog-Credential", &format!("{}/{scope}", self.email)),
                ("X-Goog-Date", &time),
                ("X-Goog-Expires", &self.expires_s.to_string()),
                ("X-Goog-SignedHeaders", &names),
            ])
            .map(|(name, value)| format!("{}={}", component(name), component(value)))
            .collect();
        query.sort_unstable();
        let query = query.join("&");

        let mut canonical = format!("{}\n{}\n{query}\n", self.method, self.path);
        for (name, value) in &headers {
            let _ = writeln!(canonical, "{name}:{value}");
        }
        let hash = headers.iter().find(|(name, _)| *name == "x-goog-content-sha256");
        let payload = hash.map_or("UNSIGNED-PAYLOAD", |(_, hash)| hash);
        let _ = write!(canonical, "\n{names}\n{payload}");
        let hash = hex_sha256(canonical.as_bytes());
        Ok(UnsignedUrl {
            string_to_sign: format!("GOOG4-RSA-SHA256\n{time}\n{scope}\n{hash}"),
            url: format!("{}{}?{query}", self.origin, self.path),
        })
    }
}

impl UnsignedUrl {
    /// Returns the URL with its signature.
    pub(crate) fn signed(&self, signature: &[u8]) -> String {
        format!("{}&X-Goog-Signature={}", self.url, hex(signature))
    }
}
