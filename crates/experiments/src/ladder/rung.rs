//! The rungs, from the slowest way to Laneway's.

use super::work::Work;
use super::{concurrent, http2, keepalive, laneway, resumable, single};
use crate::Failure;
use crate::rival::Tally;
use crate::trace::Trace;

/// A way to upload many small files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rung {
    /// A resumable upload for each file, both requests on new connections, one file after another.
    Resumable,
    /// One request for each file on a new connection, one after another.
    Single,
    /// One request for each file on one connection that is kept, one after another.
    KeepAlive,
    /// One request for each file, all at once, each on a new HTTP/1.1 connection.
    Concurrent,
    /// One request for each file, all at once on one HTTP/2 connection.
    Http2,
    /// Laneway's library.
    Laneway,
}

impl Rung {
    /// All of them, in the order of the ladder.
    pub const ALL: [Self; 6] =
        [Self::Resumable, Self::Single, Self::KeepAlive, Self::Concurrent, Self::Http2, Self::Laneway];

    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resumable => "resumable",
            Self::Single => "single",
            Self::KeepAlive => "keepalive",
            Self::Concurrent => "concurrent",
            Self::Http2 => "http2",
            Self::Laneway => "laneway",
        }
    }

    /// What it does, for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::Resumable => "resumable, each request on a new connection",
            Self::Single => "one request a file, each on a new connection",
            Self::KeepAlive => "one kept-alive connection",
            Self::Concurrent => "all at once, each on a new connection",
            Self::Http2 => "all at once on one HTTP/2 connection",
            Self::Laneway => "Laneway",
        }
    }

    /// Uploads all files, cold: no connection is open before, and none is used afterwards.
    pub(super) async fn upload(self, work: &Work) -> Result<(Tally, Trace), Failure> {
        match self {
            Self::Resumable => resumable::upload(work).await,
            Self::Single => single::upload(work).await,
            Self::KeepAlive => keepalive::upload(work).await,
            Self::Concurrent => concurrent::upload(work).await,
            Self::Http2 => http2::upload(work).await,
            Self::Laneway => laneway::upload(work).await,
        }
    }
}
