//! Blocking versions of the library's types, for threads that run no async tasks.
//!
//! For a call of a [`Bucket`](crate::Bucket), write `call()` instead of `.await`. A
//! [`Download`](crate::Download) implements [`Read`], and streams have a method `next_blocking`. The method
//! [`into_blocking`](crate::Reader::into_blocking) turns an async reader or writer into the [`Reader`] or
//! [`Writer`] of this module. Don't use any of these on a thread that runs async tasks, because the tasks
//! would stall.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use laneway_store::ObjectMeta;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::engine::runtime::block_on;
use crate::{Error, Written};

/// An object that is open for reads. It is the blocking version of [`crate::Reader`]. All reads return bytes
/// of the same version of the object.
#[derive(Debug)]
pub struct Reader(crate::Reader);

/// A writer that makes an object from the bytes written to it. It is the blocking version of
/// [`crate::Writer`]. If it is dropped before [`finish`](Self::finish), no object is written.
#[derive(Debug)]
pub struct Writer(crate::Writer);

impl crate::Reader {
    /// Returns the blocking version of this reader.
    pub fn into_blocking(self) -> Reader {
        Reader(self)
    }
}

impl crate::Writer {
    /// Returns the blocking version of this writer.
    pub fn into_blocking(self) -> Writer {
        Writer(self)
    }
}

impl Reader {
    /// Does the same as [`crate::Reader::deadline`].
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self(self.0.deadline(deadline))
    }

    /// Returns the object's metadata at the time it was opened.
    pub fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    /// Returns the object's size in bytes.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// Returns the bytes at the object's end that the opening request fetched: see
    /// [`Open::footer`](crate::Open::footer).
    pub fn footer(&self) -> &Bytes {
        self.0.footer()
    }

    /// Reads into `buffer` from `offset` on, and returns the number of bytes read. The number is less than
    /// the buffer's length only if the object ends earlier. After this method has returned, Laneway no longer
    /// writes to the buffer.
    ///
    /// # Errors
    /// The store's error; an object that was replaced since it was opened.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        block_on(self.0.read_to(offset, buffer))
    }

    /// Reads one range, as [`read_ranges`](Self::read_ranges) does.
    ///
    /// # Errors
    /// Fails as [`read_ranges`](Self::read_ranges) does.
    pub fn read_range(&self, range: Range<u64>) -> Result<Bytes, Error> {
        block_on(self.0.read_range(range))
    }

    /// Reads ranges together, as [`Bucket::get_ranges`](crate::Bucket::get_ranges) does.
    ///
    /// # Errors
    /// Fails as [`Bucket::get_ranges`](crate::Bucket::get_ranges) does, and if the object was replaced since
    /// it was opened.
    pub fn read_ranges(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<Vec<Bytes>, Error> {
        block_on(self.0.read_ranges(ranges))
    }

    /// Returns another reader of the same object, positioned at the beginning.
    pub fn again(&self) -> Self {
        Self(self.0.again())
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        block_on(self.0.read(buffer))
    }
}

impl Seek for Reader {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        block_on(self.0.seek(position))
    }
}

impl Writer {
    /// Completes the object, as [`crate::Writer::finish`] does.
    ///
    /// # Errors
    /// Fails as [`crate::Writer::finish`] does.
    pub fn finish(self) -> Result<Written, Error> {
        block_on(self.0.finish())
    }

    /// Abandons the object, as [`crate::Writer::abort`] does.
    pub fn abort(self) {
        block_on(self.0.abort());
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        block_on(self.0.write(bytes)).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    /// Does nothing, because the object becomes visible only at [`finish`](Self::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
