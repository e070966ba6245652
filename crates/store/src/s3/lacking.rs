//! What S3 doesn't have, and is asked for all the same: sessions that one stream of bytes goes into.

use laneway_lanes::Body;

use super::S3;
use crate::exchange::Exchange;
use crate::{Appended, Checksums, Error, ErrorKind, ObjectId, Operation, PutOptions, Resumable};

impl S3 {
    pub(crate) async fn resumable_begin(
        &self,
        id: &ObjectId,
        _: Option<u64>,
        _: &PutOptions,
        _: Option<&Checksums>,
    ) -> Result<Resumable, Error> {
        Err(self.no_sessions(Operation::Begin, id))
    }

    pub(crate) async fn resumable_append(
        &self,
        session: &Resumable,
        _: u64,
        _: Body,
        _: bool,
    ) -> Result<Appended, Error> {
        Err(self.no_sessions(Operation::Part, &session.id))
    }

    pub(crate) async fn resumable_status(&self, session: &Resumable) -> Result<Appended, Error> {
        Err(self.no_sessions(Operation::Part, &session.id))
    }

    pub(crate) async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        Err(self.no_sessions(Operation::Abort, &session.id))
    }

    fn no_sessions(&self, operation: Operation, id: &ObjectId) -> Error {
        let message = "S3 has no resumable sessions; multipart uploads go on";
        Exchange::object(self, operation, id).error(ErrorKind::Unsupported, message)
    }
}
