//! Decides if holds and retentions permit an object to be deleted or replaced. The code has no side effects.
//!
//! S3's legal hold and every retention protect a version from permanent deletion. GCS's holds also keep a live object
//! from becoming noncurrent. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html>,
//! <https://cloud.google.com/storage/docs/object-holds>

use super::object::Object;
use super::settings::{BucketSettings, RetentionPolicy};

/// The reason why an object can't be deleted or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    TemporaryHold,
    EventBasedHold,
    LegalHold,
    /// A retention until this time, in microseconds since 1970.
    Retained(u64),
}

/// Returns the reason why the live object can't become noncurrent.
pub(crate) fn against_archival(object: &Object) -> Option<Protection> {
    let options = &object.attributes.options;
    if options.temporary_hold == Some(true) {
        Some(Protection::TemporaryHold)
    } else if options.event_hold == Some(true) {
        Some(Protection::EventBasedHold)
    } else {
        None
    }
}

/// Returns the reason why a version can't be deleted permanently. `bypasses` is true if the request may ignore
/// retentions of the mode GOVERNANCE.
pub(crate) fn against_removal(
    settings: &BucketSettings,
    object: &Object,
    bypasses: bool,
    now_us: u64,
) -> Option<Protection> {
    if object.standing.is_delete_marker {
        return None;
    }
    let options = &object.attributes.options;
    if let Some(hold) = against_archival(object) {
        return Some(hold);
    }
    if options.legal_hold == Some(true) {
        return Some(Protection::LegalHold);
    }
    let own = options.retention.filter(|retention| retention.strict || !bypasses);
    let own = own.map(|retention| retention.until_us);
    let until_us = own.max(policy_ends(settings.policy, object))?;
    (now_us < until_us).then_some(Protection::Retained(until_us))
}

/// Returns the time from which the bucket's retention policy no longer protects an object. While the object
/// has an event-based hold, the period hasn't begun, so the result is `None`.
pub(crate) fn policy_ends(policy: Option<RetentionPolicy>, object: &Object) -> Option<u64> {
    let policy = policy.filter(|_| object.attributes.options.event_hold != Some(true))?;
    let from_us = object.attributes.options.event_released_us.unwrap_or(object.created_us);
    Some(from_us.saturating_add(policy.period_s.saturating_mul(1_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::options::{ObjectOptions, RetentionLock};
    use crate::objects::{Attributes, VersionState};

    fn object(options: ObjectOptions) -> Object {
        let attributes = Attributes { options, ..Attributes::default() }.shared();
        Object { attributes, created_us: 1_000_000, ..Object::empty("k", 1) }
    }

    fn kept(strict: bool) -> Object {
        object(ObjectOptions {
            retention: Some(RetentionLock { strict, until_us: 10 }),
            ..ObjectOptions::default()
        })
    }

    #[test]
    fn a_retention_ends_and_only_governance_is_bypassed() {
        let settings = BucketSettings::default();
        for (strict, bypasses, now_us, expected) in [
            (false, false, 9, Some(Protection::Retained(10))),
            (false, true, 9, None),
            (true, true, 9, Some(Protection::Retained(10))),
            (true, false, 10, None),
        ] {
            assert_eq!(against_removal(&settings, &kept(strict), bypasses, now_us), expected);
        }
        assert_eq!(against_archival(&kept(true)), None, "a new version may replace it");
    }

    #[test]
    fn a_policy_runs_from_creation_or_from_the_release_of_the_event() {
        let policy = RetentionPolicy { period_s: 60, effective_us: 0, is_locked: false };
        let settings = BucketSettings { policy: Some(policy), ..BucketSettings::default() };
        let plain = object(ObjectOptions::default());
        assert_eq!(policy_ends(settings.policy, &plain), Some(61_000_000));
        assert_eq!(
            against_removal(&settings, &plain, true, 60_999_999),
            Some(Protection::Retained(61_000_000))
        );
        assert_eq!(against_removal(&settings, &plain, true, 61_000_000), None);
        let held = object(ObjectOptions { event_hold: Some(true), ..ObjectOptions::default() });
        assert_eq!(policy_ends(settings.policy, &held), None);
        assert_eq!(against_removal(&settings, &held, false, u64::MAX), Some(Protection::EventBasedHold));
        let released =
            ObjectOptions { event_hold: Some(false), event_released_us: Some(5), ..ObjectOptions::default() };
        assert_eq!(policy_ends(settings.policy, &object(released)), Some(60_000_005));
    }

    #[test]
    fn holds_of_gcs_keep_an_object_live_and_a_legal_hold_does_not() {
        let settings = BucketSettings::default();
        let temporary = object(ObjectOptions { temporary_hold: Some(true), ..ObjectOptions::default() });
        assert_eq!(against_archival(&temporary), Some(Protection::TemporaryHold));
        let legal = object(ObjectOptions { legal_hold: Some(true), ..ObjectOptions::default() });
        assert_eq!(against_archival(&legal), None);
        assert_eq!(against_removal(&settings, &legal, true, u64::MAX), Some(Protection::LegalHold));
        let standing = VersionState { is_delete_marker: true, ..VersionState::default() };
        assert_eq!(against_removal(&settings, &Object { standing, ..legal }, false, 0), None);
    }
}
