//! Computes the checksums of one stream of bytes, MiB by MiB. As soon as a MiB is written to the file, the
//! file's journal records it with its checksum (a claim), so that a later run needn't fetch it again.

use crate::content::checksum::{ChecksumHasher, ChecksumSet, RangeChecksums};
use crate::local::folder::StagedFile;
use crate::plan::slices::CLAIM_LEN;

/// The checksums of a stream so far.
#[derive(Debug)]
pub(crate) struct Claims {
    wanted: ChecksumSet,
    /// The checksums of all claimed ranges together.
    ended: RangeChecksums,
    /// The start of the next claim.
    start: u64,
    under_way: ChecksumHasher,
}

impl Claims {
    /// Returns the checksums of a stream that begins at the object's offset `start`.
    pub(crate) fn new(start: u64, wanted: ChecksumSet) -> Self {
        Self { wanted, ended: RangeChecksums::of(b"", wanted), start, under_way: ChecksumHasher::new(wanted) }
    }

    /// Adds the next bytes. The caller must first write them to the file, because this function may record
    /// them in the file's journal.
    pub(crate) fn update(&mut self, mut bytes: &[u8], staged: &StagedFile) {
        if !staged.is_journaled() {
            return self.under_way.update(bytes);
        }
        while !bytes.is_empty() {
            let at = self.start + self.under_way.len();
            let room = (CLAIM_LEN - at % CLAIM_LEN) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.under_way.update(now);
            if now.len() == room {
                self.claim(staged);
            }
            bytes = later;
        }
    }

    /// Ends the stream, and returns the checksums of all its bytes.
    pub(crate) fn finish(&mut self, staged: &StagedFile) -> RangeChecksums {
        self.claim(staged);
        std::mem::replace(&mut self.ended, RangeChecksums::of(b"", self.wanted))
    }

    fn claim(&mut self, staged: &StagedFile) {
        let run = std::mem::replace(&mut self.under_way, ChecksumHasher::new(self.wanted)).finish();
        staged.claim(self.start, &run);
        self.start += run.len;
        self.ended = self.ended.then(run);
    }
}
