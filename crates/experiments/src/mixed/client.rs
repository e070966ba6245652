//! The clients that are compared. Each can download or upload one object.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::laneway::Laneway;
use super::load::Object;
use super::rivals::{Http2, Pooled};
use super::{Errand, Mover};
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;
use crate::trace::Trace;

/// A client that makes a separate call for each object, as a program does when it needs this object.
pub(super) enum Client {
    Pooled(Pooled),
    Http2(Http2),
    Laneway(Laneway),
}

/// One object to move.
pub(super) struct Job<'a> {
    pub(super) key: String,
    pub(super) size: u64,
    pub(super) large: bool,
    pub(super) file: &'a Path,
}

impl Client {
    /// Creates a client without open connections.
    ///
    /// # Errors
    /// Returns an error if Laneway's client can't be built.
    pub(super) fn start(errand: &Errand, site: &Arc<Site>, now: Instant) -> Result<Self, Failure> {
        Ok(match errand.mover {
            Mover::Pool(bound) => Self::Pooled(Pooled::new(site, Some(bound))),
            Mover::Unbounded => Self::Pooled(Pooled::new(site, None)),
            Mover::Http2 => Self::Http2(Http2::new(site)),
            Mover::Laneway => Self::Laneway(Laneway::start(site, now)?),
        })
    }

    /// Moves one object completely.
    ///
    /// # Errors
    /// Returns the reason why the object couldn't be moved.
    pub(super) async fn transfer(
        &self,
        errand: &Errand,
        object: &Object,
        large: bool,
    ) -> Result<(), Failure> {
        let file = errand.folder.join(&object.name);
        let key = format!("{}{}", errand.prefix, object.name);
        let job = Job { key, size: object.size, large, file: &file };
        match (self, errand.puts) {
            (Self::Pooled(client), false) => client.get(&job).await,
            (Self::Pooled(client), true) => client.put(&job).await,
            (Self::Http2(client), false) => client.get(&job).await,
            (Self::Http2(client), true) => client.put(&job).await,
            (Self::Laneway(client), puts) => client.copy(&job, puts).await,
        }
    }

    /// Returns the counters, the body bytes that were moved, and the trace.
    pub(super) fn end(&self) -> (Tally, u64, Trace) {
        match self {
            Self::Pooled(client) => client.rival().ended(),
            Self::Http2(client) => client.rival().ended(),
            Self::Laneway(client) => client.end(),
        }
    }
}
