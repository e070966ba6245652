//! What the objects that a copy request makes are to be.

use std::ffi::OsStr;
use std::path::Path;

use laneway_store::{Condition, ObjectMeta, PutOptions};

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
    pub(crate) fn options_of_file(&self, key: &str, path: &Path) -> PutOptions {
        let mut put = self.options(key);
        if put.content_type.is_none() {
            let name = path.file_name().and_then(OsStr::to_str);
            put.content_type = name.and_then(content_type::guess).map(str::to_owned);
        }
        if self.gzip.takes(path) { gzip::described(put) } else { put }
    }

    /// What the copy of an object is to be: as `source` is, except for what was asked for, and what was `guessed` of the
    /// rest.
    pub(crate) fn options_of_copy(&self, source: &ObjectMeta, guessed: &PutOptions) -> PutOptions {
        let asked = &self.put;
        let either =
            |asked: &Option<String>, theirs: &Option<String>| asked.clone().or_else(|| theirs.clone());
        PutOptions {
            content_type: either(&asked.content_type, &source.content_type).or(guessed.content_type.clone()),
            content_encoding: either(&asked.content_encoding, &source.content_encoding),
            cache_control: either(&asked.cache_control, &source.cache_control),
            content_disposition: either(&asked.content_disposition, &source.content_disposition),
            content_language: either(&asked.content_language, &source.content_language),
            metadata: if asked.metadata.is_empty() {
                source.metadata.clone().unwrap_or_default()
            } else {
                asked.metadata.clone()
            },
            ..asked.clone()
        }
    }
}
