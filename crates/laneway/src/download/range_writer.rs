//! Where the bytes of one slice go, and how a slice is brought whole over connections that break.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_store::{Breaks, Get, GetHedge, GetSink, ObjectId, ObjectMeta, Route, SinkError, Store, Version};

use super::claims::Claims;
use super::new_bytes::new_bytes;
use crate::checksum::{Run, Wanted};
use crate::folder::Staged;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::{Error, Progress};

/// How often a slice is asked for again without a single byte having come since the last time, in answers that were whole.
const FRUITLESS_MAX: u32 = 3;

/// The state of an object that all slices of it must be of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pinned {
    pub(crate) size: u64,
    pub(crate) version: Option<Version>,
}

impl Pinned {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self { size: meta.size, version: meta.version.clone() }
    }

    /// Whether an answer is of the same state. Where the store tells no version the size has to do.
    pub(crate) fn check(&self, meta: &ObjectMeta) -> Result<(), Error> {
        let is_other = match (&self.version, &meta.version) {
            (Some(ours), Some(theirs)) => ours != theirs,
            _ => false,
        };
        if is_other || meta.size != self.size {
            return Err(Error::integrity(meta.id.to_string(), "the object changed while it was read"));
        }
        Ok(())
    }
}

/// What takes the bytes of a slice.
#[derive(Debug)]
pub(crate) enum Into {
    /// Their place in a file.
    File(Arc<Staged>),
    /// Memory, which the caller has reserved.
    Memory(Vec<u8>),
}

/// A slice under way. It outlives the attempts that bring it.
#[derive(Debug)]
pub(crate) struct RangeWriter {
    state: Mutex<State>,
    pinned: Pinned,
    progress: Arc<Progress>,
}

#[derive(Debug)]
struct State {
    /// Which attempt may write. The sink of an earlier one may still be running on its lane.
    attempt: u32,
    at: u64,
    end: u64,
    claims: Claims,
    into: Into,
}

impl RangeWriter {
    pub(crate) fn new(
        range: Range<u64>,
        pinned: Pinned,
        wanted: Wanted,
        into: Into,
        progress: Arc<Progress>,
    ) -> Arc<Self> {
        let claims = Claims::new(range.start, wanted);
        let state = Mutex::new(State { attempt: 0, at: range.start, end: range.end, claims, into });
        Arc::new(Self { state, pinned, progress })
    }

    /// Brings the whole slice, going on where it stands when a connection breaks. Returns the most attempts that
    /// one request took.
    ///
    /// # Errors
    /// What the store or the destination says.
    pub(crate) async fn bring(self: &Arc<Self>, store: &Store, id: &ObjectId) -> Result<u32, Error> {
        let (breaks, mut attempts, mut fruitless) = (Breaks::default(), 1, 0);
        loop {
            let (at, end) = self.position();
            if at == end {
                return Ok(attempts);
            }
            let sink = || -> Box<dyn GetSink> { Box::new(self.sink()) };
            let hedge = || self.hedge();
            let get = Get {
                id,
                range: Some((at..end).into()),
                version: self.pinned.version.as_ref(),
                unless: None,
                expected: Some(end - at),
                size: Some(self.pinned.size),
                sink: Some(&sink),
                hedge: Some(&hedge),
                breaks: Some(&breaks),
            };
            let result = store.get(get).await;
            let (now_at, _) = self.position();
            fruitless = if now_at > at { 0 } else { fruitless + 1 };
            match result {
                Ok(got) => attempts = attempts.max(got.attempts),
                Err(e) if e.is_interrupted() && fruitless < FRUITLESS_MAX => attempts += 1,
                Err(e) => return Err(Error::from(e).after(attempts)),
            }
            if fruitless >= FRUITLESS_MAX {
                return Err(Error::integrity(
                    id.to_string(),
                    format!("the store sends no bytes from {at} on"),
                ));
            }
        }
    }

    /// What was written: the checksums, and the bytes if they went to memory.
    pub(crate) fn finish(self: Arc<Self>) -> (Run, Vec<u8>) {
        let mut state = self.lock();
        // A sink that still runs belongs to no attempt any more.
        state.attempt += 1;
        let State { claims, into, .. } = &mut *state;
        match into {
            Into::Memory(bytes) => (claims.finish(None), std::mem::take(bytes)),
            Into::File(staged) => (claims.finish(Some(staged)), Vec::new()),
        }
    }

    fn position(&self) -> (u64, u64) {
        let state = self.lock();
        (state.at, state.end)
    }

    fn sink(self: &Arc<Self>) -> Sink {
        let mut state = self.lock();
        state.attempt += 1;
        Sink { writer: Arc::clone(self), attempt: state.attempt, at: state.at }
    }

    /// Another sink of the same attempt, from where it stands: whichever of the two comes to a byte first writes it. Both
    /// bring bytes of one state only where that is pinned.
    fn hedge(self: &Arc<Self>) -> GetHedge {
        let state = self.lock();
        if self.pinned.version.is_none() || state.at == state.end {
            return GetHedge::Nothing;
        }
        let sink = Sink { writer: Arc::clone(self), attempt: state.attempt, at: state.at };
        GetHedge::Send(Some(state.at..state.end), Box::new(sink))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sink {
    writer: Arc<RangeWriter>,
    attempt: u32,
    /// The next byte of its answer.
    at: u64,
}

impl GetSink for Sink {
    fn begin(&mut self, meta: &ObjectMeta, range: Range<u64>) -> Result<Route, SinkError> {
        self.writer.pinned.check(meta)?;
        let state = self.writer.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        if range.start != self.at {
            let message =
                format!("bytes from {} were asked for, the store sends from {}", self.at, range.start);
            return Err(Error::integrity(meta.id.to_string(), message).into());
        }
        let is_small = matches!(state.into, Into::Memory(_)) && state.end - self.at <= SMALL_DOWNLOAD_MAX;
        Ok(if is_small { Route::Stay } else { Route::Freight })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        let mut state = self.writer.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        let new = new_bytes(&mut self.at, state.at, bytes);
        let take = (new.len() as u64).min(state.end - state.at);
        let own = &new[..take as usize];
        let State { at, end, claims, into, .. } = &mut *state;
        match into {
            Into::File(staged) => {
                staged.write_at(own, *at)?;
                claims.update(own, Some(staged));
            }
            Into::Memory(memory) => {
                memory.extend_from_slice(own);
                claims.update(own, None);
            }
        }
        *at += take;
        self.writer.progress.moved(take);
        // Not at the answer's own end, which leaves its connection to others.
        Ok(if *at == *end && self.at != *end { Route::Stop } else { Route::Stay })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(size: u64, generation: u64) -> ObjectMeta {
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), size);
        meta.version = Some(Version::Generation(generation));
        meta
    }

    fn writer() -> Arc<RangeWriter> {
        let pinned = Pinned::of(&meta(10, 1));
        RangeWriter::new(2..8, pinned, Wanted::CRC32C, Into::Memory(Vec::new()), Arc::default())
    }

    #[test]
    fn an_attempt_goes_on_where_the_one_before_stood() {
        let writer = writer();
        let mut first = writer.sink();
        first.begin(&meta(10, 1), 2..8).unwrap();
        assert_eq!(first.write(b"23").unwrap(), Route::Stay);
        let mut second = writer.sink();
        assert_eq!(second.begin(&meta(10, 1), 4..8).unwrap(), Route::Stay);
        assert_eq!(first.write(b"xx").unwrap(), Route::Stop, "a sink that was given up writes nothing");
        assert_eq!(second.write(b"4567").unwrap(), Route::Stay);
        let (run, bytes) = writer.finish();
        assert_eq!(bytes, b"234567");
        assert_eq!(run, Run::of(b"234567", Wanted::CRC32C));
    }

    fn hedge(writer: &Arc<RangeWriter>) -> (Range<u64>, Box<dyn GetSink>) {
        match writer.hedge() {
            GetHedge::Send(Some(range), sink) => (range, sink),
            _ => panic!("no hedge"),
        }
    }

    #[test]
    fn of_two_at_once_each_byte_lands_once_from_whichever_brings_it_first() {
        let writer = writer();
        let mut first = writer.sink();
        first.begin(&meta(10, 1), 2..8).unwrap();
        assert_eq!(first.write(b"23").unwrap(), Route::Stay);
        let (range, mut other) = hedge(&writer);
        assert_eq!(range, 4..8);
        other.begin(&meta(10, 1), range).unwrap();
        assert_eq!(other.write(b"4").unwrap(), Route::Stay);
        assert_eq!(first.write(b"456").unwrap(), Route::Stay, "it goes on after all");
        assert_eq!(other.write(b"56").unwrap(), Route::Stay);
        assert_eq!(other.write(b"7").unwrap(), Route::Stay, "its own end");
        assert_eq!(first.write(b"7").unwrap(), Route::Stay, "which is the other's too");
        let (run, bytes) = writer.finish();
        assert_eq!(bytes, b"234567");
        assert_eq!(run, Run::of(b"234567", Wanted::CRC32C));
    }

    #[test]
    fn who_is_behind_when_all_has_landed_is_stopped() {
        let writer = writer();
        let mut first = writer.sink();
        let (_, mut other) = hedge(&writer);
        assert_eq!(other.write(b"234567").unwrap(), Route::Stay);
        assert_eq!(first.write(b"23").unwrap(), Route::Stop);
        assert_eq!(writer.finish().1, b"234567");
    }

    #[test]
    fn both_of_an_attempt_that_was_given_up_write_nothing() {
        let writer = writer();
        let mut first = writer.sink();
        let (_, mut other) = hedge(&writer);
        let mut next = writer.sink();
        assert_eq!((first.write(b"x").unwrap(), other.write(b"x").unwrap()), (Route::Stop, Route::Stop));
        assert_eq!(next.write(b"234567").unwrap(), Route::Stay);
        assert_eq!(writer.finish().1, b"234567");
    }

    #[test]
    fn what_is_not_pinned_or_has_landed_gets_no_second() {
        let unpinned = Pinned { size: 10, version: None };
        let unpinned =
            RangeWriter::new(2..8, unpinned, Wanted::CRC32C, Into::Memory(Vec::new()), Arc::default());
        assert!(matches!(unpinned.hedge(), GetHedge::Nothing));
        let landed = writer();
        landed.sink().write(b"234567").unwrap();
        assert!(matches!(landed.hedge(), GetHedge::Nothing));
    }

    #[test]
    fn bytes_beyond_the_slice_are_not_taken() {
        let writer = writer();
        let mut sink = writer.sink();
        assert_eq!(sink.write(b"23456789").unwrap(), Route::Stop);
        assert_eq!(writer.finish().1, b"234567");
    }

    #[test]
    fn a_slice_of_another_generation_or_size_is_refused() {
        for other in [meta(10, 2), meta(11, 1)] {
            assert!(writer().sink().begin(&other, 2..8).unwrap_err().to_string().contains("changed"));
        }
    }

    #[test]
    fn an_answer_that_starts_elsewhere_is_refused() {
        assert!(writer().sink().begin(&meta(10, 1), 0..8).is_err());
    }
}
