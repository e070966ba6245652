//! Times in the formats of the service: RFC 3339 with seven decimals for snapshots and versions, ISO 8601 in SAS tokens,
//! and HTTP dates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::{Date, Month, OffsetDateTime};

/// Returns a time such as `2026-11-29T09:45:00.1234560Z`. Snapshots and versions are named by it.
pub(super) fn precise(us: u64) -> String {
    let time = OffsetDateTime::from(at(us));
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    let micros = us % 1_000_000;
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}0Z", u8::from(month))
}

/// Returns a time in whole seconds, such as `2026-11-29T09:45:00Z`.
pub(super) fn seconds(us: u64) -> String {
    let text = precise(us);
    format!("{}Z", text.get(..19).unwrap_or(&text))
}

/// Returns an HTTP date.
pub(super) fn http(us: u64) -> String {
    httpdate::fmt_http_date(at(us))
}

/// Parses an HTTP date. Returns microseconds since 1970.
pub(super) fn parse_http(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|elapsed| elapsed.as_micros() as u64)
}

/// Parses ISO 8601 in UTC as SAS tokens may have it: `2026-11-29`, `2026-11-29T09:45Z`, or with seconds and decimals.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (date, clock) = match text.split_once('T') {
        Some((date, clock)) => (date, clock.strip_suffix('Z')?),
        None => (text, "00:00"),
    };
    let mut parts = date.split('-');
    let year: i32 = digits(parts.next()?, 4)?.parse().ok()?;
    let month: u8 = digits(parts.next()?, 2)?.parse().ok()?;
    let day: u8 = digits(parts.next()?, 2)?.parse().ok()?;
    let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
    let (clock, decimals) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':');
    let hour: u8 = digits(parts.next()?, 2)?.parse().ok()?;
    let minute: u8 = digits(parts.next()?, 2)?.parse().ok()?;
    let second: u8 = parts.next().map_or(Some(0), |second| digits(second, 2)?.parse().ok())?;
    let micros: u64 = match decimals {
        "" => 0,
        decimals if decimals.len() <= 7 && decimals.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{decimals:0<6}").get(..6)?.parse().ok()?
        }
        _ => return None,
    };
    let time = date.with_hms(hour, minute, second).ok()?.assume_utc();
    u64::try_from(time.unix_timestamp()).ok().map(|seconds| seconds * 1_000_000 + micros)
}

fn digits(text: &str, count: usize) -> Option<&str> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

fn at(us: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_in_each_format() {
        let us = 1_369_353_601_123_456;
        assert_eq!(precise(us), "2013-05-24T00:00:01.1234560Z");
        assert_eq!(parse(&precise(us)), Some(us));
        assert_eq!(seconds(us), "2013-05-24T00:00:01Z");
        assert_eq!(parse("2013-05-24"), Some(1_369_353_600_000_000));
        assert_eq!(parse("2013-05-24T00:01Z"), Some(1_369_353_660_000_000));
        for text in ["", "2013", "2013-13-01", "2013-05-24T00:00:01", "2013-05-24T25:00Z", "20é3-05-24"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
