//! Saves resumable sessions in a store on disk. The dialect defines a session's state, which is any JSON value here.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::DataFile;
use super::disk::Disk;

/// One session in the form in which it is saved.
#[derive(Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// The name of the data file with the session's bytes. `None` after they have become an object.
    pub(crate) data: Option<String>,
    pub(crate) said: Value,
}

/// A session from an earlier run of the server.
#[derive(Debug)]
pub(crate) struct LoadedSession {
    pub(crate) id: String,
    pub(crate) data: Option<Arc<DataFile>>,
    pub(crate) said: Value,
}

/// The sessions that a store on disk has saved. For a store in memory, this is always empty.
#[derive(Debug, Default)]
pub(crate) struct SavedSessions {
    disk: Option<Arc<Disk>>,
    left: Mutex<Vec<LoadedSession>>,
}

impl SavedSessions {
    pub(super) fn on_disk(disk: Arc<Disk>, left: Vec<LoadedSession>) -> Self {
        Self { disk: Some(disk), left: Mutex::new(left) }
    }

    /// Returns the sessions of an earlier run. Later calls return none.
    pub(crate) fn take_left(&self) -> Vec<LoadedSession> {
        std::mem::take(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Saves a session's state, which replaces the state saved before.
    pub(crate) fn keep(&self, id: &str, record: &SessionRecord) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.keep_session(id, record))
    }

    /// Deletes a session.
    pub(crate) fn end(&self, id: &str) {
        if let Some(disk) = &self.disk {
            // If the file can't be removed, the session is back after the next start, and can be cancelled then.
            let _ = disk.end_session(id);
        }
    }
}
