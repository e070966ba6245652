//! The prices that decide which ranges Laneway joins into one request.

use laneway_store::{RequestPrices, Store};

/// The prices of requests, bytes and time. With these prices, Laneway decides between two ways to read
/// neighbouring ranges: two requests, or a single one that also fetches the bytes between them. All amounts
/// are in US dollars.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct PriceList {
    /// The price of a GET.
    pub request: f64,
    /// The price of a GiB that the store sends. This price is 0 for readers in the bucket's region, and about
    /// 0.1 over the internet.
    pub egress_gib: f64,
    /// The price of a second that the program waits. The default is the price of a machine with about 64
    /// cores. With a larger value, money matters less and time matters more: Laneway joins fewer ranges and
    /// sends more requests.
    pub second: f64,
}

impl PriceList {
    /// The prices for a reader that pays only for its time, not for requests or bytes.
    pub const FREE: Self = Self { request: 0.0, egress_gib: 0.0, second: 0.001 };

    /// Returns the prices for a reader in the bucket's region, with a store's prices for requests.
    pub fn of(prices: &RequestPrices) -> Self {
        Self { request: prices.reads / 1000.0, ..Self::FREE }
    }

    /// Returns the prices that the service at a store's endpoint charges. For an endpoint other than the
    /// cloud's own, such as a self-hosted server, requests are free.
    pub(super) fn charged_by(store: &Store) -> Self {
        let prices = store.capabilities().prices;
        if prices.are_charged_at(&store.endpoint()) { Self::of(&prices) } else { Self::FREE }
    }

    /// Returns the number of seconds of waiting that cost as much as a request.
    pub(super) fn request_seconds(&self) -> f64 {
        self.seconds(self.request)
    }

    /// Returns the number of seconds of waiting that cost as much as a byte.
    pub(super) fn byte_seconds(&self) -> f64 {
        self.seconds(self.egress_gib / (1u64 << 30) as f64)
    }

    /// Converts an amount to seconds of waiting. Returns 0 if a price is zero, negative, infinite or not a
    /// number.
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
