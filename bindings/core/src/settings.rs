//! The settings of a client, in one table. Tests compare the builders and keywords of the bindings with this table.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use laneway::internal::is_endpoint;
use laneway::{
    AccessKey, AssumedRole, BearerToken, Client, ClientBuilder, CredentialProvider, CustomerKey, Engine,
    Provided, Provider, SseAlgorithm,
};

use crate::azure;
use crate::failure::Failure;
use crate::value::{FromValue, InvalidValue, NamedValues, Value, ValueKind};

/// A setting of a client. The library's `ClientBuilder` has a method with the same name, unless the table says
/// otherwise.
#[derive(Debug)]
pub struct ClientSetting {
    /// The name, which is the same in every language.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ValueKind,
    /// A description, usually in one sentence.
    pub meaning: &'static str,
    set: fn(ClientBuilder, Value) -> Result<ClientBuilder, InvalidValue>,
}

macro_rules! setting {
    ($name:ident, $kind:ident $(as $type:ty)?, $meaning:literal) => {
        setting!($name, $kind, $meaning, |builder, value| Ok(builder.$name(value.read$(::<$type>)?()?)))
    };
    ($name:ident, $kind:ident, $meaning:literal, $set:expr) => {
        ClientSetting { name: stringify!($name), kind: ValueKind::$kind, meaning: $meaning, set: $set }
    };
}

/// A setter that does nothing. Used for settings that [`client`] combines with other settings.
const TOGETHER: fn(ClientBuilder, Value) -> Result<ClientBuilder, InvalidValue> = |builder, _| Ok(builder);

/// All settings, in the order of their names.
pub static SETTINGS: &[ClientSetting] = &[
    setting!(access_key_id, Text, "The id of an AWS access key. It needs `secret_access_key` too.", TOGETHER),
    setting!(anonymous, Flag, "Sends no credentials, and doesn't search for any."),
    setting!(
        assume_role,
        Pairs,
        "An AWS role to assume with the AWS credentials: its `arn`, and optionally other parameters of the request.",
        |builder, value| Ok(builder.assume_role(assumed_role(&value.read()?)?))
    ),
    setting!(azure_account, Text as String, "The storage account of Azure URLs that name none."),
    setting!(
        azure_credentials,
        Pairs,
        "Azure's credentials by name, such as `account_key` or `sas_token`, instead of those of the environment variables.",
        TOGETHER
    ),
    setting!(
        azure_endpoint,
        Text,
        "The URL of the Blob service of Azure's storage account. It overrides the environment variables.",
        |builder, value| Ok(builder.azure_endpoint(endpoint(Provider::Azure, value)?))
    ),
    setting!(
        bandwidth_limit,
        Number,
        "The maximum number of bytes that the engine sends and receives in a second.",
        |builder, value| Ok(builder.bandwidth_limit(at_least(1, value)?))
    ),
    setting!(
        bearer_token,
        Text,
        "A Google access token. It isn't renewed when it expires.",
        |builder, value| {
            Ok(builder.credential_provider(Arc::new(LastingToken(BearerToken::new(value.read::<String>()?)))))
        }
    ),
    setting!(ca_file, Text as String, "Also trusts the certificates in this PEM file."),
    setting!(connections_max, Number, "The maximum number of the engine's connections.", |builder, value| {
        Ok(builder.connections_max(at_least(1, value)?))
    }),
    setting!(
        customer_key,
        Text,
        "An encryption key that the store doesn't keep, as 32 bytes in base64. It is used to encrypt new objects and to read objects.",
        |builder, value| {
            let key = CustomerKey::parse(value.read::<String>()?.as_bytes());
            Ok(builder.customer_key(key.map_err(|error| InvalidValue::Value(error.to_string()))?))
        }
    ),
    setting!(
        environment,
        Flag,
        "Uses the process's environment variables. Other settings override them.",
        TOGETHER
    ),
    setting!(
        gcs_endpoint,
        Text,
        "Base URL of GCS's API, instead of `https://storage.googleapis.com`.",
        |builder, value| Ok(builder.gcs_endpoint(endpoint(Provider::Gcs, value)?))
    ),
    setting!(headers, Pairs, "Headers to add to each request to the store.", |builder, value| {
        let headers = value.read::<BTreeMap<String, String>>()?;
        Ok(headers.iter().try_fold(builder, |builder, (name, value)| builder.header(name, value))?)
    }),
    setting!(http_proxy, Text as String, "Proxy for `http` URLs."),
    setting!(https_proxy, Text as String, "Proxy for `https` URLs."),
    setting!(
        impersonate,
        Texts as Vec<String>,
        "Google service accounts to impersonate. The client acts as the last account, and the others are delegates."
    ),
    setting!(kms_bucket_key, Flag, "Uses an S3 bucket key, so that S3 sends fewer requests to KMS."),
    setting!(
        kms_key,
        Text as String,
        "The key in the store's key management service that encrypts new objects."
    ),
    setting!(
        memory,
        Number,
        "The maximum number of bytes that the engine buffers in memory.",
        |builder, value| Ok(builder.memory(at_least(MEMORY_BYTES_MIN, value)?))
    ),
    setting!(no_proxy, Texts as Vec<String>, "Hosts that are reached without a proxy."),
    setting!(profile, Text as String, "AWS profile. The client then uses no other AWS credentials."),
    setting!(project, Text as String, "The Google Cloud project whose buckets the client lists."),
    setting!(region, Text as String, "AWS region. It overrides the environment variables and the profile."),
    setting!(request_payer, Flag, "Accepts the costs of requester-pays buckets on S3."),
    setting!(
        retry_for,
        Duration,
        "A call fails once Laneway has retried for this time without a response. Zero disables retries."
    ),
    setting!(s3_accelerate, Flag, "Uses Amazon's endpoints for Transfer Acceleration."),
    setting!(s3_dualstack, Flag, "Uses Amazon's dual-stack endpoints, which also have IPv6."),
    setting!(
        s3_endpoint,
        Text,
        "Base URL of S3's API. It overrides the environment variables, the profile and AWS's own URL.",
        |builder, value| Ok(builder.s3_endpoint(endpoint(Provider::S3, value)?))
    ),
    setting!(s3_fips, Flag, "Uses Amazon's endpoints whose cryptography is validated under FIPS 140."),
    setting!(s3_path_style, Flag, "Puts S3 bucket names into the path instead of the host name."),
    setting!(secret_access_key, Text, "The secret of the AWS access key.", TOGETHER),
    setting!(
        service_account_file,
        Text,
        "A file with the key of a Google service account.",
        |builder, value| {
            let path = value.read::<String>()?;
            let read = fs::read_to_string(&path);
            Ok(builder
                .service_account_key(read.map_err(|error| InvalidValue::Value(format!("{path}: {error}")))?))
        }
    ),
    setting!(service_account_key, Text as String, "The key of a Google service account, as JSON."),
    setting!(session_token, Text, "The session token of a temporary AWS access key.", TOGETHER),
    setting!(sse, Text, "The algorithm by which S3 encrypts new objects.", |builder, value| {
        let unknown =
            || InvalidValue::Value("unknown algorithm; use AES256, aws:kms or aws:kms:dsse".to_owned());
        Ok(builder.sse(SseAlgorithm::named(&value.read::<String>()?).ok_or_else(unknown)?))
    }),
    setting!(
        stall_timeout,
        Duration,
        "An attempt of a request fails if no byte moves in either direction for this time.",
        |builder, value| {
            let timeout = value.read::<Duration>()?;
            if timeout < Duration::from_millis(1) {
                return Err(InvalidValue::Value("the value must be at least 1 ms".to_owned()));
            }
            Ok(builder.stall_timeout(timeout))
        }
    ),
    setting!(
        user_agent_suffix,
        Text,
        "A product name that is added to the `User-Agent` of requests, such as `shop/2.1`.",
        |builder, value| Ok(builder.user_agent_suffix(&value.read::<String>()?)?)
    ),
    setting!(
        user_project,
        Text as String,
        "The Google Cloud project that pays for requests, instead of the project of the bucket's owner."
    ),
    setting!(
        variables,
        Pairs,
        "Uses these variables instead of the process's environment variables.",
        TOGETHER
    ),
];

/// The minimum memory of an engine in bytes. The library itself would raise a smaller number to this one.
const MEMORY_BYTES_MIN: usize = 1 << 20;

/// Reads a number, and refuses one below `min`.
fn at_least<N: FromValue + PartialOrd + Display>(min: N, value: Value) -> Result<N, InvalidValue> {
    let number: N = value.read()?;
    if number < min {
        return Err(InvalidValue::Value(format!("the value must be at least {min}")));
    }
    Ok(number)
}

/// Returns the base URL of a store. The library would report an invalid one only at the first request.
fn endpoint(store: Provider, value: Value) -> Result<String, InvalidValue> {
    let url = value.read::<String>()?;
    if is_endpoint(store, &url) {
        return Ok(url);
    }
    let short = if store == Provider::Gcs { ", or host:port" } else { "" };
    let message = format!("the value must be a URL with http:// or https:// and a host{short}");
    Err(InvalidValue::Value(message))
}

/// Returns a role from its parts.
fn assumed_role(parts: &BTreeMap<String, String>) -> Result<AssumedRole, InvalidValue> {
    let mut role = AssumedRole::default();
    for (name, text) in parts {
        let text = text.clone();
        match name.as_str() {
            "arn" => role.arn = text,
            "session_name" => role.session_name = Some(text),
            "external_id" => role.external_id = Some(text),
            "duration_s" => {
                let seconds =
                    text.parse().map_err(|_| InvalidValue::Value("duration_s is no number".into()))?;
                role.duration = Some(Duration::from_secs(seconds));
            }
            "policy" => role.policy = Some(text),
            "sts_endpoint" => role.sts_endpoint = Some(text),
            "sts_region" => role.sts_region = Some(text),
            _ => return Err(InvalidValue::Value(format!("roles have no part {name}"))),
        }
    }
    if role.arn.is_empty() {
        return Err(InvalidValue::Value("a role needs its arn".into()));
    }
    Ok(role)
}

/// Returns the type of a setting's values.
///
/// # Errors
/// Fails if the name isn't in the table.
pub fn kind_of(name: &str) -> Result<ValueKind, Failure> {
    Ok(setting(name)?.kind)
}

fn setting(name: &str) -> Result<&'static ClientSetting, Failure> {
    let unknown = || Failure::usage(format!("{name}: clients have no such setting"));
    SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(unknown)
}

/// Creates a client. If there is a `provider`, the credentials come from it, and not from files and variables.
///
/// # Errors
/// Fails if a name isn't in the table, if a value is invalid, or if `ClientBuilder::build` fails. The message doesn't
/// repeat an invalid value, which may be a secret.
pub fn client(
    settings: NamedValues,
    provider: Option<Arc<dyn CredentialProvider>>,
) -> Result<Client, Failure> {
    Ok(BuiltClient::new(settings, provider, |builder| builder)?.client)
}

/// A client, and its builder, which makes the same client with an engine of its own.
#[derive(Clone)]
pub struct BuiltClient {
    /// The client.
    pub client: Client,
    builder: ClientBuilder,
    bandwidth_limit: Option<u64>,
}

impl BuiltClient {
    /// Creates a client with these settings. `with` adds the settings that aren't in the table.
    ///
    /// # Errors
    /// Fails as [`client`] does.
    pub fn new(
        settings: NamedValues,
        provider: Option<Arc<dyn CredentialProvider>>,
        with: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Failure> {
        let limit = settings.iter().find(|(name, _)| name == "bandwidth_limit");
        let bandwidth_limit = limit.and_then(|(_, value)| value.clone().read().ok());
        let builder = with(builder(settings, provider)?);
        Ok(Self { client: builder.clone().build()?, builder, bandwidth_limit })
    }

    /// Returns a client that uses at most so many bytes a second. It has an engine of its own, because the process's
    /// engine may run without this limit already.
    ///
    /// # Errors
    /// Fails as `ClientBuilder::build` does.
    pub(crate) fn within(&self, bytes_per_second: u64) -> Result<Client, Failure> {
        let limit = self.bandwidth_limit.map_or(bytes_per_second, |limit| limit.min(bytes_per_second));
        Ok(self.builder.clone().engine(Engine::builder().bandwidth_limit(limit).build()).build()?)
    }
}

/// Returns the builder of [`client`]'s result.
///
/// # Errors
/// Fails as [`client`] does, except for the errors of `ClientBuilder::build`.
fn builder(
    settings: NamedValues,
    provider: Option<Arc<dyn CredentialProvider>>,
) -> Result<ClientBuilder, Failure> {
    let value = |name| settings.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let text = |name| value(name).cloned().map(Value::read::<String>).transpose().map_err(|why| why.of(name));
    if let Some(Value::Pairs(parts)) = value("azure_credentials")
        && let Some(name) = azure::identity_in(parts)
        && let Some(other) = match (&provider, value("bearer_token")) {
            (Some(_), _) => Some("a credential provider"),
            (None, token) => token.map(|_| "bearer_token"),
        }
    {
        let why = format!("{other} and {name} are both credentials; pass only one of them");
        return Err(InvalidValue::Value(why).of("azure_credentials"));
    }
    let builder = match (value("environment"), value("variables"), value("azure_credentials")) {
        (environment, variables, Some(Value::Pairs(parts))) => {
            let mut variables = match (environment, variables) {
                (Some(Value::Flag(true)), _) => process_variables(),
                (_, Some(Value::Pairs(variables))) => variables.clone(),
                _ => BTreeMap::new(),
            };
            let account = text("azure_account")?;
            azure::replace_credentials(&mut variables, parts, account.as_deref())
                .map_err(|why| why.of("azure_credentials"))?;
            ClientBuilder::from_variables(variables)
        }
        (Some(Value::Flag(true)), ..) => ClientBuilder::from_env(),
        (_, Some(Value::Pairs(variables)), _) => ClientBuilder::from_variables(variables.clone()),
        _ => Client::builder(),
    };
    let builder = match (text("access_key_id")?, text("secret_access_key")?, text("session_token")?) {
        (Some(id), Some(secret), token) => {
            let key = AccessKey::new(id, secret);
            builder.access_key(match token {
                Some(token) => key.session_token(token),
                None => key,
            })
        }
        (None, None, None) => builder,
        _ => {
            let message =
                "access_key_id and secret_access_key belong together, and session_token needs both of them";
            return Err(Failure::usage(message));
        }
    };
    let builder = settings.into_iter().try_fold(builder, |builder, (name, value)| {
        (setting(&name)?.set)(builder, value).map_err(|why| why.of(&name))
    })?;
    Ok(match provider {
        Some(provider) => builder.credential_provider(provider),
        None => builder,
    })
}

/// Returns the environment variables of this process, with the user's home folder.
fn process_variables() -> BTreeMap<String, String> {
    // The library also replaces invalid UTF-8 in the values.
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let variables = env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    with_home(variables, env::home_dir().map(|home| text(home.into_os_string())))
}

/// Adds `HOME` if it is unset or empty. The library asks the system for the home folder only if it reads the process's
/// own variables.
fn with_home(mut variables: BTreeMap<String, String>, home: Option<String>) -> BTreeMap<String, String> {
    if let Some(home) = home {
        let named = variables.entry("HOME".to_owned()).or_default();
        if named.is_empty() {
            *named = home;
        }
    }
    variables
}

/// A provider that always returns the same token, which the program obtained by itself.
struct LastingToken(BearerToken);

impl CredentialProvider for LastingToken {
    fn name(&self) -> &str {
        "bearer_token"
    }

    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        let token = self.0.clone();
        Box::pin(async { Ok(token) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::of_texts;

    fn made(texts: &[(&str, &str)]) -> Result<Client, Failure> {
        client(of_texts(texts.iter().copied(), kind_of)?, None)
    }

    #[test]
    fn keys_belong_together() {
        assert!(made(&[("access_key_id", "id"), ("secret_access_key", "secret")]).is_ok());
        for alone in ["access_key_id", "secret_access_key", "session_token"] {
            let refused = made(&[(alone, "value")]).unwrap_err();
            assert!(refused.message.contains("belong together"), "{}", refused.message);
        }
    }

    #[test]
    fn a_token_source_goes_with_no_other_credentials_of_azure() {
        let made = |part: &str, texts: &[(&str, &str)], provider: Option<Arc<dyn CredentialProvider>>| {
            let mut settings = of_texts(texts.iter().copied(), kind_of).expect("settings");
            let parts = BTreeMap::from([(part.to_owned(), "hush".to_owned())]);
            settings.push(("azure_credentials".to_owned(), Value::Pairs(parts)));
            client(settings, provider)
        };
        let provider = || -> Option<Arc<dyn CredentialProvider>> {
            Some(Arc::new(LastingToken(BearerToken::new("t".to_owned()))))
        };
        for name in ["account_key", "sas_token", "client_id"] {
            let refused = made(name, &[], provider()).unwrap_err().message;
            assert!(refused.starts_with("azure_credentials: a credential provider and "), "{refused}");
            assert!(refused.contains(name) && !refused.contains("hush"), "{refused}");
            let refused = made(name, &[("bearer_token", "t")], None).unwrap_err().message;
            assert!(refused.contains(&format!("bearer_token and {name}")), "{refused}");
        }
        assert!(made("tenant_id", &[], provider()).is_ok());
    }

    #[test]
    fn a_process_without_home_still_finds_the_users_folder() {
        let home = |set: &[&str], known: Option<&str>| {
            let set = set.iter().map(|value| ("HOME".to_owned(), (*value).to_owned())).collect();
            with_home(set, known.map(str::to_owned)).remove("HOME")
        };
        assert_eq!(home(&[], Some("/home/me")).as_deref(), Some("/home/me"));
        assert_eq!(home(&[""], Some("/home/me")).as_deref(), Some("/home/me"));
        assert_eq!(home(&["/set"], Some("/home/me")).as_deref(), Some("/set"));
        assert_eq!(home(&[], None), None);
    }

    #[test]
    fn only_the_endpoint_of_gcs_may_lack_its_scheme() {
        for url in ["localhost:4443", "http://localhost:4443", "HTTPS://h/base"] {
            assert!(made(&[("gcs_endpoint", url)]).is_ok(), "{url}");
        }
        assert!(made(&[("s3_endpoint", "http://localhost:9000")]).is_ok());
        assert!(made(&[("s3_endpoint", "localhost:9000")]).is_err());
    }

    #[test]
    fn refuses_unknown_and_unreadable_settings_by_name() {
        for (name, text) in [
            ("bandwidth_limit", "0"),
            ("colour", "blue"),
            ("connections_max", "many"),
            ("connections_max", "0"),
            ("customer_key", "short"),
            ("azure_endpoint", "localhost:10000"),
            ("gcs_endpoint", "ftp://localhost:4443"),
            ("gcs_endpoint", "https:/localhost"),
            ("memory", "23"),
            ("s3_endpoint", "not a url"),
            ("s3_endpoint", "localhost:9000"),
            ("s3_endpoint", "ftp://127.0.0.1"),
            ("s3_endpoint", "https:///lake"),
            ("sse", "rot13"),
        ] {
            let refused = made(&[(name, text)]).unwrap_err();
            assert!(
                refused.message.starts_with(name) && !refused.message.contains(text),
                "{}",
                refused.message
            );
        }
    }
}
