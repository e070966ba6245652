//! The files of parts and results: lines of JSON, compressed with zstd.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use laneway::{Error, ObjectMeta, Provider, Version};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::files::PlanFiles;
use crate::format::{KeyRange, PartAction, PartEntry, local, refused};

/// The text that is compressed at a time.
const BLOCK_LEN: usize = 256 << 10;
/// The number of blocks that may wait for the compressing thread.
const BLOCKS_WAITING_MAX: usize = 4;

/// A row of a part. A part is at the same time a listing as `ls -r --json` prints it, so it can be given to
/// `--inventory`.
#[derive(Serialize)]
struct Row<'a> {
    kind: &'static str,
    action: &'static str,
    url: &'a str,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc32c: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc64nvme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    md5: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
}

/// A file that is finished: its size and checksum.
#[derive(Debug)]
pub(crate) struct FinishedFile {
    pub(crate) file: NamedTempFile,
    pub(crate) size: u64,
    pub(crate) crc32c: String,
}

/// Writes lines of JSON to a temporary file. Another thread compresses them.
#[derive(Debug)]
pub(crate) struct LinesWriter {
    block: Vec<u8>,
    /// Holds the start of each URL, to avoid an allocation for each row.
    url: String,
    blocks: Option<SyncSender<Vec<u8>>>,
    compressing: Option<JoinHandle<io::Result<FinishedFile>>>,
}

impl LinesWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn begin() -> Result<Self, Error> {
        let (blocks, arrived) = mpsc::sync_channel(BLOCKS_WAITING_MAX);
        let compressing =
            thread::Builder::new().name("laneway-plan".into()).spawn(move || compress(&arrived));
        let compressing = compressing.map_err(|e| local("a thread", format!("can't be started: {e}")))?;
        Ok(Self {
            block: Vec::with_capacity(BLOCK_LEN),
            url: String::new(),
            blocks: Some(blocks),
            compressing: Some(compressing),
        })
    }

    /// Adds an object of a part.
    ///
    /// # Errors
    /// If the file can't be written.
    fn object(&mut self, action: PartAction, provider: Provider, meta: &ObjectMeta) -> Result<(), Error> {
        self.url.clear();
        let mut url = std::mem::take(&mut self.url);
        // Writing to a string can't fail.
        let _ = std::fmt::Write::write_fmt(&mut url, format_args!("{}://{}", provider.scheme(), meta.id));
        let row = Row {
            kind: "object",
            action: action.name(),
            url: &url,
            size: meta.size,
            generation: match &meta.version {
                Some(Version::Generation(generation)) => Some(*generation),
                _ => None,
            },
            etag: match &meta.version {
                Some(Version::ETag(etag)) => Some(etag),
                _ => None,
            },
            crc32c: meta.checksums.crc32c.map(|sum| STANDARD.encode(sum.to_be_bytes())),
            crc64nvme: meta.checksums.crc64nvme.map(|sum| STANDARD.encode(sum.to_be_bytes())),
            md5: meta.checksums.md5.map(|sum| STANDARD.encode(sum)),
            archived: meta.archived,
        };
        let written = self.line(&row);
        self.url = url;
        written
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(crate) fn line(&mut self, row: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.block, row).map_err(|e| local("a temporary file", e))?;
        self.block.push(b'\n');
        if self.block.len() >= BLOCK_LEN {
            self.pass()?;
        }
        Ok(())
    }

    fn pass(&mut self) -> Result<(), Error> {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK_LEN + (BLOCK_LEN >> 3)));
        let sent = self.blocks.as_ref().map(|blocks| blocks.send(block));
        // The thread has ended early, so joining it returns its error.
        if !matches!(sent, Some(Ok(()))) {
            self.blocks = None;
            return Err(self.join().err().unwrap_or_else(|| local("a temporary file", "can't be written")));
        }
        Ok(())
    }

    fn join(&mut self) -> Result<FinishedFile, Error> {
        let ended = self.compressing.take().map(JoinHandle::join);
        match ended {
            Some(Ok(Ok(file))) => Ok(file),
            Some(Ok(Err(e))) => Err(local("a temporary file", format!("can't be written: {e}"))),
            _ => Err(local("a temporary file", "can't be written, because its thread has ended")),
        }
    }

    /// Returns the finished file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(crate) fn finish(mut self) -> Result<FinishedFile, Error> {
        self.pass()?;
        self.blocks = None;
        self.join()
    }
}

fn compress(blocks: &Receiver<Vec<u8>>) -> io::Result<FinishedFile> {
    let mut file = NamedTempFile::new()?;
    let counted =
        CountedFile { file: file.as_file_mut(), size: 0, crc: Digest::new(CrcAlgorithm::Crc32Iscsi) };
    let mut encoder = zstd::Encoder::new(counted, 1)?;
    encoder.include_checksum(true)?;
    while let Ok(block) = blocks.recv() {
        encoder.write_all(&block)?;
    }
    let CountedFile { size, crc, .. } = encoder.finish()?;
    Ok(FinishedFile { size, crc32c: format!("{:08x}", crc.finalize()), file })
}

struct CountedFile<'a> {
    file: &'a mut File,
    size: u64,
    crc: Digest,
}

impl Write for CountedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.crc.update(bytes.get(..written).unwrap_or_default());
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A part that is being written.
pub(crate) struct OpenPart {
    pub(crate) action: PartAction,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    lines: LinesWriter,
}

impl OpenPart {
    /// Begins a part without rows.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn begin(action: PartAction) -> Result<Self, Error> {
        Ok(Self { action, rows: 0, bytes: 0, lines: LinesWriter::begin()? })
    }

    /// Counts an object, without writing its row.
    pub(crate) fn count(&mut self, object: &ObjectMeta) {
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(object.size);
    }

    /// Adds an object.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(crate) fn add(&mut self, provider: Provider, object: &ObjectMeta) -> Result<(), Error> {
        self.count(object);
        self.lines.object(self.action, provider, object)
    }

    /// Returns the part's entry in the index, and its file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(crate) fn finish(
        self,
        name: String,
        range: KeyRange,
        closes: bool,
    ) -> Result<(PartEntry, NamedTempFile), Error> {
        let Self { action, rows, bytes, lines } = self;
        let FinishedFile { file, size, crc32c } = lines.finish()?;
        Ok((PartEntry { name, action, range, rows, bytes, size, crc32c, closes }, file))
    }
}

/// Fetches a file of a plan into a temporary file, and compares it with its size and CRC32C in the plan.
///
/// # Errors
/// `ErrorKind::Refused` if the file is missing or was changed; else the store's errors.
pub(crate) fn fetch(
    files: &dyn PlanFiles,
    name: &str,
    (size, crc32c): (u64, &str),
) -> Result<NamedTempFile, Error> {
    let mut file =
        NamedTempFile::new().map_err(|e| local("a temporary file", format!("can't be made: {e}")))?;
    if !files.fetch(name, file.as_file_mut())? {
        return Err(refused(files.shown(name), "is missing, although the plan names it"));
    }
    let (found, sum) =
        summed(file.path()).map_err(|e| local("a temporary file", format!("can't be read: {e}")))?;
    if (found, sum.as_str()) != (size, crc32c) {
        let why = format!(
            "was changed or is damaged: it has {found} bytes and CRC32C {sum}, but the plan says {size} and {crc32c}"
        );
        return Err(refused(files.shown(name), why));
    }
    Ok(file)
}

fn summed(path: &Path) -> io::Result<(u64, String)> {
    struct Sum(Digest);
    impl Write for Sum {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sum = Sum(Digest::new(CrcAlgorithm::Crc32Iscsi));
    let size = io::copy(&mut File::open(path)?, &mut sum)?;
    Ok((size, format!("{:08x}", sum.0.finalize())))
}
