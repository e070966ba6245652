//! Warnings that can concern many items. A job reports each kind of warning once, at its end.

use crate::Warning;

/// The items that the warnings concern.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    archived: RemarkedItems,
    sparse: RemarkedItems,
}

#[derive(Debug, Default)]
struct RemarkedItems {
    first: Option<String>,
    count: u64,
    bytes: u64,
}

impl RemarkedItems {
    fn add(&mut self, name: &str, bytes: u64) {
        self.first.get_or_insert_with(|| name.to_owned());
        self.count += 1;
        self.bytes += bytes;
    }

    fn warning(&self, message: impl FnOnce(u64, u64) -> String) -> Option<Warning> {
        Some(Warning { target: self.first.clone()?, message: message(self.count, self.bytes) })
    }
}

impl Remarks {
    /// Records that a listed object was skipped, because it lies in an archive.
    pub(crate) fn archived(&mut self, source: &str) {
        self.archived.add(source, 0);
    }

    /// Records a sparse file whose holes have this many bytes. Laneway sends holes as zeros, so the object is
    /// larger than the disk space that the file uses.
    pub(crate) fn sparse(&mut self, path: &str, bytes: u64) {
        self.sparse.add(path, bytes);
    }

    /// Returns one warning for archived objects and one for sparse files, if there are any.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let archived = self.archived.warning(|count, _| match count {
            1 => "skipped: it is archived; restore it first".to_owned(),
            n => format!("is one of {n} archived objects, which were skipped; restore them first"),
        });
        let sparse = self.sparse.warning(|count, bytes| match count {
            1 => format!("is sparse: {bytes} bytes of it are holes, which become zeros in the object"),
            n => format!(
                "is one of {n} sparse files; their holes, {bytes} bytes in total, become zeros in the objects"
            ),
        });
        archived.into_iter().chain(sparse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_items_of_a_kind_are_one_warning() {
        let mut remarks = Remarks::default();
        assert!(remarks.warnings().is_empty());
        remarks.sparse("a", 5);
        assert_eq!(
            remarks.warnings()[0].message,
            "is sparse: 5 bytes of it are holes, which become zeros in the object"
        );
        remarks.sparse("b", 6);
        remarks.archived("s3://b/k");
        let shown: Vec<_> = remarks.warnings().iter().map(ToString::to_string).collect();
        assert!(shown[0].starts_with("s3://b/k: skipped: it is archived"), "{shown:?}");
        assert!(
            shown[1].starts_with("a: is one of 2 sparse files; their holes, 11 bytes in total"),
            "{shown:?}"
        );
    }
}
