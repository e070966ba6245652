//! Sizes, rates and durations as people are shown them.

use std::time::Duration;

/// Decimal units of bytes, each a thousand times the one before.
const DECIMAL: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
/// Binary units of bytes, each 1024 times the one before.
const BINARY: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// A number of bytes in decimal units with three significant digits: `0 B`, `999 B`, `4.7 MB`, `1.07 GB`.
pub(crate) fn size(bytes: u64) -> String {
    let (value, unit) = scaled(bytes as f64, 1000.0, &DECIMAL);
    format!("{} {unit}", digits(value, unit == "B"))
}

/// A number of bytes in binary units, written as `gcloud storage ls` does: `44B`, `4.59KiB`.
pub(crate) fn readable_size(bytes: u64) -> String {
    let (value, unit) = scaled(bytes as f64, 1024.0, &BINARY);
    if unit == "B" { format!("{bytes}B") } else { format!("{value:.2}{unit}") }
}

/// Bytes over a time as a rate: `10.4 MB/s`. Over no time at all there is no rate.
pub(crate) fn rate(bytes: u64, time: Duration) -> Option<String> {
    let seconds = time.as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let (value, unit) = scaled(bytes as f64 / seconds, 1000.0, &DECIMAL);
    Some(format!("{} {unit}/s", digits(value, false)))
}

/// A time as the final line shows it: `0.45 s`, `12.3 s`, `4 min 05 s`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else if seconds < 119.95 {
        format!("{seconds:.1} s")
    } else {
        let whole = time.as_secs_f64().round() as u64;
        let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
        if hours > 0 {
            format!("{hours} h {minutes:02} min {seconds:02} s")
        } else {
            format!("{minutes} min {seconds:02} s")
        }
    }
}

/// A count with its noun: `1 file`, `1000 files`.
pub(crate) fn count(n: u64, singular: &str, plural: &str) -> String {
    format!("{n} {}", if n == 1 { singular } else { plural })
}

fn scaled<'a>(mut value: f64, step: f64, units: &[&'a str]) -> (f64, &'a str) {
    let mut power = 0;
    // Half a unit in the last shown digit below the step, so that 999.96 kB is shown as 1.00 MB and not as 1000 kB.
    while value >= step - 0.5 && power + 1 < units.len() {
        value /= step;
        power += 1;
    }
    (value, units[power])
}

fn digits(value: f64, whole: bool) -> String {
    if whole || value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 1.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_with_about_three_digits() {
        let shown: Vec<_> =
            [0, 1, 999, 1000, 4_700_000, 1 << 30, 999_960, 123_456_789].into_iter().map(size).collect();
        assert_eq!(shown, ["0 B", "1 B", "999 B", "1.00 kB", "4.7 MB", "1.07 GB", "1.00 MB", "123 MB"]);
    }

    #[test]
    fn readable_sizes_are_those_of_gcloud() {
        assert_eq!([44, 4700, 1 << 30].map(readable_size), ["44B", "4.59KiB", "1.00GiB"]);
    }

    #[test]
    fn a_rate_needs_time_to_have_passed() {
        assert_eq!(rate(4_700_000, Duration::from_millis(450)).as_deref(), Some("10.4 MB/s"));
        assert_eq!(rate(1, Duration::ZERO), None);
    }

    #[test]
    fn times_are_shown_as_short_as_they_may_be() {
        let shown = [450u64, 9_990, 12_340, 245_000, 3_725_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(shown, ["0.45 s", "9.99 s", "12.3 s", "4 min 05 s", "1 h 02 min 05 s"]);
    }
}
