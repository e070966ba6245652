//! Resumable sessions.

use laneway_lanes::Body;

use super::Store;
use crate::{Appended, Checksums, Error, ObjectId, PutOptions, Resumable};

impl Store {
    /// Begins a resumable session. It is used for uploads with preconditions, and for servers without multipart
    /// uploads. If the checksums of the whole object are known, pass them in `sums`, and the store checks them at the
    /// end of the session.
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

    /// Appends bytes to a session at `offset`. The length of every chunk but the `last` must be a multiple of 256 KiB.
    /// After a lost answer, Laneway asks for the session's state, which may show that only part of the chunk arrived.
    /// It doesn't compare the finished object with the bytes that were sent. The caller can do so with the checksums in
    /// the answer.
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

    /// Cancels a session. If the session no longer exists, that is a success too.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        self.dialect.resumable_cancel(session).await
    }
}
