//! Where a bucket is reached: in the path or in the host name.

use std::fmt;

use laneway_lanes::{Origin, Scheme};

use crate::endpoint::Endpoint;
use crate::{Error, ErrorKind, Operation};

/// How requests are addressed.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// `None` is AWS.
    endpoint: Option<Endpoint>,
    path_style: Option<bool>,
}

impl Address {
    pub(super) fn new(endpoint: Option<&str>, path_style: Option<bool>) -> Result<Self, Error> {
        Ok(Self { endpoint: endpoint.map(Endpoint::parse).transpose()?, path_style })
    }

    /// The one origin of all requests, where there is one.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.endpoint.as_ref().map(|endpoint| &endpoint.origin)
    }

    /// Origin and request target of `target`, which begins after the bucket: `/key?query`, or `?query` for the bucket
    /// itself. No bucket means the service.
    ///
    /// # Errors
    /// `Invalid` for a bucket whose name fits neither path nor host name.
    pub(super) fn locate(&self, bucket: &str, region: &str, target: &str) -> Result<(Origin, String), Error> {
        if bucket.contains(['/', '?', '#', '%']) || bucket.bytes().any(|b| b <= b' ' || b >= 0x7f) {
            let message = format!("{bucket:?} is no name of a bucket");
            return Err(Error::new(ErrorKind::Invalid, Operation::Open, message));
        }
        let (origin, base) = match &self.endpoint {
            Some(endpoint) => (endpoint.origin.clone(), endpoint.base.as_str()),
            None => (aws(region), ""),
        };
        let slash = if target.starts_with('/') { "" } else { "/" };
        if bucket.is_empty() {
            return Ok((origin, format!("{base}{slash}{target}")));
        }
        if self.in_path(bucket) {
            return Ok((origin, format!("{base}/{bucket}{target}")));
        }
        let host = format!("{bucket}.{}", origin.host).into();
        Ok((Origin { host, ..origin }, format!("{base}{slash}{target}")))
    }

    /// A name with dots would not match the wildcard of AWS's certificate; other servers rarely have names for
    /// buckets at all.
    fn in_path(&self, bucket: &str) -> bool {
        let fits_host = bucket.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        self.path_style.unwrap_or(self.endpoint.is_some()) || !fits_host
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => endpoint.fmt(f),
            None => f.write_str("https://amazonaws.com"),
        }
    }
}

fn aws(region: &str) -> Origin {
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    Origin { scheme: Scheme::Https, host: format!("s3.{region}.{suffix}").into(), port: 443 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(endpoint: Option<&str>, style: Option<bool>, bucket: &str, target: &str) -> String {
        let address = Address::new(endpoint, style).expect("an address");
        let (origin, target) = address.locate(bucket, "eu-west-1", target).expect("a place");
        format!("{origin} {target}")
    }

    #[test]
    fn buckets_of_aws_have_host_names() {
        assert_eq!(located(None, None, "b", "/a//b"), "https://b.s3.eu-west-1.amazonaws.com /a//b");
        assert_eq!(
            located(None, None, "b", "?list-type=2"),
            "https://b.s3.eu-west-1.amazonaws.com /?list-type=2"
        );
        assert_eq!(located(None, None, "", ""), "https://s3.eu-west-1.amazonaws.com /");
    }

    #[test]
    fn names_that_fit_no_certificate_stand_in_the_path() {
        assert_eq!(located(None, None, "a.b", "/k"), "https://s3.eu-west-1.amazonaws.com /a.b/k");
        assert_eq!(located(None, Some(true), "b", "/k"), "https://s3.eu-west-1.amazonaws.com /b/k");
    }

    #[test]
    fn other_endpoints_have_buckets_in_the_path_unless_told_otherwise() {
        assert_eq!(located(Some("http://h:9000/base/"), None, "b", "//k"), "http://h:9000 /base/b//k");
        assert_eq!(located(Some("http://h:9000"), Some(false), "b", "//k"), "http://b.h:9000 //k");
        assert_eq!(located(Some("http://h:9000"), None, "b", "?delete="), "http://h:9000 /b?delete=");
    }

    #[test]
    fn china_has_its_own_domain() {
        assert_eq!(aws("cn-north-1").to_string(), "https://s3.cn-north-1.amazonaws.com.cn");
    }

    #[test]
    fn a_bucket_cannot_leave_its_place_in_the_path() {
        let address = Address::new(None, None).expect("an address");
        assert!(address.locate("a/b", "r", "").is_err());
        assert!(address.locate("a?b", "r", "").is_err());
        assert!(address.locate("a b", "r", "").is_err());
    }
}
