//! The clients: the program, with one process per operation, or the library.

mod library;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use laneway::Provider;
use laneway_testkit::{Endpoint, Program, Run};

pub(crate) use library::Library;

/// The reason for an operation's failure, as text.
pub(crate) type Failure = String;

/// A command of a concurrent run. Each command uses its own keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Put(PathBuf, String),
    Copy(String, String),
    Move(String, String),
    Remove(String),
    /// Sets an object's colour.
    Describe(String, String),
}

/// The name of the metadata entry that clients set on objects.
pub(crate) const COLOUR: &str = "colour";

/// The operations of every client. Keys are relative to the bucket. A folder in a store is a prefix that ends
/// in a slash.
pub(crate) trait Client: Send {
    /// Returns the client's name, for messages.
    fn name(&self) -> String;

    fn put(&mut self, file: &Path, key: &str) -> Result<(), Failure>;
    fn put_stream(&mut self, bytes: &[u8], key: &str) -> Result<(), Failure>;
    /// Uploads concurrently. After a failure, any of the objects may exist.
    fn put_many(&mut self, files: &[(PathBuf, String)]) -> Result<(), Failure>;

    /// Returns `None` if the object doesn't exist.
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Failure>;
    /// Downloads to a file. Returns false if the object doesn't exist.
    fn get_file(&mut self, key: &str, file: &Path) -> Result<bool, Failure>;
    /// Reads the ranges one after the other.
    fn get_ranges(&mut self, key: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<u8>>, Failure>;

    /// Returns keys and sizes below a prefix, which must not be empty.
    fn list(&mut self, prefix: &str) -> Result<BTreeMap<String, u64>, Failure>;
    /// Removes an object. Returns false if it didn't exist; a client that can't tell returns true.
    fn remove(&mut self, key: &str) -> Result<bool, Failure>;
    fn remove_tree(&mut self, prefix: &str) -> Result<(), Failure>;
    /// Copies an object. Returns false if the source doesn't exist.
    fn copy(&mut self, from: &str, to: &str) -> Result<bool, Failure>;
    fn rename(&mut self, from: &str, to: &str) -> Result<bool, Failure>;

    fn upload_tree(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure>;
    /// Downloads into a folder that doesn't exist yet.
    fn download_tree(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure>;
    /// Syncs a folder to a prefix, and removes objects that the folder lacks.
    fn sync_up(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure>;
    fn sync_down(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure>;
    /// Returns the names that differ in size between a folder and a prefix.
    fn verify(&mut self, folder: &Path, prefix: &str) -> Result<BTreeSet<String>, Failure>;
    /// Returns the number of objects below a prefix, and their bytes. The prefix must not be empty.
    fn du(&mut self, prefix: &str) -> Result<(u64, u64), Failure>;
    /// Sets an object's colour. Returns false if the object doesn't exist.
    fn set_colour(&mut self, key: &str, colour: &str) -> Result<bool, Failure>;
    /// Runs the commands concurrently. After a failure, any of them may have succeeded.
    fn run_all(&mut self, commands: &[Command]) -> Result<(), Failure>;
}

/// Returns true for the messages by which clients report a missing object.
fn is_not_found(failure: &Failure) -> bool {
    failure.contains("not found")
}

/// Turns a failure into `None` if it reports a missing object.
fn found<T>(outcome: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(failure) if is_not_found(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

pub(crate) struct Programs {
    program: Program,
    /// The URL to which the client appends keys.
    bucket: String,
    name: String,
    home: PathBuf,
    /// Number of manifests so far.
    manifests: usize,
}

impl Programs {
    /// Returns the program at `binary`, with the store at `url`. Each client has its own home folder.
    pub(crate) fn new(endpoint: &Endpoint, url: &str, binary: &str, provider: Provider) -> Self {
        static HOMES: AtomicUsize = AtomicUsize::new(0);
        let number = HOMES.fetch_add(1, Ordering::Relaxed);
        let home = endpoint.folder().join(format!("home-{number}"));
        std::fs::create_dir_all(&home).expect("a home is made");
        let program = endpoint
            .program(binary)
            .with("HOME", &home)
            .with("STORAGE_EMULATOR_HOST", url)
            .with("AWS_ENDPOINT_URL_S3", url)
            .with("LANEWAY_RETRY_FOR", "10s");
        let bucket = format!("{}://{}/", provider.scheme(), Endpoint::BUCKET);
        Self { program, bucket, name: format!("{binary} {}", provider.scheme()), home, manifests: 0 }
    }

    fn url(&self, key: &str) -> String {
        format!("{}{key}", self.bucket)
    }

    fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, Failure> {
        self.ended(arguments, self.program.run(arguments))
    }

    /// # Panics
    /// Panics if the program neither succeeded nor reported a failure.
    fn ended(&self, arguments: &[&str], run: Run) -> Result<Vec<u8>, Failure> {
        let Run { status, stdout, stderr } = run;
        assert!(!stderr.contains("panicked"), "{} {arguments:?}: {stderr}", self.name);
        match status {
            Some(0) => Ok(stdout),
            Some(1) if !stderr.is_empty() => Err(stderr),
            _ => panic!("{} {arguments:?} ended with {status:?}: {stderr}", self.name),
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

/// Returns a folder's path with `/.` appended, which stands for its contents.
fn contents(folder: &Path) -> String {
    format!("{}/.", text(folder))
}

impl Client for Programs {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn put(&mut self, file: &Path, key: &str) -> Result<(), Failure> {
        self.run(&["cp", "-q", text(file), &self.url(key)]).map(drop)
    }

    fn put_stream(&mut self, bytes: &[u8], key: &str) -> Result<(), Failure> {
        let (url, bytes) = (self.url(key), bytes.to_vec());
        let arguments = ["cp", "-q", "-", &url];
        self.ended(&arguments, self.program.run_with_input(arguments, &bytes)).map(drop)
    }

    fn put_many(&mut self, files: &[(PathBuf, String)]) -> Result<(), Failure> {
        let mut lines = String::new();
        for (file, key) in files {
            writeln!(lines, "cp {} {}", text(file), self.url(key)).expect("written to memory");
        }
        let arguments = ["run", "-q", "-"];
        self.ended(&arguments, self.program.run_with_input(arguments, lines.as_bytes())).map(drop)
    }

    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        found(self.run(&["cat", &self.url(key)]))
    }

    fn get_file(&mut self, key: &str, file: &Path) -> Result<bool, Failure> {
        Ok(found(self.run(&["cp", "-q", &self.url(key), text(file)]))?.is_some())
    }

    fn get_ranges(&mut self, key: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<u8>>, Failure> {
        let ranges: Vec<_> =
            ranges.iter().map(|range| format!("{}-{}", range.start, range.end - 1)).collect();
        found(self.run(&["cat", "--range", &ranges.join(","), &self.url(key)]))
    }

    fn list(&mut self, prefix: &str) -> Result<BTreeMap<String, u64>, Failure> {
        let listed = self.run(&["ls", "-r", "--json", &self.url(prefix)])?;
        let listed = String::from_utf8(listed).expect("records are text");
        let entry = |line: &str| {
            let record: serde_json::Value = serde_json::from_str(line).expect("a record");
            let url = record["url"].as_str().expect("a URL");
            let key = url.strip_prefix(&self.bucket).expect("an object of the bucket").to_owned();
            (key, record["size"].as_u64().expect("a size"))
        };
        Ok(listed.lines().map(entry).collect())
    }

    fn remove(&mut self, key: &str) -> Result<bool, Failure> {
        Ok(found(self.run(&["rm", "-q", &self.url(key)]))?.is_some())
    }

    fn remove_tree(&mut self, prefix: &str) -> Result<(), Failure> {
        self.run(&["rm", "-q", "-r", "--yes", &self.url(prefix)]).map(drop)
    }

    fn copy(&mut self, from: &str, to: &str) -> Result<bool, Failure> {
        Ok(found(self.run(&["cp", "-q", &self.url(from), &self.url(to)]))?.is_some())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<bool, Failure> {
        Ok(found(self.run(&["mv", "-q", &self.url(from), &self.url(to)]))?.is_some())
    }

    fn upload_tree(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure> {
        self.run(&["cp", "-q", "-r", &contents(folder), &self.url(prefix)]).map(drop)
    }

    fn download_tree(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure> {
        self.run(&["cp", "-q", "-r", &self.url(prefix), text(folder)]).map(drop)
    }

    fn sync_up(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure> {
        self.run(&["sync", "-q", "--delete", "--allow-empty", text(folder), &self.url(prefix)]).map(drop)
    }

    fn sync_down(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure> {
        self.run(&["sync", "-q", "--delete", "--allow-empty", &self.url(prefix), text(folder)]).map(drop)
    }
    fn verify(&mut self, folder: &Path, prefix: &str) -> Result<BTreeSet<String>, Failure> {
        let arguments = ["verify", "--json", text(folder), &self.url(prefix)];
        let Run { status, stdout, stderr } = self.program.run(arguments);
        let records = String::from_utf8(stdout).expect("records are text");
        let records = records.lines().map(|line| serde_json::from_str(line).expect("a record"));
        let records: Vec<serde_json::Value> = records.collect();
        let mut differ = BTreeSet::new();
        let mut others = Vec::new();
        for record in records.iter().filter(|record| record["class"].is_string()) {
            match record["class"].as_str() {
                Some("not_found" | "integrity") if record["op"] == "verify" => {
                    let source = record["source"].as_str().expect("a source");
                    let name = Path::new(source).strip_prefix(folder).expect("a file of the folder");
                    differ.insert(text(name).to_owned());
                }
                _ => others.push(record),
            }
        }
        assert!(
            (status == Some(0)) == (differ.is_empty() && others.is_empty()),
            "{} {arguments:?} ended with {status:?}, {differ:?}, {others:?}: {stderr}",
            self.name
        );
        if others.is_empty() { Ok(differ) } else { Err(stderr) }
    }

    fn du(&mut self, prefix: &str) -> Result<(u64, u64), Failure> {
        let said = self.run(&["du", "-s", "--json", &self.url(prefix)])?;
        let record: serde_json::Value = serde_json::from_slice(&said).expect("a record");
        let number = |name: &str| record[name].as_u64().expect("a number");
        Ok((number("objects"), number("bytes")))
    }

    fn set_colour(&mut self, key: &str, colour: &str) -> Result<bool, Failure> {
        let colour = format!("{COLOUR}={colour}");
        Ok(found(self.run(&["setmeta", "-q", "--metadata", &colour, &self.url(key)]))?.is_some())
    }

    fn run_all(&mut self, commands: &[Command]) -> Result<(), Failure> {
        let mut lines = String::new();
        for command in commands {
            let line = match command {
                Command::Put(file, key) => format!("cp {} '{}'", text(file), self.url(key)),
                Command::Copy(from, to) => format!("cp '{}' '{}'", self.url(from), self.url(to)),
                Command::Move(from, to) => format!("mv '{}' '{}'", self.url(from), self.url(to)),
                Command::Remove(key) => format!("rm '{}'", self.url(key)),
                Command::Describe(key, colour) => {
                    format!("setmeta --metadata {COLOUR}={colour} '{}'", self.url(key))
                }
            };
            lines.push_str(&line);
            lines.push('\n');
        }
        self.manifests += 1;
        let manifest = self.home.join(format!("manifest-{}", self.manifests));
        let arguments = ["run", "-q", "--manifest", text(&manifest), "-"];
        let run = || self.ended(&arguments, self.program.run_with_input(arguments, lines.as_bytes()));
        // The second run skips the completed commands and does the rest.
        let outcome = run().or_else(|_| run()).map(drop);
        std::fs::remove_file(manifest).expect("a manifest");
        outcome
    }
}
