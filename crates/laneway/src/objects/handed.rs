//! Parts of an upload from a program's memory. The program hands them over one by one, or all its bytes at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use laneway_lanes::Reservation;
use laneway_store::Body;
use tokio::sync::{Mutex, mpsc};

use crate::Error;
use crate::content::checksum::{Run, Wanted};
use crate::job::running::Running;
use crate::plan::PARTS_AT_ONCE;
use crate::transfer::upload::{Given, Input, ReadyPart};

/// The channel of an object's parts, each of the length that the upload wants. The flag marks the last part.
pub(super) type Parts = mpsc::Receiver<(Bytes, bool)>;

/// Feeds an upload whose parts come over a channel. If the channel ends without a last part, the sender has
/// abandoned the object.
pub(super) struct Handed {
    job: Arc<Running>,
    given: Given,
    parts: Mutex<(Parts, bool)>,
}

impl Handed {
    pub(super) fn new(job: Arc<Running>, given: Given, parts: Parts) -> Self {
        Self { job, given, parts: Mutex::new((parts, false)) }
    }
}

pub(super) struct Begun {
    bytes: Bytes,
    is_last: bool,
    held: Reservation,
}

impl Input for Handed {
    type Begun = Begun;

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
        // Reserve memory only for a part that has arrived. Otherwise a wait for the program's next write
        // would hold memory that other transfers need.
        let held = self.job.engine.lanes.memory().reserve(bytes.len()).await;
        Ok(Some(Begun { bytes, is_last, held }))
    }

    async fn prepare(&self, begun: Begun, wanted: Wanted) -> Result<ReadyPart, Error> {
        let Begun { bytes, is_last, held } = begun;
        let run = hashed(&self.job, bytes.clone(), wanted).await?;
        Ok(ReadyPart { body: Body::from(bytes), run, is_last, held: Some(Arc::new(held)) })
    }

    async fn check(&self, whole: &Run) -> Result<(), Error> {
        self.given.compare(whole)
    }

    fn rewind(&self) -> bool {
        false
    }
}

/// Bytes in memory that belong to the caller.
pub(super) struct InMemory {
    pub(super) job: Arc<Running>,
    pub(super) bytes: Bytes,
    pub(super) part: usize,
    pub(super) next: AtomicUsize,
}

impl Input for InMemory {
    type Begun = Bytes;

    async fn next(&self) -> Result<Option<Bytes>, Error> {
        let start = self.next.fetch_add(self.part, Ordering::Relaxed).min(self.bytes.len());
        let end = self.bytes.len().min(start + self.part);
        Ok((start < end).then(|| self.bytes.slice(start..end)))
    }

    async fn prepare(&self, bytes: Bytes, wanted: Wanted) -> Result<ReadyPart, Error> {
        let is_last = bytes.as_ptr_range().end == self.bytes.as_ptr_range().end;
        let run = hashed(&self.job, bytes.clone(), wanted).await?;
        Ok(ReadyPart { body: Body::from(bytes), run, is_last, held: None })
    }

    async fn check(&self, _whole: &Run) -> Result<(), Error> {
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

/// Computes checksums on a thread for files, where they don't delay the engine's thread.
///
/// # Errors
/// If the engine has ended.
pub(super) async fn hashed(job: &Running, bytes: Bytes, wanted: Wanted) -> Result<Run, Error> {
    job.engine.files.run(move || Run::of(&bytes, wanted)).await
}
