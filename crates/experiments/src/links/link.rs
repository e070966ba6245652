//! A link, described by its delay, rate, queue and loss.

use std::fmt;
use std::time::Duration;

use laneway::Provider;
use laneway_quantity::{InvalidQuantity, parse_duration, parse_loss, parse_rate, parse_size};

use crate::place::Imitated;

/// A link's delay, rate, queue and loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// The round-trip time.
    pub rtt: Duration,
    /// Bytes per second that all connections share in each direction.
    pub bandwidth: u64,
    /// Bytes that may wait in the queue before the link.
    pub queue: u64,
    /// Share of packets that are lost at random, from 0 to 0.5.
    pub loss: f64,
}

impl Link {
    /// The links that Laneway's rules are tested on: near and far, fast and slow, with deep and shallow queues, with
    /// and without loss.
    pub const USUAL: [Self; 8] = [
        link(500, 1000, 1024, 0.0),
        link(2000, 1000, 1024, 0.0),
        link(20_000, 1000, 1024, 0.0),
        link(20_000, 1000, 256, 0.001),
        link(50_000, 500, 1024, 0.0),
        link(120_000, 200, 2048, 0.0),
        link(20_000, 100, 256, 0.0),
        link(20_000, 1000, 1024, 0.005),
    ];

    pub(super) fn imitated(&self, provider: Provider, h1_only: bool) -> Imitated {
        let Self { rtt, bandwidth, queue, loss } = *self;
        Imitated {
            rtt,
            bandwidth: Some(bandwidth),
            queue: Some(queue),
            loss,
            connection_bandwidth: None,
            h1_only,
            provider,
        }
    }

    /// Returns the options that describe this link to the other benchmarks.
    pub(super) fn options(&self) -> String {
        let words = ["--rtt", "--bandwidth", "--queue", "--loss"];
        let options = words.into_iter().zip(self.words()).map(|(option, value)| format!("{option} {value}"));
        options.collect::<Vec<_>>().join(" ")
    }

    fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("{}ms", self.rtt.as_micros() as f64 / 1e3),
            format!("{}Mbit/s", self.bandwidth as f64 / 125e3),
        ];
        words.push(match self.queue % 1024 {
            0 => format!("{}KiB", self.queue / 1024),
            _ => format!("{}B", self.queue),
        });
        if self.loss > 0.0 {
            words.push(format!("{}%", (self.loss * 1e6).round() / 1e4));
        }
        words
    }
}

const fn link(rtt_us: u64, mbit_s: u64, queue_kib: u64, loss: f64) -> Link {
    Link { rtt: Duration::from_micros(rtt_us), bandwidth: mbit_s * 125_000, queue: queue_kib << 10, loss }
}

/// Formats a link as [`parse_link`] parses it.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(","))
    }
}

/// Parses a link: its round trip, rate, queue, and optionally its loss, as in `20ms,1Gbit/s,256KiB,0.1%`.
///
/// # Errors
/// The error names the part that is missing or can't be parsed.
pub fn parse_link(text: &str) -> Result<Link, InvalidQuantity> {
    let mut parts = text.split(',');
    let mut part = || parts.next();
    let link = Link {
        rtt: parse_duration(part().unwrap_or_default())?,
        bandwidth: parse_rate(part().unwrap_or_default())?,
        queue: parse_size(part().unwrap_or_default())?,
        loss: part().map_or(Ok(0.0), parse_loss)?,
    };
    // A link has four fields, so a fifth one is an error. `parse_loss` reports the error, because a text with a comma
    // isn't a loss.
    part().map_or(Ok(link), |more| parse_loss(&format!(",{more}")).map(|_| link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_shown_as_it_is_read() {
        let shown = Link::USUAL.map(|link| link.to_string());
        assert_eq!(shown[0], "0.5ms,1000Mbit/s,1024KiB");
        assert_eq!(shown[7], "20ms,1000Mbit/s,1024KiB,0.5%");
        assert_eq!(shown.map(|text| parse_link(&text).unwrap()), Link::USUAL);
        assert_eq!(parse_link("20ms,1Gbit/s,1MiB,0%").unwrap(), Link::USUAL[2]);
    }

    #[test]
    fn what_is_no_link_is_refused_with_what_is_wrong() {
        for (text, wrong) in [
            ("", "a duration"),
            ("20ms", "a rate"),
            ("20ms,fast", "`fast` is not a rate"),
            ("20ms,1Gbit/s", "a size"),
            ("20ms,1Gbit/s,deep", "a size"),
            ("20ms,1Gbit/s,1MiB,few", "a share"),
            ("20ms,1Gbit/s,1MiB,1%,more", "`,more` is not a share"),
        ] {
            let message = parse_link(text).unwrap_err().to_string();
            assert!(message.contains(wrong), "the message about {text:?} lacks {wrong:?}: {message}");
        }
    }
}
