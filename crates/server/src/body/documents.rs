//! How much is held of documents: bodies that are read whole before anything is done. Each is bounded where it is read, by megabytes, and a
//! hundred of them may come side by side on every connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What all connections hold together, and what one holds of it. A document of real clients has at most some 6 MiB: a thousand keys of a
/// kilobyte to be deleted, each character escaped.
const HELD_MAX: usize = 48 << 20;
const ON_CONNECTION_MAX: usize = 16 << 20;

/// Bytes of documents that are held. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held(Arc<AtomicUsize>);

impl Held {
    fn add(&self, bytes: usize, most: usize) -> bool {
        self.0
            .fetch_update(Relaxed, Relaxed, |held| held.checked_add(bytes).filter(|held| *held <= most))
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
    }
}

/// More documents came than are held.
#[derive(Debug, thiserror::Error)]
#[error("the store holds as much of documents as it may")]
pub(crate) struct TooMuch;

/// A document that is coming. What has come of it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Coming {
    everywhere: Held,
    on_connection: Held,
    bytes: AtomicUsize,
}

impl Coming {
    pub(crate) fn new(everywhere: &Held, on_connection: &Held) -> Coming {
        let (everywhere, on_connection) = (everywhere.clone(), on_connection.clone());
        Coming { everywhere, on_connection, bytes: AtomicUsize::new(0) }
    }

    /// Takes more of it.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), TooMuch> {
        if !self.on_connection.add(bytes, ON_CONNECTION_MAX) {
            return Err(TooMuch);
        }
        if !self.everywhere.add(bytes, HELD_MAX) {
            self.on_connection.give_back(bytes);
            return Err(TooMuch);
        }
        self.bytes.fetch_add(bytes, Relaxed);
        Ok(())
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.everywhere.give_back(bytes);
        self.on_connection.give_back(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_holds_more_than_its_share_nor_all_together_more_than_the_whole() {
        let everywhere = Held::default();
        let mut coming = Vec::new();
        for connection in 0..HELD_MAX / ON_CONNECTION_MAX {
            let held = Held::default();
            let first = Coming::new(&everywhere, &held);
            assert!(first.take(ON_CONNECTION_MAX - 1).is_ok(), "{connection}");
            let second = Coming::new(&everywhere, &held);
            assert!(second.take(2).is_err() && second.take(1).is_ok(), "{connection}");
            coming.extend([first, second]);
        }
        let other = Coming::new(&everywhere, &Held::default());
        assert!(other.take(1).is_err());
        coming.pop();
        assert!(other.take(1).is_ok() && other.take(1).is_err());
        drop((coming, other));
        assert_eq!(everywhere.0.load(Relaxed), 0);
    }
}
