//! Writes the bytes of an object, or of a range of it, in order and each exactly once. A request and its
//! hedge share one writer, which takes each byte from the answer that brings it first. Repeated attempts
//! share the writer, too.
//!
//! Some answers contain the store's checksums of their bytes, one after each segment. Then bytes are written
//! before they are checked. If an answer breaks off within a segment, the next one begins at the last
//! checked byte. Its bytes must be those that were written, and the store's checksum confirms both.

use std::ops::Range;
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, Digest};
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

    /// Called if the store's checksums will confirm the bytes that follow.
    fn expect_checks(&mut self) {}

    /// Called when the store's checksums have confirmed all bytes before the offset `to`.
    fn checked(&mut self, _to: u64) {}

    /// Called if the store's checksums won't confirm the bytes that were written after the last checked one.
    fn give_up_checks(&mut self) {}
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
    /// The bytes that are checked. `None` if answers without checksums have brought some of the bytes.
    checks: Option<Checks>,
    output: O,
}

/// The bytes of a range that the store's checksums have confirmed.
#[derive(Clone, Debug)]
struct Checks {
    /// True if an answer has announced checksums.
    are_expected: bool,
    /// The bytes before this offset are checked.
    to: u64,
    /// The checksum of the checked bytes.
    checked: Digest,
    /// The checksum of all written bytes.
    written: Digest,
}

impl Checks {
    fn new(start: u64) -> Self {
        Self { are_expected: false, to: start, checked: empty(), written: empty() }
    }
}

/// Returns the checksum of no bytes. Of all kinds it is the fastest one to compute.
fn empty() -> Digest {
    Digest::new(CrcAlgorithm::Crc64Nvme)
}

/// At most this many bytes are fetched again because an answer ended before their checksum. More bytes stay unchecked. The
/// format of structured bodies doesn't limit the length of segments, and Azure's have 4 MiB.
const REPEATED_MAX: u64 = 16 << 20;

impl<O: Output> RangeState<O> {
    fn give_up_checks(&mut self) {
        self.checks = None;
        self.output.give_up_checks();
    }
}

impl<O> RangeState<O> {
    /// Returns the offset at which the next request begins. Written bytes that aren't checked are fetched again.
    fn resume_at(&self) -> u64 {
        match &self.checks {
            Some(checks) if checks.are_expected => checks.to,
            _ => self.at,
        }
    }

    fn is_checked(&self) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.are_expected && checks.to == self.at)
    }
}

impl<O: Output> RangeWriter<O> {
    /// Returns a writer of the bytes from `start` on, of an object with a known version.
    pub(crate) fn pinned(start: u64, of: ObjectPin, output: O, progress: Arc<Progress>) -> Arc<Self> {
        let checks = Some(Checks::new(start));
        let (attempt, begun, of, is_pinned, at) = (0, 0, Some(of), true, start);
        let state = RangeState { attempt, begun, of, is_pinned, start, at, checks, output };
        Arc::new(Self { state: Mutex::new(state), progress })
    }

    /// Returns a writer of an object, or of the requested range of it, in the version of the first answer.
    pub(crate) fn of_any(output: O, progress: Arc<Progress>) -> Arc<Self> {
        let checks = Some(Checks::new(0));
        let (attempt, begun, of, is_pinned, start, at) = (0, 0, None, false, 0, 0);
        let state = RangeState { attempt, begun, of, is_pinned, start, at, checks, output };
        Arc::new(Self { state: Mutex::new(state), progress })
    }

    /// Begins another attempt, and returns its sink. Sinks of earlier attempts write nothing from now on.
    pub(crate) fn sink(self: &Arc<Self>) -> RangeSink<O> {
        let mut state = self.lock();
        state.attempt += 1;
        if state.is_pinned {
            state.begun = state.attempt;
        }
        let at = state.is_pinned.then(|| state.resume_at());
        self.sink_at(&state, at)
    }

    /// Returns a sink of the current attempt. Its answer begins at `at`, or at the first byte.
    fn sink_at(self: &Arc<Self>, state: &RangeState<O>, at: Option<u64>) -> RangeSink<O> {
        let base = match (&state.checks, at) {
            (Some(checks), Some(_)) => checks.checked,
            _ => empty(),
        };
        let (attempt, answer_end) = (state.attempt, state.output.end());
        let (writer, object) = (Arc::clone(self), String::new());
        RangeSink { writer, attempt, at, answer_end, object, base, digest: None, same: None }
    }

    /// Returns the hedge of an attempt, with a sink of its own. The hedge requests the bytes from the current
    /// position on, or all of them if no answer has begun. If an answer without a version has begun, there is
    /// no hedge, because the two answers could be of different versions of the object.
    pub(crate) fn hedge(self: &Arc<Self>) -> GetHedge {
        let state = self.lock();
        let end = state.output.end();
        if state.begun != state.attempt {
            return GetHedge::Send(None, Box::new(self.sink_at(&state, None)));
        }
        let has_version = state.of.as_ref().is_some_and(|of| of.version.is_some());
        let at = state.resume_at();
        match has_version && at < end && state.at - at <= REPEATED_MAX {
            true => GetHedge::Send(Some(at..end), Box::new(self.sink_at(&state, Some(at)))),
            false => GetHedge::Nothing,
        }
    }

    /// Ends the writing. Sinks that still run write nothing from now on.
    pub(crate) fn end<T>(&self, with: impl FnOnce(&mut O) -> T) -> T {
        self.end_checked(|output, _| with(output))
    }

    /// Does the same. `with` also gets true if the store's checksums have confirmed all written bytes.
    pub(crate) fn end_checked<T>(&self, with: impl FnOnce(&mut O, bool) -> T) -> T {
        let mut state = self.lock();
        state.attempt += 1;
        let is_checked = state.is_checked();
        with(&mut state.output, is_checked)
    }

    /// Lets `with` change the end of the range. `with` gets the offset of the next byte to write, which the
    /// new end must not precede.
    pub(crate) fn cut<T>(&self, with: impl FnOnce(u64, &mut O) -> T) -> T {
        let mut state = self.lock();
        let RangeState { at, output, .. } = &mut *state;
        with(*at, output)
    }

    /// Returns the range of the bytes that haven't arrived or aren't checked, and the version in which another
    /// attempt must read them. Once an answer has reported a version, all further attempts read that version. Returns
    /// `None` if the next attempt must begin at the first byte, because no version is known.
    pub(crate) fn rest(&self) -> Option<(Range<u64>, ObjectPin)> {
        let mut state = self.lock();
        if state.at - state.resume_at() > REPEATED_MAX {
            state.give_up_checks();
        }
        state.is_pinned |= state.of.as_ref().is_some_and(|of| of.version.is_some());
        let of = state.of.clone().filter(|_| state.is_pinned)?;
        Some((state.resume_at()..state.output.end(), of))
    }

    /// Returns the range of the written bytes that aren't checked although their answer announced checksums,
    /// and the version of these bytes. Returns `None` if there are no such bytes, or if no version is known.
    pub(crate) fn unchecked(&self) -> Option<(Range<u64>, ObjectPin)> {
        let (rest, of) = self.rest()?;
        let (at, _) = self.position();
        (rest.start < at).then_some((rest.start..at, of))
    }

    /// Lets the written bytes stay unchecked. The next request begins after them.
    pub(crate) fn give_up_checks(&self) {
        self.lock().give_up_checks();
    }

    /// Lets the progress count none of the written bytes, because another writer fetches them again.
    pub(crate) fn take_back(&self) {
        let state = self.lock();
        self.progress.taken_back(state.at - state.start);
    }

    /// Returns a number that grows with each byte that is written or checked.
    pub(crate) fn reached(&self) -> u64 {
        let state = self.lock();
        state.at.saturating_add(state.resume_at())
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
    /// The object's name, for error messages.
    object: String,
    /// The checksum of the range's bytes before the answer's first byte.
    base: Digest,
    /// The checksum of the range's bytes before `at`, if the answer announced checksums of the store. `None` once
    /// the answer is beyond the range's end.
    digest: Option<Digest>,
    /// The offset up to which this sink's bytes are the written ones, and the checksum of these bytes.
    same: Option<(u64, Digest)>,
}

/// A sink reads at most this many bytes beyond its range to get the checksum of the segment in which its range ends.
/// Azure's segments have 4 MiB.
const BEYOND_MAX: u64 = 4 << 20;

impl<O> RangeSink<O> {
    /// Returns true if this answer, which is read up to the offset `own`, will soon bring the store's checksum of
    /// bytes that are written but not checked.
    fn is_waiting(&self, own: u64, state: &RangeState<O>) -> bool {
        let Some(checks) = state.checks.as_ref().filter(|checks| checks.to < state.at) else { return false };
        match own < state.at {
            true => self.digest.is_some(),
            false => self.same.as_ref().is_some_and(|(to, _)| *to > checks.to) && own - state.at < BEYOND_MAX,
        }
    }
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
                state.checks = Some(Checks::new(range.start));
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
        self.object = meta.id.to_string();
        Ok(state.output.route(start))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        let mut state = self.writer.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        let RangeState { start, at, checks, output, .. } = &mut *state;
        let own = self.at.get_or_insert(*start);
        let new = new_bytes(own, *at, bytes);
        if let (Some(digest), Some(checks)) = (&mut self.digest, checks.as_ref()) {
            digest.update(&bytes[..bytes.len() - new.len()]);
            // Other answers may have brought the bytes before this offset.
            if *own >= *at && digest.finalize() != checks.written.finalize() {
                let message = format!("two answers have different bytes before the offset {at}");
                return Err(Error::mismatch(std::mem::take(&mut self.object), message).into());
            }
        }
        let written = output.write(*at, new)?;
        *at += written;
        self.writer.progress.moved(written);
        match (&mut self.digest, checks) {
            (Some(digest), Some(checks)) if *own >= *at => {
                digest.update(&new[..written as usize]);
                checks.written = *digest;
                self.same = Some((*at, *digest));
                if *own > *at {
                    self.digest = None;
                }
            }
            (None, Some(_)) if written > 0 => state.give_up_checks(),
            _ => {}
        }
        // If the answer ends here by itself, don't stop it. Stopping would close the connection, which other
        // requests can use.
        let (own, at) = (*own, state.at);
        let is_cut = at == state.output.end() && own != self.answer_end;
        Ok(if is_cut && !self.is_waiting(own, &state) { Route::Stop } else { Route::Stay })
    }

    fn expect_checks(&mut self) {
        let mut state = self.writer.lock();
        let RangeState { attempt, checks: Some(checks), output, .. } = &mut *state else { return };
        if *attempt == self.attempt {
            self.digest = Some(self.base);
            checks.are_expected = true;
            output.expect_checks();
        }
    }

    fn checked(&mut self) -> Result<Route, SinkError> {
        let mut state = self.writer.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        let RangeState { checks: Some(checks), output, .. } = &mut *state else { return Ok(Route::Stay) };
        if let Some((to, digest)) = self.same.take_if(|(to, _)| *to > checks.to) {
            (checks.to, checks.checked) = (to, digest);
            output.checked(to);
        }
        let is_whole = checks.to == output.end() && self.at != Some(self.answer_end);
        Ok(if is_whole { Route::Stop } else { Route::Stay })
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

    /// Begins an answer with the store's checksums, which brings these bytes from `at` on.
    fn brings(
        mut sink: RangeSink<CollectedRange>,
        at: u64,
        bytes: &[u8],
    ) -> (RangeSink<CollectedRange>, Result<Route, SinkError>) {
        sink.begin(&meta(10, 1), at..8).unwrap();
        sink.expect_checks();
        let route = sink.write(bytes);
        (sink, route)
    }

    #[test]
    fn an_answer_after_a_break_begins_at_the_last_checked_byte() {
        let writer = writer();
        let (mut first, _) = brings(writer.sink(), 2, b"23");
        first.checked().unwrap();
        first.write(b"45").unwrap();
        assert_eq!(writer.rest().unwrap().0, 4..8);
        assert_eq!(writer.unchecked().unwrap().0, 4..6);
        let (mut again, route) = brings(writer.sink(), 4, b"4567");
        assert_eq!(route.unwrap(), Route::Stay);
        assert_eq!(writer.rest().unwrap().0, 4..8, "the store's checksum is missing");
        again.checked().unwrap();
        assert!(writer.rest().unwrap().0.is_empty() && writer.unchecked().is_none());
        let (run, bytes) = writer.finish();
        assert_eq!((run.is_checked, &bytes[..]), (true, &b"234567"[..]));
    }

    #[test]
    fn other_bytes_after_a_break_are_an_error() {
        let writer = writer();
        brings(writer.sink(), 2, b"2345").1.unwrap();
        let (_, route) = brings(writer.sink(), 2, b"23x567");
        let error = route.unwrap_err().downcast::<Error>().unwrap();
        assert!(error.is_mismatch() && error.to_string().contains("b/k"), "{error}");
    }

    #[test]
    fn bytes_of_two_answers_are_checked_by_either() {
        let writer = writer();
        let (mut first, _) = brings(writer.sink(), 2, b"234");
        let GetHedge::Send(Some(range), mut other) = writer.hedge() else { panic!("no hedge") };
        other.begin(&meta(10, 1), range).unwrap();
        other.expect_checks();
        other.write(b"23456").unwrap();
        first.write(b"5").unwrap();
        assert!(!writer.lock().is_checked());
        other.write(b"7").unwrap();
        first.checked().unwrap();
        assert_eq!(writer.unchecked().unwrap().0, 5..8, "the first answer has written the bytes before 5");
        other.checked().unwrap();
        assert!(writer.finish().0.is_checked);
    }

    #[test]
    fn bytes_without_checksums_are_never_checked() {
        let writer = writer();
        let mut first = writer.sink();
        first.begin(&meta(10, 1), 2..8).unwrap();
        first.write(b"23").unwrap();
        let (mut again, _) = brings(writer.sink(), 4, b"4567");
        again.checked().unwrap();
        assert!(writer.rest().unwrap().0.is_empty());
        assert!(!writer.finish().0.is_checked);
    }

    #[test]
    fn bytes_before_a_far_checksum_are_not_fetched_again() {
        let (size, of) = (20 << 20, ObjectPin::of(&meta(20 << 20, 1)));
        let writer = pinned(of, 0..size);
        let mut sink = writer.sink();
        sink.begin(&meta(size, 1), 0..size).unwrap();
        sink.expect_checks();
        sink.write(&vec![0; 16 << 20]).unwrap();
        assert_eq!(writer.rest().unwrap().0, 0..size);
        sink.write(&[0]).unwrap();
        assert!(matches!(writer.hedge(), GetHedge::Nothing));
        assert_eq!(writer.rest().unwrap().0, (16 << 20) + 1..size);
    }

    #[test]
    fn an_answer_that_repeats_bytes_goes_on_until_they_are_checked() {
        let writer = writer();
        let (_, route) = brings(writer.sink(), 2, b"234567");
        assert_eq!(route.unwrap(), Route::Stay);
        let (mut again, route) = brings(writer.sink(), 2, b"23");
        assert_eq!(route.unwrap(), Route::Stay);
        again.write(b"4567").unwrap();
        again.checked().unwrap();
        assert!(writer.finish().0.is_checked);
    }

    #[test]
    fn a_range_that_is_cut_is_checked_by_a_segment_beyond_its_end() {
        let writer = writer();
        let (mut sink, _) = brings(writer.sink(), 2, b"23");
        writer.cut(|_, collected| collected.cut(5));
        assert_eq!(sink.write(b"456").unwrap(), Route::Stay, "the checksum follows");
        assert_eq!(sink.checked().unwrap(), Route::Stop);
        let (run, bytes) = writer.finish();
        assert_eq!((run.is_checked, &bytes[..]), (true, &b"234"[..]));
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
