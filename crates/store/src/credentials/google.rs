//! Google's application default credentials: a file that a variable names, gcloud's own file, the metadata server.

use std::sync::Arc;

use http::HeaderValue;
use laneway_lanes::{Lanes, Scheme};
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, ProvideCredential as _, SigningCredential};
use reqsign_google::{
    Credential, EnvCredentialProvider, FileCredentialProvider, ServiceAccountTokenCredentialProvider, Token,
    VmMetadataCredentialProvider, WellKnownCredentialProvider,
};

use super::cache::Cache;
use super::context::context;
use super::lacking::Lacking;
use super::source::{Source, first};
use crate::Error;
use crate::endpoint::Endpoint;

/// Gives requests their `Authorization`.
#[derive(Debug)]
pub(crate) struct Google(Option<Chain>);

#[derive(Debug)]
struct Chain {
    context: Context,
    sources: Vec<Source<Credential>>,
    cache: Cache<Bearer>,
}

/// A token as a header, made once and not for every request.
#[derive(Clone, Debug)]
struct Bearer {
    token: Token,
    header: HeaderValue,
}

impl SigningCredential for Bearer {
    fn is_valid(&self) -> bool {
        self.token.is_valid()
    }

    fn is_valid_at(&self, time: Timestamp) -> bool {
        self.token.is_valid_at(time)
    }
}

/// Which credentials an endpoint is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trusted {
    /// Google itself: the whole chain, and having none is an error.
    Google,
    /// Some other server over TLS: what `GOOGLE_APPLICATION_CREDENTIALS` names, if it is set.
    Named,
    /// An emulator in the clear: nothing, as Google's own clients do. A real token would be lost there.
    Nobody,
}

fn trusted(endpoint: &Endpoint, named: bool) -> Trusted {
    let host = &*endpoint.origin.host;
    match endpoint.origin.scheme {
        Scheme::Http => Trusted::Nobody,
        Scheme::Https if host == "googleapis.com" || host.ends_with(".googleapis.com") => Trusted::Google,
        Scheme::Https if named => Trusted::Named,
        Scheme::Https => Trusted::Nobody,
    }
}

impl Google {
    /// No credentials.
    pub(crate) fn anonymous() -> Self {
        Self(None)
    }

    /// The chain that fits the endpoint. Nothing is read before the first request.
    pub(crate) fn for_endpoint(endpoint: &Endpoint, lanes: &Lanes) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let env = || Source::binding("GOOGLE_APPLICATION_CREDENTIALS", EnvCredentialProvider::new());
        let sources = match trusted(endpoint, set("GOOGLE_APPLICATION_CREDENTIALS")) {
            Trusted::Nobody => return Self::anonymous(),
            Trusted::Named => vec![env()],
            Trusted::Google => {
                let mut sources = vec![env()];
                if let Ok(folder) = std::env::var("CLOUDSDK_CONFIG") {
                    let path = format!("{folder}/application_default_credentials.json");
                    sources.push(Source::optional("CLOUDSDK_CONFIG", FileCredentialProvider::new(path)));
                }
                sources.push(Source::optional(
                    "gcloud's default credentials",
                    WellKnownCredentialProvider::new(),
                ));
                sources.push(Source::optional("metadata server", VmMetadataCredentialProvider::new()));
                sources
            }
        };
        Self(Some(Chain { context: context(lanes), sources, cache: Cache::new() }))
    }

    /// The `Authorization` header; `None` for anonymous requests.
    ///
    /// # Errors
    /// `Unauthenticated` where the chain has nothing.
    pub(crate) async fn authorization(&self) -> Result<Option<HeaderValue>, Error> {
        let Some(chain) = &self.0 else { return Ok(None) };
        let bearer: Arc<Bearer> = chain.cache.obtain(|| load(chain)).await?;
        Ok(Some(bearer.header.clone()))
    }

    /// Gives up a token that the store refused; whether another one can be had.
    pub(crate) fn forget(&self) -> bool {
        self.0.as_ref().is_some_and(|chain| chain.cache.forget())
    }
}

async fn load(chain: &Chain) -> Result<Bearer, Lacking> {
    let failed = |message: String| Lacking::unusable("Google's credentials", message);
    let credential = first(&chain.sources, &chain.context).await?;
    let token = match (credential.token, credential.service_account) {
        (Some(token), _) => token,
        (None, Some(account)) => {
            let exchanged =
                ServiceAccountTokenCredentialProvider::new(account).provide_credential(&chain.context).await;
            exchanged
                .map_err(|e| failed(format!("no token for the service account: {e}")))?
                .and_then(|credential| credential.token)
                .ok_or_else(|| failed("no token for the service account".to_owned()))?
        }
        (None, None) => return Err(failed("the credentials hold neither a token nor a key".to_owned())),
    };
    let mut header = HeaderValue::try_from(format!("Bearer {}", token.access_token))
        .map_err(|_| failed("the token holds characters that no header can carry".to_owned()))?;
    header.set_sensitive(true);
    Ok(Bearer { token, header })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_google_and_named_servers_over_tls_are_shown_a_token() {
        let trusted = |url: &str, named| trusted(&Endpoint::parse(url).expect("an endpoint"), named);
        assert_eq!(trusted("https://storage.googleapis.com", false), Trusted::Google);
        assert_eq!(trusted("https://storage-x.p.googleapis.com", false), Trusted::Google);
        assert_eq!(trusted("https://evilgoogleapis.com", false), Trusted::Nobody);
        assert_eq!(trusted("https://127.0.0.1:4443", true), Trusted::Named);
        assert_eq!(trusted("http://storage.googleapis.com", true), Trusted::Nobody);
        assert_eq!(trusted("localhost:4443", true), Trusted::Nobody);
    }
}
