//! The input of every method: the files and their destination.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::site::Site;

/// The files that one run uploads, and their destination.
pub(super) struct Work {
    pub(super) site: Arc<Site>,
    pub(super) files: Files,
    /// The prefix of the keys, with a final slash.
    pub(super) prefix: String,
}

/// The files on disk.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Files {
    folder: PathBuf,
    names: Vec<String>,
    size: u64,
}

impl Files {
    /// Creates a folder with `count` files of `size` bytes.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub(super) fn create(folder: PathBuf, count: usize, size: u64) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let names: Vec<_> = (0..count).map(|n| format!("{n:05}.bin")).collect();
        for (n, name) in names.iter().enumerate() {
            let content: Vec<u8> = (0..size).map(|at| (at as usize ^ n) as u8).collect();
            fs::write(folder.join(name), content)?;
        }
        Ok(Self { folder, names, size })
    }

    /// Returns the folder, which holds only these files.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the size of each file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Reads a file. The file is in the page cache, so a blocking read takes only microseconds.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub(super) fn read(&self, name: &str) -> Result<Bytes, Failure> {
        fs::read(self.folder.join(name)).map(Bytes::from).map_err(Failure::File)
    }
}

impl Work {
    /// Returns the key of a file's object.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Returns a request that uploads a whole file.
    ///
    /// # Errors
    /// Fails if the file can't be read or the request can't be built.
    pub(super) fn upload_request(&self, name: &str) -> Result<Request<Bytes>, Failure> {
        let content = self.files.read(name)?;
        Ok(self.site.multipart(&self.key(name), &content, None)?)
    }
}
