//! Times in the formats of both dialects and their token servers.

use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;

/// The longest lifetime that is accepted from a server's answer. The limit prevents an overflow when it is added to a
/// time.
const LASTS_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Returns the seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Reads `2026-11-21T09:04:05.123Z`, or the same with an offset. A time without an offset is UTC. A time with `UTC` in
/// place of `Z`, as older versions of the AWS CLI wrote it, is UTC too. Returns `None` for any other text, and for a
/// time before 1970 or after the year 9999.
pub(crate) fn rfc3339(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix("UTC").unwrap_or(text);
    let time = match text.parse::<jiff::Timestamp>() {
        Ok(time) => time,
        Err(_) => {
            let civil: jiff::civil::DateTime = text.parse().ok()?;
            // The parser would also accept a date without a time, which isn't allowed here.
            text.contains([':']).then(|| TimeZone::UTC.to_timestamp(civil).ok())??
        }
    };
    (time >= jiff::Timestamp::UNIX_EPOCH).then(|| SystemTime::from(time))
}

/// Writes `2026-11-21T09:04:05Z`. A time before 1970 is written as the beginning of 1970, and a time after the year
/// 9999 as its end.
pub(crate) fn to_rfc3339(time: SystemTime) -> String {
    let time = time.max(SystemTime::UNIX_EPOCH);
    let time = jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the time as `20261121T090405Z`, the format of signatures, and its date `20261121`. Returns `None` for a time
/// outside the calendar.
pub(crate) fn iso8601_basic(time: SystemTime) -> Option<(String, String)> {
    let time = jiff::Timestamp::try_from(time.max(SystemTime::UNIX_EPOCH)).ok()?;
    let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let date = time.split_once('T')?.0.to_owned();
    Some((time, date))
}

/// Returns the time this many seconds from now, but at most a year from now.
pub(crate) fn end_in(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds).min(LASTS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in
            ["1970-01-01T00:00:00Z", "2000-02-29T12:30:15Z", "2027-12-31T23:59:59Z", "2100-03-01T00:00:00Z"]
        {
            assert_eq!(rfc3339(text).map(to_rfc3339).as_deref(), Some(text));
        }
    }

    #[test]
    fn times_are_read_with_fractions_and_offsets() {
        let epoch = |s: u64, ns: u32| Some(SystemTime::UNIX_EPOCH + Duration::new(s, ns));
        assert_eq!(rfc3339("1970-01-01T00:00:00Z"), epoch(0, 0));
        assert_eq!(rfc3339("2000-02-29T12:30:15.5Z"), epoch(951_827_415, 500_000_000));
        assert_eq!(rfc3339("2000-02-29T14:30:15+02:00"), epoch(951_827_415, 0));
        assert_eq!(rfc3339("2000-02-29T10:30:15-02:00"), epoch(951_827_415, 0));
        assert_eq!(rfc3339("2000-02-29T12:30:15"), epoch(951_827_415, 0));
        assert_eq!(rfc3339("2000-02-29T12:30:15UTC"), epoch(951_827_415, 0));
        for none in [
            "",
            "yesterday",
            "2000-02-29",
            "2000-13-01T00:00:00Z",
            "2027-02-29T00:00:00Z",
            "2027-04-31T00:00:00Z",
            "2027-01-31T24:00:00Z",
            "2027-01-31T12:60:00Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(rfc3339(none), None, "{none}");
        }
    }

    /// A server may send any value.
    #[test]
    fn times_and_lengths_beyond_every_calendar_are_bounded() {
        for none in ["99999-01-01T00:00:00Z", "+999999999-01-01T00:00:00Z", "-9999-01-01T00:00:00Z"] {
            assert_eq!(rfc3339(none), None, "{none}");
        }
        let last = rfc3339("9999-12-30T00:00:00Z").expect("a time");
        assert!(iso8601_basic(last).is_some());
        if let Some(far) = last.checked_add(Duration::from_secs(1 << 40)) {
            assert!(to_rfc3339(far).starts_with("9999-12-30"));
            assert_eq!(iso8601_basic(far), None);
        }
        assert!(end_in(u64::MAX) < SystemTime::now() + LASTS_MAX * 2);
        assert_eq!(to_rfc3339(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }
}
