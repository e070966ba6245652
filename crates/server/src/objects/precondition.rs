//! Decides if a request is carried out: by its conditions on the present state of an object, and by the object's holds
//! and retentions. The code has no side effects.

use serde::{Deserialize, Serialize};

use super::object::Object;
use super::settings::{BucketSettings, RetentionPolicy};

/// The preconditions of both dialects. All conditions that are set must hold. A generation of 0 means that the object
/// doesn't exist.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Precondition {
    pub(crate) generation_match: Option<u64>,
    pub(crate) generation_not_match: Option<u64>,
    pub(crate) metageneration_match: Option<u64>,
    pub(crate) metageneration_not_match: Option<u64>,
    /// S3's header `If-Match`.
    pub(crate) etag_match: Option<ETags>,
    /// S3's header `If-None-Match`.
    pub(crate) etag_none_match: Option<ETags>,
}

/// The value of such a header: `*`, or one ETag without quotes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ETags {
    Any,
    One(String),
}

/// The kind of condition that failed. A read gets 304 if `NotMatch` failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedCondition {
    Match,
    NotMatch,
}

impl Precondition {
    pub(crate) fn check(&self, present: Option<&Object>) -> Result<(), FailedCondition> {
        let generation = present.map_or(0, |object| object.generation);
        let metageneration = present.map_or(0, |object| object.metageneration);
        let etag_is = |tags: &ETags| match tags {
            ETags::Any => present.is_some(),
            ETags::One(tag) => present.is_some_and(|object| object.etag == *tag),
        };
        let matches = self.generation_match.is_none_or(|wanted| wanted == generation)
            && self.metageneration_match.is_none_or(|wanted| wanted == metageneration)
            && self.etag_match.as_ref().is_none_or(etag_is);
        if !matches {
            return Err(FailedCondition::Match);
        }
        let differs = self.generation_not_match.is_none_or(|unwanted| unwanted != generation)
            && self.metageneration_not_match.is_none_or(|unwanted| unwanted != metageneration)
            && !self.etag_none_match.as_ref().is_some_and(etag_is);
        if differs { Ok(()) } else { Err(FailedCondition::NotMatch) }
    }

    /// Returns true if no condition is set.
    pub(crate) fn is_none(&self) -> bool {
        *self == Precondition::default()
    }
}

/// The reason why an object can't be deleted or replaced.
///
/// S3's legal hold and every retention protect a version from permanent deletion. GCS's holds also keep a live object
/// from becoming noncurrent. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html>,
/// <https://cloud.google.com/storage/docs/object-holds>
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
    use crate::objects::object::{ObjectOptions, RetentionLock};
    use crate::objects::{Attributes, VersionState};

    fn object() -> Object {
        Object { metageneration: 2, etag: "e".to_owned(), ..Object::empty("k", 5) }
    }

    #[test]
    fn generation_zero_is_an_absent_object() {
        let absent = Precondition { generation_match: Some(0), ..Default::default() };
        assert_eq!(absent.check(None), Ok(()));
        assert_eq!(absent.check(Some(&object())), Err(FailedCondition::Match));
        let present = Precondition { generation_not_match: Some(0), ..Default::default() };
        assert_eq!(present.check(None), Err(FailedCondition::NotMatch));
        assert_eq!(present.check(Some(&object())), Ok(()));
    }

    #[test]
    fn etags_match_or_must_not() {
        let none = Precondition { etag_none_match: Some(ETags::Any), ..Default::default() };
        assert_eq!(none.check(None), Ok(()));
        assert_eq!(none.check(Some(&object())), Err(FailedCondition::NotMatch));
        let one = Precondition { etag_match: Some(ETags::One("e".to_owned())), ..Default::default() };
        assert_eq!(one.check(Some(&object())), Ok(()));
        assert_eq!(one.check(None), Err(FailedCondition::Match));
    }

    #[test]
    fn all_conditions_must_hold() {
        let both =
            Precondition { generation_match: Some(5), metageneration_match: Some(1), ..Default::default() };
        assert_eq!(both.check(Some(&object())), Err(FailedCondition::Match));
    }

    fn protection_object(options: ObjectOptions) -> Object {
        let attributes = Attributes { options, ..Attributes::default() }.shared();
        Object { attributes, created_us: 1_000_000, ..Object::empty("k", 1) }
    }

    fn kept(strict: bool) -> Object {
        protection_object(ObjectOptions {
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
        let plain = protection_object(ObjectOptions::default());
        assert_eq!(policy_ends(settings.policy, &plain), Some(61_000_000));
        assert_eq!(
            against_removal(&settings, &plain, true, 60_999_999),
            Some(Protection::Retained(61_000_000))
        );
        assert_eq!(against_removal(&settings, &plain, true, 61_000_000), None);
        let held = protection_object(ObjectOptions { event_hold: Some(true), ..ObjectOptions::default() });
        assert_eq!(policy_ends(settings.policy, &held), None);
        assert_eq!(against_removal(&settings, &held, false, u64::MAX), Some(Protection::EventBasedHold));
        let released =
            ObjectOptions { event_hold: Some(false), event_released_us: Some(5), ..ObjectOptions::default() };
        assert_eq!(policy_ends(settings.policy, &protection_object(released)), Some(60_000_005));
    }

    #[test]
    fn holds_of_gcs_keep_an_object_live_and_a_legal_hold_does_not() {
        let settings = BucketSettings::default();
        let temporary =
            protection_object(ObjectOptions { temporary_hold: Some(true), ..ObjectOptions::default() });
        assert_eq!(against_archival(&temporary), Some(Protection::TemporaryHold));
        let legal = protection_object(ObjectOptions { legal_hold: Some(true), ..ObjectOptions::default() });
        assert_eq!(against_archival(&legal), None);
        assert_eq!(against_removal(&settings, &legal, true, u64::MAX), Some(Protection::LegalHold));
        let standing = VersionState { is_delete_marker: true, ..VersionState::default() };
        assert_eq!(against_removal(&settings, &Object { standing, ..legal }, false, 0), None);
    }
}
