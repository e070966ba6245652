//! Access tokens of Microsoft Entra ID for Azure Storage, from the places where azure-identity looks for an identity
//! (<https://learn.microsoft.com/azure/developer/python/sdk/authentication/credential-chains>).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use laneway_lanes::Lanes;
use serde::Deserialize;
use serde_json::Value;

use super::super::cache::{CredentialSource, Expiring};
use super::super::command;
use super::super::deadline::reported_when_slow;
use super::super::failure::CredentialFailure;
use super::super::presence::{Cloud, first_answer, is_there};
use super::super::request::{CredentialRequest, CredentialResponse, short};
use crate::encode::component;
use crate::timestamp::end_in;
use crate::{CredentialProvider, Environment};

/// The service for which tokens are issued.
const RESOURCE: &str = "https://storage.azure.com/";

/// The token server of Azure's public cloud.
const AUTHORITY: &str = "https://login.microsoftonline.com";

/// The metadata service of a virtual machine.
const IMDS: &str = "http://169.254.169.254";

/// The time after which a call of the Azure CLI is given up. It starts a Python program, which may renew its own login.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// The file in the Azure CLI's folder that exists once somebody has logged in.
const LOGINS: &str = "azureProfile.json";

const AZ_COMMAND: &str = "az account get-access-token --resource https://storage.azure.com/ --output json";

/// A token as a header.
pub(crate) struct EntraToken {
    pub(super) authorization: HeaderValue,
    expires_at: Option<SystemTime>,
}

impl EntraToken {
    fn new(token: &str, expires_at: Option<SystemTime>) -> Result<Self, String> {
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| "the token holds characters that no header can carry".to_owned())?;
        authorization.set_sensitive(true);
        Ok(Self { authorization, expires_at })
    }
}

impl Expiring for EntraToken {
    fn ends(&self) -> Option<SystemTime> {
        self.expires_at
    }
}

/// The places where an identity may be configured.
pub(crate) struct EntraChain {
    /// The caller's own provider. If it is set, no other source is used.
    pub(super) provider: Option<Arc<dyn CredentialProvider>>,
    pub(super) environment: Environment,
    pub(super) lanes: Lanes,
}

impl CredentialSource for EntraChain {
    type Credential = EntraToken;

    async fn load(&self) -> Result<EntraToken, CredentialFailure> {
        if let Some(provider) = &self.provider {
            let token = super::super::caller_provider::token(&**provider);
            let token = reported_when_slow(provider.name(), token).await?;
            let header = EntraToken::new(&token.access_token, token.expires_at);
            return header.map_err(|cause| CredentialFailure::unusable(provider.name(), cause));
        }
        let source = Source::find(&self.environment)?;
        let name = source.name();
        let token = reported_when_slow(name, self.token(&source)).await?;
        tracing::debug!(source = name, "credentials found");
        Ok(token)
    }
}

/// An identity that the environment configures.
#[derive(Clone, PartialEq, Eq)]
enum Source {
    Token(String),
    Secret {
        tenant: String,
        client: String,
        secret: String,
    },
    Workload {
        tenant: String,
        client: String,
        file: String,
    },
    /// An identity of App Service, Functions or a similar host.
    AppService {
        endpoint: String,
        header: String,
    },
    /// The virtual machine's identity, or else the login of the Azure CLI.
    Machine,
    /// The virtual machine's identity, and no other identity in its place.
    OnlyMachine,
    /// The login of the Azure CLI, without asking the machine for its identity first.
    Login,
}

impl Source {
    fn name(&self) -> &'static str {
        match self {
            Self::Token(_) => "AZURE_STORAGE_TOKEN",
            Self::Secret { .. } => "AZURE_CLIENT_SECRET",
            Self::Workload { .. } => "AZURE_FEDERATED_TOKEN_FILE",
            Self::AppService { .. } => "IDENTITY_ENDPOINT",
            Self::Machine | Self::OnlyMachine => MACHINE,
            Self::Login => CHOICE,
        }
    }

    /// Returns the first source that is configured.
    ///
    /// # Errors
    /// Names a source that is configured but incomplete, or that Laneway doesn't support.
    fn find(environment: &Environment) -> Result<Self, CredentialFailure> {
        let get = |name: &str| environment.get(name);
        let needed = |name: &'static str, by: &str| {
            get(name).ok_or_else(|| CredentialFailure::unusable(by, format!("{name} isn't set")))
        };
        let app_service = || {
            let endpoint = get("IDENTITY_ENDPOINT")?;
            let header = needed("IDENTITY_HEADER", "IDENTITY_ENDPOINT");
            Some(header.map(|header| Self::AppService { endpoint, header }))
        };
        let choice = get(CHOICE).unwrap_or_default();
        if choice.eq_ignore_ascii_case(CLI) {
            return Ok(Self::Login);
        }
        if choice.eq_ignore_ascii_case(MANAGED) {
            return app_service().unwrap_or(Ok(Self::OnlyMachine));
        }
        if let Some(token) = get("AZURE_STORAGE_TOKEN") {
            return Ok(Self::Token(token));
        }
        if let Some(secret) = get("AZURE_CLIENT_SECRET") {
            let by = "AZURE_CLIENT_SECRET";
            let (tenant, client) = (needed("AZURE_TENANT_ID", by)?, needed("AZURE_CLIENT_ID", by)?);
            return Ok(Self::Secret { tenant, client, secret });
        }
        if get("AZURE_CLIENT_CERTIFICATE_PATH").is_some() {
            let why = "Laneway doesn't support client certificates on Azure yet";
            return Err(CredentialFailure::unusable("AZURE_CLIENT_CERTIFICATE_PATH", why));
        }
        if let Some(file) = get("AZURE_FEDERATED_TOKEN_FILE") {
            let by = "AZURE_FEDERATED_TOKEN_FILE";
            let (tenant, client) = (needed("AZURE_TENANT_ID", by)?, needed("AZURE_CLIENT_ID", by)?);
            return Ok(Self::Workload { tenant, client, file });
        }
        app_service().unwrap_or(Ok(Self::Machine))
    }
}

const MACHINE: &str = "Azure's metadata service";

/// The variable by which azure-identity chooses one source. Laneway knows its values for the Azure CLI and for managed
/// identities. With any other value, the sources have their usual order.
const CHOICE: &str = "AZURE_TOKEN_CREDENTIALS";
const CLI: &str = "AzureCliCredential";
const MANAGED: &str = "ManagedIdentityCredential";

impl EntraChain {
    async fn token(&self, source: &Source) -> Result<EntraToken, CredentialFailure> {
        let unusable = |cause: String| CredentialFailure::unusable(source.name(), cause);
        let scope = format!("{RESOURCE}.default");
        match source {
            Source::Token(token) => EntraToken::new(token, None).map_err(unusable),
            Source::Secret { tenant, client, secret } => {
                let fields = [
                    ("grant_type", "client_credentials"),
                    ("client_id", client),
                    ("client_secret", secret),
                    ("scope", &scope),
                ];
                self.exchange(tenant, &fields).await.map_err(unusable)
            }
            Source::Workload { tenant, client, file } => {
                // Kubernetes replaces the token in the file from time to time, so it is read for each exchange.
                let path = self.environment.path(file);
                let assertion = std::fs::read_to_string(&path)
                    .map_err(|e| unusable(format!("{}: {e}", path.display())))?;
                let fields = [
                    ("grant_type", "client_credentials"),
                    ("client_id", client),
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", assertion.trim()),
                    ("scope", &scope),
                ];
                self.exchange(tenant, &fields).await.map_err(unusable)
            }
            Source::AppService { endpoint, header } => {
                let url = format!(
                    "{endpoint}?api-version=2019-08-01&resource={}{}",
                    component(RESOURCE),
                    self.client_id()
                );
                let ask = CredentialRequest::get(&url)
                    .and_then(|ask| ask.header("x-identity-header", header))
                    .map_err(unusable)?;
                let answer = ask.send(&self.lanes).await.map_err(unusable)?;
                granted(&ask, &answer).map_err(unusable)
            }
            Source::Machine => match self.of_machine().await? {
                Ok(token) => Ok(token),
                Err(why) => self.login(why).await,
            },
            Source::OnlyMachine => self.of_machine().await?.map_err(|why| {
                unusable(format!("{why}, and a managed identity is the only credential that may be used"))
            }),
            Source::Login if self.is_logged_in() => self.of_cli().await,
            Source::Login => {
                Err(unusable("nobody has logged in with the Azure CLI; run: az login".to_owned()))
            }
        }
    }

    /// Returns the query parameter that chooses one of several identities of a machine.
    fn client_id(&self) -> String {
        let id = self.environment.get("AZURE_CLIENT_ID");
        id.map(|id| format!("&client_id={}", component(&id))).unwrap_or_default()
    }

    async fn exchange(&self, tenant: &str, fields: &[(&str, &str)]) -> Result<EntraToken, String> {
        let authority = self.environment.get("AZURE_AUTHORITY_HOST").unwrap_or_else(|| AUTHORITY.to_owned());
        let authority = match authority.contains("://") {
            true => authority,
            false => format!("https://{authority}"),
        };
        let url = format!("{}/{}/oauth2/v2.0/token", authority.trim_end_matches('/'), component(tenant));
        let ask = CredentialRequest::form(&url, fields)?;
        granted(&ask, &ask.send(&self.lanes).await?)
    }

    /// Returns a token of the machine's identity, or the reason why the machine has none.
    async fn of_machine(&self) -> Result<Result<EntraToken, &'static str>, CredentialFailure> {
        let unusable = |cause: String| CredentialFailure::unusable(MACHINE, cause);
        let named = self.environment.get("AZURE_POD_IDENTITY_AUTHORITY_HOST");
        let host = named.clone().unwrap_or_else(|| IMDS.to_owned());
        let url = format!(
            "{}/metadata/identity/oauth2/token?api-version=2018-02-01&resource={}{}",
            host.trim_end_matches('/'),
            component(RESOURCE),
            self.client_id()
        );
        let ask =
            CredentialRequest::get(&url).and_then(|ask| ask.header("metadata", "true")).map_err(unusable)?;
        let (address, port) = ask.host();
        let answer = match named {
            Some(_) => Some(ask.send(&self.lanes).await),
            None if is_there(address, port, Cloud::Azure).await => first_answer(&ask, &self.lanes).await,
            None => None,
        };
        match answer {
            Some(Ok(answer)) if answer.status.is_success() => {
                granted(&ask, &answer).map(Ok).map_err(unusable)
            }
            // The user chose an identity of the machine, so no other identity may take its place.
            Some(Ok(answer)) if self.environment.get("AZURE_CLIENT_ID").is_some() => {
                Err(unusable(format!("{} answered {}", ask.place(), refusal(&answer))))
            }
            Some(Ok(answer)) if answer.status.is_server_error() => {
                Err(unusable(format!("{} answered {}", ask.place(), refusal(&answer))))
            }
            Some(Err(cause)) => Err(unusable(cause)),
            // Another cloud's service answers at the same address, or the machine has no identity.
            Some(Ok(_)) => Ok(Err("it has no identity for this machine")),
            None => Ok(Err("nothing answers")),
        }
    }

    fn is_logged_in(&self) -> bool {
        let folder = match self.environment.get("AZURE_CONFIG_DIR") {
            Some(folder) => Some(self.environment.path(&folder)),
            None => self.environment.home().map(|home| home.join(".azure")),
        };
        folder.is_some_and(|folder| folder.join(LOGINS).is_file())
    }

    /// Returns a token of the Azure CLI's login, if there is one.
    async fn login(&self, machine: &str) -> Result<EntraToken, CredentialFailure> {
        if !self.is_logged_in() {
            let tried = [
                "AZURE_STORAGE_CONNECTION_STRING",
                "AZURE_STORAGE_KEY",
                "AZURE_STORAGE_SAS_TOKEN",
                "AZURE_CLIENT_SECRET",
                "AZURE_FEDERATED_TOKEN_FILE",
                "IDENTITY_ENDPOINT",
            ];
            let tried = tried.into_iter().map(str::to_owned);
            let machine = format!("{MACHINE} ({machine})");
            let login = "the Azure CLI (nobody has logged in)".to_owned();
            return Err(CredentialFailure::Nothing(tried.chain([machine, login]).collect()));
        }
        self.of_cli().await
    }

    /// Returns the token that the Azure CLI prints.
    async fn of_cli(&self) -> Result<EntraToken, CredentialFailure> {
        let unusable = |cause: String| CredentialFailure::unusable("the Azure CLI", cause);
        let output = command::run(AZ_COMMAND, &self.environment, &[], Some(COMMAND_LIMIT)).await;
        of_az(&output.map_err(unusable)?).map_err(unusable)
    }
}

/// Reads the answer to a request for a token.
///
/// # Errors
/// Returns the server's error, or that the answer can't be read.
fn granted(ask: &CredentialRequest, answer: &CredentialResponse) -> Result<EntraToken, String> {
    if !answer.status.is_success() {
        return Err(format!("{} answered {}", ask.place(), refusal(answer)));
    }
    #[derive(Deserialize)]
    struct Document {
        access_token: String,
        /// The lifetime in seconds. The metadata service writes the number as a string.
        expires_in: Option<Value>,
        /// The seconds since 1970, as App Service writes them.
        expires_on: Option<Value>,
    }
    let Document { access_token, expires_in, expires_on } =
        answer.json().map_err(|e| format!("{}: {e}", ask.place()))?;
    let ends = expires_in.as_ref().and_then(seconds).map(end_in);
    let ends = ends.or_else(|| since_1970(seconds(expires_on.as_ref()?)?));
    EntraToken::new(&access_token, ends)
}

fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn since_1970(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Reads the Azure CLI's output.
fn of_az(output: &[u8]) -> Result<EntraToken, String> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(rename = "accessToken")]
        access_token: String,
        expires_on: Option<Value>,
    }
    let document: Document =
        serde_json::from_slice(output).map_err(|e| super::super::request::malformed(&e))?;
    let ends = document.expires_on.as_ref().and_then(seconds).and_then(since_1970);
    EntraToken::new(&document.access_token, ends)
}

/// Returns the server's status and its own words.
fn refusal(answer: &CredentialResponse) -> String {
    let status = answer.status.as_u16();
    let document = answer.json::<Value>().unwrap_or_default();
    let said = ["error_description", "error", "message"].iter().find_map(|name| document[*name].as_str());
    short(&format!("{status}: {}", said.unwrap_or("no reason given")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<const N: usize>(variables: [(&str, &str); N]) -> Result<&'static str, String> {
        let found = Source::find(&Environment::of(variables));
        found.map(|source| source.name()).map_err(|failure| failure.into_error().to_string())
    }

    #[test]
    fn a_secret_goes_before_a_federated_token_as_in_azure_identity() {
        let ids = [("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")];
        let secret = ("AZURE_CLIENT_SECRET", "s");
        let file = ("AZURE_FEDERATED_TOKEN_FILE", "/f");
        assert_eq!(found([ids[0], ids[1], secret, file]), Ok("AZURE_CLIENT_SECRET"));
        assert_eq!(found([ids[0], ids[1], file]), Ok("AZURE_FEDERATED_TOKEN_FILE"));
        assert_eq!(found([("AZURE_CLIENT_ID", "c")]), Ok(MACHINE));
    }

    #[test]
    fn the_choice_of_the_azure_cli_goes_before_all_other_sources() {
        let secret = [("AZURE_CLIENT_SECRET", "s"), ("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")];
        let [one, two, three] = secret;
        assert_eq!(found([one, two, three, (CHOICE, "azureclicredential")]), Ok(CHOICE));
        assert_eq!(found([one, two, three, (CHOICE, "prod")]), Ok("AZURE_CLIENT_SECRET"));
    }

    #[test]
    fn the_choice_of_a_managed_identity_excludes_all_other_sources() {
        let choice = (CHOICE, "managedidentitycredential");
        let source = |variables: &[(&str, &str)]| {
            let environment = Environment::of(variables.iter().copied().chain([choice]));
            Source::find(&environment).map_err(|failure| failure.into_error().to_string())
        };
        assert!(source(&[("AZURE_STORAGE_TOKEN", "t")]) == Ok(Source::OnlyMachine));
        let service = source(&[("IDENTITY_ENDPOINT", "http://h"), ("IDENTITY_HEADER", "h")]);
        assert!(service.is_ok_and(|source| source.name() == "IDENTITY_ENDPOINT"));
    }

    #[test]
    fn an_incomplete_identity_is_an_error_by_name() {
        let why = found([("AZURE_CLIENT_SECRET", "hunter2"), ("AZURE_TENANT_ID", "t")]).expect_err("broken");
        assert!(why.contains("AZURE_CLIENT_ID") && !why.contains("hunter2"), "{why}");
        let why = found([("AZURE_CLIENT_CERTIFICATE_PATH", "/c.pem")]).expect_err("unsupported");
        assert!(why.contains("AZURE_CLIENT_CERTIFICATE_PATH"), "{why}");
    }

    #[test]
    fn reads_the_azure_clis_token_and_its_end() {
        let token =
            of_az(br#"{"accessToken":"t","expires_on":1800000000,"tokenType":"Bearer"}"#).expect("a token");
        assert_eq!(token.authorization, "Bearer t");
        assert_eq!(token.ends(), since_1970(1_800_000_000));
        assert!(of_az(b"{}").is_err());
    }
}
