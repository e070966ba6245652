//! The counters that `--stats` prints.

use laneway_lanes::Counters;
use serde::Serialize;

use crate::quantity;

/// The counters as the record of kind `stats`.
#[derive(Serialize, Debug)]
pub(crate) struct StatsRecord {
    kind: &'static str,
    connections: u64,
    connections_peak: u64,
    connections_h2: u64,
    handshakes: u64,
    requests: u64,
    retries: u64,
    throttles: u64,
    hedges: u64,
    bytes_sent: u64,
    bytes_received: u64,
}

impl From<&Counters> for StatsRecord {
    fn from(counters: &Counters) -> Self {
        Self {
            kind: "stats",
            connections: counters.connections,
            connections_peak: counters.connections_peak,
            connections_h2: counters.connections_h2,
            handshakes: counters.handshakes,
            requests: counters.requests,
            retries: counters.retries,
            throttles: counters.throttles,
            hedges: counters.hedges,
            bytes_sent: counters.bytes_sent,
            bytes_received: counters.bytes_received,
        }
    }
}

/// The counters as a table, one a line.
pub(crate) fn table(counters: &Counters) -> String {
    let plain = |n: u64| n.to_string();
    let bytes = |n: u64| format!("{n} ({})", quantity::size(n));
    let rows = [
        ("connections", plain(counters.connections)),
        ("  open at once", plain(counters.connections_peak)),
        ("  speaking h2", plain(counters.connections_h2)),
        ("TLS handshakes", plain(counters.handshakes)),
        ("requests", plain(counters.requests)),
        ("  retries", plain(counters.retries)),
        ("  hedges", plain(counters.hedges)),
        ("throttled answers", plain(counters.throttles)),
        ("body bytes sent", bytes(counters.bytes_sent)),
        ("body bytes received", bytes(counters.bytes_received)),
    ];
    rows.iter().map(|(name, value)| format!("{name:<20} {value}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_counter() {
        let counters = Counters { connections: 16, bytes_sent: 4_700_000, ..Counters::default() };
        let table = table(&counters);
        assert!(table.starts_with("connections          16\n"), "{table}");
        assert!(table.contains("body bytes sent      4700000 (4.7 MB)"), "{table}");
    }
}
