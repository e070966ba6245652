//! Inputs of uploads from a program's memory. The program hands over the parts one by one, or all bytes at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use laneway_lanes::Reservation;
use laneway_store::Body;
use tokio::sync::{Mutex, mpsc};

use crate::Error;
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::engine::files::FileThreads;
use crate::job::running::JobState;
use crate::plan::PARTS_AT_ONCE;
use crate::transfer::upload::{ExpectedChecksum, Input, ReadyPart};

/// The channel for an object's parts. Each part except the last one has the upload's part length. The flag is
/// true for the last part.
pub(super) type PartReceiver = mpsc::Receiver<(Bytes, bool)>;

/// The input of an upload whose parts arrive over a channel. If the channel closes before the last part, the
/// program has abandoned the object, and the upload ends.
pub(super) struct ChannelInput {
    job: Arc<JobState>,
    given: ExpectedChecksum,
    parts: Mutex<(PartReceiver, bool)>,
}

impl ChannelInput {
    pub(super) fn new(job: Arc<JobState>, given: ExpectedChecksum, parts: PartReceiver) -> Self {
        Self { job, given, parts: Mutex::new((parts, false)) }
    }
}

pub(super) struct HeldPart {
    bytes: Bytes,
    is_last: bool,
    held: Reservation,
}

impl Input for ChannelInput {
    type Begun = HeldPart;

    async fn next(&self) -> Result<Option<Self::Begun>, Error> {
        let mut state = self.parts.lock().await;
        let (parts, is_over) = &mut *state;
        if *is_over {
            return Ok(None);
        }
        let Some((bytes, is_last)) = parts.recv().await else {
            return Err(Error::cancelled(&self.given.url));
        };
        *is_over = is_last;
        if bytes.is_empty() {
            return Ok(None);
        }
        // Reserve memory only after the part has arrived. Otherwise this upload would hold memory that
        // other transfers need, while it waits for the program's next write.
        let held = self.job.engine.lanes.memory().reserve(bytes.len()).await;
        Ok(Some(HeldPart { bytes, is_last, held }))
    }

    async fn prepare(&self, begun: HeldPart, wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        let HeldPart { bytes, is_last, held } = begun;
        let run = hashed(&self.job.engine.files, bytes.clone(), wanted).await?;
        Ok(ReadyPart { body: Body::from(bytes), run, is_last, held: Some(Arc::new(held)) })
    }

    async fn check(&self, whole: &RangeChecksums) -> Result<(), Error> {
        self.given.compare(whole)
    }

    fn rewind(&self) -> bool {
        false
    }
}

/// The input of an upload whose bytes are all in the caller's memory.
pub(super) struct BytesInput {
    pub(super) job: Arc<JobState>,
    pub(super) bytes: Bytes,
    pub(super) part: usize,
    pub(super) next: AtomicUsize,
}

impl Input for BytesInput {
    type Begun = Bytes;

    async fn next(&self) -> Result<Option<Bytes>, Error> {
        let start = self.next.fetch_add(self.part, Ordering::Relaxed).min(self.bytes.len());
        let end = self.bytes.len().min(start + self.part);
        Ok((start < end).then(|| self.bytes.slice(start..end)))
    }

    async fn prepare(&self, bytes: Bytes, wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        let is_last = bytes.as_ptr_range().end == self.bytes.as_ptr_range().end;
        let run = hashed(&self.job.engine.files, bytes.clone(), wanted).await?;
        Ok(ReadyPart { body: Body::from(bytes), run, is_last, held: None })
    }

    async fn check(&self, _whole: &RangeChecksums) -> Result<(), Error> {
        Ok(())
    }

    fn rewind(&self) -> bool {
        self.next.store(0, Ordering::Relaxed);
        true
    }

    fn at_once(&self, _cores: usize) -> usize {
        PARTS_AT_ONCE
    }
}

/// Computes checksums on a file thread, so that they don't delay the engine's thread.
///
/// # Errors
/// If the engine has ended.
pub(super) async fn hashed(
    files: &FileThreads,
    bytes: Bytes,
    wanted: ChecksumSet,
) -> Result<RangeChecksums, Error> {
    files.run(move || RangeChecksums::of(&bytes, wanted)).await
}
