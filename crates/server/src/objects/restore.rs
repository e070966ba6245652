//! Restoration from S3's archives. An archived object can only be read from a copy that a client has requested.
//! [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/restoring-objects.html)

use serde::{Deserialize, Serialize};

use super::Object;

const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

/// A requested restoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Restore {
    /// The time from which the copy can be read, in microseconds since 1970.
    ready_us: u64,
    /// The time when the copy is removed. `None` if the object itself leaves the archive, as intelligently tiered ones
    /// do.
    ends_us: Option<u64>,
}

impl Restore {
    /// Returns a copy that can be read from `ready_us` on, for this many days. They end at midnight, as on S3.
    pub(crate) fn copy(ready_us: u64, days: u32) -> Restore {
        let days_over = (ready_us / DAY_US).saturating_add(u64::from(days)) + 1;
        Restore { ready_us, ends_us: Some(days_over.saturating_mul(DAY_US)) }
    }

    /// Returns a restoration by which the object leaves the archive at `ready_us`.
    pub(crate) fn for_good(ready_us: u64) -> Restore {
        Restore { ready_us, ends_us: None }
    }
}

/// The place of an object at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not archived. Most objects are here.
    AtHand,
    /// In an archive. `restoring` is true if a restoration is under way.
    Archive { restoring: bool },
    /// In an archive, with a copy that can be read until this time, in microseconds since 1970.
    Copied { until_us: u64 },
}

impl Object {
    /// Returns the object's place at `now_us`, in microseconds since 1970.
    pub(crate) fn place(&self, now_us: u64) -> Place {
        let is_class = matches!(self.storage_class(), "GLACIER" | "DEEP_ARCHIVE");
        if !is_class && self.attributes.archive_status.is_none() {
            return Place::AtHand;
        }
        match self.restore {
            Some(restore) if now_us < restore.ready_us => Place::Archive { restoring: true },
            Some(Restore { ends_us: None, .. }) => Place::AtHand,
            Some(Restore { ends_us: Some(until_us), .. }) if now_us < until_us => Place::Copied { until_us },
            _ => Place::Archive { restoring: false },
        }
    }

    /// Returns the archive tier of an intelligently tiered object that is archived at `now_us`, by S3's name for it.
    pub(crate) fn archive_tier(&self, now_us: u64) -> Option<&str> {
        let in_archive = matches!(self.place(now_us), Place::Archive { .. });
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
            assert_eq!(object(class, None, None).place(0), Place::Archive { restoring: false });
            let restored = object(class, None, Some(Restore::copy(5 * HOUR_US, 2)));
            assert_eq!(restored.place(5 * HOUR_US - 1), Place::Archive { restoring: true });
            let until_us = 3 * DAY_US;
            assert_eq!(restored.place(5 * HOUR_US), Place::Copied { until_us });
            assert_eq!(restored.place(until_us - 1), Place::Copied { until_us });
            assert_eq!(restored.place(until_us), Place::Archive { restoring: false });
        }
        assert_eq!(object("GLACIER_IR", None, None).place(0), Place::AtHand);
    }

    #[test]
    fn what_is_tiered_leaves_its_archive() {
        let tier = Some("ARCHIVE_ACCESS");
        let archived = object("INTELLIGENT_TIERING", tier, None);
        assert_eq!(
            (archived.place(0), archived.archive_tier(0)),
            (Place::Archive { restoring: false }, tier)
        );
        let restored = object("INTELLIGENT_TIERING", tier, Some(Restore::for_good(HOUR_US)));
        assert_eq!((restored.place(0), restored.archive_tier(0)), (Place::Archive { restoring: true }, tier));
        assert_eq!((restored.place(HOUR_US), restored.archive_tier(HOUR_US)), (Place::AtHand, None));
        assert_eq!(restored.place(1000 * DAY_US), Place::AtHand);
    }
}
