//! The methods, from the slowest one to Laneway.

use serde::{Deserialize, Serialize};

use super::work::Work;
use super::{concurrent, http2, keepalive, laneway, resumable, single};
use crate::Failure;
use crate::rival::Tally;
use crate::turns::Rung;

/// A method to upload many small files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Way {
    /// A resumable upload for each file, one after another, with both requests on new connections.
    Resumable,
    /// One request for each file on a new connection, one after another.
    Single,
    /// One request for each file on one kept-alive connection, one after another.
    KeepAlive,
    /// One request for each file, all at once, each on a new HTTP/1.1 connection.
    Concurrent,
    /// One request for each file, all at once on one HTTP/2 connection.
    Http2,
    /// Laneway's library.
    Laneway,
}

/// All methods, from the slowest to the fastest.
pub(super) const RUNGS: [Rung<Way>; 6] = [
    rung(Way::Resumable, "resumable", "resumable uploads, each request on a new connection"),
    rung(Way::Single, "single", "one request for each file, on a new connection"),
    rung(Way::KeepAlive, "keepalive", "one kept-alive connection"),
    rung(Way::Concurrent, "concurrent", "all files at once, each on a new connection"),
    rung(Way::Http2, "http2", "all files at once on one HTTP/2 connection"),
    rung(Way::Laneway, "laneway", "Laneway"),
];

/// The number of methods at the start of [`RUNGS`] that upload one file after another, each on a new connection.
pub(super) const ONE_BY_ONE: usize = 2;

const fn rung(method: Way, name: &'static str, description: &'static str) -> Rung<Way> {
    Rung { method, name, description, group: "" }
}

impl Way {
    /// Uploads all files. No connection is open at the start, and none is kept open at the end.
    pub(super) async fn upload(self, work: &Work) -> Result<Tally, Failure> {
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
