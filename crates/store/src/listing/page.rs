//! Reads a page of a listing, and passes its objects on as they arrive. A page of a thousand objects takes several
//! round trips to arrive, so transfers of the first objects can start earlier.

use std::collections::{HashSet, VecDeque};
use std::io::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::write::GzDecoder;
use laneway_lanes::{ResponseHead, Route, Sink, SinkError};
use tokio::sync::Notify;

use super::{ENTRIES_MAX, TOO_MANY};
use crate::exchange::{Exchange, HttpDialect, Outgoing};
use crate::secrets::Secrets;
use crate::{Error, ErrorKind, List, ObjectMeta, Page};

/// The assumed size of a page until it has arrived. Laneway treats a request of this size as small, and slows large
/// transfers down for it.
pub(crate) const PAGE_ASSUMED: u64 = 64 * 1024;

/// Parses one answer chunk by chunk.
pub(crate) trait PageParser {
    /// Adds bytes, and returns the objects that they complete, in the page's order.
    fn take(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String>;

    /// Returns the page, without the objects that [`take`](Self::take) has returned.
    fn end(self, list: &List) -> Result<Page, String>;
}

/// Requests a page of a listing, in several attempts if necessary. `out` gets each object once, even if several
/// attempts return it. The returned page has the objects that became complete only at its end.
pub(crate) async fn fetch_page<D: HttpDialect, R: PageParser>(
    exchange: &Exchange<'_, D>,
    outgoing: &Outgoing,
    list: &List,
    reader: impl Fn() -> R + Send + Sync,
    mut out: impl FnMut(Vec<ObjectMeta>) + Send,
) -> Result<Page, Error> {
    let arrived = Arc::<ChunkQueue>::default();
    let attempts = AtomicUsize::new(0);
    let sinks = || {
        let attempt = attempts.fetch_add(1, Relaxed);
        let out = Arc::clone(&arrived);
        Box::new(ChunkSink { attempt, is_gzip: false, taken: 0, out }) as Box<dyn Sink>
    };
    let shown = Arc::<Mutex<Secrets>>::default();
    let mut carried = pin!(exchange.send_to_sinks(outgoing, &sinks, &shown));
    let mut answers: Vec<Option<PartialPage<R>>> = Vec::new();
    let mut seen = HashSet::new();
    let nonsense = |e| {
        // The message quotes parts of the server's answer, which might repeat secrets.
        let shown: &Secrets = &shown.lock().unwrap_or_else(PoisonError::into_inner);
        exchange.error(ErrorKind::Server, shown.cleared(format!("the answer isn't a listing: {e}")))
    };
    let mut take = |answers: &mut Vec<Option<PartialPage<R>>>, chunks: VecDeque<PageChunk>| {
        for PageChunk { attempt, is_gzip, bytes } in chunks {
            if attempt >= answers.len() {
                answers.resize_with(attempt + 1, || None);
                // Older attempts than the last few have ended, so their parsers aren't needed any more.
                let gone = answers.len().saturating_sub(ATTEMPTS_AT_ONCE);
                answers[..gone].fill_with(|| None);
            }
            let answer = answers[attempt].get_or_insert_with(|| PartialPage {
                reader: reader(),
                bytes: 0,
                unpacking: is_gzip.then(|| GzDecoder::new(Vec::new())),
                unpacked: 0,
            });
            answer.bytes += bytes.len() as u64;
            for bytes in bytes.chunks(if is_gzip { UNPACKED_MAX } else { READ_MAX }) {
                let mut objects = answer.read(list, bytes).map_err(nonsense)?;
                objects.retain(|object| seen.insert(name(object)));
                if seen.len() > ENTRIES_MAX {
                    return Err(nonsense(TOO_MANY.to_owned()));
                }
                if !objects.is_empty() {
                    out(objects);
                }
            }
        }
        Ok(())
    };
    let sent = loop {
        tokio::select! {
            biased;
            () = arrived.more.notified() => take(&mut answers, arrived.take())?,
            sent = &mut carried => break sent?,
        }
    };
    take(&mut answers, arrived.take())?;
    // Find the attempt that delivered the complete answer: its number of bytes equals that of the final response.
    let whole = answers.into_iter().flatten().rfind(|answer| answer.bytes == sent.response.sunk);
    let nonsense = |e| exchange.nonsense(&sent, format!("the answer isn't a listing: {e}"));
    let mut page = match whole {
        Some(answer) => answer.end(list),
        None => reader().end(list),
    }
    .map_err(nonsense)?;
    page.objects.retain(|object| seen.insert(name(object)));
    Ok(page)
}

/// Returns a name that identifies an object within its page.
fn name(object: &ObjectMeta) -> String {
    match &object.id.version {
        None => object.id.key.clone(),
        Some(version) => format!("{version}#{}", object.id.key),
    }
}

/// The part of one attempt's answer that has arrived.
struct PartialPage<R> {
    reader: R,
    bytes: u64,
    unpacking: Option<GzDecoder<Vec<u8>>>,
    /// The number of bytes after decompression, if the answer is compressed with gzip.
    unpacked: usize,
}

impl<R: PageParser> PartialPage<R> {
    fn read(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String> {
        let Some(unpacking) = &mut self.unpacking else { return self.reader.take(list, bytes) };
        unpacking.write_all(bytes).map_err(|e| e.to_string())?;
        let plain = std::mem::take(unpacking.get_mut());
        self.unpacked += plain.len();
        if self.unpacked > PAGE_BYTES_MAX {
            return Err(too_long());
        }
        self.reader.take(list, &plain)
    }

    /// Returns the page without the objects that were passed on. For a gzip answer, it also checks the checksum at the
    /// end.
    fn end(mut self, list: &List) -> Result<Page, String> {
        let mut objects = Vec::new();
        if let Some(mut unpacking) = self.unpacking.take() {
            unpacking.try_finish().map_err(|e| e.to_string())?;
            objects = self.reader.take(list, unpacking.get_ref())?;
        }
        let page = self.reader.end(list)?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }
}

fn too_long() -> String {
    format!("the listing is longer than {} bytes", PAGE_BYTES_MAX)
}

/// The maximum size of a page in bytes, also after decompression.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// The maximum number of bytes that are parsed at a time, so that a page with too many entries is noticed early.
const READ_MAX: usize = 64 << 10;

/// The maximum number of compressed bytes that are read at a time. Decompression can make them about a thousand times
/// larger.
const UNPACKED_MAX: usize = 4 << 10;

/// The maximum number of concurrent attempts of one listing: the attempt, its hedge, and one that is about to end.
const ATTEMPTS_AT_ONCE: usize = 3;

/// The bytes that have arrived and haven't been parsed yet, with the number of their attempt. Consecutive chunks of one
/// attempt are joined. So a body that arrives in tiny chunks needs no additional memory for each of them.
#[derive(Default)]
struct ChunkQueue {
    chunks: Mutex<VecDeque<PageChunk>>,
    more: Notify,
}

/// Bytes of one attempt's answer.
struct PageChunk {
    attempt: usize,
    is_gzip: bool,
    bytes: Vec<u8>,
}

impl ChunkQueue {
    fn add(&self, attempt: usize, is_gzip: bool, bytes: &[u8]) {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        match chunks.back_mut() {
            Some(chunk) if chunk.attempt == attempt => chunk.bytes.extend_from_slice(bytes),
            _ => chunks.push_back(PageChunk { attempt, is_gzip, bytes: bytes.to_vec() }),
        }
        drop(chunks);
        self.more.notify_one();
    }

    fn take(&self) -> VecDeque<PageChunk> {
        std::mem::take(&mut *self.chunks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The sink of a listing's answer. It passes the body to the task that made the request. Parsing happens there, because
/// on the lane's thread it would delay other requests.
struct ChunkSink {
    attempt: usize,
    is_gzip: bool,
    taken: usize,
    out: Arc<ChunkQueue>,
}

impl Sink for ChunkSink {
    fn begin(&mut self, head: &ResponseHead) -> Result<Route, SinkError> {
        self.is_gzip = head.header("content-encoding") == Some("gzip");
        Ok(Route::Stay)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        self.taken += bytes.len();
        if self.taken > PAGE_BYTES_MAX {
            return Err(too_long().into());
        }
        self.out.add(self.attempt, self.is_gzip, bytes);
        Ok(Route::Stay)
    }
}
