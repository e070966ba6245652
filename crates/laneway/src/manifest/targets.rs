//! The prefixes, folders and patterns that a move or a removal empties. When the job runs again, it may find
//! nothing there. The manifest then shows that this is no error.

use crate::Location;
use crate::location::pattern::Pattern;

/// The sources of a job that may each be several objects or files.
#[derive(Default, Debug)]
pub(crate) struct Targets(Vec<Target>);

#[derive(Debug)]
struct Target {
    /// The name of the item that reports this target if nothing is found there.
    name: String,
    /// The common prefix of all names in the target, before the first wildcard of a pattern.
    root: String,
    pattern: Option<Pattern>,
    /// True if the job moves or removes everything below the target, or all its versions.
    with_below: bool,
    /// True if an earlier run has moved or removed an item of the target.
    was_met: bool,
}

impl Targets {
    /// Selects the sources that may be several items. With `is_recursive`, the job moves or removes
    /// everything below a source, or all its versions.
    pub(crate) fn of(places: &[Location], is_recursive: bool) -> Self {
        Self(places.iter().filter_map(|place| Target::of(place, is_recursive)).collect())
    }

    /// Notes that an earlier run has moved or removed the item with this source.
    pub(super) fn meet(&mut self, source: &str) {
        for target in self.0.iter_mut().filter(|target| !target.was_met) {
            target.was_met = target.holds(source);
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|target| target.name == name)
    }

    /// Returns whether a target has this name, and an earlier run has moved or removed an item of it.
    pub(super) fn was_met(&self, name: &str) -> bool {
        self.0.iter().any(|target| target.was_met && target.name == name)
    }
}

impl Target {
    /// Returns the target of a source. Returns `None` for a source that is one object or file.
    fn of(place: &Location, is_recursive: bool) -> Option<Self> {
        let name = place.to_string();
        let (root, inside) = match place {
            Location::Object { key, .. } => (name.strip_suffix(key.as_str())?.to_owned(), key.clone()),
            Location::Local(_) => (String::new(), name.clone()),
            Location::Version { .. } | Location::Standard => return None,
        };
        let pattern = Pattern::parse(inside.strip_suffix('/').unwrap_or(&inside));
        let target = Self { name, root, pattern, with_below: is_recursive, was_met: false };
        (target.pattern.is_some() || is_recursive).then_some(target)
    }

    fn holds(&self, source: &str) -> bool {
        let is_matched = |pattern: &Pattern| {
            let inside = source.strip_prefix(&self.root);
            inside.is_some_and(|inside| {
                pattern.matches(inside) || self.with_below && pattern.matching_folder(inside).is_some()
            })
        };
        let is_below = |rest: &str| self.name.ends_with('/') || rest.starts_with(['/', '#']);
        self.with_below && source.strip_prefix(&self.name).is_some_and(is_below)
            || self.pattern.as_ref().is_some_and(is_matched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn was_met(target: &str, is_recursive: bool, source: &str) -> bool {
        let mut targets = Targets::of(&[target.parse().unwrap()], is_recursive);
        targets.meet(source);
        targets.0[0].was_met
    }

    #[test]
    fn a_target_holds_what_lies_below_it_or_matches() {
        assert!(was_met("s3://b/p/", true, "s3://b/p/a") && was_met("s3://b/p", true, "s3://b/p#1"));
        assert!(
            was_met("s3://b/", true, "s3://b/a") && was_met("d", true, "d/a") && was_met("d/", true, "d/a")
        );
        assert!(!was_met("s3://b/p", true, "s3://b/pa") && !was_met("s3://b/p/", true, "gs://b/p/a"));
        assert!(was_met("gs://b/*.log", false, "gs://b/a.log") && was_met("d/*.log", false, "d/a.log"));
        assert!(
            !was_met("gs://b/*.log", false, "gs://b/a.txt")
                && !was_met("gs://b/*.log", false, "gs://c/a.log")
        );
        assert!(was_met("gs://b/p*", true, "gs://b/pq/a") && !was_met("gs://b/p*", false, "gs://b/pq/a"));
    }

    #[test]
    fn one_object_or_file_is_no_target() {
        let places = ["s3://b/a", "gs://b/a/", "d/a"].map(|place| place.parse().unwrap());
        assert!(places.iter().all(|place: &Location| !Targets::of(&places, false).has(&place.to_string())));
        assert!(Targets::of(&places, true).has("s3://b/a"));
    }
}
