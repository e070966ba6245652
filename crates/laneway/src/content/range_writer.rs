//! Writes the bytes of an object, or of a range of it, in order and each exactly once. A request and its
//! hedge share one writer, which takes each byte from the answer that brings it first. Repeated attempts
//! share the writer, too.

use std::ops::Range;
use std::sync::Arc;

use laneway_store::{GetHedge, GetSink, ObjectMeta, Route, SinkError, Version};

use crate::engine::threads::{Mutex, MutexGuard, PoisonError};
use crate::{Error, Progress};

/// The version and size that all slices of an object must have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ObjectPin {
    pub(crate) size: u64,
    pub(crate) version: Option<Version>,
}

impl ObjectPin {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self { size: meta.size, version: meta.version.clone() }
    }

    /// Checks that an answer is of the same version. Some stores leave the ETag out of answers to range
    /// requests. For such an answer, comparing the size is enough, because the request named the version.
    pub(crate) fn check(&self, meta: &ObjectMeta) -> Result<(), Error> {
        let is_other = match (&self.version, &meta.version) {
            (Some(ours), Some(theirs)) => ours != theirs,
            _ => false,
        };
        if is_other || meta.size != self.size {
            return Err(changed(meta));
        }
        Ok(())
    }
}

/// The destination of the bytes.
pub(crate) trait Output: Send + 'static {
    /// Called when the first answer of an attempt begins. `meta` describes the object. The object's bytes
    /// follow, from the first one on. Not called if the version was known beforehand.
    fn begin(&mut self, _meta: &ObjectMeta) {}

    /// Returns how to read an answer that begins at `at`.
    fn route(&self, at: u64) -> Route;

    /// Returns the current end offset of the bytes to write.
    fn end(&self) -> u64;

    /// Writes `bytes`, which begin at the offset `at`, and returns how many were written. If this writes only
    /// some of the bytes, [`end`](Self::end) is reached.
    ///
    /// # Errors
    /// The file system's error.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error>;
}

/// A range that is being fetched. All attempts to fetch it share this writer.
#[derive(Debug)]
pub(crate) struct RangeWriter<O> {
    state: Mutex<RangeState<O>>,
    progress: Arc<Progress>,
}

#[derive(Debug)]
struct RangeState<O> {
    /// The attempt that may write. The sink of an earlier attempt may still run on its lane.
    attempt: u32,
    /// The attempt whose answer has set `of` and `at`.
    begun: u32,
    /// The version that all answers of the attempt must have.
    of: Option<ObjectPin>,
    /// True if further attempts continue at `at`, in the version `of`. Otherwise each attempt begins at the
    /// first byte, in the version of its first answer.
    is_pinned: bool,
    /// The offset of the first byte that the attempt's answers bring, once an answer has begun.
    start: u64,
    /// The offset of the next byte to write.
    at: u64,
    output: O,
}

impl<O: Output> RangeWriter<O> {
    /// Returns a writer of the bytes from `start` on, of an object with a known version.
    pub(crate) fn pinned(start: u64, of: ObjectPin, output: O, progress: Arc<Progress>) -> Arc<Self> {
        let state =
            RangeState { attempt: 0, begun: 0, of: Some(of), is_pinned: true, start, at: start, output };
        Arc::new(Self { state: Mutex::new(state), progress })
    }

    /// Returns a writer of an object, or of the requested range of it, in the version of the first answer.
    pub(crate) fn of_any(output: O, progress: Arc<Progress>) -> Arc<Self> {
        let state = RangeState { attempt: 0, begun: 0, of: None, is_pinned: false, start: 0, at: 0, output };
        Arc::new(Self { state: Mutex::new(state), progress })
    }

    /// Begins another attempt, and returns its sink. Sinks of earlier attempts write nothing from now on.
    pub(crate) fn sink(self: &Arc<Self>) -> RangeSink<O> {
        let mut state = self.lock();
        state.attempt += 1;
        if state.is_pinned {
            state.begun = state.attempt;
        }
        let at = state.is_pinned.then_some(state.at);
        RangeSink { writer: Arc::clone(self), attempt: state.attempt, at, answer_end: state.output.end() }
    }

    /// Returns the hedge of an attempt, with a sink of its own. The hedge requests the bytes from the current
    /// position on, or all of them if no answer has begun. If an answer without a version has begun, there is
    /// no hedge, because the two answers could be of different versions of the object.
    pub(crate) fn hedge(self: &Arc<Self>) -> GetHedge {
        let state = self.lock();
        let (attempt, end) = (state.attempt, state.output.end());
        let sink = |at| Box::new(RangeSink { writer: Arc::clone(self), attempt, at, answer_end: end });
        if state.begun != attempt {
            return GetHedge::Send(None, sink(None));
        }
        let has_version = state.of.as_ref().is_some_and(|of| of.version.is_some());
        match has_version && state.at < end {
            true => GetHedge::Send(Some(state.at..end), sink(Some(state.at))),
            false => GetHedge::Nothing,
        }
    }

    /// Ends the writing. Sinks that still run write nothing from now on.
    pub(crate) fn end<T>(&self, with: impl FnOnce(&mut O) -> T) -> T {
        let mut state = self.lock();
        state.attempt += 1;
        with(&mut state.output)
    }

    /// Lets `with` change the end of the range. `with` gets the offset of the next byte to write, which the
    /// new end must not precede.
    pub(crate) fn cut<T>(&self, with: impl FnOnce(u64, &mut O) -> T) -> T {
        let mut state = self.lock();
        let RangeState { at, output, .. } = &mut *state;
        with(*at, output)
    }

    /// Returns the range of the bytes that haven't arrived, and the version in which another attempt must
    /// read them. Once an answer has reported a version, all further attempts read that version. Returns
    /// `None` if the next attempt must begin at the first byte, because no version is known.
    pub(crate) fn rest(&self) -> Option<(Range<u64>, ObjectPin)> {
        let mut state = self.lock();
        state.is_pinned |= state.of.as_ref().is_some_and(|of| of.version.is_some());
        let of = state.of.clone().filter(|_| state.is_pinned)?;
        Some((state.at..state.output.end(), of))
    }

    /// Returns the offset of the next byte to write, and the end of the range.
    pub(crate) fn position(&self) -> (u64, u64) {
        let state = self.lock();
        (state.at, state.output.end())
    }

    fn lock(&self) -> MutexGuard<'_, RangeState<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct RangeSink<O> {
    writer: Arc<RangeWriter<O>>,
    attempt: u32,
    /// The offset of the next byte of this sink's answer, if it is known.
    at: Option<u64>,
    answer_end: u64,
}

impl<O: Output> GetSink for RangeSink<O> {
    fn begin(&mut self, meta: &ObjectMeta, range: Range<u64>) -> Result<Route, SinkError> {
        let mut state = self.writer.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        match &state.of {
            Some(of) if state.begun == state.attempt => {
                of.check(meta)?;
                // Two requests for this range have answered, because a hedge was sent before the first byte.
                // Without versions, nothing shows that both answers have the same bytes.
                if !state.is_pinned && (of.version.is_none() || meta.version.is_none()) {
                    return Err(changed(meta).into());
                }
            }
            _ => {
                state.begun = self.attempt;
                state.of = Some(ObjectPin::of(meta));
                // This attempt fetches the bytes of the earlier attempt again. Subtract the earlier bytes, so
                // that none count twice.
                self.writer.progress.taken_back(state.at - state.start);
                (state.start, state.at) = (range.start, range.start);
                state.output.begin(meta);
            }
        }
        let start = self.at.unwrap_or(state.start);
        if range.start != start {
            let message = format!(
                "bytes from {start} on were requested, but the store sends bytes from {} on",
                range.start
            );
            return Err(Error::integrity(meta.id.to_string(), message).into());
        }
        self.at = Some(start);
        self.answer_end = range.end;
        Ok(state.output.route(start))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        let mut state = self.writer.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        let RangeState { start, at, output, .. } = &mut *state;
        let own = self.at.get_or_insert(*start);
        let new = new_bytes(own, *at, bytes);
        let written = output.write(*at, new)?;
        *at += written;
        self.writer.progress.moved(written);
        // If the answer ends here by itself, don't stop it. Stopping would close the connection, which other
        // requests can use.
        let is_cut = *at == output.end() && *own != self.answer_end;
        Ok(if is_cut { Route::Stop } else { Route::Stay })
    }
}

fn changed(meta: &ObjectMeta) -> Error {
    Error::integrity(meta.id.to_string(), "the object changed while it was read")
}

/// Returns the part of an answer's next `bytes` that no other answer has brought yet. The given bytes begin
/// at the offset `at`, which advances to their end. All of the object's bytes before the offset `come` have
/// arrived.
fn new_bytes<'b>(at: &mut u64, come: u64, bytes: &'b [u8]) -> &'b [u8] {
    let known = come.saturating_sub(*at).min(bytes.len() as u64);
    *at += bytes.len() as u64;
    &bytes[known as usize..]
}

#[cfg(test)]
mod tests {
    use laneway_store::ObjectId;

    use super::*;
    use crate::content::checksum::{ChecksumSet, RangeChecksums};
    use crate::content::read::CollectedRange;

    fn meta(size: u64, generation: u64) -> ObjectMeta {
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), size);
        meta.version = Some(Version::Generation(generation));
        meta
    }

    fn pinned(of: ObjectPin, range: Range<u64>) -> Arc<RangeWriter<CollectedRange>> {
        let collected = CollectedRange::new(&range, ChecksumSet::CRC32C);
        RangeWriter::pinned(range.start, of, collected, Arc::default())
    }

    fn writer() -> Arc<RangeWriter<CollectedRange>> {
        pinned(ObjectPin::of(&meta(10, 1)), 2..8)
    }

    #[test]
    fn an_attempt_goes_on_where_the_one_before_stood() {
        let writer = writer();
        let mut first = writer.sink();
        first.begin(&meta(10, 1), 2..8).unwrap();
        assert_eq!(first.write(b"23").unwrap(), Route::Stay);
        let mut again = writer.sink();
        assert_eq!(again.begin(&meta(10, 1), 4..8).unwrap(), Route::Stay);
        assert_eq!(first.write(b"xx").unwrap(), Route::Stop, "a sink that was given up writes nothing");
        assert_eq!(again.write(b"4567").unwrap(), Route::Stay);
        let (run, bytes) = writer.finish();
        assert_eq!(bytes, b"234567");
        assert_eq!(run, RangeChecksums::of(b"234567", ChecksumSet::CRC32C));
    }

    fn hedge(writer: &Arc<RangeWriter<CollectedRange>>) -> (Range<u64>, Box<dyn GetSink>) {
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
        assert_eq!(first.write(b"456").unwrap(), Route::Stay, "it continues");
        assert_eq!(other.write(b"56").unwrap(), Route::Stay);
        assert_eq!(other.write(b"7").unwrap(), Route::Stay, "its own end");
        assert_eq!(first.write(b"7").unwrap(), Route::Stay, "also the other answer's end");
        let (run, bytes) = writer.finish();
        assert_eq!(bytes, b"234567");
        assert_eq!(run, RangeChecksums::of(b"234567", ChecksumSet::CRC32C));
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
        let unpinned = pinned(ObjectPin { size: 10, version: None }, 2..8);
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
    fn an_answer_that_tells_no_version_is_compared_by_its_size() {
        let untold = |size| ObjectMeta::new(ObjectId::new("b", "k"), size);
        assert!(writer().sink().begin(&untold(10), 2..8).is_ok());
        assert!(writer().sink().begin(&untold(11), 2..8).is_err());
    }

    #[derive(Debug)]
    struct Nowhere;

    impl Output for Nowhere {
        fn route(&self, _at: u64) -> Route {
            Route::Stay
        }

        fn end(&self) -> u64 {
            10
        }

        fn write(&mut self, _at: u64, bytes: &[u8]) -> Result<u64, Error> {
            Ok(bytes.len() as u64)
        }
    }

    #[test]
    fn what_a_second_attempt_brings_again_is_counted_once() {
        let progress = Arc::new(Progress::default());
        let writer = RangeWriter::of_any(Nowhere, Arc::clone(&progress));
        for (attempt, bytes) in [b"0123".as_slice(), b"01", b"0123456789"].into_iter().enumerate() {
            let mut sink = writer.sink();
            sink.begin(&meta(10, attempt as u64), 0..10).unwrap();
            sink.write(bytes).unwrap();
            assert_eq!(progress.bytes_done(), bytes.len() as u64);
        }
    }

    #[test]
    fn an_answer_that_starts_elsewhere_is_refused() {
        assert!(writer().sink().begin(&meta(10, 1), 0..8).is_err());
    }

    #[test]
    fn what_another_has_brought_is_left_out() {
        let mut at = 10;
        assert_eq!(new_bytes(&mut at, 10, b"ab"), b"ab");
        assert_eq!(new_bytes(&mut at, 13, b"cd"), b"d");
        assert_eq!(new_bytes(&mut at, 20, b"ef"), b"");
        assert_eq!(at, 16);
    }

    /// Takes all bytes up to a length.
    #[derive(Debug)]
    struct Collect(Vec<u8>, u64);

    impl Output for Collect {
        fn begin(&mut self, meta: &ObjectMeta) {
            *self = Self(Vec::new(), meta.size.min(6));
        }

        fn route(&self, _at: u64) -> Route {
            Route::Stay
        }

        fn end(&self) -> u64 {
            self.1
        }

        fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
            let take = bytes.len().min((self.1 - at) as usize);
            self.0.extend_from_slice(&bytes[..take]);
            Ok(take as u64)
        }
    }

    fn of_any() -> Arc<RangeWriter<Collect>> {
        RangeWriter::of_any(Collect(Vec::new(), 0), Arc::default())
    }

    #[test]
    fn an_object_of_any_state_is_hedged_whole_until_an_answer_has_begun() {
        let writer = of_any();
        let mut first = writer.sink();
        let GetHedge::Send(None, mut other) = writer.hedge() else { panic!("no hedge of the whole") };
        other.begin(&meta(10, 1), 0..10).unwrap();
        assert_eq!(other.write(b"012").unwrap(), Route::Stay);
        first.begin(&meta(10, 1), 0..10).unwrap();
        assert_eq!(first.write(b"01234").unwrap(), Route::Stay, "two of them are new");
        let GetHedge::Send(Some(range), _) = writer.hedge() else { panic!("no hedge of the rest") };
        assert_eq!(range, 5..6);
        assert_eq!(other.write(b"3456").unwrap(), Route::Stop, "the end, and more would follow");
        assert!(matches!(writer.hedge(), GetHedge::Nothing));
        assert_eq!(writer.end(|collected| std::mem::take(&mut collected.0)), b"012345");
    }

    #[test]
    fn the_end_of_an_object_of_any_size_is_hedged_from_wherever_it_begins() {
        let writer = of_any();
        let mut first = writer.sink();
        let GetHedge::Send(None, mut other) = writer.hedge() else { panic!("no hedge of the whole") };
        other.begin(&meta(10, 1), 2..10).unwrap();
        assert_eq!(other.write(b"23").unwrap(), Route::Stay);
        first.begin(&meta(10, 1), 2..10).unwrap();
        assert_eq!(first.write(b"234").unwrap(), Route::Stay, "one of them is new");
        let GetHedge::Send(Some(range), _) = writer.hedge() else { panic!("no hedge of the rest") };
        assert_eq!(range, 5..6);
        let GetHedge::Send(_, mut elsewhere) = writer.hedge() else { panic!("no hedge of the rest") };
        assert!(elsewhere.begin(&meta(10, 1), 2..10).is_err());
        assert_eq!(other.write(b"45").unwrap(), Route::Stop);
        assert_eq!(writer.end(|collected| std::mem::take(&mut collected.0)), b"2345");
    }

    #[test]
    fn two_answers_without_a_version_or_of_two_states_are_never_mixed() {
        let mut unversioned = meta(10, 1);
        unversioned.version = None;
        for (one, two) in
            [(meta(10, 1), meta(10, 2)), (meta(10, 1), meta(9, 1)), (unversioned.clone(), unversioned)]
        {
            let writer = of_any();
            let mut first = writer.sink();
            let GetHedge::Send(None, mut other) = writer.hedge() else { panic!("no hedge") };
            first.begin(&one, 0..10).unwrap();
            assert!(other.begin(&two, 0..10).unwrap_err().to_string().contains("changed"), "{two:?}");
        }
    }

    #[test]
    fn the_rest_of_an_answer_with_a_version_is_read_in_that_version() {
        let writer = of_any();
        assert_eq!(writer.rest(), None);
        let mut first = writer.sink();
        first.begin(&meta(10, 1), 0..10).unwrap();
        first.write(b"012").unwrap();
        assert_eq!(writer.rest(), Some((3..6, ObjectPin::of(&meta(10, 1)))));
        assert!(writer.sink().begin(&meta(10, 2), 3..10).is_err());
        let mut again = writer.sink();
        again.begin(&meta(10, 1), 3..6).unwrap();
        assert_eq!(again.write(b"345").unwrap(), Route::Stay);
        assert_eq!(writer.end(|collected| std::mem::take(&mut collected.0)), b"012345");
    }

    #[test]
    fn an_answer_without_a_version_is_read_again_from_its_first_byte() {
        let mut unversioned = meta(10, 1);
        unversioned.version = None;
        let writer = of_any();
        for _ in 0..2 {
            let mut sink = writer.sink();
            sink.begin(&unversioned, 0..10).unwrap();
            sink.write(b"012").unwrap();
            assert_eq!(writer.rest(), None);
        }
        assert_eq!(writer.end(|collected| std::mem::take(&mut collected.0)), b"012");
    }

    #[test]
    fn another_attempt_at_an_object_of_any_state_begins_anew() {
        let writer = of_any();
        let mut first = writer.sink();
        first.begin(&meta(10, 1), 0..10).unwrap();
        first.write(b"xy").unwrap();
        let mut again = writer.sink();
        again.begin(&meta(10, 2), 0..10).unwrap();
        assert_eq!(first.write(b"z").unwrap(), Route::Stop);
        again.write(b"0123").unwrap();
        assert_eq!(writer.end(|collected| std::mem::take(&mut collected.0)), b"0123");
    }
}
