//! Reads a page of a listing, and hands over its objects as they arrive. A page of a thousand objects takes several
//! round trips to arrive, and transfers of the first ones can start meanwhile.

use std::collections::{HashSet, VecDeque};
use std::io::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::write::GzDecoder;
use laneway_lanes::{Head, Response, Route, Sink, SinkError};
use tokio::sync::Notify;

use super::{ENTRIES_MAX, TOO_MANY};
use crate::exchange::{Exchange, HttpDialect, Outgoing};
use crate::secrets::Secrets;
use crate::{Error, ErrorKind, List, ObjectMeta, Page};

/// The assumed size of a page until it has arrived. It counts as small, so bulk yields to it.
pub(crate) const PAGE_ASSUMED: u64 = 64 * 1024;

/// Reads one answer chunk by chunk.
pub(crate) trait Reader {
    /// Returns the objects that are complete with these bytes, in the page's order.
    fn take(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String>;

    /// Returns the rest of the page.
    fn end(self, list: &List) -> Result<Page, String>;
}

/// Sends a listing through its attempts. `out` gets each object once, whichever attempt brings it. The returned page
/// has the objects that arrived at its end.
pub(crate) async fn arrive<D: HttpDialect, R: Reader>(
    exchange: &Exchange<'_, D>,
    outgoing: &Outgoing,
    list: &List,
    reader: impl Fn() -> R + Send + Sync,
    mut out: impl FnMut(Vec<ObjectMeta>) + Send,
) -> Result<Page, Error> {
    let arrived = Arc::<Arrived>::default();
    let attempts = AtomicUsize::new(0);
    let sinks = || {
        let attempt = attempts.fetch_add(1, Relaxed);
        let out = Arc::clone(&arrived);
        Box::new(Forward { attempt, is_gzip: false, taken: 0, out }) as Box<dyn Sink>
    };
    let shown = Arc::<Mutex<Secrets>>::default();
    let mut carried = pin!(exchange.arrive(outgoing, &sinks, &shown));
    let mut answers: Vec<Option<Answer<R>>> = Vec::new();
    let mut seen = HashSet::new();
    let nonsense = |e| {
        // The message contains parts of the server's answer.
        let shown: &Secrets = &shown.lock().unwrap_or_else(PoisonError::into_inner);
        exchange.error(ErrorKind::Server, shown.cleared(format!("the answer isn't a listing: {e}")))
    };
    let mut take = |answers: &mut Vec<Option<Answer<R>>>, chunks: VecDeque<AnswerBytes>| {
        for AnswerBytes { attempt, is_gzip, bytes } in chunks {
            if attempt >= answers.len() {
                answers.resize_with(attempt + 1, || None);
                // The attempts that this one replaces are no longer read.
                let gone = answers.len().saturating_sub(ATTEMPTS_AT_ONCE);
                answers[..gone].fill_with(|| None);
            }
            let answer = answers[attempt].get_or_insert_with(|| Answer {
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
    // Take the attempt that brought the answer.
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

/// The answer of one attempt so far.
struct Answer<R> {
    reader: R,
    bytes: u64,
    unpacking: Option<GzDecoder<Vec<u8>>>,
    /// The bytes that were packed as gzip.
    unpacked: usize,
}

impl<R: Reader> Answer<R> {
    fn read(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String> {
        let Some(unpacking) = &mut self.unpacking else { return self.reader.take(list, bytes) };
        unpacking.write_all(bytes).map_err(|e| e.to_string())?;
        let plain = std::mem::take(unpacking.get_mut());
        self.unpacked += plain.len();
        if self.unpacked > Response::COLLECTED_BODY_MAX {
            return Err(too_long());
        }
        self.reader.take(list, &plain)
    }

    /// Returns the rest of the page. A packed page has a checksum at its end.
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
    format!("the listing is longer than {} bytes", Response::COLLECTED_BODY_MAX)
}

/// The bytes parsed at a time, so that a page with too many entries is noticed early.
const READ_MAX: usize = 64 << 10;

/// The packed bytes read at a time. At most a thousand times as many may come of them.
const UNPACKED_MAX: usize = 4 << 10;

/// The most concurrent attempts of one listing: the attempt, its hedge, and one that is about to end.
const ATTEMPTS_AT_ONCE: usize = 3;

/// The bytes that have arrived and haven't been read yet, with their attempts. Consecutive chunks of one attempt are
/// joined, so a body that arrives byte by byte takes no more memory.
#[derive(Default)]
struct Arrived {
    chunks: Mutex<VecDeque<AnswerBytes>>,
    more: Notify,
}

/// Bytes of one attempt's answer.
struct AnswerBytes {
    attempt: usize,
    is_gzip: bool,
    bytes: Vec<u8>,
}

impl Arrived {
    fn add(&self, attempt: usize, is_gzip: bool, bytes: &[u8]) {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        match chunks.back_mut() {
            Some(chunk) if chunk.attempt == attempt => chunk.bytes.extend_from_slice(bytes),
            _ => chunks.push_back(AnswerBytes { attempt, is_gzip, bytes: bytes.to_vec() }),
        }
        drop(chunks);
        self.more.notify_one();
    }

    fn take(&self) -> VecDeque<AnswerBytes> {
        std::mem::take(&mut *self.chunks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Passes the body on to the task that made the request, where parsing delays no other request.
struct Forward {
    attempt: usize,
    is_gzip: bool,
    taken: usize,
    out: Arc<Arrived>,
}

impl Sink for Forward {
    fn begin(&mut self, head: &Head) -> Result<Route, SinkError> {
        self.is_gzip = head.header("content-encoding") == Some("gzip");
        Ok(Route::Stay)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        self.taken += bytes.len();
        if self.taken > Response::COLLECTED_BODY_MAX {
            return Err(too_long().into());
        }
        self.out.add(self.attempt, self.is_gzip, bytes);
        Ok(Route::Stay)
    }
}
