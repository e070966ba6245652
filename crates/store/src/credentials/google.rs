//! Google's credentials: application default credentials, shown to Google alone.

mod adc;
mod certificate;
mod external;
mod metadata;
mod token;

use std::pin::Pin;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use laneway_lanes::{Lanes, Scheme};
use reqsign_core::SigningCredential;
use reqsign_core::time::Timestamp;

use self::adc::{GOOGLE, Identity};
use self::token::Token;
use super::cache::Cache;
use super::lacking::Lacking;
use crate::endpoint::Endpoint;
use crate::{Environment, Error, Settings};

const QUOTA_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

/// Gives requests their `Authorization`.
#[derive(Debug)]
pub(crate) struct Google(Option<Box<(Chain, Cache<Bearer>)>>);

#[derive(Debug)]
struct Chain {
    environment: Environment,
    /// The domain of the cloud that the endpoint is in.
    universe: String,
    lanes: Lanes,
}

/// A token as headers, made once and not for every request.
#[derive(Clone, Debug)]
struct Bearer {
    token: Token,
    authorization: HeaderValue,
    quota_project: Option<HeaderValue>,
}

impl SigningCredential for Bearer {
    fn is_valid(&self) -> bool {
        self.token.is_valid()
    }

    fn is_valid_at(&self, time: Timestamp) -> bool {
        self.token.is_valid_at(time)
    }
}

/// The domain of the cloud that is meant: the variable's, else that of the credentials, else Google's own.
fn universe(environment: &Environment) -> String {
    let said = environment.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN");
    // What is wrong with the credentials is told when they are needed.
    let said = said.or_else(|| adc::find(environment).ok()?.universe);
    said.unwrap_or_else(|| GOOGLE.to_owned())
}

/// Where GCS is reached: where the settings say, else at its public host of the cloud that is meant.
///
/// # Errors
/// `Invalid` for an endpoint that is no URL, `Unauthenticated` for a client certificate that is set up and can't be used.
pub(crate) fn endpoint(settings: &Settings) -> Result<Endpoint, Error> {
    if let Some(url) = &settings.gcs_endpoint {
        return Endpoint::parse(url);
    }
    let universe = universe(&settings.environment);
    if settings.anonymous {
        return Endpoint::parse(&format!("https://storage.{universe}"));
    }
    let found = certificate::storage_endpoint(&universe, &settings.environment);
    let found = found.map_err(|cause| Lacking::unusable("the client certificate", cause).into_error())?;
    let mut endpoint = Endpoint::parse(&format!("https://{}", found.host))?;
    endpoint.origin.client_certificate = found.certificate.map(Arc::new);
    Ok(endpoint)
}

/// Whether a token may be shown there: to a host of its cloud, over TLS. Anything else is an emulator or a double,
/// where a token would be lost; Google's own clients show them none either.
fn is_trusted(endpoint: &Endpoint, universe: &str) -> bool {
    let host = &*endpoint.origin.host;
    let below = host.strip_suffix(universe).is_some_and(|rest| rest.ends_with('.'));
    endpoint.origin.scheme == Scheme::Https && (below || host == universe)
}

impl Google {
    /// The credentials that these settings mean, if the endpoint may see any. Nothing is asked before the first request.
    pub(crate) fn new(settings: &Settings, endpoint: &Endpoint, lanes: &Lanes) -> Self {
        let universe = universe(&settings.environment);
        if settings.anonymous || !is_trusted(endpoint, &universe) {
            return Self(None);
        }
        let chain = Chain { environment: settings.environment.clone(), universe, lanes: lanes.clone() };
        Self(Some(Box::new((chain, Cache::new()))))
    }

    /// Adds the token, and who is billed unless somebody is already; anonymous requests stay as they are.
    ///
    /// # Errors
    /// `Unauthenticated` where there are no credentials.
    pub(crate) async fn authorize(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        let Some(found) = &self.0 else { return Ok(()) };
        let (chain, cache) = &**found;
        let bearer = cache.obtain(|| chain.load()).await?;
        headers.insert(AUTHORIZATION, bearer.authorization.clone());
        if let Some(project) = &bearer.quota_project {
            headers.entry(QUOTA_PROJECT).or_insert_with(|| project.clone());
        }
        Ok(())
    }

    /// Gives up a token that the store refused; whether another one can be had.
    pub(crate) fn forget(&self) -> bool {
        self.0.as_ref().is_some_and(|found| found.1.forget())
    }
}

impl Chain {
    async fn load(&self) -> Result<Bearer, Lacking> {
        let adc = adc::find(&self.environment)?;
        let unusable = |cause: String| Lacking::unusable(&adc.name, cause);
        if let Some(own) = adc.universe.as_ref().filter(|own| **own != self.universe) {
            let said = &self.universe;
            return Err(unusable(format!("they are of {own}, and GOOGLE_CLOUD_UNIVERSE_DOMAIN says {said}")));
        }
        let token = match &adc.identity {
            Identity::Machine(machine) => {
                metadata::token(&adc.name, machine, &self.universe, &self.lanes).await?
            }
            identity => self.token(identity).await.map_err(unusable)?,
        };
        tracing::debug!(source = adc.name, "credentials found");
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", token.access_token))
            .map_err(|_| unusable("the token holds characters that no header can carry".to_owned()))?;
        authorization.set_sensitive(true);
        let quota_project = adc.quota_project.as_deref().map(HeaderValue::try_from).transpose();
        let quota_project =
            quota_project.map_err(|_| unusable("its quota project is no project".to_owned()))?;
        Ok(Bearer { token, authorization, quota_project })
    }

    /// Who impersonates may do so as somebody whom others impersonate.
    fn token<'a>(
        &'a self,
        identity: &'a Identity,
    ) -> Pin<Box<dyn Future<Output = Result<Token, String>> + Send + 'a>> {
        Box::pin(async move {
            let lanes = &self.lanes;
            match identity {
                Identity::User(user) => token::of_user(user, lanes).await,
                Identity::ExternalUser(user) => token::of_external_user(user, lanes).await,
                Identity::ServiceAccount(account) => {
                    token::of_service_account(account, &self.universe, lanes).await
                }
                Identity::External(external) => external::token(external, &self.environment, lanes).await,
                Identity::Impersonated(impersonated) => {
                    let base = self.token(&impersonated.base).await;
                    let base = base.map_err(|cause| format!("its source_credentials: {cause}"))?;
                    token::impersonated(&impersonated.url, &impersonated.delegates, None, &base, None, lanes)
                        .await
                }
                // No file says so.
                Identity::Machine(_) => Err("a machine's identity stands in no file".to_owned()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_credentials_own_cloud_are_shown_a_token_and_only_over_tls() {
        let trusted =
            |url: &str, universe: &str| is_trusted(&Endpoint::parse(url).expect("an endpoint"), universe);
        assert!(trusted("https://storage.googleapis.com", GOOGLE));
        assert!(trusted("https://storage-x.p.googleapis.com", GOOGLE));
        assert!(!trusted("https://evilgoogleapis.com", GOOGLE));
        assert!(!trusted("https://127.0.0.1:4443", GOOGLE));
        assert!(!trusted("http://storage.googleapis.com", GOOGLE));
        assert!(!trusted("localhost:4443", GOOGLE));
        assert!(trusted("https://storage.apis-own.example", "apis-own.example"));
        assert!(!trusted("https://storage.googleapis.com", "apis-own.example"));
    }

    #[test]
    fn an_emulator_is_shown_nothing_whatever_credentials_are_set_up() {
        let environment = Environment::of([
            ("STORAGE_EMULATOR_HOST", "https://127.0.0.1:4443"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/adc.json"),
        ]);
        let settings = Settings::from_environment(environment);
        let endpoint = Endpoint::parse(settings.gcs_endpoint.as_deref().expect("set")).expect("an endpoint");
        let lanes = Lanes::start(laneway_lanes::Config::default()).expect("lanes");
        assert!(Google::new(&settings, &endpoint, &lanes).0.is_none());
    }
}
