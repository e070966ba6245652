//! The tags of a copy that the store doesn't make in one go, which it would else forget.

use laneway_store::{ObjectMeta, Provider, PutOptions};

use super::{Ends, Item};
use crate::Error;
use crate::event::Warning;
use crate::location::url;
use crate::running::Running;

/// Gives a copy its source's tags, unless it is given others.
///
/// # Errors
/// What the store says where the source is known to have tags, or fails otherwise than by knowing none.
pub(super) async fn keep(
    job: &Running,
    ends: &Ends,
    item: &Item,
    source: &ObjectMeta,
    options: &mut PutOptions,
) -> Result<(), Error> {
    let both_have_tags = [&ends.from, &ends.to].into_iter().all(|store| store.provider() == Provider::S3);
    if !options.tags.is_empty() || !both_have_tags {
        return Ok(());
    }
    match job.unless_cancelled(ends.from.tags(&item.from.id)).await? {
        Ok(tags) => options.tags = tags,
        Err(error) if source.tags.is_some_and(|count| count > 0) => return Err(error.into()),
        Err(error) if error.is_permission() => {
            let target = url(ends.from.provider(), &item.from.id);
            let message = "its tags may not be read: if it has any, its copy has none".to_owned();
            job.warn(Warning { target, message }).await;
        }
        // Stores that know no tags.
        Err(error) if error.is_unsupported() || error.is_invalid() || error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
