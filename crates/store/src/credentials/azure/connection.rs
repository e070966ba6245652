//! The account and its key in settings, in variables and in connection strings
//! (<https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string>).

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use super::super::failure::CredentialFailure;
use super::hosts::{account_at, certain_account_at};
use crate::Settings;
use crate::timestamp::rfc3339;

/// The variables with a connection string, an account's name, its key, its SAS token, and the URL of its Blob service. The
/// first ones are those of the Azure CLI. Other programs use the others.
const CONNECTION: &str = "AZURE_STORAGE_CONNECTION_STRING";
const ACCOUNTS: [&str; 2] = ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"];
const KEYS: [&str; 3] = ["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"];
const SAS_TOKENS: [&str; 2] = ["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"];
const ENDPOINTS: [&str; 3] =
    ["AZURE_STORAGE_SERVICE_ENDPOINT", "AZURE_STORAGE_BLOB_ENDPOINT", "AZURE_STORAGE_ENDPOINT"];

/// The account, key and URL of Azurite, which are the same on every machine
/// (<https://learn.microsoft.com/azure/storage/common/storage-use-azurite>).
const AZURITE: (&str, &str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    "http://127.0.0.1:10000/devstoreaccount1",
);

/// The storage account that requests go to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct AzureAccount {
    pub(crate) name: Option<String>,
    /// The URL of its Blob service, with the setting that names it.
    pub(crate) endpoint: Option<(String, &'static str)>,
}

/// A secret that signs requests or is sent with them.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum StaticSecret {
    /// An account's key.
    Key { account: Option<String>, key: Vec<u8> },
    /// A shared access signature: the parameters of a query.
    Sas { account: Option<String>, query: String },
}

impl fmt::Debug for StaticSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key { .. } => "Key",
            Self::Sas { .. } => "Sas",
        })
    }
}

/// Returns the account, and its key or SAS token if there is one. A connection string comes before the other variables,
/// and the caller's settings come before all variables.
///
/// # Errors
/// Names a variable that is set but can't be used.
pub(super) fn configured(
    settings: &Settings,
    now: SystemTime,
) -> Result<(AzureAccount, Option<StaticSecret>), CredentialFailure> {
    let environment = &settings.environment;
    let unusable = |cause: String| CredentialFailure::unusable(CONNECTION, cause);
    let string = match environment.get(CONNECTION) {
        Some(text) => ConnectionString::parse(&text).map_err(unusable)?,
        None => ConnectionString::default(),
    };
    // The account of a connection string that names none is that of its endpoint.
    let string_account = string.account.clone().or_else(|| account_at(string.endpoint.as_deref()?));
    let own = settings.azure_account.clone().map(|name| (name, "--azure-account"));
    let name = own.or_else(|| Some((string_account.clone()?, CONNECTION)));
    let name = name.or_else(|| ACCOUNTS.iter().find_map(|name| Some((environment.get(name)?, *name))));
    let own = settings.azure_endpoint.clone().map(|url| (url, "--azure-endpoint"));
    let endpoint = own.or_else(|| Some((string.endpoint.clone()?, CONNECTION)));
    let endpoint =
        endpoint.or_else(|| ENDPOINTS.iter().find_map(|name| Some((environment.get(name)?, *name))));
    check_account(string_account.as_deref(), name.as_ref(), endpoint.as_ref())?;
    let secret = match (&string.key, &string.sas) {
        (Some(key), _) => {
            Some(StaticSecret::Key { account: string.account.clone(), key: decoded(key).map_err(unusable)? })
        }
        (None, Some(sas)) => {
            let query = checked_sas(sas, now).map_err(unusable)?;
            Some(StaticSecret::Sas { account: string_account, query })
        }
        (None, None) => {
            let account = name.as_ref().map(|(name, _)| name.clone());
            let account = account.or_else(|| account_at(&endpoint.as_ref()?.0));
            of_variables(settings, account, now)?
        }
    };
    Ok((AzureAccount { name: name.map(|(name, _)| name), endpoint }, secret))
}

/// Checks that the settings name one account.
///
/// # Errors
/// Names the setting that disagrees with the account's name.
fn check_account(
    of_string: Option<&str>,
    name: Option<&(String, &'static str)>,
    endpoint: Option<&(String, &'static str)>,
) -> Result<(), CredentialFailure> {
    let Some((name, named_by)) = name else { return Ok(()) };
    let of_endpoint = endpoint.and_then(|(url, by)| Some((certain_account_at(url)?, *by)));
    let of_string = of_string.map(|account| (account.to_owned(), CONNECTION));
    match [of_string, of_endpoint].into_iter().flatten().find(|(account, _)| account != name) {
        None => Ok(()),
        Some((account, by)) => {
            let cause = format!("it names the account {account}, but {named_by} names {name}");
            Err(CredentialFailure::unusable(by, cause))
        }
    }
}

/// Returns the key or SAS token of the variables. It belongs to the account that a variable names, or otherwise to
/// `account`.
fn of_variables(
    settings: &Settings,
    account: Option<String>,
    now: SystemTime,
) -> Result<Option<StaticSecret>, CredentialFailure> {
    let environment = &settings.environment;
    let set = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, environment.get(name)?)));
    if let Some((name, key)) = set(&KEYS) {
        let key = decoded(&key).map_err(|cause| CredentialFailure::unusable(name, cause))?;
        return Ok(Some(StaticSecret::Key { account: environment.first(&ACCOUNTS), key }));
    }
    let Some((name, sas)) = set(&SAS_TOKENS) else { return Ok(None) };
    let query = checked_sas(&sas, now).map_err(|cause| CredentialFailure::unusable(name, cause))?;
    Ok(Some(StaticSecret::Sas { account: environment.first(&ACCOUNTS).or(account), query }))
}

fn decoded(key: &str) -> Result<Vec<u8>, String> {
    let key = STANDARD.decode(key.trim()).map_err(|_| "the account's key isn't base64".to_owned())?;
    if key.is_empty() { Err("the account's key is empty".to_owned()) } else { Ok(key) }
}

/// Returns a SAS token without its question mark, if it has a signature and hasn't expired.
///
/// # Errors
/// Returns the reason why it can't be used. The reason doesn't repeat the token.
fn checked_sas(text: &str, now: SystemTime) -> Result<String, String> {
    let query = text.trim().trim_start_matches('?');
    let value = |name: &str| {
        let pair = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pair.into_iter().find(|(given, _)| *given == name)?.1;
        Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
    };
    if value("sig").is_none_or(|signature| signature.is_empty()) {
        return Err("it isn't a SAS token, because it has no signature (sig)".to_owned());
    }
    if format!("/?{query}").parse::<http::Uri>().is_err() {
        return Err("the SAS token has characters that no URL can carry".to_owned());
    }
    // A policy of the container may hold the time of expiration. The token then has none.
    if let Some(end) = value("se")
        && rfc3339(&end).is_some_and(|time| time <= now)
    {
        return Err(format!("the SAS token expired at {end}"));
    }
    Ok(query.to_owned())
}

/// The parts of a connection string that Laneway uses.
#[derive(Default)]
struct ConnectionString {
    account: Option<String>,
    key: Option<String>,
    sas: Option<String>,
    endpoint: Option<String>,
}

impl ConnectionString {
    /// Parses a connection string.
    ///
    /// # Errors
    /// Returns the reason why it can't be used, without repeating its secrets.
    fn parse(text: &str) -> Result<Self, String> {
        let mut fields = BTreeMap::new();
        for field in text.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').ok_or("a field has no '='")?;
            fields.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
        let field = |name: &str| fields.get(name).filter(|value| !value.is_empty()).cloned();
        if field("usedevelopmentstorage").is_some_and(|used| used.eq_ignore_ascii_case("true")) {
            let (account, key, endpoint) = AZURITE;
            let proxy = field("developmentstorageproxyuri");
            let endpoint = proxy.map_or(endpoint.to_owned(), |proxy| {
                format!("{}:10000/{account}", proxy.trim_end_matches('/'))
            });
            return Ok(Self {
                account: Some(account.to_owned()),
                key: Some(key.to_owned()),
                sas: None,
                endpoint: Some(endpoint),
            });
        }
        let (account, key, sas) = (field("accountname"), field("accountkey"), field("sharedaccesssignature"));
        let endpoint = field("blobendpoint").or_else(|| {
            let protocol = field("defaultendpointsprotocol").unwrap_or_else(|| "https".to_owned());
            let suffix = field("endpointsuffix").unwrap_or_else(|| "core.windows.net".to_owned());
            Some(format!("{protocol}://{}.blob.{suffix}", account.as_deref()?))
        });
        if endpoint.is_none() {
            return Err("it names neither AccountName nor BlobEndpoint".to_owned());
        }
        Ok(Self { account, key, sas, endpoint })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Environment;

    fn of<const N: usize>(
        variables: [(&str, &str); N],
    ) -> Result<(AzureAccount, Option<StaticSecret>), String> {
        let settings = Settings::from_environment(Environment::of(variables));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        configured(&settings, now).map_err(|failure| failure.into_error().to_string())
    }

    fn endpoint(account: &AzureAccount) -> Option<&str> {
        account.endpoint.as_ref().map(|(url, _)| url.as_str())
    }

    #[test]
    fn development_storage_is_azurite() {
        let (account, secret) = of([(CONNECTION, "UseDevelopmentStorage=true")]).expect("usable");
        assert_eq!(endpoint(&account), Some("http://127.0.0.1:10000/devstoreaccount1"));
        assert!(
            matches!(secret, Some(StaticSecret::Key { account: Some(name), .. }) if name == "devstoreaccount1")
        );
    }

    #[test]
    fn a_connection_string_names_account_key_and_domain() {
        let text = "DefaultEndpointsProtocol=https;AccountName=mine;AccountKey=YQ==;EndpointSuffix=core.chinacloudapi.cn";
        let (account, secret) = of([(CONNECTION, text)]).expect("usable");
        assert_eq!(endpoint(&account), Some("https://mine.blob.core.chinacloudapi.cn"));
        let expected = StaticSecret::Key { account: Some("mine".to_owned()), key: b"a".to_vec() };
        assert_eq!(secret, Some(expected));
    }

    #[test]
    fn a_connection_string_goes_before_the_other_variables() {
        let text = "BlobEndpoint=http://127.0.0.1:1/acc;SharedAccessSignature=sv=2020&sig=abc%3D";
        let variables =
            [(CONNECTION, text), ("AZURE_STORAGE_ACCOUNT", "other"), ("AZURE_STORAGE_KEY", "YQ==")];
        let (account, secret) = of(variables).expect("usable");
        assert_eq!(endpoint(&account), Some("http://127.0.0.1:1/acc"));
        assert_eq!(
            account.name.as_deref(),
            Some("acc"),
            "the variable names the account of other credentials"
        );
        let query = "sv=2020&sig=abc%3D".to_owned();
        assert_eq!(secret, Some(StaticSecret::Sas { account: Some("acc".to_owned()), query }));
    }

    #[test]
    fn settings_that_name_two_accounts_are_refused() {
        let with = |account: Option<&str>, variable: (&str, &str)| {
            let mut settings = Settings::from_environment(Environment::of([variable]));
            settings.azure_account = account.map(str::to_owned);
            let found = configured(&settings, SystemTime::UNIX_EPOCH);
            found.map(|_| ()).map_err(|failure| failure.into_error().to_string())
        };
        let string = (CONNECTION, "AccountName=mine;SharedAccessSignature=sig=abc");
        let endpoint = ("AZURE_STORAGE_BLOB_ENDPOINT", "https://mine.blob.core.windows.net");
        for variable in [string, endpoint] {
            assert_eq!(with(Some("mine"), variable), Ok(()));
            let why = with(Some("theirs"), variable).expect_err("two accounts");
            let says = [variable.0, "mine", "theirs", "--azure-account"];
            assert!(says.into_iter().all(|word| why.contains(word)), "{why}");
        }
        let own_domain = ("AZURE_STORAGE_BLOB_ENDPOINT", "https://files.example.com");
        assert_eq!(with(Some("mine"), own_domain), Ok(()));
    }

    #[test]
    fn a_broken_connection_string_is_an_error_and_not_another_identity() {
        for (text, says) in [
            ("nonsense", "no '='"),
            ("AccountKey=YQ==", "AccountName"),
            ("AccountName=mine;AccountKey=!", "base64"),
            ("AccountName=mine;SharedAccessSignature=sv=1", "sig"),
        ] {
            let why = of([(CONNECTION, text), ("AZURE_STORAGE_KEY", "YQ==")]).expect_err("broken");
            assert!(why.contains(CONNECTION) && why.contains(says), "{why}");
        }
    }

    #[test]
    fn an_expired_sas_names_its_end_and_keeps_its_signature_secret() {
        let sas = "?sv=2020&se=2026-01-02T03%3A04%3A05Z&sig=hunter2hunter2";
        let why = of([("AZURE_STORAGE_SAS_TOKEN", sas)]).expect_err("expired");
        assert!(why.contains("2026-01-02T03:04:05Z") && !why.contains("hunter2"), "{why}");
    }

    #[test]
    fn secrets_stay_out_of_debug_output() {
        let secret = StaticSecret::Sas { account: None, query: "sig=hunter2".to_owned() };
        assert_eq!(format!("{secret:?}"), "Sas");
    }
}
