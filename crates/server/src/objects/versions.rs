//! Decides which versions of a key are kept after a write, a delete, or the deletion of one version. The code has no
//! side effects.
//!
//! A key has at most one live object, and a list of noncurrent versions, oldest first. If no object is live, the newest
//! version is a delete marker. S3 lists it, and GCS doesn't. An object that was written without versioning has the
//! version `null`. A key has at most one such version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::object::Object;

/// The versioning setting of a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Versioning {
    /// A replaced or deleted object is removed.
    #[default]
    Off,
    /// A replaced or deleted object becomes noncurrent.
    Enabled,
    /// S3's state after versioning was turned off again. Versions with an id are kept, but new objects get the version
    /// `null`.
    Suspended,
}

/// The live objects by key, in byte order, which is the order of both dialects' listings.
pub(crate) type Index = BTreeMap<Box<[u8]>, Arc<Object>>;

/// Selects one of the versions of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionSelector {
    /// The live version.
    Live,
    Generation(u64),
    /// The version that was written without versioning.
    Null,
}

/// The rule that decides which version becomes live after one version was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionSuccessor {
    /// S3: the newest remaining version becomes current.
    Newest,
    /// GCS: no version is live until the next write of the key.
    Nobody,
}

/// The objects of a bucket.
#[derive(Debug, Default)]
pub(crate) struct ObjectTable {
    pub(crate) live: Index,
    /// The versions of each key, oldest first. Keys without noncurrent versions are absent.
    pub(crate) noncurrent: BTreeMap<Box<[u8]>, Vec<Arc<Object>>>,
}

/// One step of a change to a key's versions. If a server with a store on disk is killed between two steps, its next
/// start undoes the steps that were already carried out.
#[derive(Debug, Clone)]
pub(crate) enum VersionStep {
    /// Saves an object as a noncurrent version.
    SetAside(Arc<Object>),
    /// Makes an object the live object.
    Show(Arc<Object>),
    /// Removes the live object, so that none is live.
    Hide,
    /// Deletes a noncurrent version.
    Drop(u64),
}

impl VersionSelector {
    fn is(self, object: &Object) -> bool {
        match self {
            VersionSelector::Live => object.standing.noncurrent_us.is_none(),
            VersionSelector::Generation(generation) => object.generation == generation,
            VersionSelector::Null => !object.standing.has_id,
        }
    }
}

impl ObjectTable {
    pub(crate) fn live(&self, key: &str) -> Option<&Arc<Object>> {
        self.live.get(key.as_bytes())
    }

    pub(crate) fn noncurrent(&self, key: &str) -> &[Arc<Object>] {
        self.noncurrent.get(key.as_bytes()).map_or(&[], Vec::as_slice)
    }

    /// Returns a version, including delete markers.
    pub(crate) fn find(&self, key: &str, which: VersionSelector) -> Option<&Arc<Object>> {
        let live = self.live(key).filter(|object| which.is(object));
        live.or_else(|| self.noncurrent(key).iter().find(|object| which.is(object)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.noncurrent.is_empty()
    }

    /// Returns the steps that carry out a write.
    pub(crate) fn writing(&self, versioning: Versioning, new: Arc<Object>, now_us: u64) -> Vec<VersionStep> {
        let mut steps = self.displacing(&new.key, versioning, now_us);
        if versioning == Versioning::Suspended {
            steps.extend(self.without_null(&new.key));
        }
        steps.push(VersionStep::Show(new));
        steps
    }

    /// Returns the steps that carry out a delete. Without versioning, they leave a delete marker only if older versions
    /// exist.
    pub(crate) fn deleting(
        &self,
        versioning: Versioning,
        marker: Arc<Object>,
        now_us: u64,
    ) -> Vec<VersionStep> {
        let key = marker.key.as_str();
        let mut steps = self.displacing(key, versioning, now_us);
        let newest = self.noncurrent(key).last();
        let covers = newest.is_some_and(|newest| !newest.standing.is_delete_marker);
        if covers || versioning != Versioning::Off {
            steps.push(VersionStep::SetAside(marker.clone()));
        }
        if self.live(key).is_some() {
            steps.push(VersionStep::Hide);
        }
        if versioning == Versioning::Suspended {
            steps.extend(self.without_null(key));
        }
        steps
    }

    /// Returns the steps that delete one version permanently, or `None` if it doesn't exist.
    pub(crate) fn removing(
        &self,
        key: &str,
        which: VersionSelector,
        heir: VersionSuccessor,
        marker: Arc<Object>,
    ) -> Option<Vec<VersionStep>> {
        let target = self.find(key, which)?;
        let is_live = self.live(key).is_some_and(|live| live.generation == target.generation);
        let left: Vec<_> =
            self.noncurrent(key).iter().filter(|object| object.generation != target.generation).collect();
        let gone = if is_live { VersionStep::Hide } else { VersionStep::Drop(target.generation) };
        if !is_live && self.live(key).is_some() {
            return Some(vec![gone]);
        }
        // After this deletion, no version of the key is live. Decide if another version becomes live.
        let mut steps = Vec::new();
        match (heir, left.last()) {
            (VersionSuccessor::Nobody, _) if left.iter().all(|object| object.standing.is_delete_marker) => {
                steps.push(gone);
                steps.extend(left.iter().map(|marker| VersionStep::Drop(marker.generation)));
            }
            (VersionSuccessor::Newest, Some(newest)) if !newest.standing.is_delete_marker => {
                let mut current = Object::clone(newest);
                current.standing.noncurrent_us = None;
                steps.push(VersionStep::Show(Arc::new(current)));
                steps.push(VersionStep::Drop(newest.generation));
                steps.extend(Some(gone).filter(|_| !is_live));
            }
            (VersionSuccessor::Nobody, Some(newest)) if !newest.standing.is_delete_marker => {
                steps.push(VersionStep::SetAside(marker));
                steps.push(gone);
            }
            _ => steps.push(gone),
        }
        Some(steps)
    }

    /// Returns the steps that keep or drop the live object when something replaces it.
    fn displacing(&self, key: &str, versioning: Versioning, now_us: u64) -> Vec<VersionStep> {
        let is_kept = |live: &Object| match versioning {
            Versioning::Off => false,
            Versioning::Enabled => true,
            Versioning::Suspended => live.standing.has_id,
        };
        let Some(live) = self.live(key).filter(|live| is_kept(live)) else { return Vec::new() };
        let mut old = Object::clone(live);
        old.standing.noncurrent_us = Some(now_us);
        vec![VersionStep::SetAside(Arc::new(old))]
    }

    /// Returns the objects that steps delete permanently, and the live object that they make noncurrent.
    pub(crate) fn losses(&self, key: &str, steps: &[VersionStep]) -> (Vec<Arc<Object>>, Option<Arc<Object>>) {
        let mut live = self.live(key).map(|object| object.generation);
        let mut kept: BTreeSet<u64> = self.noncurrent(key).iter().map(|object| object.generation).collect();
        for step in steps {
            match step {
                VersionStep::SetAside(object) => drop(kept.insert(object.generation)),
                VersionStep::Show(object) => live = Some(object.generation),
                VersionStep::Hide => live = None,
                VersionStep::Drop(generation) => drop(kept.remove(generation)),
            }
        }
        let is_live = |object: &&Arc<Object>| live == Some(object.generation);
        let is_kept = |object: &&Arc<Object>| kept.contains(&object.generation);
        let all = self.noncurrent(key).iter().chain(self.live(key));
        let gone = all.filter(|object| !is_live(object) && !is_kept(object)).cloned().collect();
        (gone, self.live(key).filter(|object| !is_live(object) && is_kept(object)).cloned())
    }

    fn without_null(&self, key: &str) -> impl Iterator<Item = VersionStep> {
        let nulls = self.noncurrent(key).iter().filter(|object| !object.standing.has_id);
        nulls.map(|object| VersionStep::Drop(object.generation))
    }

    /// Carries out a step. Returns the removed object, so that the caller can drop it after it has released its locks.
    pub(crate) fn apply(&mut self, key: &str, step: VersionStep) -> Option<Arc<Object>> {
        match step {
            VersionStep::Show(object) => self.live.insert(key.as_bytes().into(), object),
            VersionStep::Hide => self.live.remove(key.as_bytes()),
            VersionStep::SetAside(object) => {
                let versions = self.noncurrent.entry(key.as_bytes().into()).or_default();
                let at = versions.partition_point(|version| version.generation < object.generation);
                if versions.get(at).is_some_and(|version| version.generation == object.generation) {
                    return Some(std::mem::replace(&mut versions[at], object));
                }
                versions.insert(at, object);
                None
            }
            VersionStep::Drop(generation) => {
                let versions = self.noncurrent.get_mut(key.as_bytes())?;
                let at = versions.iter().position(|version| version.generation == generation)?;
                let dropped = versions.remove(at);
                if versions.is_empty() {
                    self.noncurrent.remove(key.as_bytes());
                }
                Some(dropped)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::object::VersionState;
    use super::*;

    fn version(generation: u64, has_id: bool, is_delete_marker: bool) -> Arc<Object> {
        let standing =
            VersionState { has_id, is_delete_marker, noncurrent_us: is_delete_marker.then_some(generation) };
        Arc::new(Object { standing, ..Object::empty("k", generation) })
    }

    fn carry_out(keys: &mut ObjectTable, steps: Vec<VersionStep>) {
        for step in steps {
            keys.apply("k", step);
        }
    }

    /// Returns the generations, oldest first: a marker with `m`, one without an id with `n`, and the live one in
    /// brackets.
    fn reported(keys: &ObjectTable) -> String {
        let name = |object: &Object| {
            let null = if object.standing.has_id { "" } else { "n" };
            let marker = if object.standing.is_delete_marker { "m" } else { "" };
            format!("{}{null}{marker}", object.generation)
        };
        let mut names: Vec<_> = keys.noncurrent("k").iter().map(|object| name(object)).collect();
        names.extend(keys.live("k").map(|live| format!("[{}]", name(live))));
        names.join(" ")
    }

    fn written(keys: &mut ObjectTable, versioning: Versioning, generation: u64) {
        let new = version(generation, versioning == Versioning::Enabled, false);
        let steps = keys.writing(versioning, new, generation);
        carry_out(keys, steps);
    }

    fn deleted(keys: &mut ObjectTable, versioning: Versioning, generation: u64) {
        let marker = version(generation, versioning == Versioning::Enabled, true);
        let steps = keys.deleting(versioning, marker, generation);
        carry_out(keys, steps);
    }

    fn removed(keys: &mut ObjectTable, which: VersionSelector, heir: VersionSuccessor) {
        let steps = keys.removing("k", which, heir, version(99, true, true)).unwrap();
        carry_out(keys, steps);
    }

    #[test]
    fn enabling_keeps_what_was_there_as_the_null_version() {
        let mut keys = ObjectTable::default();
        written(&mut keys, Versioning::Off, 1);
        written(&mut keys, Versioning::Off, 2);
        assert_eq!(reported(&keys), "[2n]");
        written(&mut keys, Versioning::Enabled, 3);
        deleted(&mut keys, Versioning::Enabled, 4);
        deleted(&mut keys, Versioning::Enabled, 5);
        assert_eq!(reported(&keys), "2n 3 4m 5m");
        written(&mut keys, Versioning::Enabled, 6);
        assert_eq!(reported(&keys), "2n 3 4m 5m [6]");
    }

    #[test]
    fn suspended_there_is_one_null_version_and_what_has_an_id_stays() {
        let mut keys = ObjectTable::default();
        written(&mut keys, Versioning::Enabled, 1);
        written(&mut keys, Versioning::Suspended, 2);
        written(&mut keys, Versioning::Suspended, 3);
        assert_eq!(reported(&keys), "1 [3n]");
        deleted(&mut keys, Versioning::Suspended, 4);
        assert_eq!(reported(&keys), "1 4nm");
        written(&mut keys, Versioning::Suspended, 5);
        assert_eq!(reported(&keys), "1 [5n]");
        removed(&mut keys, VersionSelector::Null, VersionSuccessor::Newest);
        assert_eq!(reported(&keys), "[1]");
    }

    #[test]
    fn without_the_newest_the_next_one_is_current_again() {
        let mut keys = ObjectTable::default();
        written(&mut keys, Versioning::Enabled, 1);
        written(&mut keys, Versioning::Enabled, 2);
        deleted(&mut keys, Versioning::Enabled, 3);
        removed(&mut keys, VersionSelector::Generation(3), VersionSuccessor::Newest);
        assert_eq!(reported(&keys), "1 [2]");
        removed(&mut keys, VersionSelector::Generation(2), VersionSuccessor::Newest);
        assert_eq!(reported(&keys), "[1]");
        assert_eq!(keys.live("k").unwrap().standing.noncurrent_us, None);
        removed(&mut keys, VersionSelector::Generation(1), VersionSuccessor::Newest);
        assert!(keys.is_empty());
        assert!(
            keys.removing(
                "k",
                VersionSelector::Generation(1),
                VersionSuccessor::Newest,
                version(9, true, true)
            )
            .is_none()
        );
    }

    #[test]
    fn at_gcs_nothing_becomes_live_again_and_no_marker_is_left_alone() {
        let mut keys = ObjectTable::default();
        written(&mut keys, Versioning::Enabled, 1);
        written(&mut keys, Versioning::Enabled, 2);
        removed(&mut keys, VersionSelector::Live, VersionSuccessor::Nobody);
        assert_eq!(reported(&keys), "1 99m");
        removed(&mut keys, VersionSelector::Generation(1), VersionSuccessor::Nobody);
        assert!(keys.is_empty());
        written(&mut keys, Versioning::Enabled, 3);
        deleted(&mut keys, Versioning::Enabled, 4);
        removed(&mut keys, VersionSelector::Generation(3), VersionSuccessor::Nobody);
        assert!(keys.is_empty());
    }

    #[test]
    fn switched_off_the_live_one_goes_and_the_older_ones_stay() {
        let mut keys = ObjectTable::default();
        written(&mut keys, Versioning::Enabled, 1);
        written(&mut keys, Versioning::Enabled, 2);
        written(&mut keys, Versioning::Off, 3);
        assert_eq!(reported(&keys), "1 [3n]");
        deleted(&mut keys, Versioning::Off, 4);
        assert_eq!(reported(&keys), "1 4nm");
    }
}
