//! Inventories that stand for a bucket's listing: S3 Inventory, GCS's Storage Insights reports, and what `ls -r --json` prints. They are read in
//! bounded memory, as they come.

mod gcs;
mod listed;
mod s3;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use laneway_store::{Checksums, ObjectMeta, Provider};
use tokio::sync::mpsc;

use crate::Error;
use crate::lines::Lines;

/// Most objects that are handed on together.
const BATCH_MAX: usize = 1000;
/// Batches that wait to be taken before the reading does.
const BATCHES_WAITING_MAX: usize = 4;
/// The longest manifest of an inventory that is read: some 200,000 data files.
const MANIFEST_MAX: u64 = 64 << 20;

/// Objects of one file of an inventory, each with the line that it stands in.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) file: String,
    pub(crate) objects: Vec<(u64, ObjectMeta)>,
}

/// The bucket whose inventory it must be, and what its keys begin with that are meant.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) provider: Provider,
    pub(crate) bucket: String,
    pub(crate) prefix: String,
}

/// An inventory that is being read. Dropped, it ends the reading.
#[derive(Debug)]
pub(crate) struct Inventory(mpsc::Receiver<Result<Batch, Error>>);

impl Inventory {
    /// Begins to read an inventory.
    ///
    /// # Errors
    /// Where no thread can be started. What can't be read comes in place of objects.
    pub(crate) fn start(path: PathBuf, place: Place) -> Result<Self, Error> {
        let (out, batches) = mpsc::channel(BATCHES_WAITING_MAX);
        let at = path.clone();
        let read = move || {
            let mut taker = Taker { place, out, batch: Batch { file: String::new(), objects: Vec::new() } };
            match read(&path, &mut taker).map(|ended| ended.is_break()) {
                // Nobody listens any more, or all has been handed on.
                Ok(_) => {}
                Err(error) => drop(taker.out.blocking_send(Err(error))),
            }
        };
        std::thread::Builder::new()
            .name("laneway-inventory".into())
            .spawn(read)
            .map_err(|e| Error::local(at, "can't be read: no thread", e))?;
        Ok(Self(batches))
    }

    /// The next objects; `None` at the end.
    ///
    /// # Errors
    /// For a file that can't be read, is another bucket's, or has a broken line; nothing follows.
    pub(crate) async fn next(&mut self) -> Result<Option<Batch>, Error> {
        self.0.recv().await.transpose()
    }
}

/// Whether anybody takes more.
type Flow = std::ops::ControlFlow<()>;

/// Collects what lines say.
struct Taker {
    place: Place,
    out: mpsc::Sender<Result<Batch, Error>>,
    batch: Batch,
}

impl Taker {
    /// Takes an object that is meant.
    fn take(&mut self, line: u64, meta: ObjectMeta) -> Flow {
        if meta.id.key.starts_with(&self.place.prefix) {
            self.batch.objects.push((line, meta));
        }
        if self.batch.objects.len() < BATCH_MAX { Flow::Continue(()) } else { self.hand_on() }
    }

    fn hand_on(&mut self) -> Flow {
        let file = self.batch.file.clone();
        let batch = std::mem::replace(&mut self.batch, Batch { file, objects: Vec::new() });
        if batch.objects.is_empty() || self.out.blocking_send(Ok(batch)).is_ok() {
            return Flow::Continue(());
        }
        Flow::Break(())
    }

    /// What a line says that can't be understood.
    fn broken(&self, line: u64, why: impl std::fmt::Display) -> Error {
        Error::refused(
            format!("{}:{line}", self.batch.file),
            format!("this line of the inventory is broken: {why}"),
        )
    }

    /// What makes a listing none that could be gone by.
    fn unfit(&self, line: u64, why: &str) -> Error {
        Error::refused(format!("{}:{line}", self.batch.file), format!("this listing {why}"))
    }

    /// Refuses the inventory of another bucket.
    fn check_bucket(&self, line: u64, bucket: &str) -> Result<(), Error> {
        let expected = &self.place.bucket;
        match bucket == expected {
            true => Ok(()),
            false => {
                let why = format!("this is the inventory of another bucket, {bucket}, and not of {expected}");
                Err(Error::refused(format!("{}:{line}", self.batch.file), why))
            }
        }
    }
}

fn read(path: &Path, taker: &mut Taker) -> Result<Flow, Error> {
    let failed = |e| Error::local(path, "can't be read as an inventory", e);
    let mut input = BufReader::new(File::open(path).map_err(failed)?);
    taker.batch.file = path.display().to_string();
    let mut first = Lines::new(&mut input).next().map_err(failed)?.map_or_else(Vec::new, |line| line.bytes);
    if listed::is_record(&first) {
        // What was read of it is read again.
        let input = BufReader::new(File::open(path).map_err(failed)?);
        return listed::read(input, taker);
    }
    first.push(b'\n');
    let mut whole = first;
    input.take(MANIFEST_MAX).read_to_end(&mut whole).map_err(failed)?;
    let manifest: serde_json::Value = serde_json::from_slice(&whole).map_err(|_| {
        let why = "is neither an inventory's manifest.json nor what ls -r --json prints";
        Error::refused(path.display().to_string(), why)
    })?;
    match taker.place.provider {
        Provider::S3 => s3::read(path, manifest, taker),
        Provider::Gcs => gcs::read(path, manifest, taker),
    }
}

/// A data file of an inventory, decompressed where its name says that it is compressed. It lies beside its manifest, or where a copy of the
/// whole bucket has it.
///
/// # Errors
/// Where it isn't there.
fn data_file(manifest: &Path, key: &str) -> Result<(PathBuf, Box<dyn Read>), Error> {
    let name = key.rsplit('/').next().unwrap_or(key);
    let folder = manifest.parent().unwrap_or(Path::new(""));
    let beside =
        [folder.join(name), folder.join("data").join(name), folder.join("..").join("data").join(name)];
    let above = folder.ancestors().map(|above| above.join(key.trim_start_matches('/')));
    let Some(path) = beside.into_iter().chain(above).find(|path| path.is_file()) else {
        let why = format!("the data file {key} of this inventory is not here");
        return Err(Error::not_found(manifest.display().to_string(), why));
    };
    let file = File::open(&path).map_err(|e| Error::local(&path, "can't be read", e))?;
    let input: Box<dyn Read> = match name.ends_with(".gz") {
        true => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        false => Box::new(file),
    };
    Ok((path, input))
}

/// A checksum as stores write it.
fn decoded<const N: usize>(text: &str) -> Option<[u8; N]> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()?.try_into().ok()
}

fn checksums(crc32c: Option<&str>, md5: Option<&str>) -> Option<Checksums> {
    let mut sums = Checksums::default();
    if let Some(text) = crc32c.filter(|text| !text.is_empty()) {
        sums.crc32c = Some(u32::from_be_bytes(decoded(text)?));
    }
    if let Some(text) = md5.filter(|text| !text.is_empty()) {
        sums.md5 = Some(decoded(text)?);
    }
    Some(sums)
}

/// Whether a field says that it is so.
fn is_true(field: Option<&str>) -> bool {
    field.is_some_and(|text| text.eq_ignore_ascii_case("true"))
}
