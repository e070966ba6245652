//! Limits the memory for documents, which are bodies that the server reads whole before it handles the request. The
//! code that reads a document limits it to some megabytes, but each connection may send a hundred documents at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The maximum number of bytes for all connections together, and for a single one. The largest documents of real
/// clients have about 6 MiB: a delete of a thousand keys of a kilobyte, with each character escaped.
const HELD_MAX: usize = 48 << 20;
const ON_CONNECTION_MAX: usize = 16 << 20;

/// Counts the bytes of documents in memory. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentBytes(Arc<AtomicUsize>);

impl DocumentBytes {
    fn add(&self, bytes: usize, most: usize) -> bool {
        self.0
            .fetch_update(Relaxed, Relaxed, |held| held.checked_add(bytes).filter(|held| *held <= most))
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
    }
}

/// The error if the documents in memory exceed the limit.
#[derive(Debug, thiserror::Error)]
#[error("the request documents in memory exceed the store's limit")]
pub(crate) struct DocumentsTooLarge;

/// A document that is arriving. Its bytes are counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct IncomingDocument {
    everywhere: DocumentBytes,
    on_connection: DocumentBytes,
    bytes: AtomicUsize,
}

impl IncomingDocument {
    pub(crate) fn new(everywhere: &DocumentBytes, on_connection: &DocumentBytes) -> IncomingDocument {
        let (everywhere, on_connection) = (everywhere.clone(), on_connection.clone());
        IncomingDocument { everywhere, on_connection, bytes: AtomicUsize::new(0) }
    }

    /// Counts more bytes of the document.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), DocumentsTooLarge> {
        if !self.on_connection.add(bytes, ON_CONNECTION_MAX) {
            return Err(DocumentsTooLarge);
        }
        if !self.everywhere.add(bytes, HELD_MAX) {
            self.on_connection.give_back(bytes);
            return Err(DocumentsTooLarge);
        }
        self.bytes.fetch_add(bytes, Relaxed);
        Ok(())
    }
}

impl Drop for IncomingDocument {
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
    fn limits_the_memory_of_each_connection_and_of_all_together() {
        let everywhere = DocumentBytes::default();
        let mut coming = Vec::new();
        for connection in 0..HELD_MAX / ON_CONNECTION_MAX {
            let held = DocumentBytes::default();
            let first = IncomingDocument::new(&everywhere, &held);
            assert!(first.take(ON_CONNECTION_MAX - 1).is_ok(), "{connection}");
            let second = IncomingDocument::new(&everywhere, &held);
            assert!(second.take(2).is_err() && second.take(1).is_ok(), "{connection}");
            coming.extend([first, second]);
        }
        let other = IncomingDocument::new(&everywhere, &DocumentBytes::default());
        assert!(other.take(1).is_err());
        coming.pop();
        assert!(other.take(1).is_ok() && other.take(1).is_err());
        drop((coming, other));
        assert_eq!(everywhere.0.load(Relaxed), 0);
    }
}
