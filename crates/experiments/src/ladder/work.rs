//! The input of every method: the files and their destination. After a method's run, a client of its own checks the
//! objects in the store.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::rival::{self, Http1, Protocol, Rival};
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

/// A page of a listing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Page {
    items: Vec<Listed>,
    next_page_token: String,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    /// A number in quotes, as the JSON API writes 64-bit numbers.
    size: String,
}

/// Compares the objects under the work's prefix with the expected names and sizes. Uses a client of its own.
///
/// # Errors
/// Returns [`Failure::Wrong`] if they differ, or the error of the listing.
pub(super) async fn check(work: &Work) -> Result<(), Failure> {
    let mut wanted: HashSet<String> = work.files.names().iter().map(|name| work.key(name)).collect();
    let mut wrong = 0;
    let mut connection = Rival::new(&work.site, Protocol::H1).connect_h1().await?;
    let mut token = String::new();
    loop {
        let page = list(&mut connection, work, &token).await?;
        for object in page.items {
            let right = object.size.parse() == Ok(work.files.size()) && wanted.remove(&object.name);
            wrong += usize::from(!right);
        }
        if page.next_page_token.is_empty() {
            break;
        }
        token = page.next_page_token;
    }
    let count = work.files.names().len();
    if wanted.is_empty() && wrong == 0 {
        return Ok(());
    }
    Err(Failure::Wrong { right: count - wanted.len(), wanted: count, size: work.files.size(), wrong })
}

async fn list(connection: &mut Http1, work: &Work, token: &str) -> Result<Page, Failure> {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let mut target = format!("{}/o?prefix={}", work.site.bucket_target(), encode(&work.prefix));
    if !token.is_empty() {
        target += &format!("&pageToken={}", encode(token));
    }
    let request = work.site.request(Method::GET, &target, Bytes::new())?;
    let answer = connection.send(request).await?.succeeded()?;
    Ok(serde_json::from_slice(&answer.body).map_err(|e| rival::Error::Answer(Box::new(e)))?)
}
