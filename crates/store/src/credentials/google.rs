//! Google's credentials: application default credentials, which are sent only to Google.

mod adc;
mod certificate;
mod external;
mod signer;
mod token;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use laneway_lanes::{Lanes, Scheme};

use self::adc::{Adc, GOOGLE, Identity, gcloud_folder, is_absent};
pub(crate) use self::signer::AccountSigner;
pub(super) use self::token::Token;
use super::cache::{self, Cache, Expiring, IdentifiedCredential};
use super::caller_provider;
use super::command;
use super::deadline::reported_when_slow;
use super::failure::CredentialFailure;
use crate::endpoint::Endpoint;
use crate::{CredentialProvider, Environment, Error, ErrorKind, Operation, Settings};

const QUOTA_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

/// Adds the `Authorization` header to requests.
#[derive(Debug)]
pub(crate) struct GoogleCredentials {
    /// `None` for anonymous requests.
    found: Option<Arc<Cache<GoogleChain>>>,
    /// True if tokens may be sent to the endpoint.
    is_shown: bool,
}

struct GoogleChain {
    /// The caller's own provider. If it is set, no other source is used.
    provider: Option<Arc<dyn CredentialProvider>>,
    /// The service account's key from the settings. It has precedence over the environment's credentials.
    service_account_key: Option<String>,
    /// The service accounts to impersonate. Requests act as the last one, and the others are delegates in between.
    impersonate: Vec<String>,
    environment: Environment,
    /// The domain of the cloud (its "universe") that the endpoint belongs to.
    universe: String,
    lanes: Lanes,
}

impl std::fmt::Debug for GoogleChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("universe", &self.universe).finish_non_exhaustive()
    }
}

/// A token and the headers that carry it. The headers are made once for all requests.
#[derive(Clone, Debug)]
struct BearerHeaders {
    token: Token,
    authorization: HeaderValue,
    quota_project: Option<HeaderValue>,
}

impl Expiring for BearerHeaders {
    fn ends(&self) -> Option<SystemTime> {
        self.token.expires_at
    }
}

/// Returns the identity of the service account's key in the settings, or else the identity that the environment names.
fn who(key: Option<&str>, environment: &Environment) -> Result<Adc, CredentialFailure> {
    key.map_or_else(|| adc::find(environment), |key| adc::given(key, environment))
}

/// Returns the domain of the cloud: from the variable, or else from the credentials, or else Google's own.
fn universe(settings: &Settings) -> String {
    let Settings { environment, service_account_key, .. } = settings;
    let said = environment.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN");
    // An error in the credentials is ignored here. It is reported when a request needs them.
    let said = said.or_else(|| who(service_account_key.as_deref(), environment).ok()?.universe);
    said.unwrap_or_else(|| GOOGLE.to_owned())
}

/// Returns the GCS endpoint: from the settings, or else the cloud's public host.
///
/// # Errors
/// `Invalid` if the endpoint isn't a URL, `Unauthenticated` if a configured client certificate can't be used.
pub(crate) fn endpoint(settings: &Settings) -> Result<Endpoint, Error> {
    if let Some(url) = &settings.gcs_endpoint {
        return Endpoint::parse(url).map_err(|error| {
            let message = format!("{} (set by --gcs-endpoint or STORAGE_EMULATOR_HOST)", error.message());
            error.but(ErrorKind::Invalid, message)
        });
    }
    let universe = universe(settings);
    if settings.anonymous {
        return Endpoint::parse(&format!("https://storage.{universe}"));
    }
    let found = certificate::storage_endpoint(&universe, &settings.environment);
    let found =
        found.map_err(|cause| CredentialFailure::unusable("the client certificate", cause).into_error())?;
    let mut endpoint = Endpoint::parse(&format!("https://{}", found.host))?;
    endpoint.origin.client_certificate = found.certificate.map(Arc::new);
    Ok(endpoint)
}

/// Returns true if Laneway sends tokens to a host: it uses TLS, and its name is in the domain of the tokens' cloud.
/// Laneway takes any other host for an emulator. Google's own clients don't send tokens to emulators either.
fn is_trusted(endpoint: &Endpoint, universe: &str) -> bool {
    let host = &*endpoint.origin.host;
    let below = host.strip_suffix(universe).is_some_and(|rest| rest.ends_with('.'));
    endpoint.origin.scheme == Scheme::Https && (below || host == universe)
}

impl GoogleCredentials {
    /// Returns the credentials that these settings choose, if the endpoint may receive any. No token is fetched before
    /// the first request needs it.
    pub(crate) fn new(settings: &Settings, endpoint: &Endpoint, lanes: &Lanes) -> Self {
        let universe = universe(settings);
        // A caller's provider knows for which hosts its tokens are meant. Tokens from files and variables are meant for
        // Google.
        let is_trusted = match settings.credential_provider {
            Some(_) => endpoint.is_tls(),
            None => is_trusted(endpoint, &universe),
        };
        if settings.anonymous {
            return Self { found: None, is_shown: false };
        }
        let chain = GoogleChain {
            provider: settings.credential_provider.clone(),
            service_account_key: settings.service_account_key.clone(),
            impersonate: settings.impersonate.clone(),
            environment: settings.environment.clone(),
            universe,
            lanes: lanes.clone(),
        };
        Self { found: Some(Cache::new(chain)), is_shown: is_trusted }
    }

    /// Adds the token to a request's headers, and the project to bill unless the request names one. Anonymous requests
    /// stay unchanged. Returns the token's number.
    ///
    /// # Errors
    /// `Unauthenticated` if there are no credentials.
    pub(crate) async fn authorize(&self, headers: &mut HeaderMap) -> Result<u64, Error> {
        let Some(found) = self.found.as_ref().filter(|_| self.is_shown) else { return Ok(0) };
        let IdentifiedCredential { credential: bearer, number } = found.obtain().await?;
        headers.insert(AUTHORIZATION, bearer.authorization.clone());
        if let Some(project) = &bearer.quota_project {
            headers.entry(QUOTA_PROJECT).or_insert_with(|| project.clone());
        }
        Ok(number)
    }

    /// Replaces an older token in a request's headers by the current one, and returns its number. Returns `None` if
    /// there is no token now.
    pub(crate) fn authorize_again(&self, headers: &mut HeaderMap) -> Option<u64> {
        let IdentifiedCredential { credential: bearer, number } =
            self.found.as_ref().filter(|_| self.is_shown)?.held()?;
        headers.insert(AUTHORIZATION, bearer.authorization.clone());
        Some(number)
    }

    /// Discards the token of this number, because the store refused it. Returns true if the request can be repeated
    /// with a newer token.
    pub(crate) fn replaces(&self, number: u64) -> bool {
        self.is_shown && self.found.as_ref().is_some_and(|found| found.replaces(number))
    }

    /// Returns the signer of URLs. It signs for any endpoint, because a signed URL contains no token.
    ///
    /// # Errors
    /// `Unauthenticated` if there are no credentials, or none that can sign.
    pub(crate) async fn signer(&self) -> Result<AccountSigner, Error> {
        let Some(found) = &self.found else {
            let message = "an anonymous client can't sign URLs";
            return Err(Error::new(ErrorKind::Unauthenticated, Operation::Sign, message));
        };
        let chain = &found.source;
        if let Some((account, delegates)) = chain.acting() {
            let base = chain.base().await.map_err(CredentialFailure::into_error)?.token;
            let iam = signer::beside(&chain.iam(account));
            let iam = iam.map_err(|cause| CredentialFailure::unusable(account, cause).into_error())?;
            return Ok(AccountSigner::of_iam(account, iam, &delegates, base, &chain.lanes));
        }
        let own = async || found.obtain().await.map(|found| found.credential.token.clone());
        if let Some(provider) = &chain.provider {
            let why = "it returns only tokens, and URLs can't be signed with a token";
            return Err(CredentialFailure::unusable(provider.name(), why).into_error());
        }
        let adc = chain.adc().map_err(CredentialFailure::into_error)?;
        let unusable = |cause: String| CredentialFailure::unusable(&adc.name, cause).into_error();
        let lanes = &chain.lanes;
        Ok(match &adc.identity {
            Identity::ServiceAccount(account) => {
                AccountSigner::of_key(&adc.name, account).map_err(unusable)?
            }
            Identity::Impersonated(impersonated) => {
                let iam = signer::beside(&impersonated.url).map_err(unusable)?;
                // Sign with the token of the base identity. The base identity's role on the account permits both tokens
                // and signatures. The account itself may lack that role.
                let base = chain.token(&impersonated.base).await;
                let base = base.map_err(|cause| unusable(format!("its source_credentials: {cause}")))?;
                AccountSigner::of_iam(&adc.name, iam, &impersonated.delegates, base, lanes)
            }
            Identity::External(external) if external.service_account_impersonation_url.is_some() => {
                let url = external.service_account_impersonation_url.as_deref().unwrap_or_default();
                let iam = signer::beside(url).map_err(unusable)?;
                AccountSigner::of_iam(&adc.name, iam, &[], own().await?, lanes)
            }
            Identity::Machine(machine) => {
                let token = own().await?;
                let email = token::email_of_machine(machine, lanes).await.map_err(unusable)?;
                AccountSigner::of_iam(&adc.name, signer::at(&chain.universe, &email), &[], token, lanes)
            }
            Identity::User(_) | Identity::ExternalUser(_) | Identity::External(_) => {
                return Err(unusable(
                    "only service accounts can sign URLs: set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account, or impersonate one \
                     (gcloud auth application-default login --impersonate-service-account=EMAIL)"
                        .to_owned(),
                ));
            }
        })
    }
}

impl cache::CredentialSource for GoogleChain {
    type Credential = BearerHeaders;

    async fn load(&self) -> Result<BearerHeaders, CredentialFailure> {
        let base = self.base().await?;
        let Some((account, delegates)) = self.acting() else { return Ok(base) };
        let unusable = |cause| CredentialFailure::unusable(format!("impersonation of {account}"), cause);
        let url = self.iam(account);
        let acting = token::impersonated(&url, &delegates, None, &base.token, None, &self.lanes);
        let token = reported_when_slow(account, acting).await.map_err(unusable)?;
        Ok(BearerHeaders { quota_project: base.quota_project, ..bearer(token, None).map_err(unusable)? })
    }
}

impl GoogleChain {
    /// Returns the account to act as, and the names of the delegates in between.
    fn acting(&self) -> Option<(&str, Vec<String>)> {
        let (account, delegates) = self.impersonate.split_last()?;
        Some((account, delegates.iter().map(|email| format!("projects/-/serviceAccounts/{email}")).collect()))
    }

    /// Returns the URL at which IAM issues an account's tokens. Users can name another server with the environment
    /// variable that gcloud also reads.
    fn iam(&self, account: &str) -> String {
        let named = self.environment.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS");
        let url = named.unwrap_or_else(|| format!("https://iamcredentials.{}", self.universe));
        let url = url.trim_end_matches('/');
        format!("{url}/v1/projects/-/serviceAccounts/{account}:generateAccessToken")
    }

    /// Fetches the token of the identity itself, before it acts as another.
    async fn base(&self) -> Result<BearerHeaders, CredentialFailure> {
        if let Some(provider) = &self.provider {
            let token = reported_when_slow(provider.name(), caller_provider::token(&**provider)).await?;
            return bearer(token, None).map_err(|cause| CredentialFailure::unusable(provider.name(), cause));
        }
        let adc = match self.adc() {
            Err(CredentialFailure::Nothing(tried)) => return self.login(tried).await,
            adc => adc?,
        };
        let unusable = |cause: String| CredentialFailure::unusable(&adc.name, cause);
        let token = reported_when_slow(&adc.name, async {
            match &adc.identity {
                Identity::Machine(machine) => {
                    token::of_machine(&adc.name, machine, &self.universe, &self.lanes).await
                }
                identity => self.token(identity).await.map_err(unusable),
            }
        });
        let token = match token.await {
            Err(CredentialFailure::Nothing(tried)) => return self.login(tried).await,
            token => token?,
        };
        tracing::debug!(source = adc.name, "credentials found");
        bearer(token, adc.quota_project.as_deref()).map_err(unusable)
    }

    /// Returns a token of gcloud's own login. Google's libraries don't use this login. So Laneway tries it last, when
    /// it has found none of the identities that the libraries use.
    async fn login(&self, tried: Vec<String>) -> Result<BearerHeaders, CredentialFailure> {
        if self.universe != GOOGLE {
            return Err(CredentialFailure::Nothing(tried));
        }
        let token = reported_when_slow("gcloud", gcloud_token(&self.environment, tried)).await?;
        tracing::debug!(source = "gcloud", "credentials found");
        let quota_project = self.environment.get("GOOGLE_CLOUD_QUOTA_PROJECT");
        bearer(token, quota_project.as_deref()).map_err(|cause| CredentialFailure::unusable("gcloud", cause))
    }

    /// Returns the identity, and checks that it belongs to the endpoint's cloud.
    fn adc(&self) -> Result<Adc, CredentialFailure> {
        let adc = who(self.service_account_key.as_deref(), &self.environment)?;
        if let Some(own) = adc.universe.as_ref().filter(|own| **own != self.universe) {
            let said = &self.universe;
            let why = format!("they belong to {own}, but GOOGLE_CLOUD_UNIVERSE_DOMAIN is {said}");
            return Err(CredentialFailure::unusable(&adc.name, why));
        }
        Ok(adc)
    }

    /// Fetches an identity's token. It is recursive, because the impersonating identity may itself be an impersonated
    /// account.
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
                // A credentials file can't describe the identity of a machine, so this case never occurs.
                Identity::Machine(_) => Err("a machine's identity can't be in a credentials file".to_owned()),
            }
        })
    }
}

/// Returns a token as headers.
///
/// # Errors
/// Fails if a header can't carry the token.
fn bearer(token: Token, quota_project: Option<&str>) -> Result<BearerHeaders, String> {
    let mut authorization = HeaderValue::try_from(format!("Bearer {}", token.access_token))
        .map_err(|_| "the token holds characters that no header can carry")?;
    authorization.set_sensitive(true);
    let quota_project = quota_project.map(HeaderValue::try_from).transpose();
    let quota_project = quota_project.map_err(|_| "its quota project isn't a valid project")?;
    Ok(BearerHeaders { token, authorization, quota_project })
}

/// The login of gcloud itself (`gcloud auth login`). Laneway asks gcloud for a token, and reads none of its files
/// (<https://cloud.google.com/sdk/gcloud/reference/auth/print-access-token>).
const LOGIN: &str = "gcloud's own login";

/// The database of logins. It exists once somebody has logged in.
const LOGINS: &str = "credentials.db";

const GCLOUD_COMMAND: &str = "gcloud auth print-access-token --quiet";

/// The time limit for gcloud. It takes a second or two to start, and it may send requests to Google.
const GCLOUD_LIMIT: Duration = Duration::from_secs(60);

/// The assumed lifetime of a token from gcloud. gcloud prints a fresh token, which is valid for an hour, but doesn't
/// print its expiration. If a token expires earlier, the store refuses it, and Laneway asks gcloud again.
const GCLOUD_LIFETIME: Duration = Duration::from_secs(50 * 60);

/// Asks gcloud for a token.
///
/// # Errors
/// `Nothing` if nobody has logged in with gcloud; otherwise the failure of gcloud.
async fn gcloud_token(environment: &Environment, mut tried: Vec<String>) -> Result<Token, CredentialFailure> {
    let has_logins = gcloud_folder(environment).is_some_and(|folder| !is_absent(&folder.join(LOGINS)));
    if !has_logins {
        tried.push(LOGIN.to_owned());
        return Err(CredentialFailure::Nothing(tried));
    }
    let printed = command::run(GCLOUD_COMMAND, environment, &[], Some(GCLOUD_LIMIT)).await;
    let printed = printed.map_err(|cause| CredentialFailure::unusable(LOGIN, cause))?;
    let access_token = String::from_utf8_lossy(&printed).trim().to_owned();
    if access_token.is_empty() || access_token.contains(char::is_whitespace) {
        return Err(CredentialFailure::unusable(LOGIN, "gcloud printed no token"));
    }
    Ok(Token { access_token, expires_at: Some(SystemTime::now() + GCLOUD_LIFETIME) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BearerToken, Provided};

    #[tokio::test]
    async fn sends_a_providers_token_only_over_tls_and_instead_of_configured_ones() {
        struct Hush;
        impl CredentialProvider for Hush {
            fn name(&self) -> &str {
                "hush"
            }

            fn bearer_token(&self) -> Provided<'_, BearerToken> {
                Box::pin(async { Ok(BearerToken::new("mine")) })
            }
        }
        let environment = Environment::of([("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/adc.json")]);
        let settings =
            Settings { credential_provider: Some(Arc::new(Hush)), ..Settings::from_environment(environment) };
        let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
        let shown = async |url: &str| {
            let endpoint = Endpoint::parse(url).expect("an endpoint");
            let mut headers = HeaderMap::new();
            GoogleCredentials::new(&settings, &endpoint, &lanes)
                .authorize(&mut headers)
                .await
                .expect("a token");
            headers.get(AUTHORIZATION).map(|value| value.to_str().expect("text").to_owned())
        };
        for url in ["https://storage.googleapis.com", "https://localhost:4443"] {
            assert_eq!(shown(url).await.as_deref(), Some("Bearer mine"), "{url}");
        }
        assert_eq!(shown("http://localhost:4443").await, None);
    }

    #[tokio::test]
    async fn all_requests_of_a_refused_token_get_the_next_one() {
        struct Counting(std::sync::atomic::AtomicU32);
        impl CredentialProvider for Counting {
            fn name(&self) -> &str {
                "counting"
            }

            fn bearer_token(&self) -> Provided<'_, BearerToken> {
                let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Box::pin(async move { Ok(BearerToken::new(format!("t{number}"))) })
            }
        }
        let provider = Arc::new(Counting(0.into()));
        let settings = Settings { credential_provider: Some(provider), ..Settings::default() };
        let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
        let endpoint = Endpoint::parse("https://storage.googleapis.com").expect("an endpoint");
        let google = GoogleCredentials::new(&settings, &endpoint, &lanes);
        let shown = async || {
            let mut headers = HeaderMap::new();
            let number = google.authorize(&mut headers).await.expect("a token");
            (number, headers[AUTHORIZATION].to_str().expect("text").to_owned())
        };
        let ((one, first), (other, _)) = (shown().await, shown().await);
        assert_eq!((&*first, one), ("Bearer t0", other));
        assert!(google.replaces(one));
        assert_eq!(shown().await.1, "Bearer t1");
        assert!(google.replaces(other));
        assert_eq!(shown().await.1, "Bearer t1");
    }

    #[test]
    fn sends_tokens_only_over_tls_and_to_hosts_of_the_credentials_cloud() {
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
        let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
        assert!(!GoogleCredentials::new(&settings, &endpoint, &lanes).is_shown);
    }
}
