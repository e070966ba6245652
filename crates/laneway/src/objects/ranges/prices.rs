//! Store prices, as far as they decide how ranges are read.

use laneway_store::{RequestPrices, Store};

/// The prices of requests, bytes and time. They decide whether Laneway sends one more request, or also
/// fetches the unneeded bytes between two ranges. All amounts are US dollars.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct PriceList {
    /// The price of a GET.
    pub request: f64,
    /// The price of a GiB that leaves the store: 0 for readers in the bucket's region, around 0.1 over the
    /// internet.
    pub egress_gib: f64,
    /// The price of a second of waiting. The default is the price of a machine with some 64 cores. A larger
    /// value joins fewer ranges, and sends more requests.
    pub second: f64,
}

impl PriceList {
    /// Prices for a reader who pays only for time.
    pub const FREE: Self = Self { request: 0.0, egress_gib: 0.0, second: 0.001 };

    /// Returns the prices for a reader in the bucket's region, by a store's price list.
    pub fn of(prices: &RequestPrices) -> Self {
        Self { request: prices.reads / 1000.0, ..Self::FREE }
    }

    /// Returns the prices of the service behind a store's endpoint. Self-hosted servers charge nothing.
    pub(super) fn charged_by(store: &Store) -> Self {
        let prices = store.capabilities().prices;
        if prices.are_charged_at(&store.endpoint()) { Self::of(&prices) } else { Self::FREE }
    }

    /// Returns the price of a request, in seconds of waiting.
    pub(super) fn request_seconds(&self) -> f64 {
        self.seconds(self.request)
    }

    /// Returns the price of a byte, in seconds of waiting.
    pub(super) fn byte_seconds(&self) -> f64 {
        self.seconds(self.egress_gib / (1u64 << 30) as f64)
    }

    /// Converts an amount to seconds. Prices that aren't positive numbers count as 0.
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
