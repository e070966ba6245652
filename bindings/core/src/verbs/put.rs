//! Writes an object from bytes in memory.

use laneway::Bucket;

use crate::attributes::put_options;
use crate::call::Work;
use crate::described;
use crate::failure::Failure;
use crate::lent::Memory;
use crate::packed::Unpacked;

pub(super) fn put(bucket: &Bucket, from: &mut Unpacked<'_>, memory: Memory) -> Result<Work, Failure> {
    let key = from.text()?;
    let options = put_options(bucket.capabilities().versions, from)?;
    let put = bucket.put(key, memory.into_bytes()).options(options);
    Ok(Work::new(bucket.client(), async move { Ok(described::written(&put.await?)) }))
}
