//! A chain of named sources, tried in order, that remembers what was wrong with each.

use reqsign_core::{Context, ErrorKind, ProvideCredential, ProvideCredentialDyn};

use super::lacking::Lacking;

/// One place where credentials may be.
#[derive(Debug)]
pub(super) struct Source<C> {
    name: &'static str,
    provider: Box<dyn ProvideCredentialDyn<Credential = C>>,
    /// Whether a failure ends the search: who has set this source up doesn't want to be somebody else.
    binding: bool,
}

impl<C: Send + Sync + Unpin + 'static> Source<C> {
    pub(super) fn optional(name: &'static str, provider: impl ProvideCredential<Credential = C>) -> Self {
        Self { name, provider: Box::new(provider), binding: false }
    }

    pub(super) fn binding(name: &'static str, provider: impl ProvideCredential<Credential = C>) -> Self {
        Self { name, provider: Box::new(provider), binding: true }
    }
}

/// The first source's credential.
pub(super) async fn first<C: Send + Sync + Unpin + 'static>(
    sources: &[Source<C>],
    context: &Context,
) -> Result<C, Lacking> {
    let mut tried = Vec::with_capacity(sources.len());
    for source in sources {
        match source.provider.provide_credential_dyn(context).await {
            Ok(Some(credential)) => {
                tracing::debug!(source = source.name, "credentials found");
                return Ok(credential);
            }
            Ok(None) => tried.push(source.name.to_owned()),
            Err(error) => {
                // The first line: the rest of reqsign's errors is context for its developers.
                let words = error.to_string();
                let words = words.lines().next().unwrap_or_default();
                tried.push(format!("{} ({words})", source.name));
                if source.binding && error.kind() != ErrorKind::ConfigInvalid {
                    return Err(Lacking::unusable(source.name, words));
                }
            }
        }
    }
    Err(Lacking::Nothing(tried))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(Result<Option<u32>, ErrorKind>);

    impl ProvideCredential for Fixed {
        type Credential = u32;

        async fn provide_credential(&self, _: &Context) -> reqsign_core::Result<Option<u32>> {
            self.0.map_err(|kind| reqsign_core::Error::new(kind, "why\nmore"))
        }
    }

    #[tokio::test]
    async fn the_first_source_that_has_something_wins() {
        let sources = [
            Source::optional("a", Fixed(Ok(None))),
            Source::optional("b", Fixed(Err(ErrorKind::Unexpected))),
            Source::binding("c", Fixed(Ok(Some(3)))),
        ];
        assert_eq!(first(&sources, &Context::new()).await, Ok(3));
    }

    #[tokio::test]
    async fn what_was_tried_is_listed_with_what_was_wrong() {
        let sources = [
            Source::optional("a", Fixed(Ok(None))),
            Source::optional("b", Fixed(Err(ErrorKind::Unexpected))),
        ];
        let Err(Lacking::Nothing(tried)) = first(&sources, &Context::new()).await else { panic!("found") };
        assert_eq!((tried.len(), &*tried[0]), (2, "a"));
        assert!(tried[1].starts_with("b (") && !tried[1].contains("more"), "{tried:?}");
    }

    #[tokio::test]
    async fn a_source_that_was_set_up_and_fails_ends_the_search() {
        let sources = [
            Source::binding("a", Fixed(Err(ErrorKind::PermissionDenied))),
            Source::optional("b", Fixed(Ok(Some(1)))),
        ];
        assert!(first(&sources, &Context::new()).await.is_err());
        let unset = [
            Source::binding("a", Fixed(Err(ErrorKind::ConfigInvalid))),
            Source::optional("b", Fixed(Ok(Some(1)))),
        ];
        assert!(first(&unset, &Context::new()).await.is_ok());
    }
}
