//! Computes the checksums of one stream of bytes, MiB by MiB. As soon as a MiB is written to the file, the
//! file's journal records it with its checksum (a claim), so that a later run needn't fetch it again.

use crate::content::checksum::{Hashing, Run, Wanted};
use crate::local::folder::Staged;
use crate::plan::slices::CLAIM_LEN;

/// The checksums of a stream so far.
#[derive(Debug)]
pub(crate) struct Claims {
    wanted: Wanted,
    /// The checksums of all claimed ranges together.
    ended: Run,
    /// The start of the next claim.
    start: u64,
    under_way: Hashing,
}

impl Claims {
    /// Returns the checksums of a stream that begins at the object's offset `start`.
    pub(crate) fn new(start: u64, wanted: Wanted) -> Self {
        Self { wanted, ended: Run::of(b"", wanted), start, under_way: Hashing::new(wanted) }
    }

    /// Adds the next bytes. If the bytes go to a file, the caller must have written them there, because the
    /// file's journal may record them now.
    pub(crate) fn update(&mut self, mut bytes: &[u8], staged: Option<&Staged>) {
        let Some(staged) = staged.filter(|staged| staged.is_journaled()) else {
            return self.under_way.update(bytes);
        };
        while !bytes.is_empty() {
            let at = self.start + self.under_way.len();
            let room = (CLAIM_LEN - at % CLAIM_LEN) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.under_way.update(now);
            if now.len() == room {
                self.claim(Some(staged));
            }
            bytes = later;
        }
    }

    /// Ends the stream, and returns the checksums of all of it.
    pub(crate) fn finish(&mut self, staged: Option<&Staged>) -> Run {
        self.claim(staged);
        std::mem::replace(&mut self.ended, Run::of(b"", self.wanted))
    }

    fn claim(&mut self, staged: Option<&Staged>) {
        let run = std::mem::replace(&mut self.under_way, Hashing::new(self.wanted)).finish();
        if let Some(staged) = staged {
            staged.claim(self.start, &run);
        }
        self.start += run.len;
        self.ended = self.ended.then(run);
    }
}
