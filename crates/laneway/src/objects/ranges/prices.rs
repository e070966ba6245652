//! What stores charge, as far as it decides how ranges are read.

use laneway_store::{RequestPrices, Store};

/// What reading costs in money, and what time is worth: by these a plan weighs one more request against bytes that nobody
/// asked for. All amounts are US dollars.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct PriceList {
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
    pub const FREE: Self = Self { request: 0.0, egress_gib: 0.0, second: 0.001 };

    /// A reader in the bucket's region, who pays by a store's list.
    pub fn of(prices: &RequestPrices) -> Self {
        Self { request: prices.reads / 1000.0, ..Self::FREE }
    }

    /// The prices of whoever serves a store's requests. Servers of one's own charge nothing.
    pub(super) fn charged_by(store: &Store) -> Self {
        let prices = store.capabilities().prices;
        if prices.are_charged_at(&store.endpoint()) { Self::of(&prices) } else { Self::FREE }
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
    fn prices_that_are_no_numbers_are_none() {
        let charged = PriceList::of(&RequestPrices { reads: 0.0004, ..RequestPrices::FREE });
        for second in [0.0, -1.0, f64::NAN] {
            assert_eq!(PriceList { second, ..charged }.request_seconds(), 0.0);
        }
        let seconds = charged.request_seconds();
        assert!((seconds - 0.000_4).abs() < 1e-9, "{seconds}");
    }
}
