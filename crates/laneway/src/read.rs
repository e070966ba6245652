//! Reading an object in order, as `cat` does.

use std::sync::Arc;

use laneway_store::ObjectId;

use crate::download::in_order::{self, Wish};
use crate::location::url;
use crate::running::{Begun, Moved, Running};
use crate::{Error, Item, Location, Op, Outcome, ReadRequest};

/// A read under way: the beginning of its item, and what it ends with.
pub(crate) async fn read(
    job: Arc<Running>,
    request: ReadRequest,
    out: in_order::Chunks,
) -> Result<Moved, Error> {
    let Location::Object { provider, bucket, key } = &request.at else {
        return Err(Error::usage(request.at.to_string(), "names no object in a store"));
    };
    if key.is_empty() {
        return Err(Error::usage(request.at.to_string(), "names no object"));
    }
    let store = job.store(*provider)?;
    let id = ObjectId::new(bucket, key);
    let fetched =
        in_order::fetch(&job, store, &id, Wish { range: request.range, ..Wish::default() }, out).await?;
    Ok(fetched.moved)
}

/// The item that a read is.
pub(crate) fn begin(job: &Running, request: &ReadRequest) -> Begun {
    let source = match &request.at {
        Location::Object { provider, bucket, key } => url(*provider, &ObjectId::new(bucket, key)),
        other => other.to_string(),
    };
    job.begin(Op::Read, source, None)
}

/// The item of a read that ended well.
pub(crate) fn end(job: &Running, begun: Begun, moved: Moved) -> Item {
    let Begun { op, source, destination, start, .. } = begun;
    let Moved { bytes, attempts, verified, atomic } = moved;
    let end = job.engine.now();
    let outcome = Outcome::Done { verified };
    Item { op, source, destination, bytes, start, end, attempts, atomic, outcome }
}
