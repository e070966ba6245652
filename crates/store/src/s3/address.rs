//! Decides the host and path of requests to a bucket, and the region and service for which they are signed. The
//! decision depends only on the bucket's text, the region and the settings. The rules are those of AWS's endpoint rule
//! set, and the tests run the cases that AWS publishes for it.

use std::fmt;
use std::net::IpAddr;

use laneway_lanes::{Origin, Scheme};

use crate::encode::component;
use crate::endpoint::{Endpoint, Partition};
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
    fn is_aws(&self) -> bool {
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
        let zone = zone(bucket)?;
        if self.variant.accelerate {
            return Err(format!("{bucket:?} can't be used: directory buckets have no Transfer Acceleration"));
        }
        let region = region_of_zone(zone).unwrap_or_else(|| signing_region(region).to_owned());
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

/// The access point that an ARN names.
///
/// Access points, which are named by an ARN in place of a bucket's name: `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-points-naming.html>).
#[derive(Clone, PartialEq, Eq, Debug)]
struct AccessPoint {
    /// The first label of the host name: the access point's name and the account.
    label: String,
    region: String,
}

/// The reason why Laneway can't download through an Object Lambda access point. A Lambda function produces the bytes
/// during the read, so their size and checksums aren't known in advance.
const OBJECT_LAMBDA: &str = "the answers of an Object Lambda access point have neither the size nor the checksum of an object; \
                             use the access point behind it";

const OUTPOSTS: &str = "S3 on Outposts requires SigV4A signatures, which Laneway doesn't support";

/// Returns the reason why an access point's alias can't be used, or `None` if it can. Aliases of plain access points
/// (`NAME-METADATA-s3alias`) work like bucket names.
fn unreachable_alias(bucket: &str) -> Option<&'static str> {
    if bucket.ends_with("--ol-s3") {
        return Some(OBJECT_LAMBDA);
    }
    bucket.ends_with("--op-s3").then_some(OUTPOSTS)
}

/// Returns whether a bucket's text is an ARN.
fn is_arn(bucket: &str) -> bool {
    bucket.starts_with("arn:")
}

impl AccessPoint {
    /// Parses an ARN.
    ///
    /// # Errors
    /// Returns the mistake in the ARN, or the reason why its target can't be reached.
    fn parse(arn: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{arn:?} can't be used: {why}");
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let [_, partition, service, region, account, resource] = parts[..] else {
            return Err(wrong("an access point's ARN is arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME"));
        };
        match service {
            "s3" => {}
            "s3-object-lambda" => return Err(wrong(OBJECT_LAMBDA)),
            "s3-outposts" => return Err(wrong(OUTPOSTS)),
            _ => return Err(wrong("its service isn't s3")),
        }
        let Some((kind, name)) = resource.split_once([':', '/']).filter(|(_, name)| !name.is_empty()) else {
            return Err(wrong("it doesn't name an access point"));
        };
        if kind != "accesspoint" {
            return Err(wrong("it isn't the ARN of an access point"));
        }
        if region.is_empty() {
            return Err(wrong(
                "a multi-region access point requires SigV4A signatures, which Laneway doesn't support; \
                 use the access point or the bucket of one region",
            ));
        }
        if !is_label(region) {
            return Err(wrong("it doesn't name a region"));
        }
        if Partition::of(region).name != partition {
            return Err(wrong("its region is in another partition"));
        }
        if !is_label(account) {
            return Err(wrong("it doesn't name an account"));
        }
        if name.contains([':', '/']) {
            return Err(wrong("nothing may follow the access point's name"));
        }
        if !is_label(name) {
            return Err(wrong("names of access points are made of letters, digits and hyphens"));
        }
        Ok(Self { label: format!("{name}-{account}"), region: region.to_owned() })
    }
}

/// Returns whether a text can be a label of a host name.
fn is_label(text: &str) -> bool {
    !text.is_empty() && text.len() <= 63 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// The endings of the names of directory buckets and of access points to them.
const ENDINGS: [&str; 2] = ["--x-s3", "--xa-s3"];

/// Returns true if a name belongs to a directory bucket. AWS reserves these endings, so no other bucket's name has
/// them.
pub(in crate::s3) fn is_directory(bucket: &str) -> bool {
    ENDINGS.iter().any(|ending| bucket.ends_with(ending))
}

/// Returns the zone of a directory bucket.
///
/// # Errors
/// Returns the mistake in the name.
fn zone(bucket: &str) -> Result<&str, String> {
    let wrong = |why: &str| Err(format!("{bucket:?} isn't a valid name of a directory bucket: {why}"));
    let Some(named) = ENDINGS.iter().find_map(|ending| bucket.strip_suffix(ending)) else {
        return wrong("it doesn't end in --x-s3");
    };
    let Some((name, zone)) = named.rsplit_once("--").filter(|(name, _)| !name.is_empty()) else {
        return wrong("it names no zone");
    };
    if !is_label(bucket) || bucket.bytes().any(|b| b.is_ascii_uppercase()) || name.starts_with('-') {
        return wrong("it can't be part of a host name");
    }
    match zone.split_once('-') {
        Some((area, place)) if !area.is_empty() && !place.is_empty() => Ok(zone),
        _ => wrong("it names no zone"),
    }
}

/// Returns the region in a zone's id: `usw2-az1` is in us-west-2. Returns `None` if the region can't be derived from
/// the id.
fn region_of_zone(zone: &str) -> Option<String> {
    let area = zone.split('-').next()?;
    let (continent, rest) = area.split_at_checked(2)?;
    if !matches!(continent, "af" | "ap" | "ca" | "eu" | "il" | "me" | "mx" | "sa" | "us") {
        return None;
    }
    let digits = rest.find(|c: char| c.is_ascii_digit())?;
    let (direction, number) = rest.split_at(digits);
    let direction = match direction {
        "c" => "central",
        "e" => "east",
        "n" => "north",
        "ne" => "northeast",
        "nw" => "northwest",
        "s" => "south",
        "se" => "southeast",
        "sw" => "southwest",
        "w" => "west",
        _ => return None,
    };
    number.bytes().all(|b| b.is_ascii_digit()).then(|| format!("{continent}-{direction}-{number}"))
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

    #[test]
    fn an_arn_names_access_point_account_and_region() {
        for separator in [':', '/'] {
            let arn = format!("arn:aws:s3:us-west-2:123456789012:accesspoint{separator}data");
            let point = AccessPoint::parse(&arn).expect("an access point");
            assert_eq!((point.label.as_str(), point.region.as_str()), ("data-123456789012", "us-west-2"));
        }
    }

    #[test]
    fn what_would_need_other_signatures_is_refused_by_name() {
        let mrap = AccessPoint::parse("arn:aws:s3::123456789012:accesspoint:mfzwi23gnjvgw.mrap");
        assert!(mrap.is_err_and(|e| e.contains("multi-region access point") && e.contains("SigV4A")));
        let outpost = "arn:aws:s3-outposts:us-east-1:123456789012:outpost/op-01234567890123456/accesspoint/r";
        assert!(AccessPoint::parse(outpost).is_err_and(|e| e.contains("Outposts")));
        let lambda = "arn:aws:s3-object-lambda:us-east-1:123456789012:accesspoint/banner";
        assert!(AccessPoint::parse(lambda).is_err_and(|e| e.contains("Object Lambda")));
        assert!(unreachable_alias("banner-abc--ol-s3").is_some() && unreachable_alias("x--op-s3").is_some());
        assert!(unreachable_alias("data-hrzrlukc5m36ft7okagglf3gmwluqa-s3alias").is_none());
    }

    #[test]
    fn a_directory_buckets_name_ends_in_its_zone() {
        assert_eq!(zone("b--usw2-az1--x-s3"), Ok("usw2-az1"));
        assert_eq!(zone("my--s3--bucket--abcd-ab1--x-s3"), Ok("abcd-ab1"));
        assert_eq!(zone("p--test1-long1-zone-ab1--xa-s3"), Ok("test1-long1-zone-ab1"));
        for bad in ["b--usaz1--x-s3", "usw2-az1--x-s3", "my.b--usw2-az1--x-s3", "B--usw2-az1--x-s3"] {
            assert!(zone(bad).is_err(), "{bad}");
        }
        assert!(is_directory("b--usw2-az1--x-s3") && !is_directory("b--usw2-az1--x-s3x"));
    }

    #[test]
    fn a_zones_id_tells_its_region() {
        for (zone, region) in [
            ("use1-az4", Some("us-east-1")),
            ("usw2-az12", Some("us-west-2")),
            ("apne1-az1", Some("ap-northeast-1")),
            ("aps1-az3", Some("ap-south-1")),
            ("eun1-az1", Some("eu-north-1")),
            ("usw2-lax1-az1", Some("us-west-2")),
            ("abcd-ab1", None),
            ("test-zone-ab1", None),
            ("é-a", None),
        ] {
            assert_eq!(region_of_zone(zone).as_deref(), region, "{zone}");
        }
    }

    /// A test case that AWS publishes for its endpoint rules, from `cases.txt`.
    struct Case<'a> {
        region: &'a str,
        bucket: &'a str,
        settings: Settings,
        expected: &'a str,
    }

    fn cases() -> impl Iterator<Item = Case<'static>> {
        let lines = include_str!("address/cases.txt")
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let [region, bucket, flags, endpoint, expected] = fields[..] else { panic!("{line}") };
            let has = |flag: char| flags.contains(flag).then_some(true);
            let endpoint = Some(endpoint).filter(|endpoint| *endpoint != "-").map(str::to_owned);
            let settings = Settings {
                // By default, AWS's rules put the bucket into the host name of any endpoint. Laneway does so only on AWS,
                // so the cases set it.
                s3_path_style: has('p').or(endpoint.is_some().then_some(false)),
                s3_endpoint: endpoint,
                s3_dualstack: has('d'),
                s3_fips: has('f'),
                s3_accelerate: has('a'),
                ..Settings::default()
            };
            Case { region, bucket: bucket.trim_matches('*'), settings, expected }
        })
    }

    fn answer(case: &Case<'_>) -> Result<String, Error> {
        let place = Address::new(&case.settings)?.locate(case.bucket, case.region, "")?;
        let url = format!("{}{}", place.origin, place.target);
        let session = if is_directory(case.bucket) { " session" } else { "" };
        Ok(format!("{} {} {}{session}", url.trim_end_matches('/'), place.service, place.region))
    }

    #[test]
    fn addresses_are_those_of_awss_endpoint_rules() {
        let (mut differ, mut run) = (Vec::new(), 0);
        for case in cases() {
            run += 1;
            let found = answer(&case);
            let same = match &found {
                Ok(found) => found == case.expected,
                Err(error) => case.expected == "-" && error.is_invalid(),
            };
            if !same {
                differ.push(format!("{} {} {:?}: {found:?}", case.region, case.bucket, case.settings));
                differ.push(format!("    not {}", case.expected));
            }
        }
        assert!(differ.is_empty(), "{}", differ.join("\n"));
        assert!(run >= 150, "{run} cases");
    }
}
