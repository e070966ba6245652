//! Writing an object whose bytes are there.

use laneway::Bucket;

use super::Memory;
use crate::call::Work;
use crate::failure::Failure;
use crate::packed::Unpacked;
use crate::{described, options};

pub(super) fn put(bucket: &Bucket, from: &mut Unpacked<'_>, memory: Memory) -> Result<Work, Failure> {
    let key = from.text()?;
    let options = options::put(bucket.capabilities().versions, from)?;
    let put = bucket.put(key, memory.into_bytes()).options(options);
    Ok(Work::new(bucket.client(), async move { Ok(described::written(&put.await?)) }))
}
