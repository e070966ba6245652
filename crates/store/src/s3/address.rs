//! Decides the host and path of requests to a bucket, and the region and service for which they are signed. The
//! decision depends only on the bucket's text, the region and the settings. The rules are those of AWS's endpoint rule
//! set, and the tests run the cases that AWS publishes for it.

mod arn;
#[cfg(test)]
mod cases;
mod directory;

use std::fmt;
use std::net::IpAddr;

use laneway_lanes::{Origin, Scheme};

use self::arn::{AccessPoint, is_arn, is_label, unreachable_alias};
pub(super) use self::directory::is_directory;
use crate::encode::component;
use crate::endpoint::Endpoint;
use crate::partition::Partition;
use crate::{Error, ErrorKind, Operation, Settings};

/// The rules for the address of a request.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// The endpoint, or `None` for AWS.
    endpoint: Option<Endpoint>,
    path_style: Option<bool>,
    variant: Variant,
}

/// The chosen variant of AWS's endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Variant {
    /// Use the endpoints that have IPv6 as well as IPv4 addresses.
    dualstack: bool,
    /// Use the endpoints whose cryptography is validated under FIPS 140.
    fips: bool,
    /// Use the Transfer Acceleration endpoints, at the edge of Amazon's network.
    accelerate: bool,
}

/// The destination of a request and the scope of its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RequestAddress {
    pub(super) origin: Origin,
    /// The path and the query.
    pub(super) target: String,
    /// The service for which the request is signed.
    pub(super) service: &'static str,
    /// The region for which the request is signed.
    pub(super) region: String,
}

/// The reason why requests can't reach a bucket of this name.
type AddressError = String;

impl Address {
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let endpoint = settings.s3_endpoint.as_deref().map(Endpoint::parse).transpose()?;
        let variant = Variant {
            dualstack: settings.s3_dualstack.unwrap_or_default(),
            fips: settings.s3_fips.unwrap_or_default(),
            accelerate: settings.s3_accelerate.unwrap_or_default(),
        };
        let path_style = settings.s3_path_style;
        let invalid = |why: &str| Err(Error::new(ErrorKind::Invalid, Operation::Open, why));
        if let Some(endpoint) = &endpoint {
            let asked = match variant {
                Variant { dualstack: true, .. } => "dual-stack endpoints",
                Variant { fips: true, .. } => "FIPS endpoints",
                Variant { accelerate: true, .. } => "Transfer Acceleration",
                _ => return Ok(Self { endpoint: Some(endpoint.clone()), path_style, variant }),
            };
            return invalid(&format!("{asked} exist only on AWS, but the S3 endpoint is {endpoint}"));
        }
        match variant {
            Variant { fips: true, accelerate: true, .. } => {
                invalid("Transfer Acceleration has no FIPS endpoints")
            }
            Variant { accelerate: true, .. } if path_style == Some(true) => {
                invalid("Transfer Acceleration needs buckets in the host name, not in the path")
            }
            _ => Ok(Self { endpoint, path_style, variant }),
        }
    }

    /// Returns true if this is an endpoint of Amazon or Google. Both accept parts of different sizes in one upload.
    pub(super) fn takes_unequal_parts(&self) -> bool {
        self.endpoint.as_ref().is_none_or(|endpoint| {
            let host = endpoint.origin.host.to_ascii_lowercase();
            Partition::claims_host(&host) || host == "storage.googleapis.com"
        })
    }

    /// Returns the origin of all requests, or `None` if it depends on the bucket and its region.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.endpoint.as_ref().map(|endpoint| &endpoint.origin)
    }

    /// Returns true if the endpoints are AWS's own, which differ from region to region.
    pub(super) fn is_aws(&self) -> bool {
        self.endpoint.is_none()
    }

    /// Returns true if requests need the bucket's region and the bucket's name doesn't contain the region. ARNs contain
    /// the region, and names of directory buckets contain the zone.
    pub(super) fn has_regions(&self, bucket: &str) -> bool {
        self.is_aws() && !is_arn(bucket) && !is_directory(bucket)
    }

    /// Returns the destination of a request for `target` in a bucket. The target begins after the bucket: `/key?query`,
    /// or `?query` for the bucket itself. An empty bucket stands for the service itself, which lists buckets.
    ///
    /// # Errors
    /// `Invalid` if the bucket's name fits neither a path nor a host name, or if the bucket can't be reached.
    pub(super) fn locate(&self, bucket: &str, region: &str, target: &str) -> Result<RequestAddress, Error> {
        self.place(bucket, region, target)
            .map_err(|why| Error::new(ErrorKind::Invalid, Operation::Open, why).on(format!("s3://{bucket}")))
    }

    fn place(&self, bucket: &str, region: &str, target: &str) -> Result<RequestAddress, AddressError> {
        if !region.split('.').all(is_label) {
            return Err(format!("{region:?} isn't a valid region"));
        }
        if is_arn(bucket) {
            return self.access_point(bucket, target);
        }
        if bucket.contains(['/', '?', '#', '%']) || bucket.bytes().any(|b| b <= b' ' || b >= 0x7f) {
            return Err(format!("{bucket:?} isn't a valid bucket name"));
        }
        if let Some(why) = unreachable_alias(bucket) {
            return Err(format!("{bucket:?} can't be used: {why}"));
        }
        if is_directory(bucket) {
            return self.directory_bucket(bucket, region, target);
        }
        if self.variant.accelerate && !bucket.is_empty() {
            return self.accelerated(bucket, region, target);
        }
        let endpoint = match &self.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => aws(&self.regional("s3", region)?),
        };
        let place = match bucket {
            "" => under(&endpoint, "", target),
            _ if self.in_path(bucket, &endpoint) => under(&endpoint, bucket, target),
            _ => at_host(&endpoint, bucket, target),
        };
        Ok(RequestAddress { region: signing_region(region).to_owned(), ..place })
    }

    /// Returns a service's host in a region.
    fn regional(&self, service: &str, region: &str) -> Result<String, AddressError> {
        let Variant { dualstack, fips, .. } = self.variant;
        let partition = self.partition(region)?;
        if region == GLOBAL && !dualstack && !fips {
            return Ok(format!("{service}.{}", partition.suffix));
        }
        let fips = if fips { "-fips" } else { "" };
        let dualstack = if dualstack { "dualstack." } else { "" };
        Ok(format!("{service}{fips}.{dualstack}{}.{}", signing_region(region), partition.suffix))
    }

    fn partition(&self, region: &str) -> Result<Partition, AddressError> {
        let partition = Partition::of(region);
        if self.variant.fips && partition.name == "aws-cn" {
            return Err(format!("{region} has no FIPS endpoints"));
        }
        Ok(partition)
    }

    fn access_point(&self, arn: &str, target: &str) -> Result<RequestAddress, AddressError> {
        if self.path_style == Some(true) {
            return Err(format!(
                "{arn:?} can't be used: an access point must be in the host name, and path style puts it in the path"
            ));
        }
        if self.variant.accelerate {
            return Err(format!("{arn:?} can't be used: access points have no Transfer Acceleration"));
        }
        let AccessPoint { label, region } = AccessPoint::parse(arn)?;
        let endpoint = match &self.endpoint {
            Some(endpoint) if is_address(endpoint) => {
                return Err(format!(
                    "{arn:?} can't be used: {endpoint} is an IP address, and access points need a host name"
                ));
            }
            Some(endpoint) => endpoint.clone(),
            None => aws(&self.regional("s3-accesspoint", &region)?),
        };
        Ok(RequestAddress { region, ..at_host(&endpoint, &label, target) })
    }

    fn directory_bucket(
        &self,
        bucket: &str,
        region: &str,
        target: &str,
    ) -> Result<RequestAddress, AddressError> {
        let zone = directory::zone(bucket)?;
        if self.variant.accelerate {
            return Err(format!("{bucket:?} can't be used: directory buckets have no Transfer Acceleration"));
        }
        let region = directory::region_of_zone(zone).unwrap_or_else(|| signing_region(region).to_owned());
        let suffix = self.partition(&region)?.suffix;
        let Variant { dualstack, fips, .. } = self.variant;
        let (fips, dualstack) = (if fips { "fips-" } else { "" }, if dualstack { "dualstack." } else { "" });
        let place = match &self.endpoint {
            Some(endpoint) if self.in_path(bucket, endpoint) => under(endpoint, bucket, target),
            Some(endpoint) => at_host(endpoint, bucket, target),
            None => {
                at_host(&aws(&format!("s3express-{fips}{zone}.{dualstack}{region}.{suffix}")), bucket, target)
            }
        };
        Ok(RequestAddress { service: "s3express", region, ..place })
    }

    fn accelerated(&self, bucket: &str, region: &str, target: &str) -> Result<RequestAddress, AddressError> {
        let partition = self.partition(region)?;
        if partition.name == "aws-cn" {
            return Err(format!("{region} has no Transfer Acceleration"));
        }
        let dualstack = if self.variant.dualstack { ".dualstack" } else { "" };
        let endpoint = aws(&format!("s3-accelerate{dualstack}.{}", partition.suffix));
        if self.in_path(bucket, &endpoint) {
            return Err(format!(
                "{bucket:?} can't be used: Transfer Acceleration needs a bucket name that can be part of a host name"
            ));
        }
        Ok(RequestAddress { region: signing_region(region).to_owned(), ..at_host(&endpoint, bucket, target) })
    }

    /// Returns true if the bucket is put into the path and not into the host name. A bucket name with dots wouldn't
    /// match the wildcard in AWS's TLS certificate. Servers other than AWS rarely have a host name for each bucket, and
    /// an IP address can't have one.
    fn in_path(&self, bucket: &str, endpoint: &Endpoint) -> bool {
        let dots = endpoint.origin.scheme == Scheme::Http;
        let fits_host = (3..=63).contains(&bucket.len())
            && bucket.split('.').all(is_label)
            && (dots || !bucket.contains('.'))
            && !bucket.bytes().any(|b| b.is_ascii_uppercase())
            && !bucket.starts_with('-')
            && !bucket.ends_with('-');
        self.path_style.unwrap_or(self.endpoint.is_some()) || !fits_host || is_address(endpoint)
    }
}

/// A name in some configurations that stands for us-east-1's old endpoint.
const GLOBAL: &str = "aws-global";

fn signing_region(region: &str) -> &str {
    if region == GLOBAL { "us-east-1" } else { region }
}

fn aws(host: &str) -> Endpoint {
    let origin = Origin { scheme: Scheme::Https, host: host.into(), port: 443, client_certificate: None };
    Endpoint { origin, base: String::new() }
}

fn is_address(endpoint: &Endpoint) -> bool {
    endpoint.origin.host.parse::<IpAddr>().is_ok()
}

/// Puts the bucket into the path.
fn under(endpoint: &Endpoint, bucket: &str, target: &str) -> RequestAddress {
    let bucket = if bucket.is_empty() { String::new() } else { format!("/{}", component(bucket)) };
    let slash = if bucket.is_empty() && !target.starts_with('/') { "/" } else { "" };
    plain(endpoint.origin.clone(), format!("{}{bucket}{slash}{target}", endpoint.base))
}

/// Puts the bucket into the host name.
fn at_host(endpoint: &Endpoint, bucket: &str, target: &str) -> RequestAddress {
    let Endpoint { origin, base } = endpoint;
    let host = format!("{bucket}.{}", origin.host).into();
    let slash = if target.starts_with('/') { "" } else { "/" };
    plain(Origin { host, ..origin.clone() }, format!("{base}{slash}{target}"))
}

fn plain(origin: Origin, target: String) -> RequestAddress {
    RequestAddress { origin, target, service: "s3", region: String::new() }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => endpoint.fmt(f),
            None => f.write_str("https://amazonaws.com"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(endpoint: Option<&str>, style: Option<bool>) -> Address {
        let settings = Settings {
            s3_endpoint: endpoint.map(str::to_owned),
            s3_path_style: style,
            ..Settings::default()
        };
        Address::new(&settings).expect("an address")
    }

    fn located(endpoint: Option<&str>, style: Option<bool>, bucket: &str, target: &str) -> String {
        let place = address(endpoint, style).locate(bucket, "eu-west-1", target).expect("a place");
        format!("{} {}", place.origin, place.target)
    }

    #[test]
    fn buckets_of_aws_have_host_names() {
        assert_eq!(located(None, None, "bkt", "/a//b"), "https://bkt.s3.eu-west-1.amazonaws.com /a//b");
        assert_eq!(
            located(None, None, "bkt", "?list-type=2"),
            "https://bkt.s3.eu-west-1.amazonaws.com /?list-type=2"
        );
        assert_eq!(located(None, None, "", ""), "https://s3.eu-west-1.amazonaws.com /");
    }

    #[test]
    fn names_that_fit_no_certificate_stand_in_the_path() {
        assert_eq!(located(None, None, "a.b", "/k"), "https://s3.eu-west-1.amazonaws.com /a.b/k");
        assert_eq!(located(None, Some(true), "bkt", "/k"), "https://s3.eu-west-1.amazonaws.com /bkt/k");
    }

    #[test]
    fn other_endpoints_have_buckets_in_the_path_unless_told_otherwise() {
        assert_eq!(located(Some("http://h:9000/base/"), None, "bkt", "//k"), "http://h:9000 /base/bkt//k");
        assert_eq!(located(Some("http://h:9000"), Some(false), "bkt", "//k"), "http://bkt.h:9000 //k");
        assert_eq!(located(Some("http://h:9000"), None, "bkt", "?delete="), "http://h:9000 /bkt?delete=");
        assert_eq!(located(Some("http://h:9000"), None, "", ""), "http://h:9000 /");
    }

    #[test]
    fn only_amazon_and_google_are_trusted_with_unequal_parts() {
        let takes = |endpoint: Option<&str>| {
            let settings = Settings { s3_endpoint: endpoint.map(str::to_owned), ..Settings::default() };
            Address::new(&settings).expect("an address").takes_unequal_parts()
        };
        assert!(takes(None) && takes(Some("https://s3.eu-west-1.amazonaws.com")));
        assert!(takes(Some("https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com")));
        assert!(takes(Some("https://storage.googleapis.com")));
        assert!(
            !takes(Some("https://account.r2.cloudflarestorage.com")) && !takes(Some("http://127.0.0.1:9000"))
        );
    }

    #[test]
    fn a_bucket_cannot_leave_its_place_in_the_path() {
        let address = address(None, None);
        for bucket in ["a/b", "a?b", "a b", "a%2fb"] {
            assert!(address.locate(bucket, "us-east-1", "").is_err(), "{bucket}");
        }
    }

    #[test]
    fn a_directory_bucket_is_where_its_zone_is_whatever_the_region() {
        let place = address(None, None).locate("bkt--use1-az4--x-s3", "eu-west-1", "/k").expect("a place");
        assert_eq!(
            place.origin.to_string(),
            "https://bkt--use1-az4--x-s3.s3express-use1-az4.us-east-1.amazonaws.com"
        );
        assert_eq!((place.service, place.region.as_str()), ("s3express", "us-east-1"));
    }

    #[test]
    fn an_alias_of_an_access_point_is_as_good_as_a_bucket() {
        let alias = "data-hrzrlukc5m36ft7okagglf3gmwluqa-s3alias";
        assert_eq!(
            located(None, None, alias, "/k"),
            format!("https://{alias}.s3.eu-west-1.amazonaws.com /k")
        );
    }
}
