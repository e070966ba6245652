//! Costs of requests by the stores' price lists.
//!
//! The prices are those of one region and the standard class: S3 in us-east-1
//! (<https://aws.amazon.com/s3/pricing/>), GCS in a region (<https://cloud.google.com/storage/pricing>). They
//! leave out egress, storage, retrieval and discounts. A store that only speaks the protocol has its own
//! prices.

use laneway::dialect::{RequestPrices, capabilities_of};
use laneway::{Provider, Requests};

/// Returns the month of the oldest list.
pub(crate) fn as_of() -> &'static str {
    let lists = Provider::CLOUDS.into_iter().filter_map(capabilities_of);
    lists.map(|can| can.prices.as_of).min().unwrap_or_default()
}

/// A note for people on what the figures leave out.
pub(crate) const LEFT_OUT: &str = "one region, egress and storage not included";

/// Returns the price of requests in US dollars.
pub(crate) fn cost(provider: Provider, requests: &Requests) -> f64 {
    let prices = capabilities_of(provider).map_or(RequestPrices::FREE, |can| can.prices);
    let of = |requests: u64, price: f64| requests as f64 / 1000.0 * price;
    of(requests.writes, prices.writes)
        + of(requests.reads, prices.reads)
        + of(requests.deletes, prices.deletes)
}

/// Returns an amount with as many digits as a single request needs: `$0.0000004`, `$0.005`, `$1.25`.
pub(crate) fn dollars(amount: f64) -> String {
    let digits = format!("{amount:.7}");
    let trimmed = digits.trim_end_matches('0');
    match trimmed.split_once('.') {
        Some((whole, cents)) => format!("${whole}.{cents:0<2}"),
        None => format!("${trimmed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_writes_cost_what_the_list_says() {
        for provider in Provider::CLOUDS {
            let mut requests = Requests::default();
            (requests.writes, requests.reads, requests.deletes) = (1000, 1000, 1000);
            assert_eq!(dollars(cost(provider, &requests)), "$0.0054");
        }
    }

    #[test]
    fn amounts_keep_the_digits_of_a_single_read() {
        let mut one = Requests::default();
        one.reads = 1;
        assert_eq!(dollars(cost(Provider::S3, &one)), "$0.0000004");
        assert_eq!([0.0, 0.005, 1.2, 12.0].map(dollars), ["$0.00", "$0.005", "$1.20", "$12.00"]);
    }
}
