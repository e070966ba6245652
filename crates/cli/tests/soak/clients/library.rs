//! The library. Its clients in this process share one engine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway::{
    Bucket, Client as Ours, CopyRequest, Engine, Error, ErrorKind, Event, Job, Location, MetaChange, Op,
    Outcome, Payload, Provider, RemoveRequest, SetMetaRequest, SyncRequest, VerifyRequest,
};
use laneway_testkit::Endpoint;

use super::{COLOUR, Client, Command, Failure};

/// Longer than any operation that makes progress.
const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) struct Library {
    client: Ours,
    bucket: Bucket,
}

impl Library {
    /// Returns the engine that the clients share.
    pub(crate) fn engine() -> Engine {
        Engine::builder().build()
    }

    pub(crate) fn new(endpoint: &Endpoint, url: &str, engine: &Engine, provider: Provider) -> Self {
        let mut settings = Ours::builder()
            .anonymous(true)
            .gcs_endpoint(url)
            .s3_endpoint(url)
            .retry_for(Duration::from_secs(10))
            .upload_journals(endpoint.folder().join(format!("journals-{}", provider.scheme())))
            .engine(engine.clone());
        if let Some(ca) = endpoint.ca_file() {
            settings = settings.ca_file(ca);
        }
        let client = settings.build().expect("a client");
        let bucket =
            client.bucket(&format!("{}://{}", provider.scheme(), Endpoint::BUCKET)).expect("a bucket");
        Self { client, bucket }
    }

    fn at(&self, key: &str) -> Location {
        Location::object(self.bucket.provider(), Endpoint::BUCKET, key)
    }

    fn begun(&self, command: &Command) -> Job {
        match command {
            Command::Put(file, key) => {
                self.client.copy(CopyRequest::new(vec![Location::from(file.as_path())], self.at(key)))
            }
            Command::Copy(from, to) => self.client.copy(CopyRequest::new(vec![self.at(from)], self.at(to))),
            Command::Move(from, to) => {
                self.client.copy(CopyRequest::new(vec![self.at(from)], self.at(to)).remove_source(true))
            }
            Command::Remove(key) => self.client.remove(RemoveRequest::new(vec![self.at(key)])),
            Command::Describe(key, colour) => {
                let change = MetaChange::default().metadata(COLOUR, colour);
                self.client.set_meta(SetMetaRequest::new(vec![self.at(key)], change))
            }
        }
    }
}

fn failure(error: Error) -> Failure {
    assert!(!error.to_string().contains("panicked"), "{error}");
    if error.is_not_found() { format!("not found: {error}") } else { error.to_string() }
}

/// Turns a missing object into `None`.
fn found<T>(outcome: Result<T, Error>) -> Result<Option<T>, Failure> {
    super::found(outcome.map_err(failure))
}

/// Runs a job to its end and returns its first failure.
fn ended(mut job: Job) -> Result<(), Failure> {
    let mut failed = None;
    while let Some(event) = job.next_blocking() {
        match event {
            Event::Item(item) => {
                if let Outcome::Failed(error) = item.outcome {
                    failed = failed.or(Some(failure(error)));
                }
            }
            Event::Done(summary) => {
                assert_eq!(summary.failed > 0, failed.is_some(), "{summary:?}");
            }
            _ => {}
        }
    }
    failed.map_or(Ok(()), Err)
}

impl Client for Library {
    fn name(&self) -> String {
        format!("library {}", self.bucket.provider().scheme())
    }

    fn put(&mut self, file: &Path, key: &str) -> Result<(), Failure> {
        self.bucket.put(key, Payload::file(file)).deadline(DEADLINE).call().map(drop).map_err(failure)
    }

    fn put_stream(&mut self, bytes: &[u8], key: &str) -> Result<(), Failure> {
        let mut writer = self.bucket.writer(key).into_blocking();
        writer.write_all(bytes).map_err(|error| error.to_string())?;
        writer.finish().map(drop).map_err(failure)
    }

    fn put_many(&mut self, files: &[(PathBuf, String)]) -> Result<(), Failure> {
        let put = |(file, key): &(PathBuf, String)| {
            let bytes = std::fs::read(file).expect("the file is there");
            self.bucket.put(key, bytes).deadline(DEADLINE).call().map(drop).map_err(failure)
        };
        std::thread::scope(|scope| {
            let put = &put;
            let all: Vec<_> = files.iter().map(|file| scope.spawn(move || put(file))).collect();
            let ended = all.into_iter().map(|one| one.join().expect("it ends"));
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Some(download) = found(self.bucket.get(key).deadline(DEADLINE).call())? else { return Ok(None) };
        download.bytes_blocking().map(|bytes| Some(bytes.to_vec())).map_err(failure)
    }

    fn get_file(&mut self, key: &str, file: &Path) -> Result<bool, Failure> {
        let request = CopyRequest::new(vec![self.at(key)], Location::from(file));
        Ok(super::found(ended(self.client.copy(request)))?.is_some())
    }

    fn get_ranges(&mut self, key: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<u8>>, Failure> {
        let came = found(self.bucket.get_ranges(key, ranges.to_vec()).deadline(DEADLINE).call())?;
        Ok(came.map(|ranges| ranges.concat()))
    }

    fn list(&mut self, prefix: &str) -> Result<BTreeMap<String, u64>, Failure> {
        let mut listing = self.bucket.list(prefix);
        let mut listed = BTreeMap::new();
        while let Some(meta) = listing.next_blocking() {
            let meta = meta.map_err(failure)?;
            listed.insert(meta.id.key, meta.size);
        }
        Ok(listed)
    }

    fn remove(&mut self, key: &str) -> Result<bool, Failure> {
        Ok(found(self.bucket.delete(key).deadline(DEADLINE).call())?.is_some())
    }

    fn remove_tree(&mut self, prefix: &str) -> Result<(), Failure> {
        let keys: Vec<String> = self.list(prefix)?.into_keys().collect();
        let mut removed = self.bucket.delete_many(futures_util::stream::iter(keys));
        let mut failed = None;
        while let Some((_, outcome)) = removed.next_blocking() {
            // Another attempt may have removed the object already.
            failed = found(outcome).err().or(failed);
        }
        failed.map_or(Ok(()), Err)
    }

    fn copy(&mut self, from: &str, to: &str) -> Result<bool, Failure> {
        Ok(found(self.bucket.copy(from, to).deadline(DEADLINE).call())?.is_some())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<bool, Failure> {
        Ok(found(self.bucket.rename(from, to).deadline(DEADLINE).call())?.is_some())
    }

    fn upload_tree(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure> {
        let request = CopyRequest::new(vec![Location::from(folder)], self.at(prefix));
        ended(self.client.copy(request.recursive(true).contents(true)))
    }

    fn download_tree(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure> {
        let request = CopyRequest::new(vec![self.at(prefix)], Location::from(folder));
        ended(self.client.copy(request.recursive(true).contents(true)))
    }

    fn sync_up(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure> {
        let request = SyncRequest::new(Location::from(folder), self.at(prefix));
        ended(self.client.sync(request.delete(true).allow_empty(true)))
    }

    fn sync_down(&mut self, prefix: &str, folder: &Path) -> Result<(), Failure> {
        let request = SyncRequest::new(self.at(prefix), Location::from(folder));
        ended(self.client.sync(request.delete(true).allow_empty(true)))
    }
    fn verify(&mut self, folder: &Path, prefix: &str) -> Result<BTreeSet<String>, Failure> {
        let mut job = self.client.verify(VerifyRequest::new(Location::from(folder), self.at(prefix)));
        let (mut differ, mut failed) = (BTreeSet::new(), None);
        while let Some(event) = job.next_blocking() {
            let Event::Item(item) = event else { continue };
            match item.outcome {
                Outcome::Failed(error)
                    if item.op == Op::Verify
                        && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Integrity) =>
                {
                    let name = Path::new(&item.source).strip_prefix(folder).expect("a file of the folder");
                    differ.insert(name.to_str().expect("a name of letters").to_owned());
                }
                Outcome::Failed(error) => failed = failed.or(Some(failure(error))),
                _ => {}
            }
        }
        failed.map_or(Ok(differ), Err)
    }

    fn du(&mut self, prefix: &str) -> Result<(u64, u64), Failure> {
        let listed = self.list(prefix)?;
        Ok((listed.len() as u64, listed.values().sum()))
    }

    fn set_colour(&mut self, key: &str, colour: &str) -> Result<bool, Failure> {
        let change = MetaChange::default().metadata(COLOUR, colour);
        let outcome = ended(self.client.set_meta(SetMetaRequest::new(vec![self.at(key)], change)));
        Ok(super::found(outcome)?.is_some())
    }

    fn run_all(&mut self, commands: &[Command]) -> Result<(), Failure> {
        let jobs: Vec<Job> = commands.iter().map(|command| self.begun(command)).collect();
        jobs.into_iter().map(ended).fold(Ok(()), Result::and)
    }
}
