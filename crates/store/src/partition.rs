//! Amazon's partitions: groups of regions, each with its own domain. The table is taken from the SDKs'
//! `partitions.json` (<https://github.com/boto/botocore/blob/develop/botocore/data/partitions.json>).

/// A group of regions with one domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Partition {
    /// The partition's name in ARNs.
    pub(crate) name: &'static str,
    /// The domain of its services.
    pub(crate) suffix: &'static str,
    /// The prefixes of its regions' names. Regions without any of these prefixes belong to the commercial partition.
    prefixes: &'static [&'static str],
}

/// The partition of every region that no other partition claims, including future regions.
const COMMERCIAL: Partition = Partition { name: "aws", suffix: "amazonaws.com", prefixes: &[] };

const OTHERS: [Partition; 7] = [
    Partition { name: "aws-cn", suffix: "amazonaws.com.cn", prefixes: &["cn-"] },
    Partition { name: "aws-us-gov", suffix: "amazonaws.com", prefixes: &["us-gov-"] },
    Partition { name: "aws-eusc", suffix: "amazonaws.eu", prefixes: &["eusc-"] },
    Partition { name: "aws-iso", suffix: "c2s.ic.gov", prefixes: &["us-iso-"] },
    Partition { name: "aws-iso-b", suffix: "sc2s.sgov.gov", prefixes: &["us-isob-"] },
    Partition { name: "aws-iso-e", suffix: "cloud.adc-e.uk", prefixes: &["eu-isoe-"] },
    Partition { name: "aws-iso-f", suffix: "csp.hci.ic.gov", prefixes: &["us-isof-"] },
];

impl Partition {
    /// Returns the partition of a region.
    pub(crate) fn of(region: &str) -> Self {
        let claims = |partition: &&Self| partition.prefixes.iter().any(|prefix| region.starts_with(prefix));
        OTHERS.iter().find(claims).copied().unwrap_or(COMMERCIAL)
    }

    /// Returns true if a host, in lower case, is one of Amazon's own.
    pub(super) fn claims_host(host: &str) -> bool {
        let ends = |suffix: &str| host.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'));
        ends("api.aws") || ends(COMMERCIAL.suffix) || OTHERS.iter().any(|partition| ends(partition.suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_belong_to_the_partition_that_their_names_begin_like() {
        for (region, name, suffix) in [
            ("us-east-1", "aws", "amazonaws.com"),
            ("mx-central-1", "aws", "amazonaws.com"),
            ("xx-new-1", "aws", "amazonaws.com"),
            ("cn-northwest-1", "aws-cn", "amazonaws.com.cn"),
            ("us-gov-west-1", "aws-us-gov", "amazonaws.com"),
            ("eusc-de-east-1", "aws-eusc", "amazonaws.eu"),
            ("us-iso-east-1", "aws-iso", "c2s.ic.gov"),
            ("us-isob-east-1", "aws-iso-b", "sc2s.sgov.gov"),
            ("eu-isoe-west-1", "aws-iso-e", "cloud.adc-e.uk"),
            ("us-isof-south-1", "aws-iso-f", "csp.hci.ic.gov"),
        ] {
            let partition = Partition::of(region);
            assert_eq!((partition.name, partition.suffix), (name, suffix), "{region}");
        }
    }
}
