//! Standard input, pipes and devices: read to their end in bounded memory.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::sync::Arc;

use bytes::Bytes;
use laneway_lanes::Reservation;
use laneway_store::{Body, Checksums, ObjectId, PutOptions, Store};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::parts::{Input, Parts, Piece};
use super::{source, verify};
use crate::Error;
use crate::checksum::{Hashing, Run, Wanted};
use crate::plan::parts::{PART_USUAL, growing_part_len};
use crate::work::{Moved, Work};

/// How much is read at a time into a file.
const READ: usize = 256 << 10;

/// Something that is read to its end.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) input: Box<dyn Read + Send>,
    /// How many of its bytes the job's progress has found already.
    pub(crate) found: u64,
}

/// Uploads what a stream gives. One usual part's worth or less is one request.
///
/// # Errors
/// What the store or the input says.
pub(crate) async fn upload(
    work: &Work,
    store: &Store,
    stream: Stream,
    id: &ObjectId,
    options: &PutOptions,
) -> Result<Moved, Error> {
    let Stream { name, input, found } = stream;
    let reader = Reader::start(name, input)?;
    let memory = work.engine.lanes.memory();
    let held = work.unless_cancelled(memory.reserve(PART_USUAL as usize)).await?;
    let first = work.unless_cancelled(reader.read(PART_USUAL)).await??;
    if first.run.len < PART_USUAL {
        let (size, sums) = (first.run.len, first.run.checksums());
        let meta = work.unless_cancelled(store.put(id, first.body, &sums, options)).await??;
        drop(held);
        work.progress.sized(size.saturating_sub(found));
        work.progress.moved(size.max(found));
        let verified = verify(store, &meta, size, &Checksums { md5: None, ..sums })?;
        return Ok(Moved { bytes: size, attempts: 1, verified });
    }
    let begun = Piece { held: Some(Arc::new(held)), ..first };
    let state = Mutex::new(State { number: 0, first: Some(begun), is_ended: false, found });
    let input = StreamInput { work, reader, state };
    let moved = Parts { work, store, id, options, unfinished: None }.send(None, &input).await?;
    // What compressing has saved is done with too.
    work.progress.moved(input.state.into_inner().found);
    Ok(moved)
}

/// Parts of a stream.
struct StreamInput<'a> {
    work: &'a Work,
    reader: Reader,
    state: Mutex<State>,
}

struct State {
    number: u32,
    first: Option<Piece>,
    is_ended: bool,
    /// How many of the bytes to come the job's progress has found already.
    found: u64,
}

impl State {
    fn read(&mut self, work: &Work, len: u64) {
        let known = len.min(self.found);
        self.found -= known;
        work.progress.sized(len - known);
    }
}

impl Input for StreamInput<'_> {
    type Begun = Piece;

    async fn next(&self) -> Result<Option<Piece>, Error> {
        let mut state = self.state.lock().await;
        state.number += 1;
        if let Some(first) = state.first.take() {
            state.read(self.work, first.run.len);
            return Ok(Some(first));
        }
        if state.is_ended {
            return Ok(None);
        }
        let len = growing_part_len(state.number);
        let held = match len <= PART_USUAL {
            true => Some(self.work.engine.lanes.memory().reserve(len as usize).await),
            false => None,
        };
        let piece = self.reader.read(len).await?;
        state.is_ended = piece.run.len < len;
        state.read(self.work, piece.run.len);
        Ok((piece.run.len > 0).then(|| Piece { held: held.map(Arc::<Reservation>::new), ..piece }))
    }

    async fn piece(&self, begun: Piece) -> Result<Piece, Error> {
        Ok(begun)
    }

    async fn check(&self, _whole: &Run) -> Result<(), Error> {
        Ok(())
    }
}

type Asked = (u64, oneshot::Sender<Result<Piece, Error>>);

/// A thread that reads, because reading a pipe may take for ever.
struct Reader {
    asks: mpsc::Sender<Asked>,
    name: String,
}

impl Reader {
    fn start(name: String, mut input: Box<dyn Read + Send>) -> Result<Self, Error> {
        let (asks, mut asked) = mpsc::channel::<Asked>(1);
        let named = name.clone();
        let serve = move || {
            while let Some((len, answer)) = asked.blocking_recv() {
                let piece =
                    if len <= PART_USUAL { in_memory(&mut input, len) } else { in_file(&mut input, len) };
                let _ = answer.send(piece.map_err(|e| source::unwrapped(&named, e)));
            }
        };
        std::thread::Builder::new()
            .name("laneway-read".into())
            .spawn(serve)
            .map_err(|e| Error::local(&name, "can't be read: no thread", e))?;
        Ok(Self { asks, name })
    }

    /// Reads `len` bytes, or fewer at the end.
    async fn read(&self, len: u64) -> Result<Piece, Error> {
        let gone = || Error::source(&self.name, "the reading thread has ended");
        let (answer, read) = oneshot::channel();
        self.asks.send((len, answer)).await.map_err(|_| gone())?;
        read.await.map_err(|_| gone())?
    }
}

fn in_memory(input: &mut impl Read, len: u64) -> io::Result<Piece> {
    let mut bytes = Vec::new();
    input.take(len).read_to_end(&mut bytes)?;
    let run = Run::of(&bytes, Wanted::CRC32C);
    Ok(Piece { body: Body::from(Bytes::from(bytes)), is_last: run.len < len, run, held: None })
}

/// A part that is larger than memory allows goes to a nameless temporary file first: it may have to be sent again.
fn in_file(input: &mut impl Read, len: u64) -> io::Result<Piece> {
    let mut file = tempfile::tempfile()?;
    let mut hashing = Hashing::new(Wanted::CRC32C);
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
    Ok(Piece { body, is_last: run.len < len, run, held: None })
}

#[cfg(test)]
mod tests {
    use laneway_lanes::Segment;

    use super::*;

    #[test]
    fn a_part_in_a_file_is_the_same_as_one_in_memory() {
        let bytes: Vec<u8> = (0..3 * READ + 17).map(|i| (i % 253) as u8).collect();
        let memory = in_memory(&mut &*bytes, 1 << 20).unwrap();
        let file = in_file(&mut &*bytes, 1 << 20).unwrap();
        assert_eq!((memory.run, memory.body.len()), (file.run, file.body.len()));
        let Some(Segment::File { file, .. }) = file.body.segments().first() else { panic!() };
        let mut read = Vec::new();
        (&**file).read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
    }

    #[test]
    fn parts_stop_at_their_length_and_at_the_end() {
        let mut input = &b"0123456789"[..];
        assert_eq!(in_memory(&mut input, 4).unwrap().run.len, 4);
        assert_eq!(in_file(&mut input, 4).unwrap().run.len, 4);
        assert_eq!(in_memory(&mut input, 4).unwrap().run.len, 2);
        assert_eq!(in_file(&mut input, 4).unwrap().run.len, 0);
    }
}
