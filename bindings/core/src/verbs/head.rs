//! Requests an object's metadata.

use laneway::Bucket;

use crate::call::Work;
use crate::described;
use crate::failure::Failure;
use crate::packed::{Packed, Unpacked};

pub(super) fn head(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let head = bucket.head(from.text()?);
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        described::meta(&mut packed, &head.await?);
        Ok(packed)
    }))
}
