//! Google's V4 signature of URLs, `GOOG4-RSA-SHA256`
//! (<https://cloud.google.com/storage/docs/authentication/canonical-requests>).

use std::fmt::Write as _;
use std::time::SystemTime;

use http::HeaderMap;

use super::sigv4::{canonical_headers, written};
use crate::digest::{hex, hex_sha256};
use crate::encode::component;

/// A URL to be signed.
pub(crate) struct UrlToSign<'a> {
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
