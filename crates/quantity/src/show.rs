//! Formats sizes, rates and durations.

use std::time::Duration;

/// Binary units of bytes, each 1024 times the previous one.
const BINARY: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Formats a number of bytes with about three significant digits: `0 B`, `999 B`, `4.5 MiB`, `1.00 GiB`.
pub fn size(bytes: u64) -> String {
    let (value, unit) = scaled(bytes as f64);
    format!("{} {unit}", digits(value, unit == "B"))
}

/// Formats a number of bytes as `gcloud storage ls --readable-sizes` does: `44B`, `4.59KiB`.
pub fn readable_size(bytes: u64) -> String {
    let (value, unit) = scaled(bytes as f64);
    if unit == "B" { format!("{bytes}B") } else { format!("{value:.2}{unit}") }
}

/// Formats a number with a comma after each group of three digits: `4,218`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats the rate of a number of bytes in a time: `9.96 MiB/s`. Returns `None` if the time is zero.
pub fn rate(bytes: u64, time: Duration) -> Option<String> {
    let seconds = time.as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let (value, unit) = scaled(bytes as f64 / seconds);
    Some(format!("{} {unit}/s", digits(value, false)))
}

/// Formats a time for a job's summary line: `0.45 s`, `12.3 s`, `4 min 05 s`.
pub fn duration(time: Duration) -> String {
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

/// Formats a short time with up to three digits: `850 us`, `4.7 ms`, `52 ms`, `1.20 s`.
pub fn short(time: Duration) -> String {
    let micros = time.as_micros() as f64;
    match micros {
        _ if micros < 999.5 => format!("{micros:.0} us"),
        _ if micros < 9_950.0 => format!("{:.1} ms", micros / 1e3),
        _ if micros < 999_500.0 => format!("{:.0} ms", micros / 1e3),
        _ => duration(time),
    }
}

/// Formats bytes per second in bits, as the rate of a link is usually given: `100 Mbit/s`, `2.5 Gbit/s`.
pub fn link_rate(bytes_per_second: u64) -> String {
    match bytes_per_second as f64 * 8.0 / 1e6 {
        mbit if mbit >= 1000.0 => format!("{} Gbit/s", (mbit / 10.0).round() / 100.0),
        mbit => format!("{mbit:.0} Mbit/s"),
    }
}

/// Formats a count with its noun: `1 file`, `1000 files`.
pub fn count(n: u64, singular: &str, plural: &str) -> String {
    format!("{n} {}", if n == 1 { singular } else { plural })
}

fn scaled(mut value: f64) -> (f64, &'static str) {
    let mut power = 0;
    // From 1023.5 on, the value would be rounded to 1024. So 1023.96 KiB is shown as 1.00 MiB, not as 1024 KiB.
    while value >= 1023.5 && power + 1 < BINARY.len() {
        value /= 1024.0;
        power += 1;
    }
    (value, BINARY[power])
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
    fn a_comma_stands_between_each_three_digits() {
        assert_eq!(
            [0, 999, 1000, 4_218, 1_234_567].map(grouped),
            ["0", "999", "1,000", "4,218", "1,234,567"]
        );
    }

    #[test]
    fn sizes_are_shown_with_about_three_digits() {
        let shown: Vec<_> =
            [0, 1, 1023, 1024, 4_700_000, 1 << 30, (1 << 20) - 1, 123 << 20].into_iter().map(size).collect();
        assert_eq!(shown, ["0 B", "1 B", "1023 B", "1.00 KiB", "4.5 MiB", "1.00 GiB", "1.00 MiB", "123 MiB"]);
    }

    #[test]
    fn readable_sizes_are_those_of_gcloud() {
        assert_eq!([44, 4700, 1 << 30].map(readable_size), ["44B", "4.59KiB", "1.00GiB"]);
    }

    #[test]
    fn a_rate_needs_time_to_have_passed() {
        assert_eq!(rate(4_700_000, Duration::from_millis(450)).as_deref(), Some("10.0 MiB/s"));
        assert_eq!(rate(1, Duration::ZERO), None);
    }

    #[test]
    fn a_links_rate_is_shown_as_it_is_sold() {
        assert_eq!(
            [125_000_000, 12_500_000, 312_500_000].map(link_rate),
            ["1 Gbit/s", "100 Mbit/s", "2.5 Gbit/s"]
        );
    }

    #[test]
    fn short_times_keep_their_digits() {
        let shown = [0, 850, 4_720, 52_300, 999_000, 1_200_000].map(|us| short(Duration::from_micros(us)));
        assert_eq!(shown, ["0 us", "850 us", "4.7 ms", "52 ms", "999 ms", "1.20 s"]);
    }

    #[test]
    fn times_are_shown_as_short_as_they_may_be() {
        let shown = [450u64, 9_990, 12_340, 245_000, 3_725_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(shown, ["0.45 s", "9.99 s", "12.3 s", "4 min 05 s", "1 h 02 min 05 s"]);
    }
}
