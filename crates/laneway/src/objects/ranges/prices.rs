//! What stores charge, as far as it decides how ranges are read.

/// What reading costs in money, and what time is worth: by these a plan weighs one more request against bytes that nobody
/// asked for. All amounts are US dollars.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct PriceList {
    /// The month that the prices are of, as `2025-01`; empty where nothing is charged.
    pub as_of: &'static str,
    /// A GET.
    pub request: f64,
    /// A GiB that leaves the store: 0 for readers in the bucket's region, around 0.1 over the internet.
    pub egress_gib: f64,
    /// What a second of waiting costs the reader. The default is a machine of some 64 cores; a larger value joins less and sends more
    /// requests.
    pub second: f64,
}

impl PriceList {
    /// A reader who pays for nothing but time.
    pub const FREE: Self = Self { as_of: "", request: 0.0, egress_gib: 0.0, second: 0.001 };

    /// Amazon S3 Standard, us-east-1, read in the same region (<https://aws.amazon.com/s3/pricing/>).
    pub const S3: Self = Self { as_of: "2025-01", request: 0.000_000_4, ..Self::FREE };

    /// Cloud Storage Standard, class B operations in one region, read there (<https://cloud.google.com/storage/pricing>).
    pub const GCS: Self = Self { as_of: "2025-01", request: 0.000_000_4, ..Self::FREE };

    /// The list of whoever serves at an endpoint. Servers of one's own charge nothing.
    pub(crate) fn of(endpoint: &str) -> Self {
        let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or(host);
        let is_below = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        if is_below("googleapis.com") {
            Self::GCS
        } else if is_below("amazonaws.com") || is_below("amazonaws.com.cn") {
            Self::S3
        } else {
            Self::FREE
        }
    }

    /// What a request costs, in seconds of waiting.
    pub(super) fn request_seconds(&self) -> f64 {
        self.seconds(self.request)
    }

    /// What a byte costs, in seconds of waiting.
    pub(super) fn byte_seconds(&self) -> f64 {
        self.seconds(self.egress_gib / (1u64 << 30) as f64)
    }

    /// Prices that aren't positive numbers are none.
    fn seconds(&self, amount: f64) -> f64 {
        let seconds = amount / self.second;
        if seconds.is_finite() && seconds > 0.0 { seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_charge_and_servers_of_ones_own_do_not() {
        let of = PriceList::of;
        assert_eq!(of("https://s3.eu-central-1.amazonaws.com"), PriceList::S3);
        assert_eq!(of("https://s3.cn-north-1.amazonaws.com.cn"), PriceList::S3);
        assert_eq!(of("https://storage.googleapis.com"), PriceList::GCS);
        assert_eq!(of("https://storage.googleapis.com:443/x"), PriceList::GCS);
        assert_eq!(of("https://127.0.0.1:9000"), PriceList::FREE);
        assert_eq!(of("https://notamazonaws.com"), PriceList::FREE);
    }

    #[test]
    fn prices_that_are_no_numbers_are_none() {
        for second in [0.0, -1.0, f64::NAN] {
            assert_eq!(PriceList { second, ..PriceList::S3 }.request_seconds(), 0.0);
        }
        let seconds = PriceList::S3.request_seconds();
        assert!((seconds - 0.000_4).abs() < 1e-9, "{seconds}");
    }
}
