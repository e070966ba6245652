//! What every rung is given: the files, and where they go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};

use super::result::Failure;
use super::site::Site;

/// Between the two parts of an upload in one request. The files hold no text, so that it can't occur in them.
const BOUNDARY: &str = "ladder-part";

/// One run of one rung.
pub(super) struct Work {
    pub(super) site: Arc<Site>,
    pub(super) files: Arc<Files>,
    /// What the keys begin with, a slash at its end.
    pub(super) prefix: String,
}

/// The files on disk.
pub(super) struct Files {
    folder: PathBuf,
    names: Vec<String>,
    size: u64,
}

impl Files {
    /// Writes `count` files of `size` bytes into a folder, which is created.
    ///
    /// # Errors
    /// What the disk answers.
    pub(super) fn create(folder: PathBuf, count: usize, size: u64) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let names: Vec<_> = (0..count).map(|n| format!("{n:05}.bin")).collect();
        for (n, name) in names.iter().enumerate() {
            let content: Vec<u8> = (0..size).map(|at| (at as usize ^ n) as u8).collect();
            fs::write(folder.join(name), content)?;
        }
        Ok(Self { folder, names, size })
    }

    /// The folder that holds them and nothing else.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Bytes of each.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// A file's bytes. They lie in the page cache, so that reading them where the caller stands takes microseconds.
    ///
    /// # Errors
    /// What the disk answers.
    pub(super) fn read(&self, name: &str) -> Result<Bytes, Failure> {
        fs::read(self.folder.join(name)).map(Bytes::from).map_err(Failure::File)
    }
}

impl Work {
    /// The key that a file becomes.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A file's upload in one request: `uploadType=multipart`, which servers were seen to take better than `media`.
    ///
    /// # Errors
    /// When the file can't be read, or there can be no such request.
    pub(super) fn upload_request(&self, name: &str) -> Result<Request<Bytes>, Failure> {
        let content = self.files.read(name)?;
        let metadata = serde_json::json!({ "name": self.key(name) });
        let mut body = Vec::with_capacity(content.len() + 512);
        body.extend_from_slice(
            format!(
                "--{BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{metadata}\r\n\
                 --{BOUNDARY}\r\nContent-Type: application/octet-stream\r\n\r\n"
            )
            .as_bytes(),
        );
        body.extend_from_slice(&content);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        // Without `fields` the answer is four times as long, which would cost the rivals on a real path.
        let target = self.site.upload_target("multipart");
        let mut request = self.site.request(Method::POST, &format!("{target}&fields=name"), body.into())?;
        let content_type = http::HeaderValue::from_static("multipart/related; boundary=ladder-part");
        request.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
        Ok(request)
    }
}
