//! The output of `--stats`: the network, CPU time and money that a command used.

use std::time::Duration;

use laneway::dialect::{RequestPrices, capabilities_of};
use laneway::{Client, Counters, Listings, Provider, Requests, Summary, Times};
use laneway_quantity as quantity;
use serde::Serialize;

/// The counts at the end of a command.
#[derive(Debug)]
pub(crate) struct CommandStats {
    counters: Counters,
    times: Times,
    /// The requests to each provider. Providers that got no request are left out.
    requests: Vec<(Provider, Requests)>,
    /// The pages and keys that were listed at each provider. Other providers are left out.
    listings: Vec<(Provider, Listings)>,
    /// Bytes a second that the job moved.
    goodput: Option<u64>,
    /// User and system time of all threads.
    cpu: Duration,
}

impl CommandStats {
    /// Returns the statistics of `client` up to now. The goodput is computed from the bytes in `summary`. Without a summary, it is computed
    /// from the bytes received in `elapsed`.
    pub(crate) fn of(client: &Client, summary: Option<&Summary>, elapsed: Duration) -> Self {
        let counters = client.counters();
        let (bytes, seconds) = match summary {
            Some(summary) => (summary.bytes, summary.seconds),
            None => (counters.bytes_received, elapsed.as_secs_f64()),
        };
        let asked = |provider: Provider| {
            let requests = client.requests(provider);
            (requests != Requests::default()).then_some((provider, requests))
        };
        let listed = |provider: Provider| {
            let listings = client.listings(provider);
            (listings != Listings::default()).then_some((provider, listings))
        };
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Self {
            counters,
            times: client.times(),
            requests: Provider::CLOUDS.into_iter().filter_map(asked).collect(),
            listings: Provider::CLOUDS.into_iter().filter_map(listed).collect(),
            goodput: (bytes > 0 && seconds > 0.0).then_some((bytes as f64 / seconds) as u64),
            cpu: Duration::try_from(cpu).unwrap_or_default(),
        }
    }

    /// Returns a human-readable table.
    pub(crate) fn table(&self) -> String {
        let Self { counters, times, .. } = self;
        let plain = |n: u64| n.to_string();
        let bytes = |n: u64| format!("{n} ({})", quantity::size(n));
        let waits = |times: &laneway::Distribution| match (times.quantile(0.5), times.quantile(0.99)) {
            (Some(p50), Some(p99)) => format!("{} p50, {} p99", quantity::short(p50), quantity::short(p99)),
            _ => "-".to_owned(),
        };
        let mut rows = vec![
            ("connections", plain(counters.connections)),
            ("  open at once", plain(counters.connections_peak)),
            ("  speaking h1", plain(counters.connections_h1)),
            ("  speaking h2", plain(counters.connections_h2)),
            ("TLS handshakes", plain(counters.handshakes)),
            ("requests", plain(counters.requests)),
            ("  retries", plain(counters.retries)),
            ("  hedges", plain(counters.hedges)),
            ("  throttled", plain(counters.throttles)),
            ("time to first byte", waits(&times.first_byte)),
            ("wait for a lane", waits(&times.queued)),
            ("body bytes sent", bytes(counters.bytes_sent)),
            ("body bytes received", bytes(counters.bytes_received)),
            ("segments sent again", plain(counters.segments_resent)),
        ];
        let goodput = self.goodput.and_then(|rate| quantity::rate(rate, Duration::from_secs(1)));
        rows.push(("goodput", goodput.unwrap_or_else(|| "-".to_owned())));
        rows.push(("CPU time", quantity::duration(self.cpu)));
        for (provider, listings) in &self.listings {
            let Listings { pages, at_once, keys, .. } = listings;
            let scheme = provider.scheme();
            rows.push((
                "listings",
                format!("{keys} keys in {pages} pages, at most {at_once} at the same time, on {scheme}://"),
            ));
        }
        for (provider, requests) in &self.requests {
            let Requests { writes, reads, deletes, .. } = requests;
            let cost = dollars(cost(*provider, requests));
            let scheme = provider.scheme();
            rows.push((
                "cost of requests",
                format!(
                    "{cost} for {writes} writes and lists, {reads} reads, {deletes} deletes on {scheme}://"
                ),
            ));
        }
        let mut table = String::new();
        for (name, value) in rows {
            table += &format!("{name:<20} {value}\n");
        }
        if !self.requests.is_empty() {
            table += &format!("{:<20} list price as of {}, {}\n", "", as_of(), LEFT_OUT);
        }
        table.truncate(table.trim_end().len());
        table
    }
}

/// The statistics in JSON: the field `stats` of a summary. Times are in seconds, rates in bytes a second.
#[derive(Serialize, Debug)]
pub(crate) struct StatsRecord {
    connections: u64,
    connections_peak: u64,
    connections_h1: u64,
    connections_h2: u64,
    handshakes: u64,
    requests: u64,
    retries: u64,
    hedges: u64,
    throttles: u64,
    first_byte_p50_s: Option<f64>,
    first_byte_p99_s: Option<f64>,
    queued_p50_s: Option<f64>,
    queued_p99_s: Option<f64>,
    bytes_sent: u64,
    bytes_received: u64,
    segments_resent: u64,
    goodput: Option<u64>,
    cpu_s: f64,
    listings: Vec<ListingsRecord>,
    billed: Vec<BilledRecord>,
    cost_usd: f64,
    prices_as_of: &'static str,
}

/// The pages and keys that were listed at a provider.
#[derive(Serialize, Debug)]
struct ListingsRecord {
    store: &'static str,
    pages: u64,
    at_once: u64,
    keys: u64,
}

/// The requests that a provider bills.
#[derive(Serialize, Debug)]
struct BilledRecord {
    store: &'static str,
    writes: u64,
    reads: u64,
    deletes: u64,
    cost_usd: f64,
}

/// The statistics of a command without a summary, as the record of kind `stats`.
#[derive(Serialize, Debug)]
pub(crate) struct StatsLine {
    kind: &'static str,
    #[serde(flatten)]
    stats: StatsRecord,
}

impl From<&CommandStats> for StatsLine {
    fn from(stats: &CommandStats) -> Self {
        Self { kind: "stats", stats: stats.into() }
    }
}

impl From<&CommandStats> for StatsRecord {
    fn from(stats: &CommandStats) -> Self {
        let CommandStats { counters, times, .. } = stats;
        let seconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e6;
        let dollars = |amount: f64| (amount * 1e7).round() / 1e7;
        let billed: Vec<_> = stats
            .requests
            .iter()
            .map(|(provider, requests)| BilledRecord {
                store: provider.scheme(),
                writes: requests.writes,
                reads: requests.reads,
                deletes: requests.deletes,
                cost_usd: dollars(cost(*provider, requests)),
            })
            .collect();
        let listed = |(provider, listings): &(Provider, Listings)| ListingsRecord {
            store: provider.scheme(),
            pages: listings.pages,
            at_once: listings.at_once,
            keys: listings.keys,
        };
        Self {
            connections: counters.connections,
            connections_peak: counters.connections_peak,
            connections_h1: counters.connections_h1,
            connections_h2: counters.connections_h2,
            handshakes: counters.handshakes,
            requests: counters.requests,
            retries: counters.retries,
            hedges: counters.hedges,
            throttles: counters.throttles,
            first_byte_p50_s: times.first_byte.quantile(0.5).map(seconds),
            first_byte_p99_s: times.first_byte.quantile(0.99).map(seconds),
            queued_p50_s: times.queued.quantile(0.5).map(seconds),
            queued_p99_s: times.queued.quantile(0.99).map(seconds),
            bytes_sent: counters.bytes_sent,
            bytes_received: counters.bytes_received,
            segments_resent: counters.segments_resent,
            goodput: stats.goodput,
            cpu_s: seconds(stats.cpu),
            listings: stats.listings.iter().map(listed).collect(),
            cost_usd: dollars(billed.iter().map(|b| b.cost_usd).sum()),
            billed,
            prices_as_of: as_of(),
        }
    }
}

/// Returns the month of the oldest of the price lists.
fn as_of() -> &'static str {
    let lists = Provider::CLOUDS.into_iter().filter_map(capabilities_of);
    lists.map(|can| can.prices.as_of).min().unwrap_or_default()
}

/// The end of the note on prices, which says which costs the figures leave out.
const LEFT_OUT: &str = "one region, egress and storage not included";

/// Returns the price of requests in US dollars.
///
/// The prices are those of one region and the standard class: S3 in us-east-1 (<https://aws.amazon.com/s3/pricing/>), GCS in a region
/// (<https://cloud.google.com/storage/pricing>). The prices leave out egress, storage, retrieval and discounts. The prices are wrong for
/// other stores that speak one of these protocols.
fn cost(provider: Provider, requests: &Requests) -> f64 {
    let prices = capabilities_of(provider).map_or(RequestPrices::FREE, |can| can.prices);
    let of = |requests: u64, price: f64| requests as f64 / 1000.0 * price;
    of(requests.writes, prices.writes)
        + of(requests.reads, prices.reads)
        + of(requests.deletes, prices.deletes)
}

/// Formats an amount with enough digits for the price of a single request: `$0.0000004`, `$0.005`, `$1.25`.
fn dollars(amount: f64) -> String {
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

    fn stats() -> CommandStats {
        let mut counters = Counters::default();
        (counters.connections, counters.bytes_sent) = (16, 4_700_000);
        let mut requests = Requests::default();
        (requests.writes, requests.reads) = (1000, 3);
        let mut listings = Listings::default();
        (listings.pages, listings.at_once, listings.keys) = (68, 6, 50_000);
        CommandStats {
            counters,
            times: Times::default(),
            requests: vec![(Provider::Gcs, requests)],
            listings: vec![(Provider::S3, listings)],
            goodput: Some(10 << 20),
            cpu: Duration::from_millis(120),
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_thing() {
        let table = stats().table();
        for line in [
            "connections          16",
            "time to first byte   -",
            "body bytes sent      4700000 (4.5 MiB)",
            "goodput              10.0 MiB/s",
            "CPU time             0.12 s",
            "listings             50000 keys in 68 pages, at most 6 at the same time, on s3://",
            "cost of requests     $0.0050012 for 1000 writes and lists, 3 reads, 0 deletes on gs://",
            "                     list price as of 2026-01, one region, egress and storage not included",
        ] {
            assert!(table.lines().any(|l| l == line), "{line:?} is missing: {table}");
        }
    }

    #[test]
    fn the_record_has_the_documented_fields() {
        let json = serde_json::to_string(&StatsRecord::from(&stats())).expect("it serialises");
        assert_eq!(
            json,
            concat!(
                r#"{"connections":16,"connections_peak":0,"connections_h1":0,"connections_h2":0,"handshakes":0,"#,
                r#""requests":0,"retries":0,"hedges":0,"throttles":0,"first_byte_p50_s":null,"first_byte_p99_s":null,"#,
                r#""queued_p50_s":null,"queued_p99_s":null,"bytes_sent":4700000,"bytes_received":0,"segments_resent":0,"goodput":10485760,"#,
                r#""cpu_s":0.12,"listings":[{"store":"s3","pages":68,"at_once":6,"keys":50000}],"#,
                r#""billed":[{"store":"gs","writes":1000,"reads":3,"deletes":0,"cost_usd":0.0050012}],"#,
                r#""cost_usd":0.0050012,"prices_as_of":"2026-01"}"#
            )
        );
    }

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
