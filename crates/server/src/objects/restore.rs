//! Restoration from S3's archives. An archived object can be read only after a client has requested its restoration,
//! which makes a temporary copy. [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/restoring-objects.html)

use serde::{Deserialize, Serialize};

use super::Object;

const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

/// A restoration that a client has requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Restore {
    /// The time from which the copy can be read, in microseconds since 1970.
    ready_us: u64,
    /// The time when the copy is removed. `None` if the object itself leaves the archive, as objects of the class
    /// INTELLIGENT_TIERING do.
    ends_us: Option<u64>,
}

impl Restore {
    /// Returns the restoration to a copy that can be read from `ready_us` on, for this many days. As on S3, the last
    /// day ends at midnight.
    pub(crate) fn copy(ready_us: u64, days: u32) -> Restore {
        let days_over = (ready_us / DAY_US).saturating_add(u64::from(days)) + 1;
        Restore { ready_us, ends_us: Some(days_over.saturating_mul(DAY_US)) }
    }

    /// Returns a restoration after which the object itself has left the archive, at `ready_us`.
    pub(crate) fn for_good(ready_us: u64) -> Restore {
        Restore { ready_us, ends_us: None }
    }
}

/// The place of an object's bytes at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    /// The object isn't archived, like most objects.
    AtHand,
    /// The object is in an archive. `restoring` is true if a restoration is running.
    Archive { restoring: bool },
    /// The object is in an archive, but has a copy that can be read until this time, in microseconds since 1970.
    Copied { until_us: u64 },
}

impl Object {
    /// Returns the object's place at `now_us`, in microseconds since 1970.
    pub(crate) fn place(&self, now_us: u64) -> Availability {
        let is_class = matches!(self.storage_class(), "GLACIER" | "DEEP_ARCHIVE");
        if !is_class && self.attributes.archive_status.is_none() {
            return Availability::AtHand;
        }
        match self.restore {
            Some(restore) if now_us < restore.ready_us => Availability::Archive { restoring: true },
            Some(Restore { ends_us: None, .. }) => Availability::AtHand,
            Some(Restore { ends_us: Some(until_us), .. }) if now_us < until_us => {
                Availability::Copied { until_us }
            }
            _ => Availability::Archive { restoring: false },
        }
    }

    /// Returns S3's name of the archive tier of an INTELLIGENT_TIERING object, or `None` if the object isn't archived
    /// at `now_us`.
    pub(crate) fn archive_tier(&self, now_us: u64) -> Option<&str> {
        let in_archive = matches!(self.place(now_us), Availability::Archive { .. });
        self.attributes.archive_status.as_deref().filter(|_| in_archive)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Storage;
    use crate::objects::{Attributes, Objects};

    const HOUR_US: u64 = DAY_US / 24;

    fn object(class: &str, tier: Option<&str>, restore: Option<Restore>) -> Object {
        let attributes = Attributes {
            storage_class: Some(class.to_owned()),
            archive_status: tier.map(str::to_owned),
            ..Attributes::default()
        };
        let store = Objects::open(&Storage::Memory, true, false).unwrap();
        let object = Arc::unwrap_or_clone(store.put_with("b", "k", b"x", attributes).unwrap());
        Object { restore, ..object }
    }

    #[test]
    fn a_copy_comes_and_goes() {
        for class in ["GLACIER", "DEEP_ARCHIVE"] {
            assert_eq!(object(class, None, None).place(0), Availability::Archive { restoring: false });
            let restored = object(class, None, Some(Restore::copy(5 * HOUR_US, 2)));
            assert_eq!(restored.place(5 * HOUR_US - 1), Availability::Archive { restoring: true });
            let until_us = 3 * DAY_US;
            assert_eq!(restored.place(5 * HOUR_US), Availability::Copied { until_us });
            assert_eq!(restored.place(until_us - 1), Availability::Copied { until_us });
            assert_eq!(restored.place(until_us), Availability::Archive { restoring: false });
        }
        assert_eq!(object("GLACIER_IR", None, None).place(0), Availability::AtHand);
    }

    #[test]
    fn what_is_tiered_leaves_its_archive() {
        let tier = Some("ARCHIVE_ACCESS");
        let archived = object("INTELLIGENT_TIERING", tier, None);
        assert_eq!(
            (archived.place(0), archived.archive_tier(0)),
            (Availability::Archive { restoring: false }, tier)
        );
        let restored = object("INTELLIGENT_TIERING", tier, Some(Restore::for_good(HOUR_US)));
        assert_eq!(
            (restored.place(0), restored.archive_tier(0)),
            (Availability::Archive { restoring: true }, tier)
        );
        assert_eq!((restored.place(HOUR_US), restored.archive_tier(HOUR_US)), (Availability::AtHand, None));
        assert_eq!(restored.place(1000 * DAY_US), Availability::AtHand);
    }
}
