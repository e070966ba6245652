//! Parses the quantities of the command line: durations (`50ms`), sizes (`256KiB`), rates (`1Gbit/s`) and packet loss
//! (`0.5%`).

use std::time::Duration;

/// The error for a text that isn't a quantity. The message gives the expected format.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not {what}: expected {expected}")]
pub struct InvalidQuantity {
    what: &'static str,
    text: String,
    expected: &'static str,
}

impl InvalidQuantity {
    fn new(what: &'static str, text: &str, expected: &'static str) -> Self {
        Self { what, text: text.to_owned(), expected }
    }
}

/// Parses a duration: a number with `us`, `ms`, `s`, `m`, `h` or `d`. A bare `0` is a zero duration.
///
/// # Errors
/// Returns the expected format for any other text.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidQuantity> {
    let refuse =
        || InvalidQuantity::new("a duration", text, "a number with us, ms, s, m, h or d, as in 50ms or 1.5s");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (number, unit) = split_unit(text).ok_or_else(refuse)?;
    let scale = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(refuse()),
    };
    Duration::try_from_secs_f64(number * scale).map_err(|_| refuse())
}

/// Parses a size in bytes: a number with `B`, `KB`, `MB`, `GB` (powers of 1000) or `KiB`, `MiB`, `GiB` (powers of
/// 1024). As in rclone, a single letter is a power of 1024: `50M` is 50 MiB.
///
/// # Errors
/// Returns the expected format for any other text.
pub fn parse_size(text: &str) -> Result<u64, InvalidQuantity> {
    let refuse = || {
        InvalidQuantity::new(
            "a size",
            text,
            "a number with B, KB, KiB, MB, MiB, GB, GiB, TB or TiB, as in 256KiB or 50M",
        )
    };
    let (number, unit) = split_unit(text).ok_or_else(refuse)?;
    let scale = byte_scale(if unit.is_empty() { "B" } else { unit }).ok_or_else(refuse)?;
    bytes(number * scale).ok_or_else(refuse)
}

/// Parses a rate and returns bytes per second. The text may be in bits (`100Mbit/s`), in bytes (`100MB/s`, `1GiB/s`),
/// or as in rclone (`10M`, which is 10 MiB/s).
///
/// # Errors
/// Returns the expected format for any other text, and for a rate of zero.
pub fn parse_rate(text: &str) -> Result<u64, InvalidQuantity> {
    let refuse = || {
        InvalidQuantity::new("a rate", text, "bits or bytes per second, as in 100Mbit/s, 1Gbit/s or 100MB/s")
    };
    let (number, unit) = split_unit(text.strip_suffix("/s").unwrap_or(text)).ok_or_else(refuse)?;
    // A rate must end in `/s`, unless it uses rclone's letters (`10M`).
    if !text.ends_with("/s") && !is_letter(unit) {
        return Err(refuse());
    }
    let scale = match unit {
        "bit" => 0.125,
        "kbit" | "Kbit" => 125.0,
        "Mbit" => 125e3,
        "Gbit" => 125e6,
        _ => byte_scale(unit).ok_or_else(refuse)?,
    };
    bytes(number * scale).filter(|rate| *rate > 0).ok_or_else(refuse)
}

/// The largest share of packets that a simulated link may lose. With a larger one, hardly any transfer would finish.
pub const LOSS_MAX: f64 = 0.5;

/// Parses the share of packets that a link loses, in percent.
///
/// # Errors
/// Returns the expected format for any other text, and for a share above [`LOSS_MAX`].
pub fn parse_loss(text: &str) -> Result<f64, InvalidQuantity> {
    let refuse = || InvalidQuantity::new("a share of lost packets", text, "percent, at most 50%, as in 0.5%");
    let (number, unit) = split_unit(text).ok_or_else(refuse)?;
    Some(number / 100.0).filter(|share| unit == "%" && *share <= LOSS_MAX).ok_or_else(refuse)
}

fn split_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, &text[end..]))
}

/// Returns true for rclone's units, which are powers of 1024.
fn is_letter(unit: &str) -> bool {
    matches!(unit, "k" | "K" | "m" | "M" | "g" | "G" | "t" | "T" | "Ki" | "Mi" | "Gi" | "Ti")
}

fn byte_scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "k" | "K" => 1024.0,
        "m" | "M" => 1048576.0,
        "g" | "G" => 1073741824.0,
        "t" | "T" => 1099511627776.0,
        "B" => 1.0,
        "KB" | "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1048576.0,
        "TB" => 1e12,
        "GiB" => 1073741824.0,
        "TiB" => 1099511627776.0,
        // rclone prints and accepts these units.
        "Ki" => 1024.0,
        "Mi" => 1048576.0,
        "Gi" => 1073741824.0,
        "Ti" => 1099511627776.0,
        "PB" => 1e15,
        "P" | "p" | "Pi" | "PiB" => 1125899906842624.0,
        _ => return None,
    })
}

fn bytes(number: f64) -> Option<u64> {
    // Refuse sizes from about 2^63 bytes on, because they can only be a typing error.
    (0.0..9.2e18).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!(parse_duration("50ms").unwrap(), Duration::from_millis(50));
        assert_eq!(parse_duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(parse_duration("1.5h").unwrap(), Duration::from_secs(5400));
        assert_eq!(parse_duration("7d").unwrap(), Duration::from_secs(604_800));
        assert_eq!(parse_duration("0").unwrap(), Duration::ZERO);
    }

    #[test]
    fn rates_are_bits_or_bytes_a_second() {
        assert_eq!(parse_rate("1Gbit/s").unwrap(), 125_000_000);
        assert_eq!(parse_rate("100MB/s").unwrap(), 100_000_000);
        assert_eq!(parse_rate("1MiB/s").unwrap(), 1 << 20);
        assert_eq!(parse_rate("10M").unwrap(), 10 << 20);
        assert_eq!(parse_rate("10Mi").unwrap(), 10 << 20);
    }

    #[test]
    fn sizes_know_both_kinds_of_kilo() {
        assert_eq!(parse_size("256KiB").unwrap(), 256 << 10);
        assert_eq!(parse_size("1MB").unwrap(), 1_000_000);
        assert_eq!(parse_size("17").unwrap(), 17);
        assert_eq!(
            [parse_size("1k").unwrap(), parse_size("50M").unwrap(), parse_size("10G").unwrap()],
            [1 << 10, 50 << 20, 10 << 30]
        );
        assert_eq!([parse_size("1Ki").unwrap(), parse_size("2P").unwrap()], [1 << 10, 2 << 50]);
    }

    #[test]
    fn losses_are_in_percent_and_at_most_half() {
        assert_eq!(parse_loss("0.5%").unwrap(), 0.005);
        assert_eq!(parse_loss("50%").unwrap(), 0.5);
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_an_example() {
        for text in ["", "ms", "50", "5 parsecs", "-1s", "1e400s", "infs", "1w", "soon"] {
            let message = parse_duration(text).unwrap_err().to_string();
            assert!(message.contains("50ms"), "{message}");
        }
        for text in ["", "0.5", "%", "51%", "101%", "-1%", "few"] {
            assert!(parse_loss(text).unwrap_err().to_string().contains("0.5%"));
        }
        for text in ["1Gbit", "fast", "0MB/s", "99999999999999999999GB/s"] {
            assert!(parse_rate(text).unwrap_err().to_string().contains("100Mbit/s"));
        }
    }
}
