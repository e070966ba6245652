//! The program, a process for each operation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use laneway::Provider;
use laneway_testkit::{Endpoint, Program, Run};

use super::{Client, Failure, found};

pub(crate) struct Programs {
    program: Program,
    /// What its URLs begin with.
    bucket: String,
    name: String,
}

impl Programs {
    /// The program at `binary`, which reaches the store at `url`. Each has a home of its own.
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
        Self { program, bucket, name: format!("{binary} {}", provider.scheme()) }
    }

    fn url(&self, key: &str) -> String {
        format!("{}{key}", self.bucket)
    }

    fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, Failure> {
        self.ended(arguments, self.program.run(arguments))
    }

    /// # Panics
    /// Where it has ended by anything but a success or a failure that it tells.
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

/// A file's folder as a place for what lies in it.
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
}
