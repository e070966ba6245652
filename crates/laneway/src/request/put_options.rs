//! The properties of the objects that a copy writes.

use std::ffi::OsStr;
use std::path::Path;

use laneway_store::{Condition, FileAttributes, ObjectMeta, PutOptions};

use crate::CopyRequest;
use crate::content::encoding;
use crate::local::preserve::PosixAttributes;

impl CopyRequest {
    /// If [`no_clobber`](Self::no_clobber) is set, adds the precondition that the destination doesn't exist,
    /// unless the caller has set another one.
    pub(crate) fn with_condition(mut self) -> Self {
        if self.no_clobber && self.put.condition.is_none() {
            self.put.condition = Condition::Absent;
        }
        self
    }

    pub(crate) fn options(&self, key: &str) -> PutOptions {
        let mut put = self.put.clone();
        if put.content_type.is_none() {
            put.content_type = encoding::content_type(key).map(str::to_owned);
        }
        put
    }

    /// Returns the properties of the object `key` that is uploaded from a file. If the key has no extension,
    /// guesses the content type from the file's extension. If the request preserves attributes, adds them to
    /// the metadata under `names`.
    pub(crate) fn options_of_file(
        &self,
        names: FileAttributes,
        key: &str,
        path: &Path,
        attributes: PosixAttributes,
    ) -> PutOptions {
        let mut put = self.options(key);
        if put.content_type.is_none() {
            let name = path.file_name().and_then(OsStr::to_str);
            put.content_type = name.and_then(encoding::content_type).map(str::to_owned);
        }
        if self.preserve {
            for (name, value) in attributes.metadata(names) {
                put.metadata.entry(name).or_insert(value);
            }
        }
        if self.gzip.takes(path) { encoding::described_as_gzip(put) } else { put }
    }

    /// Returns the properties of an object's copy. The copy has the properties of `source`, unless the
    /// request sets others. If neither sets a content type, the copy gets the one in `guessed`.
    pub(crate) fn options_of_copy(&self, source: &ObjectMeta, guessed: &PutOptions) -> PutOptions {
        let mut put = self.put.clone();
        put.content_type =
            put.content_type.or_else(|| source.content_type.clone()).or_else(|| guessed.content_type.clone());
        put.content_encoding = put.content_encoding.or_else(|| source.content_encoding.clone());
        put.cache_control = put.cache_control.or_else(|| source.cache_control.clone());
        put.content_disposition = put.content_disposition.or_else(|| source.content_disposition.clone());
        put.content_language = put.content_language.or_else(|| source.content_language.clone());
        if put.metadata.is_empty() {
            put.metadata = source.metadata.clone().unwrap_or_default();
        }
        put
    }
}
