//! Access points, which are named by an ARN in place of a bucket's name: `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-points-naming.html>).

use crate::partition::Partition;

/// The access point that an ARN names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AccessPoint {
    /// The first label of the host name: the access point's name and the account.
    pub(super) label: String,
    pub(super) region: String,
}

/// The reason why Laneway can't download through an Object Lambda access point. A Lambda function produces the bytes
/// during the read, so their size and checksums aren't known in advance.
const OBJECT_LAMBDA: &str = "the answers of an Object Lambda access point have neither the size nor the checksum of an object; \
                             use the access point behind it";
const OUTPOSTS: &str = "S3 on Outposts requires SigV4A signatures, which Laneway doesn't support";

/// Returns the reason why an access point's alias can't be used, or `None` if it can. Aliases of plain access points
/// (`NAME-METADATA-s3alias`) work like bucket names.
pub(super) fn unreachable_alias(bucket: &str) -> Option<&'static str> {
    if bucket.ends_with("--ol-s3") {
        return Some(OBJECT_LAMBDA);
    }
    bucket.ends_with("--op-s3").then_some(OUTPOSTS)
}

/// Returns whether a bucket's text is an ARN.
pub(super) fn is_arn(bucket: &str) -> bool {
    bucket.starts_with("arn:")
}

impl AccessPoint {
    /// Parses an ARN.
    ///
    /// # Errors
    /// Returns the mistake in the ARN, or the reason why its target can't be reached.
    pub(super) fn parse(arn: &str) -> Result<Self, String> {
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
pub(super) fn is_label(text: &str) -> bool {
    !text.is_empty() && text.len() <= 63 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
