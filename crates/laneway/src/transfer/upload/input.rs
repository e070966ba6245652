//! Uploads standard input, pipes and devices. Reads them to their end in bounded memory.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use laneway_lanes::{Reservation, Segment};
use laneway_store::{Body, ObjectId, PutOptions, Store};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::parts::{Input, PartsUpload, ReadyPart};
use super::{put_verified, source};
use crate::Error;
use crate::content::checksum::{ChecksumHasher, ChecksumSet, RangeChecksums};
use crate::job::running::{JobState, TransferOutcome};
use crate::plan::parts::{PART_USUAL, StreamPartSizes};

/// The number of bytes that are read at a time from the input, or from a temporary file.
const READ: usize = 256 << 10;

/// An input that is read to its end.
pub(crate) struct InputStream {
    pub(crate) name: String,
    pub(crate) input: Box<dyn Read + Send>,
    /// The number of bytes that the job's progress has already counted as found.
    pub(crate) found: u64,
}

/// Uploads the bytes of a stream. A stream that isn't longer than a part of usual size ([`PART_USUAL`]) takes
/// one request. `expected` is the stream's length, if it is known.
///
/// # Errors
/// The store's or the input's error.
pub(crate) async fn upload(
    job: &JobState,
    store: &Store,
    stream: InputStream,
    id: &ObjectId,
    options: &PutOptions,
    expected: Option<u64>,
) -> Result<TransferOutcome, Error> {
    let InputStream { name, input, found } = stream;
    let reader = ReaderThread::start(name, input)?;
    let memory = job.engine.lanes.memory();
    let held = job.unless_cancelled(memory.reserve(PART_USUAL as usize)).await?;
    let first = job.unless_cancelled(reader.read(PART_USUAL, InputBuffer::Memory)).await??;
    if first.is_last {
        let (size, sums) = (first.run.len, first.run.checksums());
        let bytes = match first.body.segments() {
            [Segment::Memory(bytes)] => bytes.clone(),
            _ => Bytes::new(),
        };
        let put = put_verified(&job.engine.files, store, id, bytes, &sums, options);
        let sent = job.unless_cancelled(put).await??;
        job.progress.sized(size.saturating_sub(found));
        job.progress.moved(size.max(found));
        drop(held);
        return Ok(sent.moved);
    }
    let begun = ReadyPart { held: Some(Arc::new(held)), ..first };
    let state = Mutex::new(InputState { number: 0, first: Some(begun), is_ended: false, found });
    let cut = StreamPartSizes::of(store, expected);
    let input = StreamInput { job, reader, cut, state };
    let moved = PartsUpload::new(job, store, id, options, None).send(None, &input).await?.moved;
    // A compressed stream has fewer bytes than the file whose size was counted as found. Count the difference
    // as moved, so that the progress is complete.
    job.progress.moved(input.state.into_inner().found);
    Ok(moved)
}

struct StreamInput<'a> {
    job: &'a JobState,
    reader: ReaderThread,
    cut: StreamPartSizes,
    state: Mutex<InputState>,
}

struct InputState {
    number: u32,
    first: Option<ReadyPart>,
    is_ended: bool,
    /// The number of bytes that the job's progress has counted as found, but that have not been read yet.
    found: u64,
}

impl InputState {
    fn read(&mut self, job: &JobState, len: u64) {
        let known = len.min(self.found);
        self.found -= known;
        job.progress.sized(len - known);
    }
}

impl Input for StreamInput<'_> {
    type Begun = ReadyPart;

    async fn next(&self) -> Result<Option<ReadyPart>, Error> {
        let mut state = self.state.lock().await;
        if state.is_ended {
            return Ok(None);
        }
        state.number += 1;
        let len = self.cut.len(state.number).ok_or_else(|| self.too_long())?;
        let begun = state.first.take();
        let rest = len - begun.as_ref().map_or(0, |first| first.run.len);
        let part = match begun {
            Some(first) if rest == 0 => first,
            begun => {
                // Read the part into memory only if none of it has been read yet and it isn't larger than usual.
                // Otherwise read the missing bytes into a temporary file.
                let room = if begun.is_none() && rest <= PART_USUAL {
                    InputBuffer::Memory
                } else {
                    InputBuffer::File
                };
                let held = match room {
                    InputBuffer::Memory => Some(self.job.engine.lanes.memory().reserve(rest as usize).await),
                    InputBuffer::File => None,
                };
                let part = self.reader.read(rest, room).await?;
                let part = ReadyPart { held: held.map(Arc::<Reservation>::new), ..part };
                match begun {
                    Some(first) => joined(first, part),
                    None => part,
                }
            }
        };
        state.is_ended = part.is_last;
        state.read(self.job, part.run.len);
        Ok((part.run.len > 0).then_some(part))
    }

    async fn prepare(&self, begun: ReadyPart, wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        // While the part was read, only its CRC32C was computed, because the upload's checksums weren't known
        // yet. If the upload needs another checksum, read the part again.
        if wanted == ChecksumSet::CRC32C {
            return Ok(begun);
        }
        let body = begun.body.clone();
        let hashed = self.job.engine.files.run(move || hashed(&body, wanted)).await?;
        let run = hashed.map_err(|e| Error::local("a temporary file", "can't be read", e))?;
        Ok(ReadyPart { run, ..begun })
    }

    async fn check(&self, _whole: &RangeChecksums) -> Result<(), Error> {
        Ok(())
    }

    fn rewind(&self) -> bool {
        false
    }
}

impl StreamInput<'_> {
    fn too_long(&self) -> Error {
        let held = self.cut.holds();
        let message = format!(
            "is longer than the {held} bytes that its upload can hold; announce the length with --expect-size"
        );
        Error::refused(&self.reader.name, message)
    }
}

/// Joins the start of a part with its rest, which is in a temporary file.
fn joined(first: ReadyPart, next: ReadyPart) -> ReadyPart {
    let body = next.body.segments().iter().fold(first.body, |body, segment| body.and(segment.clone()));
    ReadyPart { body, run: first.run.then(next.run), is_last: next.is_last, held: first.held }
}

/// Computes the checksums of a part's body, from memory and temporary files.
fn hashed(body: &Body, wanted: ChecksumSet) -> io::Result<RangeChecksums> {
    let mut hashing = ChecksumHasher::new(wanted);
    for segment in body.segments() {
        match segment {
            Segment::Memory(bytes) => hashing.update(bytes),
            Segment::File { file, offset, len } => {
                let mut buffer = vec![0; READ.min(*len as usize)];
                let mut at = 0;
                while at < *len {
                    let want = READ.min((len - at) as usize);
                    file.read_exact_at(&mut buffer[..want], offset + at)?;
                    hashing.update(&buffer[..want]);
                    at += want as u64;
                }
            }
        }
    }
    Ok(hashing.finish())
}

/// A stream that is read one byte ahead. So at the end of each part, Laneway knows whether another part
/// follows.
struct PeekedStream<R> {
    input: R,
    byte: Option<u8>,
}

impl<R: Read> PeekedStream<R> {
    fn is_over(&mut self) -> io::Result<bool> {
        let mut byte = [0];
        while self.byte.is_none() {
            match self.input.read(&mut byte) {
                Ok(0) => return Ok(true),
                Ok(_) => self.byte = Some(byte[0]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }
}

impl<R: Read> Read for PeekedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.byte, buffer.first_mut()) {
            (Some(byte), Some(first)) => {
                *first = byte;
                self.byte = None;
                Ok(1)
            }
            _ => self.input.read(buffer),
        }
    }
}

/// The buffer that holds a part's bytes until they are sent: memory or a temporary file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InputBuffer {
    Memory,
    File,
}

type BufferRequest = (u64, InputBuffer, oneshot::Sender<Result<ReadyPart, Error>>);

/// A dedicated thread that reads the input, because a read of a pipe may block forever.
struct ReaderThread {
    asks: mpsc::Sender<BufferRequest>,
    name: String,
}

impl ReaderThread {
    fn start(name: String, input: Box<dyn Read + Send>) -> Result<Self, Error> {
        let mut input = PeekedStream { input, byte: None };
        let (asks, mut asked) = mpsc::channel::<BufferRequest>(1);
        let named = name.clone();
        let serve = move || {
            while let Some((len, room, answer)) = asked.blocking_recv() {
                let part = match room {
                    InputBuffer::Memory => in_memory(&mut input, len),
                    InputBuffer::File => in_file(&mut input, len),
                };
                let _ = answer.send(part.map_err(|e| source::unwrapped(&named, e)));
            }
        };
        std::thread::Builder::new()
            .name("laneway-read".into())
            .spawn(serve)
            .map_err(|e| Error::local(&name, "can't be read, because no thread could be started", e))?;
        Ok(Self { asks, name })
    }

    /// Reads `len` bytes, or fewer at the end of the input.
    async fn read(&self, len: u64, room: InputBuffer) -> Result<ReadyPart, Error> {
        let gone = || Error::source(&self.name, "the reading thread has ended");
        let (answer, read) = oneshot::channel();
        self.asks.send((len, room, answer)).await.map_err(|_| gone())?;
        read.await.map_err(|_| gone())?
    }
}

/// Reads the next `len` bytes, or fewer at the end of the input, into the memory that was reserved for them.
/// The vector gets its capacity at once, because a growing vector could take twice as much. Unused capacity
/// costs nothing, because its pages are never touched.
fn filled<R: Read>(input: R, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len as usize);
    input.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn in_memory<R: Read>(input: &mut PeekedStream<R>, len: u64) -> io::Result<ReadyPart> {
    let bytes = filled(&mut *input, len)?;
    let run = RangeChecksums::of(&bytes, ChecksumSet::CRC32C);
    let is_last = run.len < len || input.is_over()?;
    Ok(ReadyPart { body: Body::from(Bytes::from(bytes)), is_last, run, held: None })
}

/// Reads a part that is too large for the memory budget into a temporary file without a name. The bytes must
/// be kept, because a failed request sends them again, and the input can't be read twice.
fn in_file<R: Read>(input: &mut PeekedStream<R>, len: u64) -> io::Result<ReadyPart> {
    let mut file = tempfile::tempfile()?;
    let mut hashing = ChecksumHasher::new(ChecksumSet::CRC32C);
    let mut buffer = vec![0; READ];
    while hashing.len() < len {
        let want = READ.min((len - hashing.len()) as usize);
        match input.read(&mut buffer[..want]) {
            Ok(0) => break,
            Ok(n) => {
                file.write_all(&buffer[..n])?;
                hashing.update(&buffer[..n]);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    file.rewind()?;
    let run = hashing.finish();
    let body = Body::file(Arc::<File>::new(file), 0, run.len);
    let is_last = run.len < len || input.is_over()?;
    Ok(ReadyPart { body, is_last, run, held: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_in_a_file_is_the_same_as_one_in_memory() {
        let bytes: Vec<u8> = (0..3 * READ + 17).map(|i| (i % 253) as u8).collect();
        let memory = in_memory(&mut ahead(&bytes), 1 << 20).unwrap();
        let file = in_file(&mut ahead(&bytes), 1 << 20).unwrap();
        assert_eq!((memory.run, memory.body.len()), (file.run, file.body.len()));
        let Some(Segment::File { file, .. }) = file.body.segments().first() else { panic!() };
        let mut read = Vec::new();
        (&**file).read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
    }

    /// A stream whose reads return a few bytes each, as a pipe's do, so that a vector would have to grow
    /// often.
    struct Trickle(usize);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(1000).min(self.0);
            self.0 -= n;
            Ok(n)
        }
    }

    #[test]
    fn a_part_in_memory_takes_no_more_than_was_reserved_for_it() {
        for there in [10, PART_USUAL as usize, 2 * PART_USUAL as usize] {
            let bytes = filled(Trickle(there), PART_USUAL).unwrap();
            assert_eq!(
                (bytes.len(), bytes.capacity()),
                (there.min(PART_USUAL as usize), PART_USUAL as usize)
            );
        }
    }

    #[test]
    fn parts_stop_at_their_length_and_at_the_end() {
        let mut input = ahead(b"0123456789");
        let ends = |part: ReadyPart| (part.run.len, part.is_last);
        assert_eq!(ends(in_memory(&mut input, 4).unwrap()), (4, false));
        assert_eq!(ends(in_file(&mut input, 4).unwrap()), (4, false));
        assert_eq!(ends(in_memory(&mut input, 4).unwrap()), (2, true));
        assert_eq!(ends(in_file(&mut input, 4).unwrap()), (0, true));
    }

    #[test]
    fn a_stream_that_ends_where_a_part_ends_is_known_to_be_over() {
        for read in [in_memory, in_file] {
            let mut input = ahead(b"01234567");
            assert!(!read(&mut input, 4).unwrap().is_last);
            let last = read(&mut input, 4).unwrap();
            assert!(last.is_last && last.run == RangeChecksums::of(b"4567", ChecksumSet::CRC32C));
        }
    }

    #[test]
    fn a_piece_with_another_behind_it_is_both() {
        let bytes: Vec<u8> = (0..2 * READ + 9).map(|i| (i % 251) as u8).collect();
        let mut input = ahead(&bytes);
        let first = in_memory(&mut input, 100).unwrap();
        let both = joined(first, in_file(&mut input, 1 << 20).unwrap());
        assert!(both.is_last && both.run == RangeChecksums::of(&bytes, ChecksumSet::CRC32C));
        let wanted = ChecksumSet { crc64nvme: true, md5: true, ..ChecksumSet::CRC32C };
        assert_eq!(hashed(&both.body, wanted).unwrap(), RangeChecksums::of(&bytes, wanted));
    }

    fn ahead(bytes: &[u8]) -> PeekedStream<&[u8]> {
        PeekedStream { input: bytes, byte: None }
    }
}
