//! Times as both dialects write them in bodies.

use std::time::{Duration, SystemTime};

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
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(seconds).ok()?, digits.parse().ok()?))
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
    fn times_are_read_with_fractions_and_offsets() {
        let epoch = |s: u64, ns: u32| Some(SystemTime::UNIX_EPOCH + Duration::new(s, ns));
        assert_eq!(rfc3339("1970-01-01T00:00:00Z"), epoch(0, 0));
        assert_eq!(rfc3339("2000-02-29T12:30:15.5Z"), epoch(951_827_415, 500_000_000));
        assert_eq!(rfc3339("2000-02-29T14:30:15+02:00"), epoch(951_827_415, 0));
        assert_eq!(rfc3339("2000-02-29T10:30:15-02:00"), epoch(951_827_415, 0));
        assert_eq!(rfc3339("yesterday"), None);
        assert_eq!(rfc3339("2000-13-01T00:00:00Z"), None);
    }
}
