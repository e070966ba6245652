//! Resumable sessions as a store on disk keeps them. What a session says is its dialect's, and stands here as JSON.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::DataFile;
use super::disk::Disk;

/// One session as it is written down.
#[derive(Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// The data file that takes the bytes; `None` once an object has them.
    pub(crate) data: Option<String>,
    pub(crate) said: Value,
}

/// A session that an earlier run has left.
#[derive(Debug)]
pub(crate) struct LeftSession {
    pub(crate) id: String,
    pub(crate) data: Option<Arc<DataFile>>,
    pub(crate) said: Value,
}

/// The sessions of a store on disk. In memory nothing is kept here.
#[derive(Debug, Default)]
pub(crate) struct KeptSessions {
    disk: Option<Arc<Disk>>,
    left: Mutex<Vec<LeftSession>>,
}

impl KeptSessions {
    pub(super) fn on_disk(disk: Arc<Disk>, left: Vec<LeftSession>) -> Self {
        Self { disk: Some(disk), left: Mutex::new(left) }
    }

    /// Returns the sessions that an earlier run has left, once.
    pub(crate) fn take_left(&self) -> Vec<LeftSession> {
        std::mem::take(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps what a session says, in place of what it said before.
    pub(crate) fn keep(&self, id: &str, record: &SessionRecord) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.keep_session(id, record))
    }

    /// Forgets a session.
    pub(crate) fn end(&self, id: &str) {
        if let Some(disk) = &self.disk {
            // A file that stays comes back at the next start, and can be cancelled then.
            let _ = disk.end_session(id);
        }
    }
}
