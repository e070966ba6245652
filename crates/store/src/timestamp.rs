//! Times as both dialects write them in bodies.

use std::time::{Duration, SystemTime};

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Reads `2026-11-21T09:04:05.123Z` or the same with an offset.
pub(crate) fn rfc3339(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once(['T', 't'])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, offset_s) = match time.find(['Z', 'z', '+']).or_else(|| time.rfind('-')) {
        Some(at) => (&time[..at], offset(&time[at..])?),
        None => (time, 0),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1970..=9999).contains(&year) {
        return None;
    }
    // Seconds reach 60 when one is put in.
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    let days = days(year, month, day);
    // The 30th of February is some day in March otherwise.
    if civil(days) != (year, month, day) {
        return None;
    }
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(seconds).ok()?, digits.parse().ok()?))
}

/// Writes `2026-11-21T09:04:05Z`; what lies before 1970 becomes 1970.
pub(crate) fn to_rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The reverse of [`days`], after the same author's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

fn offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = text.split_at(1);
    let (hours, minutes) = rest.split_once(':')?;
    let seconds = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

/// Days from 1970-01-01 in the Gregorian calendar, after Howard Hinnant's `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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
        assert_eq!(rfc3339("yesterday"), None);
        for none in [
            "2000-13-01T00:00:00Z",
            "2027-02-29T00:00:00Z",
            "2027-04-31T00:00:00Z",
            "2027-01-31T24:00:00Z",
            "2027-01-31T12:60:00Z",
        ] {
            assert_eq!(rfc3339(none), None, "{none}");
        }
    }
}
