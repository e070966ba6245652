//! Copying and renaming single objects.

use laneway::Bucket;

use crate::attributes::put_options;
use crate::call::Work;
use crate::failure::Failure;
use crate::packed::Unpacked;
use crate::{described, handles};

pub(super) fn copy(bucket: &Bucket, from: &mut Unpacked<'_>, is_rename: bool) -> Result<Work, Failure> {
    let (source, destination) = (from.text()?, from.text()?);
    let copy = match is_rename {
        true => bucket.rename(source, destination),
        false => bucket.copy(source, destination),
    };
    let into = handles::bucket(from.number()?)?;
    // Conditions are about the copy's destination.
    let put = put_options(into.capabilities().versions, from)?;
    let copy = copy.into(&into).options(put);
    Ok(Work::new(bucket.client(), async move { Ok(described::written(&copy.await?)) }))
}
