//! Resumable sessions.

use laneway_lanes::Body;

use super::Store;
use crate::{Appended, Checksums, Error, ObjectId, PutOptions, Resumable};

impl Store {
    /// Begins a resumable session, for preconditions and for servers without multipart uploads. `sums`, if the whole
    /// is known already, are checked by the store when the session ends.
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

    /// Appends bytes to a session at `offset`; all but the `last` chunk are a multiple of 256 KiB long. An answer that
    /// was lost is asked for again, so that the session may go on from within the chunk. The object that the last
    /// chunk makes is not compared with anything: its checksums are in the answer.
    ///
    /// # Errors
    /// `NotFound` when the session is gone; `Precondition`; `Unsupported` on S3.
    pub async fn resumable_append(
        &self,
        session: &Resumable,
        offset: u64,
        body: Body,
        last: bool,
    ) -> Result<Appended, Error> {
        self.dialect.resumable_append(session, offset, body, last).await
    }

    /// Where a session stands.
    ///
    /// # Errors
    /// `NotFound` when the session is gone; `Unsupported` on S3.
    pub async fn resumable_status(&self, session: &Resumable) -> Result<Appended, Error> {
        self.dialect.resumable_status(session).await
    }

    /// Gives a session up; one that is gone already is no error.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        self.dialect.resumable_cancel(session).await
    }
}
