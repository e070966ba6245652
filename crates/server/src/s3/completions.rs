//! Remembers completed uploads. If the answer to a completion is lost, the client sends the request again, and must get
//! the same answer: <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::objects::assembly::NamedPart;
use crate::objects::object::StoredChecksum;
use crate::objects::options::ObjectEncryption;

/// The maximum number of uploads that are remembered. At this number, a new upload replaces the oldest.
const REMEMBERED: usize = 1000;

/// The result of a completed upload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Completion {
    pub(super) upload: String,
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) parts: Vec<NamedPart>,
    pub(super) etag: String,
    pub(super) version: Option<String>,
    pub(super) checksum: Option<StoredChecksum>,
    pub(super) encryption: Option<ObjectEncryption>,
}

/// The last completed uploads.
#[derive(Debug, Default)]
pub(super) struct Completions(Mutex<VecDeque<Completion>>);

impl Completions {
    pub(super) fn remember(&self, completion: Completion) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() == REMEMBERED {
            remembered.pop_front();
        }
        remembered.push_back(completion);
    }

    /// Returns the result of an upload, if it was completed from the same parts.
    pub(super) fn of(
        &self,
        upload: &str,
        bucket: &str,
        key: &str,
        parts: &[NamedPart],
    ) -> Option<Completion> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&Completion| {
            known.upload == upload && known.bucket == bucket && known.key == key && known.parts == parts
        };
        remembered.iter().rev().find(is_it).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_known_by_its_parts_and_not_for_ever() {
        let named = |number| vec![NamedPart { number, etag: Some("e".to_owned()) }];
        let completion = |upload: usize| Completion {
            upload: upload.to_string(),
            bucket: "b".to_owned(),
            key: "k".to_owned(),
            parts: named(1),
            etag: "e-1".to_owned(),
            version: None,
            checksum: None,
            encryption: None,
        };
        let completions = Completions::default();
        completions.remember(completion(0));
        assert_eq!(completions.of("0", "b", "k", &named(1)), Some(completion(0)));
        assert_eq!(completions.of("0", "b", "k", &named(2)), None);
        assert_eq!(completions.of("0", "b", "other", &named(1)), None);
        (1..=REMEMBERED).for_each(|upload| completions.remember(completion(upload)));
        assert_eq!(completions.of("0", "b", "k", &named(1)), None);
    }
}
