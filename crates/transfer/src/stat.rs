//! What a store knows about one object.

use std::sync::Arc;

use laneway_store::{ObjectId, ObjectMeta};

use crate::engine::Engine;
use crate::{Error, Location};

/// Asks for an object's metadata.
///
/// # Errors
/// What the store says; class `usage` for what names no object.
pub(crate) async fn stat(engine: Arc<Engine>, at: Location) -> Result<ObjectMeta, Error> {
    let Location::Object { provider, bucket, key } = &at else {
        return Err(Error::usage(at.to_string(), "names no object in a store"));
    };
    if key.is_empty() {
        return Err(Error::usage(at.to_string(), "names no object"));
    }
    Ok(engine.store(*provider)?.head(&ObjectId::new(bucket, key), None).await?)
}
