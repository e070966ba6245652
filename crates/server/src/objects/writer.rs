//! Writes bytes into the store.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::content::{Content, DataFile, Extent};
use super::disk::Disk;
use crate::checksum::{ComputedChecksums, Hasher, WantedChecksums};

/// The size in bytes of one segment of memory. Bodies are copied into segments, because several bodies share a network
/// buffer. A kilobyte that refers to such a buffer would keep all of it in memory.
const SEGMENT_BYTES: usize = 256 << 10;

/// Collects content and computes its checksums. If it is dropped before [`ContentWriter::finish`], its bytes are discarded.
pub(crate) struct ContentWriter {
    hasher: Hasher,
    sink: ContentSink,
    size: u64,
}

/// Content with its checksums, before it becomes an object.
#[derive(Debug, Clone)]
pub(crate) struct WrittenContent {
    pub(crate) content: Content,
    pub(crate) sums: ComputedChecksums,
}

enum ContentSink {
    Memory { segments: Vec<Bytes>, open: BytesMut, expected: Option<u64> },
    Disk { disk: Arc<Disk>, open: Option<(File, Arc<DataFile>)> },
}

impl ContentWriter {
    /// Returns a writer. `expected` is the number of bytes that will be written, if known. It is only a hint for the
    /// size of buffers.
    pub(crate) fn new(
        disk: Option<&Arc<Disk>>,
        wanted: WantedChecksums,
        expected: Option<u64>,
    ) -> ContentWriter {
        let sink = match disk {
            Some(disk) => ContentSink::Disk { disk: disk.clone(), open: None },
            None => ContentSink::Memory { segments: Vec::new(), open: BytesMut::new(), expected },
        };
        ContentWriter { hasher: Hasher::new(wanted), sink, size: 0 }
    }

    /// Returns a writer that continues at the end of a file.
    pub(crate) fn after(
        disk: &Arc<Disk>,
        wanted: WantedChecksums,
        data: Arc<DataFile>,
    ) -> io::Result<ContentWriter> {
        let mut file = File::options().read(true).append(true).open(&data.path)?;
        let (mut hasher, mut size, mut buffer) = (Hasher::new(wanted), 0, vec![0; SEGMENT_BYTES]);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                len => {
                    hasher.update(&buffer[..len]);
                    size += len as u64;
                }
            }
        }
        Ok(ContentWriter {
            hasher,
            sink: ContentSink::Disk { disk: disk.clone(), open: Some((file, data)) },
            size,
        })
    }

    /// Returns the data file, if the bytes go to one.
    pub(crate) fn data(&mut self) -> io::Result<Option<&Arc<DataFile>>> {
        match &mut self.sink {
            ContentSink::Memory { .. } => Ok(None),
            ContentSink::Disk { disk, open } => opened(disk, open).map(|(_, data)| Some(&*data)),
        }
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Writes bytes to memory or to a file. A write to a file blocks the thread, because it is short and usually goes
    /// to the page cache. Another thread would cost more than it saves.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.hasher.update(bytes);
        let mut written = self.size;
        self.size += bytes.len() as u64;
        match &mut self.sink {
            ContentSink::Memory { segments, open, expected } => {
                while !bytes.is_empty() {
                    if open.capacity() == open.len() {
                        if !open.is_empty() {
                            segments.push(std::mem::take(open).freeze());
                        }
                        // If no length was announced, each segment is as large as all earlier ones together.
                        let room = expected.map_or(written, |expected| expected.saturating_sub(written));
                        let least = bytes.len().min(SEGMENT_BYTES);
                        *open = BytesMut::with_capacity((room as usize).clamp(least, SEGMENT_BYTES));
                    }
                    let room = (open.capacity() - open.len()).min(bytes.len());
                    open.extend_from_slice(&bytes[..room]);
                    written += room as u64;
                    bytes = &bytes[room..];
                }
            }
            ContentSink::Disk { disk, open } => {
                let written = opened(disk, open)?.0.write_all(bytes);
                disk.noted(written)?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> WrittenContent {
        let extents = match self.sink {
            ContentSink::Memory { mut segments, open, .. } => {
                if !open.is_empty() {
                    segments.push(open.freeze());
                }
                segments.into_iter().map(Extent::Memory).collect()
            }
            ContentSink::Disk { open, .. } => {
                let open = open.filter(|_| self.size > 0);
                open.map(|(_, file)| Extent::File { file, offset: 0, len: self.size }).into_iter().collect()
            }
        };
        WrittenContent { content: Content { extents }, sums: self.hasher.finish() }
    }
}

/// Returns the file of a writer. The first call creates it.
fn opened<'a>(
    disk: &Disk,
    open: &'a mut Option<(File, Arc<DataFile>)>,
) -> io::Result<&'a mut (File, Arc<DataFile>)> {
    Ok(match open {
        Some(open) => open,
        None => open.insert(disk.create_data()?),
    })
}
