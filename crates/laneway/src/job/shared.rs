//! Errors that affect every item of a job, such as a missing bucket. The first item with such an error ends
//! the job, so that the job reports the error once instead of for each item.

use laneway_store::{ErrorKind, Operation, Provider};

use crate::{CopyRequest, Error, Location, RemoveRequest, RestoreRequest, SetMetaRequest, SyncRequest};

/// The buckets that every item of a job uses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct CommonBuckets(Vec<(Provider, String)>);

impl CommonBuckets {
    pub(crate) fn of_copy(request: &CopyRequest) -> Self {
        let mut common = Self::of_all(&request.sources);
        if let Location::Object { provider, bucket, .. } = &request.destination {
            common.0.push((*provider, bucket.clone()));
        }
        common
    }

    pub(crate) fn of_remove(request: &RemoveRequest) -> Self {
        Self::of_all(&request.targets)
    }

    pub(crate) fn of_set_meta(request: &SetMetaRequest) -> Self {
        Self::of_all(&request.targets)
    }

    pub(crate) fn of_restore(request: &RestoreRequest) -> Self {
        Self::of_all(&request.targets)
    }

    pub(crate) fn of_sync(request: &SyncRequest) -> Self {
        let ends = [&request.source, &request.destination].map(std::slice::from_ref);
        Self(ends.into_iter().flat_map(|end| Self::of_all(end).0).collect())
    }

    /// Returns the bucket of these places if they are all in one bucket. Otherwise returns no bucket.
    fn of_all(places: &[Location]) -> Self {
        let mut buckets = places.iter().map(|place| match place {
            Location::Object { provider, bucket, .. } | Location::Version { provider, bucket, .. } => {
                Some((*provider, bucket.as_str()))
            }
            Location::Local(_) | Location::Standard => None,
        });
        let Some(Some(first)) = buckets.next() else { return Self::default() };
        match buckets.all(|bucket| bucket == Some(first)) {
            true => Self(vec![(first.0, first.1.to_owned())]),
            false => Self::default(),
        }
    }

    /// Returns whether every other item would fail for the same reason.
    pub(crate) fn is_met_by(&self, error: &Error) -> bool {
        let Some(error) = error.as_store() else { return false };
        // The error of a copy inside a store may concern the source's bucket or the destination's bucket. So
        // it concerns every item only if all items share both buckets.
        let is_about_all = match error.operation() {
            Operation::Copy => self.0.len() > 1,
            _ => bucket_of(error.target()).is_some_and(|(scheme, bucket)| {
                self.0
                    .iter()
                    .any(|(provider, common)| (provider.scheme(), common.as_str()) == (scheme, bucket))
            }),
        };
        is_about_all && is_of_the_place(error)
    }
}

/// Returns whether an error concerns the bucket, the credentials or an unreachable server, not a single
/// object.
fn is_of_the_place(error: &laneway_store::Error) -> bool {
    match error.kind() {
        ErrorKind::Unauthenticated => true,
        ErrorKind::NotFound => error.is_missing_bucket(),
        _ => error.is_unreachable(),
    }
}

fn bucket_of(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    Some((scheme, rest.split('/').next().unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(sources: &[&str], destination: &str) -> CommonBuckets {
        let sources = sources.iter().map(|source| source.parse().unwrap()).collect();
        CommonBuckets::of_copy(&CopyRequest::new(sources, destination.parse().unwrap()))
    }

    #[test]
    fn a_bucket_is_common_where_every_item_is_about_it() {
        let buckets =
            |common: CommonBuckets| common.0.into_iter().map(|(_, bucket)| bucket).collect::<Vec<_>>();
        assert_eq!(buckets(copy(&["d"], "gs://to/p/")), ["to"]);
        assert_eq!(buckets(copy(&["s3://from/a", "s3://from/b"], "d/")), ["from"]);
        assert_eq!(buckets(copy(&["s3://from/a", "s3://other/b"], "gs://to/")), ["to"]);
        assert_eq!(buckets(copy(&["s3://from/a", "f"], "gs://to/")), ["to"]);
        assert!(buckets(copy(&["s3://from/a", "gs://from/b"], "d/")).is_empty());
    }

    #[test]
    fn a_url_tells_its_bucket() {
        assert_eq!(bucket_of("gs://b/k/x"), Some(("gs", "b")));
        assert_eq!(bucket_of("s3://b"), Some(("s3", "b")));
        assert_eq!(bucket_of("b"), None);
    }

    #[test]
    fn an_error_of_this_machine_is_one_items_own() {
        let error = Error::source("f", "it changed");
        assert!(!copy(&["d"], "gs://to/p/").is_met_by(&error));
    }
}
