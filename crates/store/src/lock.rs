//! Retention: the settings that protect an object from changes and removal.

use std::time::SystemTime;

use crate::timestamp::rfc3339;

/// A setting that protects an object until a given time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Retention {
    /// The strictness of the retention.
    pub mode: RetentionMode,
    /// The end of the retention.
    pub until: SystemTime,
}

impl Retention {
    /// Returns a retention of this mode until this time.
    pub const fn new(mode: RetentionMode, until: SystemTime) -> Self {
        Self { mode, until }
    }

    /// Reads a time (`2027-01-31T12:00:00Z`), or a day, which means midnight UTC.
    pub fn time(text: &str) -> Option<SystemTime> {
        let is_day = text.len() == "2027-01-31".len();
        if is_day { rfc3339(&format!("{text}T00:00:00Z")) } else { rfc3339(text) }
    }
}

/// The strictness of a retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RetentionMode {
    /// A user with a special permission may shorten the retention: S3's `GOVERNANCE`, GCS's `Unlocked`.
    Governance,
    /// No user may shorten the retention: S3's `COMPLIANCE`, GCS's `Locked`.
    Compliance,
}

impl RetentionMode {
    /// Returns its name on S3: `GOVERNANCE` or `COMPLIANCE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }

    /// Returns the mode with this [`name`](Self::name) or GCS name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match () {
            () if is("GOVERNANCE") || is("Unlocked") => Some(Self::Governance),
            () if is("COMPLIANCE") || is("Locked") => Some(Self::Compliance),
            () => None,
        }
    }

    /// Returns its name on GCS: `Unlocked` or `Locked`.
    pub(crate) fn gcs_name(self) -> &'static str {
        match self {
            Self::Governance => "Unlocked",
            Self::Compliance => "Locked",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_or_a_moment() {
        assert_eq!(Retention::time("2027-01-31"), Retention::time("2027-01-31T00:00:00Z"));
        assert!(Retention::time("2027-01-31").is_some() && Retention::time("soon").is_none());
    }

    #[test]
    fn modes_have_a_name_on_each_store() {
        for mode in [RetentionMode::Governance, RetentionMode::Compliance] {
            assert_eq!(RetentionMode::named(mode.name()), Some(mode));
            assert_eq!(RetentionMode::named(mode.gcs_name()), Some(mode));
            assert_eq!(RetentionMode::named(&mode.name().to_lowercase()), Some(mode));
        }
        assert_eq!(RetentionMode::named("FOREVER"), None);
    }
}
