//! What the objects that a copy request makes are to be.

use std::ffi::OsStr;
use std::path::Path;

use laneway_store::{Condition, FileAttributes, ObjectMeta, PutOptions};

use crate::preserve::Attributes;
use crate::{CopyRequest, content_type, gzip};

impl CopyRequest {
    /// The request with the precondition that [`no_clobber`](Self::no_clobber) means, unless it has another one.
    pub(crate) fn with_condition(mut self) -> Self {
        if self.no_clobber && self.put.condition.is_none() {
            self.put.condition = Condition::Absent;
        }
        self
    }

    /// What the object `key` is to be.
    pub(crate) fn options(&self, key: &str) -> PutOptions {
        let mut put = self.put.clone();
        if put.content_type.is_none() {
            put.content_type = content_type::guess(key).map(str::to_owned);
        }
        put
    }

    /// What the object `key` of a file is to be: where the key has no extension, the file's guesses its type.
    /// What the file is besides its bytes is kept where that was asked for.
    pub(crate) fn options_of_file(
        &self,
        names: FileAttributes,
        key: &str,
        path: &Path,
        attributes: Attributes,
    ) -> PutOptions {
        let mut put = self.options(key);
        if put.content_type.is_none() {
            let name = path.file_name().and_then(OsStr::to_str);
            put.content_type = name.and_then(content_type::guess).map(str::to_owned);
        }
        if self.preserve {
            for (name, value) in attributes.metadata(names) {
                put.metadata.entry(name).or_insert(value);
            }
        }
        if self.gzip.takes(path) { gzip::described(put) } else { put }
    }

    /// What the copy of an object is to be: as `source` is, except for what was asked for, and what was `guessed` of the
    /// rest.
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
