//! Resumable sessions.

use laneway_lanes::Body;

use super::Store;
use crate::{Appended, Checksums, Error, ObjectId, PutOptions, Resumable};

impl Store {
    /// Begins a resumable session, for preconditions and for servers without multipart uploads. If the checksums of the
    /// whole object are known, `sums` makes the store check them at the session's end.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_begin(
        &self,
        id: &ObjectId,
        len: Option<u64>,
        options: &PutOptions,
        sums: Option<&Checksums>,
    ) -> Result<Resumable, Error> {
        let begun = self.dialect.resumable_begin(id, len, options, sums).await;
        begun.map_err(|error| error.of_write(&options.condition))
    }

    /// Appends bytes to a session at `offset`. Every chunk but the `last` must be a multiple of 256 KiB long. After a
    /// lost answer, Laneway asks for the session's state, and the session may continue within the chunk. The finished
    /// object isn't compared with the bytes that were sent. Its checksums are in the answer, for the caller to compare.
    ///
    /// # Errors
    /// `NotFound` if the session no longer exists; `Precondition`; `Unsupported` on S3.
    pub async fn resumable_append(
        &self,
        session: &Resumable,
        offset: u64,
        body: Body,
        last: bool,
    ) -> Result<Appended, Error> {
        self.dialect.resumable_append(session, offset, body, last).await
    }

    /// Returns the state of a session.
    ///
    /// # Errors
    /// `NotFound` if the session no longer exists; `Unsupported` on S3.
    pub async fn resumable_status(&self, session: &Resumable) -> Result<Appended, Error> {
        self.dialect.resumable_status(session).await
    }

    /// Cancels a session. It succeeds if the session no longer exists.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        self.dialect.resumable_cancel(session).await
    }
}
