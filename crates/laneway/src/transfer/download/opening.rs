//! The first request of a download: a GET without a range. The answer brings size, version, checksums and the
//! first bytes in one round trip. A small object is complete with this answer. For a large object, Laneway
//! reads the answer up to the first slice that another stream fetches.

use std::sync::Arc;

use laneway_lanes::{MemoryBudget, Reservation};
use laneway_store::{ObjectMeta, Route};
use tokio::sync::oneshot;

use super::sliced::{Claims, DownloadTarget, LargeDownload};
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::range_writer::{Output, RangeWriter};
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::plan::slices::SEGMENT_LEN;
use crate::{Error, Progress};

/// The destination of an opening stream's bytes.
#[derive(Debug)]
pub(crate) struct Opener {
    destination: DownloadTarget,
    collect_max: u64,
    memory: MemoryBudget,
    /// True if the size was known before. Otherwise the stream adds the size to the progress.
    is_size_known: bool,
    progress: Arc<Progress>,
    meta: Option<Box<ObjectMeta>>,
    claims: Claims,
    /// True if the answer has the store's checksums of its bytes.
    are_checks_expected: bool,
    body: OpenerBody,
    large: Option<oneshot::Sender<LargeDownload>>,
    /// The object's size and the additional memory reserved for it, if the object is a little larger than
    /// `collect_max`.
    more: Option<(u64, Reservation)>,
}

#[derive(Debug)]
enum OpenerBody {
    Unopened,
    Collected(Vec<u8>),
    File(Option<LargeDownload>),
}

#[derive(Debug)]
pub(crate) enum OpenerResult {
    /// A small object, or only its first bytes if the stream broke. True if the store's checksums have confirmed
    /// these bytes.
    Collected(Box<ObjectMeta>, Vec<u8>, bool),
    /// The beginning of a large object, or all of it.
    Head(LargeDownload, RangeChecksums),
    /// Only the metadata of a large object. Its bytes were not read, because the request ran on an express
    /// lane.
    Described(Box<ObjectMeta>),
}

pub(crate) type OpenerWriter = RangeWriter<Opener>;

impl RangeWriter<Opener> {
    /// Returns an opening stream that collects at most `collect_max` bytes in memory. The returned receiver
    /// announces a larger object, which is written to a file.
    pub(super) fn open(
        destination: DownloadTarget,
        collect_max: u64,
        memory: MemoryBudget,
        is_size_known: bool,
        progress: Arc<Progress>,
    ) -> (Arc<Self>, oneshot::Receiver<LargeDownload>) {
        let (large, announced) = oneshot::channel();
        let opener = Opener {
            destination,
            collect_max,
            memory,
            is_size_known,
            progress: Arc::clone(&progress),
            meta: None,
            claims: Claims::new(0, ChecksumSet::default()),
            are_checks_expected: false,
            body: OpenerBody::Unopened,
            large: Some(large),
            more: None,
        };
        (Self::of_any(opener, progress), announced)
    }

    /// Ends the stream, and returns its result if there is one.
    pub(super) fn opened(&self) -> Option<OpenerResult> {
        self.end_checked(|opener, is_checked| {
            match std::mem::replace(&mut opener.body, OpenerBody::Unopened) {
                OpenerBody::Collected(bytes) => {
                    opener.meta.take().map(|meta| OpenerResult::Collected(meta, bytes, is_checked))
                }
                OpenerBody::File(Some(large)) => {
                    large.slices().opener_ended();
                    let run = opener.claims.finish(&large.staged, is_checked);
                    Some(OpenerResult::Head(large, run))
                }
                OpenerBody::File(None) => opener.meta.take().map(OpenerResult::Described),
                OpenerBody::Unopened => None,
            }
        })
    }
}

impl Output for Opener {
    fn begin(&mut self, meta: &ObjectMeta) {
        if self.meta.is_none() && !self.is_size_known {
            self.progress.sized(meta.size);
        }
        self.meta = Some(Box::new(meta.clone()));
        // If an object is a little larger than its reservation and more memory is free, collect the object in
        // memory. Its request then needn't move to a freight lane.
        let max = self.collect_max;
        if max > 0 && max < meta.size && meta.size <= SMALL_DOWNLOAD_MAX && self.more.is_none() {
            let more = self.memory.try_reserve((meta.size - max) as usize);
            self.more = more.map(|held| (meta.size, held));
        }
        self.body = match meta.size <= self.more.as_ref().map_or(max, |(room, _)| *room) {
            true => OpenerBody::Collected(Vec::with_capacity(meta.size as usize)),
            false => OpenerBody::File(None),
        };
    }

    fn route(&self, _at: u64) -> Route {
        if matches!(self.body, OpenerBody::Collected(_)) { Route::Stay } else { Route::Freight }
    }

    fn end(&self) -> u64 {
        match (&self.body, &self.meta) {
            (OpenerBody::File(Some(large)), _) => large.slices().opener_end().unwrap_or(0),
            (OpenerBody::Collected(_) | OpenerBody::File(None), Some(meta)) => meta.size,
            _ => 0,
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let large = match &mut self.body {
            OpenerBody::Unopened => return Ok(0),
            OpenerBody::Collected(collected) => {
                let size = self.meta.as_ref().map_or(0, |meta| meta.size as usize);
                let own = bytes.len().min(size.saturating_sub(collected.len()));
                collected.extend_from_slice(&bytes[..own]);
                return Ok(own as u64);
            }
            OpenerBody::File(Some(large)) => large,
            // Create the file here, because creating it may block, and `begin` must not block.
            OpenerBody::File(unmade) => {
                let Some(meta) = self.meta.clone() else { return Ok(0) };
                let made = LargeDownload::opened(meta, &self.destination)?;
                self.claims = Claims::new(0, made.wanted);
                if self.are_checks_expected {
                    self.claims.expect_checks();
                    made.slices().cut_at(SEGMENT_LEN);
                }
                if let Some(large) = self.large.take() {
                    // Sending fails only if the job was cancelled.
                    let _ = large.send(made.clone());
                }
                unmade.insert(made)
            }
        };
        let own = large.slices().opener_takes(bytes.len() as u64);
        let taken = &bytes[..own as usize];
        large.staged.write_at(taken, at)?;
        self.claims.update(taken, &large.staged);
        Ok(own)
    }

    fn expect_checks(&mut self) {
        self.are_checks_expected = true;
        self.claims.expect_checks();
    }

    fn checked(&mut self, to: u64) {
        if let OpenerBody::File(Some(large)) = &self.body {
            self.claims.checked(to, &large.staged);
        }
    }

    fn give_up_checks(&mut self) {
        self.are_checks_expected = false;
        if let OpenerBody::File(Some(large)) = &self.body {
            self.claims.give_up_checks(&large.staged);
        }
    }
}
