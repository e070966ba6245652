//! Conditions on the present state of an object, under which a request is carried out.

use serde::{Deserialize, Serialize};

use super::object::Object;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
