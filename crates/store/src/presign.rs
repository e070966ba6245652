//! URLs that carry their own authorization. The holder of such a URL may make one kind of request until the URL expires
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html>,
//! <https://cloud.google.com/storage/docs/authentication/canonical-requests>).

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::may_be_added;

/// The longest time for which both services accept a signed URL.
pub(crate) const EXPIRES_MAX: Duration = Duration::from_secs(7 * 86_400);

/// The request method that a signed URL permits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[non_exhaustive]
pub enum Method {
    /// Reads the object.
    #[default]
    Get,
    /// Reads the object's metadata.
    Head,
    /// Writes the object.
    Put,
    /// Begins an upload in parts (S3, with the query `uploads`) or a resumable one (GCS, with the header `x-goog-resumable: start`).
    Post,
    /// Deletes the object.
    Delete,
}

impl Method {
    const ALL: [Self; 5] = [Self::Get, Self::Head, Self::Put, Self::Post, Self::Delete];

    /// Returns the method's name in HTTP, such as `GET`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a text that isn't one of these methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the method of a signed URL must be GET, HEAD, PUT, POST or DELETE")]
pub struct NoMethod;

impl FromStr for Method {
    type Err = NoMethod;

    fn from_str(text: &str) -> Result<Self, NoMethod> {
        Self::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(text)).ok_or(NoMethod)
    }
}

/// The options of a signed URL.
#[derive(Clone, Default)]
pub struct SignOptions {
    /// The method that the URL permits.
    pub method: Method,
    /// The time for which the URL is valid, from 1 s to 7 days. A fraction of a second is cut off.
    pub expires: Duration,
    /// Headers that the URL's user must send with exactly these values.
    pub headers: Vec<(String, String)>,
    /// Additional query parameters, such as `versionId`, `generation` or `response-content-disposition`.
    pub query: Vec<(String, String)>,
}

/// A URL that authorizes its holder. It is a secret: `Debug` leaves its query out, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedUrl {
    /// The URL.
    pub url: String,
    /// The latest time at which the URL expires. If it is earlier than requested, [`Self::ends_early`] contains the
    /// reason.
    pub expires_at: SystemTime,
    /// The reason why the URL may expire before the requested time.
    pub ends_early: Option<&'static str>,
    /// Names and values of the headers that the URL's user must send, without `Host`.
    pub headers: Vec<(String, String)>,
}

impl SignedUrl {
    /// Returns a URL that expires at `expires_at` and needs no headers.
    pub fn new(url: impl Into<String>, expires_at: SystemTime) -> Self {
        Self { url: url.into(), expires_at, ends_early: None, headers: Vec::new() }
    }
}

impl fmt::Debug for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedUrl")
            .field("url", &self.url.split('?').next().unwrap_or_default())
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SignOptions {
    /// Leaves the values of headers and query out: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        f.debug_struct("SignOptions")
            .field("method", &self.method)
            .field("expires", &self.expires)
            .field("headers", &names(&self.headers))
            .field("query", &names(&self.query))
            .finish()
    }
}

impl SignOptions {
    /// Returns the validity in seconds.
    ///
    /// # Errors
    /// Fails for less than a second, or more than either service permits.
    pub(crate) fn expires_s(&self) -> Result<u64, String> {
        match self.expires.as_secs() {
            0 => Err("a signed URL must be valid for at least 1 second".to_owned()),
            _ if self.expires > EXPIRES_MAX => Err("a signed URL can be valid for at most 7 days".to_owned()),
            seconds => Ok(seconds),
        }
    }

    /// Returns the headers to sign: the caller's, and `always`, which every request of this store carries.
    ///
    /// # Errors
    /// Returns the name of a header that can't be sent, or that the URL's user can't choose.
    pub(crate) fn signed_headers(&self, always: &HeaderMap) -> Result<HeaderMap, String> {
        let mut signed = always.clone();
        for (name, value) in &self.headers {
            let header = HeaderName::try_from(name).map_err(|_| format!("{name:?} isn't a header name"))?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| format!("the value of {name} holds characters that no header can carry"))?;
            signed.append(header, value);
        }
        match signed.keys().find(|name| !may_be_added(name) || **name == http::header::AUTHORIZATION) {
            Some(name) => Err(format!("the header {name} can't be signed into a URL")),
            None => Ok(signed),
        }
    }

    /// Returns the caller's query parameters, before the signature's own parameters are added.
    ///
    /// # Errors
    /// Fails if the caller's query already has one of the signature's parameters.
    pub(crate) fn own_query(&self, signature: &str) -> Result<&[(String, String)], String> {
        const NAMES: [&str; 8] = [
            "Algorithm",
            "Credential",
            "Date",
            "Expires",
            "SignedHeaders",
            "Signature",
            "Security-Token",
            "S3session-Token",
        ];
        let is_taken = |name: &str| {
            let rest = name.get(..signature.len()).filter(|start| start.eq_ignore_ascii_case(signature));
            rest.is_some_and(|_| {
                NAMES.iter().any(|taken| taken.eq_ignore_ascii_case(&name[signature.len()..]))
            })
        };
        match self.query.iter().find(|(name, _)| is_taken(name)) {
            Some((name, _)) => {
                Err(format!("the query parameter {name} belongs to the signature and can't be set"))
            }
            None => Ok(&self.query),
        }
    }
}

/// Returns the names and values of signed headers, which the URL's user has to send unchanged.
///
/// # Errors
/// Fails for a value that isn't text.
pub(crate) fn as_text(headers: &HeaderMap) -> Result<Vec<(String, String)>, String> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = value.to_str().map_err(|_| format!("the value of {name} isn't ASCII text"))?;
        Ok((name.as_str().to_owned(), value.to_owned()))
    };
    headers.iter().map(text).collect()
}

/// Returns the time at which a URL expires. If `end` cuts it short, the result contains the reason `why`.
pub(crate) fn ending(
    now: SystemTime,
    expires_s: u64,
    end: Option<SystemTime>,
    why: &'static str,
) -> (SystemTime, Option<&'static str>) {
    let asked = now + Duration::from_secs(expires_s);
    match end.filter(|end| *end < asked) {
        Some(end) => (end, Some(why)),
        None => (asked, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_s(seconds: u64) -> SignOptions {
        SignOptions { expires: Duration::from_secs(seconds), ..SignOptions::default() }
    }

    #[test]
    fn a_url_lasts_from_a_second_to_seven_days() {
        assert_eq!(for_s(604_800).expires_s(), Ok(604_800));
        assert!(for_s(604_801).expires_s().is_err_and(|why| why.contains("7 days")));
        let short = SignOptions { expires: Duration::from_millis(999), ..SignOptions::default() };
        assert!(short.expires_s().is_err_and(|why| why.contains("1 second")));
    }

    #[test]
    fn what_ends_before_the_url_ends_it() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let at = |s| now + Duration::from_secs(s);
        assert_eq!(ending(now, 60, None, "why"), (at(60), None));
        assert_eq!(ending(now, 60, Some(at(61)), "why"), (at(60), None));
        assert_eq!(ending(now, 60, Some(at(59)), "why"), (at(59), Some("why")));
    }

    #[test]
    fn framing_authorization_and_the_signatures_own_names_are_refused() {
        for name in ["host", "Content-Length", "authorization", "no name"] {
            let options = SignOptions { headers: vec![(name.into(), "1".into())], ..for_s(1) };
            assert!(options.signed_headers(&HeaderMap::new()).is_err(), "{name}");
        }
        for (name, is_refused) in
            [("x-amz-expires", true), ("X-Amz-Signature", true), ("x-amz-acl", false), ("versionId", false)]
        {
            let options = SignOptions { query: vec![(name.into(), "1".into())], ..for_s(1) };
            assert_eq!(options.own_query("X-Amz-").is_err(), is_refused, "{name}");
        }
    }

    #[test]
    fn neither_a_signed_url_nor_its_options_are_shown_with_their_secrets() {
        let url = SignedUrl {
            url: "https://h/b/k?X-Amz-Signature=hush".into(),
            expires_at: SystemTime::UNIX_EPOCH,
            ends_early: None,
            headers: Vec::new(),
        };
        let options = SignOptions { query: vec![("token".into(), "hush".into())], ..for_s(1) };
        let shown = format!("{url:?} {options:?}");
        assert!(shown.contains("https://h/b/k") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn methods_are_read_in_either_case() {
        assert_eq!("put".parse(), Ok(Method::Put));
        assert_eq!("PATCH".parse::<Method>(), Err(NoMethod));
    }
}
