//! Who does the work: a program, process by process, or the library.

mod library;
mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) use library::Library;
pub(crate) use programs::Programs;

/// Why an operation came to nothing, in words.
pub(crate) type Failure = String;

/// One of several that are carried out side by side, each about keys of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Put(PathBuf, String),
    Copy(String, String),
    Move(String, String),
    Remove(String),
    /// Gives an object a colour.
    Describe(String, String),
}

/// The metadata that objects are described by.
pub(crate) const COLOUR: &str = "colour";

/// What all clients can do. Keys are those of the bucket; a folder in a store is a prefix that ends in a slash.
pub(crate) trait Client: Send {
    /// Who it is, for what is told.
    fn name(&self) -> String;

    fn put(&mut self, file: &Path, key: &str) -> Result<(), Failure>;
    fn put_stream(&mut self, bytes: &[u8], key: &str) -> Result<(), Failure>;
    /// Side by side. After a failure any of them may be there.
    fn put_many(&mut self, files: &[(PathBuf, String)]) -> Result<(), Failure>;

    /// `None` where the object isn't there.
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Failure>;
    /// Whether the object is there and the file was made.
    fn get_file(&mut self, key: &str, file: &Path) -> Result<bool, Failure>;
    /// One after the other.
    fn get_ranges(&mut self, key: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<u8>>, Failure>;

    /// Keys and sizes of what lies below a prefix, which is something.
    fn list(&mut self, prefix: &str) -> Result<BTreeMap<String, u64>, Failure>;
    /// Whether it was there; a client that can't tell says yes.
    fn remove(&mut self, key: &str) -> Result<bool, Failure>;
    fn remove_tree(&mut self, prefix: &str) -> Result<(), Failure>;
    /// Whether the source was there.
    fn copy(&mut self, from: &str, to: &str) -> Result<bool, Failure>;
    fn rename(&mut self, from: &str, to: &str) -> Result<bool, Failure>;

    fn upload_tree(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure>;
    /// Into a folder that isn't there yet.
    fn download_tree(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure>;
    /// Removes what the source doesn't have.
    fn sync_up(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure>;
    fn sync_down(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure>;
    /// The names by which a folder differs from what lies below a prefix, as far as sizes tell.
    fn verify(&mut self, folder: &Path, prefix: &str) -> Result<BTreeSet<String>, Failure>;
    /// How many objects lie below a prefix, which are some, and of how many bytes.
    fn du(&mut self, prefix: &str) -> Result<(u64, u64), Failure>;
    /// Whether the object is there, and has that colour.
    fn set_colour(&mut self, key: &str, colour: &str) -> Result<bool, Failure>;
    /// Side by side. After a failure any of them may be done.
    fn run_all(&mut self, commands: &[Command]) -> Result<(), Failure>;
}

/// The words by which every client says that something isn't there.
fn is_not_found(failure: &Failure) -> bool {
    failure.contains("not found")
}

/// `None` for what isn't there.
fn found<T>(outcome: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(failure) if is_not_found(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}
