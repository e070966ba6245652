//! The time of a signature, in ISO 8601's basic format.

use std::time::SystemTime;

/// Parses a time such as `20130524T000000Z`.
pub(crate) fn basic(text: &str) -> Option<SystemTime> {
    let digits = |range: std::ops::Range<usize>| text.get(range);
    let rfc3339 = format!(
        "{}-{}-{}T{}:{}:{}Z",
        digits(0..4)?,
        digits(4..6)?,
        digits(6..8)?,
        digits(9..11)?,
        digits(11..13)?,
        digits(13..15)?
    );
    let date = s3s::dto::Timestamp::parse(s3s::dto::TimestampFormat::DateTime, &rfc3339).ok()?;
    Some(time::OffsetDateTime::from(date).into())
}

/// Returns a time in this format.
pub(crate) fn written(time: SystemTime) -> String {
    let time = time::OffsetDateTime::from(time);
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    format!("{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z", u8::from(month))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_signatures_time_is_read() {
        assert_eq!(
            basic("20130524T000001Z"),
            Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_601))
        );
        assert_eq!(basic("20130524T000001Z").map(written).as_deref(), Some("20130524T000001Z"));
        for text in ["yesterday", "", "aééé0T000000Z", "201ä524T000001Z"] {
            assert_eq!(basic(text), None, "{text}");
        }
    }
}
