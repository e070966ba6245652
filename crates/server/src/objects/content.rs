//! The bytes of an object. They consist of extents in memory or in files, which objects share and which never change.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;

/// The maximum number of bytes of one read from a file. Larger reads weren't faster, because the page cache has the
/// bytes.
const FILE_READ_BYTES: u64 = 64 << 10;

/// The bytes of extents, joined end to end. Composing, completing and copying make new lists of extents, without
/// copying bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) extents: Vec<Extent>,
}

/// One extent of bytes.
#[derive(Debug, Clone)]
pub(crate) enum Extent {
    Memory(Bytes),
    File { file: Arc<DataFile>, offset: u64, len: u64 },
}

/// A data file. It is removed when the last content that refers to it is dropped, but not after the store has closed.
#[derive(Debug)]
pub(crate) struct DataFile {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) store_open: Arc<AtomicBool>,
}

impl DataFile {
    /// Returns the size of the file in bytes.
    pub(crate) fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |data| data.len())
    }
}

impl Drop for DataFile {
    fn drop(&mut self) {
        if self.store_open.load(Relaxed) {
            // If the file can't be removed now, no object refers to it any more, so the next start of the server
            // removes it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Extent {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Extent::Memory(bytes) => bytes.len() as u64,
            Extent::File { len, .. } => *len,
        }
    }

    fn part(&self, range: Range<u64>) -> Extent {
        match self {
            Extent::Memory(bytes) => Extent::Memory(bytes.slice(range.start as usize..range.end as usize)),
            Extent::File { file, offset, .. } => Extent::File {
                file: file.clone(),
                offset: offset + range.start,
                len: range.end - range.start,
            },
        }
    }
}

impl Content {
    pub(crate) fn size(&self) -> u64 {
        self.extents.iter().map(Extent::len).sum()
    }

    /// Returns true if some of the bytes are in this file.
    pub(crate) fn is_in(&self, data: &Arc<DataFile>) -> bool {
        self.extents
            .iter()
            .any(|extent| matches!(extent, Extent::File { file, .. } if Arc::ptr_eq(file, data)))
    }

    /// Returns a half-open range of the bytes. A range beyond the end is cut off.
    pub(crate) fn range(&self, range: Range<u64>) -> Content {
        let mut extents = Vec::new();
        let mut start = 0;
        for extent in &self.extents {
            let end = start + extent.len();
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                extents.push(if to - from == extent.len() {
                    extent.clone()
                } else {
                    extent.part(from - start..to - start)
                });
            }
            start = end;
        }
        Content { extents }
    }

    pub(crate) fn reader(self) -> ContentReader {
        ContentReader { left: self.size(), extents: self.extents.into_iter(), open: None }
    }
}

/// Reads content from its beginning to its end. Reads from files block the thread, because they are short and usually
/// come from the page cache. Moving them to another thread would cost more than it saves.
#[derive(Debug)]
pub(crate) struct ContentReader {
    left: u64,
    extents: std::vec::IntoIter<Extent>,
    open: Option<(File, u64)>,
}

impl ContentReader {
    /// Returns the number of bytes that haven't been read yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the next bytes, never empty, or `None` at the end.
    pub(crate) fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some((file, left)) = &mut self.open {
                if *left > 0 {
                    let mut chunk = vec![0; (*left).min(FILE_READ_BYTES) as usize];
                    *left -= chunk.len() as u64;
                    self.left -= chunk.len() as u64;
                    return Some(file.read_exact(&mut chunk).map(|()| chunk.into()));
                }
                self.open = None;
            }
            match self.extents.next()? {
                Extent::Memory(bytes) if bytes.is_empty() => {}
                Extent::Memory(bytes) => {
                    self.left -= bytes.len() as u64;
                    return Some(Ok(bytes));
                }
                Extent::File { file, offset, len } => {
                    let opened = File::open(&file.path)
                        .and_then(|mut file| file.seek(SeekFrom::Start(offset)).map(|_| file));
                    match opened {
                        Ok(opened) => self.open = Some((opened, len)),
                        Err(error) => return Some(Err(error)),
                    }
                    // Dropping `file` here may remove the data file. The reader can still read it, because its open
                    // file stays readable after the removal.
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(parts: &[&'static str]) -> Content {
        Content {
            extents: parts.iter().map(|part| Extent::Memory(Bytes::from_static(part.as_bytes()))).collect(),
        }
    }

    fn text(content: Content) -> String {
        let mut reader = content.reader();
        let mut text = Vec::new();
        while let Some(bytes) = reader.next() {
            text.extend_from_slice(&bytes.unwrap());
        }
        assert_eq!(reader.left(), 0);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_range_crosses_extents() {
        let whole = content(&["abc", "", "defg", "h"]);
        assert_eq!(text(whole.range(2..5)), "cde");
        assert_eq!(text(whole.range(0..100)), "abcdefgh");
        assert_eq!(text(whole.range(3..3)), "");
        assert_eq!(whole.range(7..8).size(), 1);
    }

    #[test]
    fn a_file_is_read_in_its_range_and_removed_with_its_last_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, "0123456789").unwrap();
        let store_open = Arc::new(AtomicBool::new(true));
        let file = Arc::new(DataFile { path: path.clone(), name: "data".to_owned(), store_open });
        let whole = Content { extents: vec![Extent::File { file, offset: 2, len: 6 }] };
        let part = whole.range(1..3);
        drop(whole);
        assert_eq!(text(part), "34");
        assert!(!path.exists());
    }
}
