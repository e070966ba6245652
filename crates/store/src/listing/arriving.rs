//! A page of a listing, its objects handed over as they arrive: a page of a thousand takes several round trips to come, in
//! which the first of them can be on their way already.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use laneway_lanes::{Head, Response, Route, Sink, SinkError};
use tokio::sync::mpsc;

use crate::exchange::{Dialect, Exchange, Outgoing};
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
pub(crate) async fn arrive<D: Dialect, R: Reader>(
    exchange: &Exchange<'_, D>,
    outgoing: &Outgoing,
    list: &List,
    reader: impl Fn() -> R + Send + Sync,
    mut out: impl FnMut(Vec<ObjectMeta>) + Send,
) -> Result<Page, Error> {
    let (chunks, mut coming) = mpsc::unbounded_channel();
    let attempts = AtomicUsize::new(0);
    let sinks = || {
        let attempt = attempts.fetch_add(1, Relaxed);
        Box::new(Forward { attempt, taken: 0, out: chunks.clone() }) as Box<dyn Sink>
    };
    let mut carried = pin!(exchange.arrive(outgoing, &sinks));
    let mut answers: Vec<Option<Answer<R>>> = Vec::new();
    let mut seen = HashSet::new();
    let nonsense = |e| exchange.error(ErrorKind::Server, format!("the answer is no listing: {e}"));
    let mut take = |answers: &mut Vec<Option<Answer<R>>>, (attempt, bytes): (usize, Bytes)| {
        answers.resize_with(answers.len().max(attempt + 1), || None);
        let answer = answers[attempt].get_or_insert_with(|| Answer { reader: reader(), bytes: 0 });
        answer.bytes += bytes.len() as u64;
        let mut objects = answer.reader.take(list, &bytes).map_err(nonsense)?;
        objects.retain(|object| seen.insert(name(object)));
        if !objects.is_empty() {
            out(objects);
        }
        Ok(())
    };
    let sent = loop {
        tokio::select! {
            biased;
            Some(chunk) = coming.recv() => take(&mut answers, chunk)?,
            sent = &mut carried => break sent?,
        }
    };
    while let Ok(chunk) = coming.try_recv() {
        take(&mut answers, chunk)?;
    }
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

/// Hands the body on to the task that asked, where reading it delays nobody.
struct Forward {
    attempt: usize,
    taken: usize,
    out: mpsc::UnboundedSender<(usize, Bytes)>,
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
        // Where nobody reads any more the request is being cancelled.
        let _ = self.out.send((self.attempt, Bytes::copy_from_slice(bytes)));
        Ok(Route::Stay)
    }
}
