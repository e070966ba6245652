//! The times of the last deletions of keys. A conditional write that was under way conflicts with them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The deletions remembered for each bucket. Older ones are forgotten, and conflict with nothing.
const REMEMBERED_MAX: usize = 1000;

/// The latest deletions of a bucket.
#[derive(Debug, Default)]
pub(crate) struct Deletions(Mutex<VecDeque<(Box<str>, u64)>>);

impl Deletions {
    pub(crate) fn note(&self, key: &str, now_us: u64) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() == REMEMBERED_MAX {
            latest.pop_front();
        }
        latest.push_back((key.into(), now_us));
    }

    pub(crate) fn since(&self, key: &str, since_us: u64) -> bool {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.iter().rev().any(|(deleted, at_us)| **deleted == *key && *at_us >= since_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_later_deletion_of_the_same_key_counts() {
        let deletions = Deletions::default();
        deletions.note("a", 5);
        assert!(deletions.since("a", 5) && deletions.since("a", 4));
        assert!(!deletions.since("a", 6) && !deletions.since("b", 0));
        for at in 0..REMEMBERED_MAX as u64 {
            deletions.note("c", at);
        }
        assert!(!deletions.since("a", 0), "the oldest is forgotten");
    }
}
