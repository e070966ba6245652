//! Resumable sessions, saved by a store on disk. The dialect defines a session's state, which is JSON here.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::DataFile;
use super::disk::Disk;

/// One session in the form that is saved.
#[derive(Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// The data file for the bytes; `None` once an object has them.
    pub(crate) data: Option<String>,
    pub(crate) said: Value,
}

/// A session of an earlier run.
#[derive(Debug)]
pub(crate) struct LeftSession {
    pub(crate) id: String,
    pub(crate) data: Option<Arc<DataFile>>,
    pub(crate) said: Value,
}

/// The sessions of a store on disk. A store in memory keeps none here.
#[derive(Debug, Default)]
pub(crate) struct KeptSessions {
    disk: Option<Arc<Disk>>,
    left: Mutex<Vec<LeftSession>>,
}

impl KeptSessions {
    pub(super) fn on_disk(disk: Arc<Disk>, left: Vec<LeftSession>) -> Self {
        Self { disk: Some(disk), left: Mutex::new(left) }
    }

    /// Returns the sessions of an earlier run, once.
    pub(crate) fn take_left(&self) -> Vec<LeftSession> {
        std::mem::take(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Saves a session's state, in place of its earlier one.
    pub(crate) fn keep(&self, id: &str, record: &SessionRecord) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.keep_session(id, record))
    }

    /// Deletes a session.
    pub(crate) fn end(&self, id: &str) {
        if let Some(disk) = &self.disk {
            // If the file remains, the session returns at the next start, and can be cancelled then.
            let _ = disk.end_session(id);
        }
    }
}
