//! Soft deletion: deleted and overwritten objects can be listed and restored until their bucket's retention is over. Their
//! metadata is kept in memory, and their content stays where it was.
//! <https://cloud.google.com/storage/docs/soft-delete>
//! <https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview>

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::listing::{Cursor, ListingPage, ListingQuery, Order, page_of_versions};
use super::precondition::Precondition;
use super::versions::{ObjectTable, VersionSelector, VersionStep};
use super::{Attributes, NewObject, Object, Objects, StoreError, now_us};

/// The maximum number of soft-deleted objects of a bucket, and the maximum number of their bytes. Beyond either limit,
/// the objects whose retention ends first are removed early. The maximum number of objects takes about 100 MB of
/// memory, in addition to their content.
const OBJECTS_MAX: usize = 100_000;
const BYTES_MAX: u64 = 1 << 30;

/// The times of a soft-deleted object, in microseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeletionTimes {
    pub(crate) deleted_us: u64,
    /// The end of the retention, by the policy at the time of the deletion.
    pub(crate) ends_us: u64,
}

/// The soft-deleted objects of one bucket.
#[derive(Debug, Default)]
pub(crate) struct SoftDeleted(Mutex<SoftDeletedTable>);

#[derive(Debug, Default)]
struct SoftDeletedTable {
    /// The objects, as noncurrent versions.
    keys: ObjectTable,
    /// The times of each object, by its generation.
    times: BTreeMap<u64, DeletionTimes>,
    /// The key of each object, by the end of its retention and its generation.
    ends: BTreeMap<(u64, u64), String>,
    bytes: u64,
}

impl SoftDeleted {
    /// Keeps removed objects for `retention_s` seconds. Returns the objects that are dropped to make room for them.
    pub(super) fn keep(&self, removed: Vec<Arc<Object>>, retention_s: u64, now_us: u64) -> Vec<Arc<Object>> {
        let mut gone = Vec::new();
        if retention_s == 0 {
            return gone;
        }
        let times = DeletionTimes { deleted_us: now_us, ends_us: now_us + retention_s * 1_000_000 };
        let mut kept = self.kept(now_us);
        for object in removed.into_iter().filter(|object| !object.standing.is_delete_marker) {
            kept.bytes += object.size;
            kept.times.insert(object.generation, times);
            kept.ends.insert((times.ends_us, object.generation), object.key.clone());
            let key = object.key.clone();
            kept.keys.apply(&key, VersionStep::SetAside(object));
        }
        while kept.ends.len() > OBJECTS_MAX || kept.bytes > BYTES_MAX {
            gone.extend(kept.remove_first());
        }
        gone
    }

    fn find(&self, key: &str, generation: u64, now_us: u64) -> Option<Arc<Object>> {
        self.kept(now_us).keys.find(key, VersionSelector::Generation(generation)).cloned()
    }

    fn remove(&self, key: &str, generation: u64, now_us: u64) -> Option<Arc<Object>> {
        self.kept(now_us).remove(key, generation)
    }

    /// Returns a page with the times of its objects.
    fn list(&self, query: &ListingQuery, now_us: u64) -> (ListingPage, Vec<DeletionTimes>) {
        let kept = self.kept(now_us);
        let page = page_of_versions(&kept.keys, query, Order::OldestFirst);
        let times = |object: &Arc<Object>| kept.times.get(&object.generation).copied().unwrap_or_default();
        let times = page.objects.iter().map(times).collect();
        (page, times)
    }

    /// Locks the objects, without those whose retention is over.
    fn kept(&self, now_us: u64) -> MutexGuard<'_, SoftDeletedTable> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.ends.first_key_value().is_some_and(|((ends_us, _), _)| *ends_us <= now_us) {
            kept.remove_first();
        }
        kept
    }
}

impl SoftDeletedTable {
    /// Removes the object whose retention ends first.
    fn remove_first(&mut self) -> Option<Arc<Object>> {
        let ((_, generation), key) = self.ends.pop_first()?;
        self.remove(&key, generation)
    }

    fn remove(&mut self, key: &str, generation: u64) -> Option<Arc<Object>> {
        let times = self.times.remove(&generation)?;
        self.ends.remove(&(times.ends_us, generation));
        let object = self.keys.apply(key, VersionStep::Drop(generation))?;
        self.bytes -= object.size;
        Some(object)
    }
}

impl Objects {
    /// Returns a page of soft-deleted objects, with the times of each.
    pub(crate) fn list_deleted(
        &self,
        bucket: &str,
        query: &ListingQuery,
    ) -> Result<(ListingPage, Vec<DeletionTimes>), StoreError> {
        Ok(self.bucket(bucket)?.soft_deleted.list(query, now_us()))
    }

    /// Restores a soft-deleted object as a new generation.
    pub(crate) fn restore_deleted(
        &self,
        bucket: &str,
        key: &str,
        generation: u64,
        precondition: &Precondition,
    ) -> Result<Arc<Object>, StoreError> {
        let found = self.bucket(bucket)?;
        let old = found.soft_deleted.find(key, generation, now_us()).ok_or(StoreError::NoObject)?;
        let new = NewObject {
            attributes: Attributes::clone(&old.attributes),
            checksum: old.checksum.clone(),
            components: old.components,
            blob: old.blob.clone(),
            ..Default::default()
        };
        let restored = self.commit(bucket, key, Objects::written_from(&old), new, precondition)?;
        found.soft_deleted.remove(key, generation, now_us());
        Ok(restored)
    }

    /// Returns the newest soft-deleted object of each name with this prefix, with its times.
    pub(crate) fn newest_deleted(
        &self,
        bucket: &str,
        prefix: &str,
    ) -> Result<Vec<(Arc<Object>, DeletionTimes)>, StoreError> {
        let query = ListingQuery {
            prefix: prefix.to_owned(),
            delimiter: String::new(),
            from: Cursor::Start,
            end: None,
            max: usize::MAX,
            glob: None,
            include_trailing_delimiter: false,
        };
        let (page, times) = self.list_deleted(bucket, &query)?;
        let newest: BTreeMap<String, _> =
            page.objects.into_iter().zip(times).map(|found| (found.0.key.clone(), found)).collect();
        Ok(newest.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: &str, generation: u64, size: u64) -> Arc<Object> {
        Arc::new(Object { size, ..Object::empty(key, generation) })
    }

    fn keys(deleted: &SoftDeleted, now_us: u64) -> Vec<String> {
        let all = ListingQuery { max: usize::MAX, ..ListingQuery::default() };
        deleted.list(&all, now_us).0.objects.iter().map(|object| object.key.clone()).collect()
    }

    #[test]
    fn an_object_is_gone_when_its_retention_is_over() {
        let deleted = SoftDeleted::default();
        deleted.keep(vec![object("a", 1, 1)], 10, 0);
        deleted.keep(vec![object("b", 2, 1)], 5, 0);
        assert_eq!(keys(&deleted, 4_999_999), ["a", "b"]);
        assert_eq!(keys(&deleted, 5_000_000), ["a"]);
        assert!(deleted.find("a", 1, 10_000_000).is_none());
        assert_eq!(deleted.kept(10_000_000).bytes, 0);
    }

    #[test]
    fn beyond_the_limit_the_object_goes_whose_retention_ends_first() {
        let deleted = SoftDeleted::default();
        deleted.keep(vec![object("a", 1, BYTES_MAX / 2)], 10, 0);
        deleted.keep(vec![object("b", 2, BYTES_MAX / 2)], 5, 0);
        let gone = deleted.keep(vec![object("c", 3, 1)], 10, 0);
        assert_eq!((gone[0].key.as_str(), gone.len()), ("b", 1));
        assert_eq!(keys(&deleted, 0), ["a", "c"]);
        let many: Vec<_> = (0..=OBJECTS_MAX as u64).map(|at| object("d", 10 + at, 0)).collect();
        deleted.keep(many, 20, 0);
        assert_eq!(deleted.kept(0).ends.len(), OBJECTS_MAX);
    }

    #[test]
    fn a_restored_object_leaves_room() {
        let deleted = SoftDeleted::default();
        deleted.keep(vec![object("a", 1, BYTES_MAX)], 10, 0);
        assert!(deleted.remove("a", 1, 0).is_some() && deleted.remove("a", 1, 0).is_none());
        assert!(deleted.keep(vec![object("b", 2, BYTES_MAX)], 10, 0).is_empty());
    }
}
