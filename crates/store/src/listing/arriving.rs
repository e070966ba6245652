//! A page of a listing, its objects handed over as they arrive: a page of a thousand takes several round trips to come, in
//! which the first of them can be on their way already.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use laneway_lanes::{Head, Response, Route, Sink, SinkError};
use tokio::sync::Notify;

use super::{ENTRIES_MAX, TOO_MANY};
use crate::exchange::{Exchange, HttpDialect, Outgoing};
use crate::secrets::Secrets;
use crate::{Error, ErrorKind, List, ObjectMeta, Page};

/// What a page is taken for until it has come: small, beside which bulk makes way.
pub(crate) const PAGE_ASSUMED: u64 = 64 * 1024;

/// Reads one answer chunk by chunk.
pub(crate) trait Reader {
    /// The objects that are whole with these bytes, in the page's order.
    fn take(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String>;

    /// The rest of the page.
    fn end(self, list: &List) -> Result<Page, String>;
}

/// Carries a listing through its attempts. `out` is handed each object once, whatever attempts bring it; the page that is
/// returned has those that could not be handed over before its end.
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
        Box::new(Forward { attempt, taken: 0, out: Arc::clone(&arrived) }) as Box<dyn Sink>
    };
    let shown = Arc::<Mutex<Secrets>>::default();
    let mut carried = pin!(exchange.arrive(outgoing, &sinks, &shown));
    let mut answers: Vec<Option<Answer<R>>> = Vec::new();
    let mut seen = HashSet::new();
    let nonsense = |e| {
        // It is the peer's words in part.
        let shown: &Secrets = &shown.lock().unwrap_or_else(PoisonError::into_inner);
        exchange.error(ErrorKind::Server, shown.cleared(format!("the answer is no listing: {e}")))
    };
    let mut take = |answers: &mut Vec<Option<Answer<R>>>, chunks: VecDeque<(usize, Vec<u8>)>| {
        for (attempt, bytes) in chunks {
            if attempt >= answers.len() {
                answers.resize_with(attempt + 1, || None);
                // What came of those that this one is made in place of isn't read any more.
                let gone = answers.len().saturating_sub(ATTEMPTS_AT_ONCE);
                answers[..gone].fill_with(|| None);
            }
            let answer = answers[attempt].get_or_insert_with(|| Answer { reader: reader(), bytes: 0 });
            answer.bytes += bytes.len() as u64;
            for bytes in bytes.chunks(READ_MAX) {
                let mut objects = answer.reader.take(list, bytes).map_err(nonsense)?;
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
    // Of several attempts the one that brought the answer.
    let whole = answers.into_iter().flatten().rfind(|answer| answer.bytes == sent.response.sunk);
    let reader = whole.map_or_else(&reader, |answer| answer.reader);
    let nonsense = |e| exchange.nonsense(&sent, format!("the answer is no listing: {e}"));
    let mut page = reader.end(list).map_err(nonsense)?;
    page.objects.retain(|object| seen.insert(name(object)));
    Ok(page)
}

/// What tells an object from the others of its page.
fn name(object: &ObjectMeta) -> String {
    match &object.id.version {
        None => object.id.key.clone(),
        Some(version) => format!("{version}#{}", object.id.key),
    }
}

/// What one attempt has brought.
struct Answer<R> {
    reader: R,
    bytes: u64,
}

/// How much is read at a time of what has come, so that no more entries are made of a page than it may have.
const READ_MAX: usize = 64 << 10;

/// Attempts of one listing that run side by side, hedges among them, and one that is about to end.
const ATTEMPTS_AT_ONCE: usize = 3;

/// What has come and wasn't read yet, with the attempt that brought it. What one brings in a row is put together: a body that comes byte by
/// byte takes no more memory than any other.
#[derive(Default)]
struct Arrived {
    chunks: Mutex<VecDeque<(usize, Vec<u8>)>>,
    more: Notify,
}

impl Arrived {
    fn add(&self, attempt: usize, bytes: &[u8]) {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        match chunks.back_mut() {
            Some((last, chunk)) if *last == attempt => chunk.extend_from_slice(bytes),
            _ => chunks.push_back((attempt, bytes.to_vec())),
        }
        drop(chunks);
        self.more.notify_one();
    }

    fn take(&self) -> VecDeque<(usize, Vec<u8>)> {
        std::mem::take(&mut *self.chunks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Hands the body on to the task that asked, where reading it delays nobody.
struct Forward {
    attempt: usize,
    taken: usize,
    out: Arc<Arrived>,
}

impl Sink for Forward {
    fn begin(&mut self, _: &Head) -> Result<Route, SinkError> {
        Ok(Route::Stay)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        self.taken += bytes.len();
        if self.taken > Response::COLLECTED_BODY_MAX {
            return Err(format!("the listing is longer than {} bytes", Response::COLLECTED_BODY_MAX).into());
        }
        self.out.add(self.attempt, bytes);
        Ok(Route::Stay)
    }
}
