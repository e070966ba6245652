//! The settings of a client.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use http::{HeaderName, HeaderValue};
use laneway_store::{
    AccessKey, AssumedRole, ChecksumAlgorithm, CredentialProvider, CustomerKey, Dialect, Environment,
    RequestChecksums, SseAlgorithm, may_be_added,
};

use crate::engine::EngineBuilder;
use crate::engine::settings::{self, BadVariable, ClientSettings};
use crate::plan::parts::CopySizes;
use crate::{Client, Engine, Error};

/// Configures a [`Client`]. The default settings are already the fastest.
///
/// [`ClientBuilder::from_env`] starts with the process's environment variables, as the program does.
/// [`Client::builder`] starts with the public endpoints of the clouds, and reads only three groups of
/// variables: those for credentials, AWS's variables for S3 (region, endpoint, checksums), and
/// `SSL_CERT_FILE` and `SSL_CERT_DIR`. A value set by a method overrides the default and the variable.
///
/// The client sends its messages to `tracing`, where the program's own subscriber receives them: see [the
/// crate's page](crate#messages).
#[derive(Clone, Default)]
pub struct ClientBuilder {
    settings: ClientSettings,
    engine: Option<Engine>,
    budgets: EngineBuilder,
    /// The `LANEWAY_` variables whose values can't be parsed and that no method has overridden.
    unreadable: Vec<BadVariable>,
}

/// The minimum stall timeout. With a timeout of zero, each request would fail before a server can answer it.
const STALL_TIMEOUT_MIN: Duration = Duration::from_millis(1);

impl Client {
    /// Starts to build a client that uses the public endpoints of the clouds.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Returns a client that is configured by the environment variables: see [`ClientBuilder::from_env`].
    ///
    /// # Errors
    /// Fails as [`ClientBuilder::build`] does.
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env().build()
    }
}

impl ClientBuilder {
    /// Starts with the settings of the process's environment variables. An empty variable counts as unset.
    ///
    /// | variables | what they set |
    /// |---|---|
    /// | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_PROFILE`, `AWS_CONFIG_FILE`, `AWS_SHARED_CREDENTIALS_FILE` and the other variables of AWS's credential chain | credentials of S3 |
    /// | `AWS_REGION`, `AWS_DEFAULT_REGION` | [`region`](Self::region) |
    /// | `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` | [`s3_endpoint`](Self::s3_endpoint) |
    /// | `AWS_USE_DUALSTACK_ENDPOINT`, `AWS_USE_FIPS_ENDPOINT` | [`s3_dualstack`](Self::s3_dualstack), [`s3_fips`](Self::s3_fips) |
    /// | `AWS_REQUEST_CHECKSUM_CALCULATION` | [`request_checksums`](Self::request_checksums) |
    /// | `AWS_CA_BUNDLE` | [`ca_file`](Self::ca_file) |
    /// | `SSL_CERT_FILE`, `SSL_CERT_DIR` | the platform's certificates |
    /// | `GOOGLE_APPLICATION_CREDENTIALS`, `CLOUDSDK_CONFIG` | credentials of GCS |
    /// | `GOOGLE_CLOUD_PROJECT`, `CLOUDSDK_CORE_PROJECT`, `GCLOUD_PROJECT` | [`project`](Self::project) |
    /// | `STORAGE_EMULATOR_HOST` | [`gcs_endpoint`](Self::gcs_endpoint): a URL, or `host:port` for plain HTTP |
    /// | `AZURE_STORAGE_CONNECTION_STRING`, `AZURE_STORAGE_ACCOUNT`, `AZURE_STORAGE_SERVICE_ENDPOINT` | [`azure_account`](Self::azure_account), [`azure_endpoint`](Self::azure_endpoint) |
    /// | `AZURE_STORAGE_KEY`, `AZURE_STORAGE_SAS_TOKEN`, `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`, `AZURE_FEDERATED_TOKEN_FILE` and the other variables of azure-identity | credentials of Azure |
    /// | `HTTPS_PROXY`, `ALL_PROXY`, their lower-case forms and `http_proxy` | [`https_proxy`](Self::https_proxy), [`http_proxy`](Self::http_proxy) |
    /// | `NO_PROXY`, `no_proxy` | [`no_proxy`](Self::no_proxy) |
    /// | `LANEWAY_RETRY_FOR` | [`retry_for`](Self::retry_for): `90s`, `10m`, `0` |
    /// | `LANEWAY_CUSTOMER_KEY`, `LANEWAY_SOURCE_CUSTOMER_KEY` | [`customer_key`](Self::customer_key), [`source_customer_key`](Self::source_customer_key): 32 bytes or their base64 |
    /// | `XDG_STATE_HOME`, `HOME` | [`upload_journals`](Self::upload_journals): the folder `$XDG_STATE_HOME/laneway/uploads`, or else `$HOME/.local/state/laneway/uploads` |
    ///
    /// If the value of a `LANEWAY_` variable is invalid, [`build`](Self::build) returns an error, unless a
    /// method overrides the variable. If the value of another variable is invalid, the first call that needs
    /// it returns the error.
    pub fn from_env() -> Self {
        Self::of(Environment::process())
    }

    /// Does the same as [`from_env`](Self::from_env) with the given variables instead of the process's
    /// variables. Use this method in programs that act for several users. Only `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` still come from the process's environment.
    pub fn from_variables<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        Self::of(Environment::of(variables))
    }

    fn of(environment: Environment) -> Self {
        let (settings, unreadable) = settings::settings(environment);
        Self { settings, unreadable, ..Self::default() }
    }

    /// Returns the client. Starts the engine's threads unless they run already, and opens no connection.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a `LANEWAY_` variable that can't be read, for an
    /// unreadable CA file, for a proxy that isn't a URL, and for a stall timeout below 1 ms. The error names a
    /// variable but not its value.
    /// [`ErrorKind::Local`](crate::ErrorKind::Local) if threads can't be started. If an endpoint isn't a URL,
    /// the first call that needs it returns the error.
    pub fn build(self) -> Result<Client, Error> {
        let Self { settings, engine, budgets, unreadable } = self;
        if let Some(unreadable) = unreadable.into_iter().next() {
            return Err(unreadable.into());
        }
        if settings.network.stall_timeout < STALL_TIMEOUT_MIN {
            return Err(Error::usage("", "stall_timeout: the time must be at least 1 ms"));
        }
        Client::start(engine.unwrap_or_else(|| Engine::of_process(&budgets)), settings)
    }

    /// Sends no credentials and looks for none.
    #[must_use]
    pub fn anonymous(mut self, anonymous: bool) -> Self {
        self.settings.store.anonymous = anonymous;
        self
    }

    /// Sets the base URL of the GCS API, instead of `https://storage.googleapis.com`.
    #[must_use]
    pub fn gcs_endpoint(mut self, url: impl Into<String>) -> Self {
        self.settings.store.gcs_endpoint = Some(url.into());
        self
    }

    /// Sets the base URL of the S3 API. Without this setting, Laneway takes the URL from the environment
    /// variables, or else from the AWS profile. If neither has one, Laneway uses AWS's endpoint.
    #[must_use]
    pub fn s3_endpoint(mut self, url: impl Into<String>) -> Self {
        self.settings.store.s3_endpoint = Some(url.into());
        self
    }

    /// Sets the URL of the Blob service of Azure's storage account, instead of the variables and
    /// `https://ACCOUNT.blob.core.windows.net`. For an emulator, the path is the account's name.
    #[must_use]
    pub fn azure_endpoint(mut self, url: impl Into<String>) -> Self {
        self.settings.store.azure_endpoint = Some(url.into());
        self
    }

    /// Sets the storage account of Azure URLs that name none, instead of the variables.
    #[must_use]
    pub fn azure_account(mut self, name: impl Into<String>) -> Self {
        self.settings.store.azure_account = Some(name.into());
        self
    }

    /// Uses the credentials of this AWS profile, and no others.
    #[must_use]
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.settings.store.profile = Some(name.into());
        self
    }

    /// Uses this AWS access key, and doesn't look for other credentials.
    #[must_use]
    pub fn access_key(mut self, key: AccessKey) -> Self {
        self.settings.store.access_key = Some(key);
        self
    }

    /// Assumes this IAM role, and signs S3 requests with the role's temporary keys. Laneway gets these keys
    /// from AWS's Security Token Service (STS). Laneway signs its request to STS with the client's own AWS
    /// keys: those of [`access_key`](Self::access_key), or else of the
    /// [`credential_provider`](Self::credential_provider), or else those that it finds.
    #[must_use]
    pub fn assume_role(mut self, role: AssumedRole) -> Self {
        self.settings.store.assume_role = Some(role);
        self
    }

    /// Acts on GCS as the last of these service accounts, which are given by their email addresses. The
    /// client's own GCS credentials must be allowed to impersonate the first account, and each account must
    /// be allowed to impersonate the next one.
    #[must_use]
    pub fn impersonate<E: Into<String>>(mut self, accounts: impl IntoIterator<Item = E>) -> Self {
        self.settings.store.impersonate = accounts.into_iter().map(Into::into).collect();
        self
    }

    /// Asks this provider for credentials, instead of looking in files and variables: see
    /// [`CredentialProvider`].
    #[must_use]
    pub fn credential_provider(mut self, provider: Arc<dyn CredentialProvider>) -> Self {
        self.settings.store.credential_provider = Some(provider);
        self
    }

    /// Uses this key of a Google service account for GCS, instead of looking for credentials. `json` is the
    /// content of the key file that Google's console offers for download. A
    /// [`credential_provider`](Self::credential_provider) overrides it. If the key is invalid, the first call
    /// that needs it returns an error, which doesn't contain the key.
    #[must_use]
    pub fn service_account_key(mut self, json: impl Into<String>) -> Self {
        self.settings.store.service_account_key = Some(json.into());
        self
    }

    /// Sets the AWS region, instead of the one from the variables or the profile.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.settings.store.region = Some(region.into());
        self
    }

    /// Sets the project that GCS bills for requests, instead of the project that owns the bucket.
    #[must_use]
    pub fn user_project(mut self, project: impl Into<String>) -> Self {
        self.settings.store.user_project = Some(project.into());
        self
    }

    /// Sets the Google Cloud project whose buckets the client lists, and in which it creates buckets.
    #[must_use]
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.settings.store.project = Some(project.into());
        self
    }

    /// Declares that the requester, not the bucket's owner, pays for requests and transfers. S3 requires this
    /// for requester-pays buckets.
    #[must_use]
    pub fn request_payer(mut self, pays: bool) -> Self {
        self.settings.store.request_payer = pays;
        self
    }

    /// Encrypts new objects with this customer-managed key of a key management service.
    #[must_use]
    pub fn kms_key(mut self, key: impl Into<String>) -> Self {
        self.settings.store.kms_key = Some(key.into());
        self
    }

    /// Sets the encryption of new S3 objects.
    #[must_use]
    pub fn sse(mut self, algorithm: SseAlgorithm) -> Self {
        self.settings.store.encryption.algorithm = Some(algorithm);
        self
    }

    /// Makes S3 use an S3 Bucket Key for new objects that are encrypted with a KMS key. S3 derives the keys
    /// of new objects from this bucket-level key, so it sends fewer requests to KMS.
    #[must_use]
    pub fn kms_bucket_key(mut self, enabled: bool) -> Self {
        self.settings.store.encryption.bucket_key = Some(enabled);
        self
    }

    /// Adds a pair to the encryption context that S3 passes to its key management service.
    #[must_use]
    pub fn kms_context(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.store.encryption.context.insert(name.into(), value.into());
        self
    }

    /// Encrypts new objects, and decrypts existing ones, with a key that the store doesn't keep (SSE-C).
    /// `None` overrides the key from the environment variable.
    #[must_use]
    pub fn customer_key(mut self, key: impl Into<Option<CustomerKey>>) -> Self {
        self.settings.store.encryption.customer_key = key.into();
        self.without(settings::CUSTOMER_KEY)
    }

    /// Sets the key (SSE-C) that decrypts the sources of copies, if it differs from the key that encrypts the
    /// copies.
    #[must_use]
    pub fn source_customer_key(mut self, key: impl Into<Option<CustomerKey>>) -> Self {
        self.settings.store.encryption.source_customer_key = key.into();
        self.without(settings::SOURCE_CUSTOMER_KEY)
    }

    /// Adds a header to each request to the store, before it is signed.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if this isn't a valid header, or if only Laneway may set
    /// it. Only Laneway may set headers that route a request, mark its end, select a range, or manage the
    /// connection. Examples are `Host`, `Content-Length` and `Range`.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let header: HeaderName =
            name.parse().map_err(|_| Error::usage("", format!("{name:?} is not a header name")))?;
        if !may_be_added(&header) {
            let message = format!("{header} can't be added, because only Laneway may set this header");
            return Err(Error::usage("", message));
        }
        // Leave the value out of the error, because it may be a secret.
        let value = HeaderValue::from_str(value)
            .map_err(|_| Error::usage("", format!("the value of {header} contains a control character")))?;
        self.settings.store.headers.push((header, value));
        Ok(self)
    }

    /// Puts the name of an S3 bucket into the URL's path, or into the host name if `in_path` is false.
    /// Without this setting, the AWS profile (`s3.addressing_style`) decides. If neither is set, the name is
    /// in the path for requests to an endpoint that was set, and in the host name for requests to AWS. A name
    /// that can't be part of a host name is always in the path.
    #[must_use]
    pub fn s3_path_style(mut self, in_path: bool) -> Self {
        self.settings.store.s3_path_style = Some(in_path);
        self
    }

    /// Uses Amazon's endpoints that also have IPv6 addresses.
    #[must_use]
    pub fn s3_dualstack(mut self, dualstack: bool) -> Self {
        self.settings.store.s3_dualstack = Some(dualstack);
        self
    }

    /// Uses Amazon's endpoints with cryptography that is validated under FIPS 140.
    #[must_use]
    pub fn s3_fips(mut self, fips: bool) -> Self {
        self.settings.store.s3_fips = Some(fips);
        self
    }

    /// Uses Amazon's Transfer Acceleration endpoints.
    #[must_use]
    pub fn s3_accelerate(mut self, accelerate: bool) -> Self {
        self.settings.store.s3_accelerate = Some(accelerate);
        self
    }

    /// Sets which S3 requests carry a checksum. With the checksum, the store checks the bytes that it
    /// receives.
    #[must_use]
    pub fn request_checksums(mut self, when: RequestChecksums) -> Self {
        self.settings.store.request_checksums = Some(when);
        self
    }

    /// Sets the kind of checksum that Laneway sends with uploads to S3. S3 compares the checksum with the
    /// received bytes, and keeps it with the object.
    #[must_use]
    pub fn checksum_algorithm(mut self, algorithm: ChecksumAlgorithm) -> Self {
        self.settings.store.checksum_algorithm = algorithm;
        self
    }

    /// Sets the function that asks the user for the code of an MFA device, for profiles with an `mfa_serial`.
    /// Its argument is the device's name. The function may block.
    #[must_use]
    pub fn mfa_prompt(mut self, ask: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static) -> Self {
        self.settings.store.mfa_prompt = Some(Arc::new(ask));
        self
    }

    /// Trusts the certificates in this PEM file, in addition to the platform's. [`build`](Self::build) reads
    /// the file.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.network.ca_files.push(path.into());
        self
    }

    /// Sets the proxy for `https` URLs: `http://host:port`, `https://host:port` or `socks5://host:port`, with or
    /// without credentials. A SOCKS5 proxy resolves the names of hosts.
    #[must_use]
    pub fn https_proxy(mut self, url: impl Into<String>) -> Self {
        self.settings.network.https_proxy = Some(url.into());
        self
    }

    /// Sets the proxy for `http` URLs.
    #[must_use]
    pub fn http_proxy(mut self, url: impl Into<String>) -> Self {
        self.settings.network.http_proxy = Some(url.into());
        self
    }

    /// Connects to these hosts directly, without a proxy. Each entry is a host name (which includes its
    /// subdomains), a `.suffix`, an address, a network (`10.0.0.0/8`) or `*`. Every entry except a network
    /// may end in a `:port`.
    #[must_use]
    pub fn no_proxy<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        let lower = |host: H| host.into().to_ascii_lowercase();
        self.settings.network.no_proxy = hosts.into_iter().map(lower).collect();
        self
    }

    /// Sets a host's IP addresses, for private endpoints that DNS doesn't know. Laneway connects to these
    /// addresses in turn, and doesn't resolve the host's name.
    #[must_use]
    pub fn resolve(mut self, host: &str, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let addresses = addresses.into_iter().collect();
        self.settings.network.resolve.insert(host.to_ascii_lowercase(), addresses);
        self
    }

    /// Sets how long a request may go without a byte in either direction before Laneway sends it again. The
    /// default is 30 s. [`build`](Self::build) refuses less than 1 ms.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.settings.network.stall_timeout = timeout;
        self
    }

    /// Sets how long Laneway retries while a server makes no progress: it accepts no connection, sends no
    /// byte of a body, or answers only 500, 502, 503 or 504. After this time, calls fail. The default is 2
    /// min, and 15 s for a server that has never answered. Zero disables retries.
    #[must_use]
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.settings.set_retry_for(time);
        self.without(settings::RETRY_FOR)
    }

    /// Ignores the unreadable value of a variable, because a method overrides the variable.
    fn without(mut self, variable: &str) -> Self {
        self.unreadable.retain(|unreadable| unreadable.name != variable);
        self
    }

    /// Adds a product such as `shop/2.1` to the `User-Agent` of requests.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if a header can't hold the text.
    pub fn user_agent_suffix(mut self, product: &str) -> Result<Self, Error> {
        let ours = laneway_lanes::LanesConfig::default().user_agent;
        let ours = String::from_utf8_lossy(ours.as_bytes()).into_owned();
        let whole = HeaderValue::try_from(format!("{ours} {product}"));
        self.settings.user_agent = whole
            .map_err(|_| Error::usage("", "a user agent can't contain control characters or line breaks"))?;
        Ok(self)
    }

    /// Sets the minimum size of objects that Laneway copies part by part inside a store. Tests lower this
    /// size, because they would otherwise have to copy GiBs.
    #[doc(hidden)]
    #[must_use]
    pub fn copy_sizes(mut self, sizes: CopySizes) -> Self {
        self.settings.copy_sizes = sizes;
        self
    }

    /// Sets the folder for the journals of large uploads, so that an interrupted upload can be resumed.
    /// Laneway creates the folder when needed. Without this setting, there are no journals, and Laneway tries
    /// to abort an interrupted upload. Anyone who can read a journal can write to its upload, so Laneway
    /// makes the file readable only for its owner.
    #[must_use]
    pub fn upload_journals(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.upload_journals = Some(folder.into());
        self
    }

    /// Adds a dialect that the caller implements. URLs with the dialect's scheme
    /// ([`Provider::other`](crate::Provider::other)) then name objects of its store, in every verb and job.
    /// If several dialects have the same scheme, the client uses the one that was added last.
    #[must_use]
    pub fn dialect(mut self, dialect: Arc<dyn Dialect>) -> Self {
        self.settings.dialects.retain(|other| other.provider() != dialect.provider());
        self.settings.dialects.push(dialect);
        self
    }

    /// Sets the instant from which the times of [`Item`](crate::Item)s are measured. The default is this
    /// builder's creation.
    #[must_use]
    pub fn epoch(mut self, epoch: Instant) -> Self {
        self.settings.epoch = epoch;
        self
    }

    /// Uses this engine, instead of the one that clients of the process share.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Sets [`EngineBuilder::memory`] for the engine that this process's clients share. This method,
    /// [`connections_max`](Self::connections_max) and [`bandwidth_limit`](Self::bandwidth_limit) have no
    /// effect if another client has started that engine before, or if [`engine`](Self::engine) is set.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.budgets = self.budgets.memory(bytes);
        self
    }

    /// Sets [`EngineBuilder::connections_max`] for the engine that this process's clients share.
    #[must_use]
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.budgets = self.budgets.connections_max(connections);
        self
    }

    /// Sets [`EngineBuilder::bandwidth_limit`] for the engine that this process's clients share.
    #[must_use]
    pub fn bandwidth_limit(mut self, bytes_per_second: u64) -> Self {
        self.budgets = self.budgets.bandwidth_limit(bytes_per_second);
        self
    }
}

impl fmt::Debug for ClientBuilder {
    /// Leaves out secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("store", &self.settings.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_stall_timeout_in_which_no_server_can_answer() {
        for timeout in [Duration::ZERO, Duration::from_micros(999)] {
            let error = Client::builder().stall_timeout(timeout).build().unwrap_err();
            assert!(error.is_usage() && error.to_string().contains("stall_timeout"), "{error}");
        }
        let engine = crate::Engine::builder().threads(1).build();
        assert!(Client::builder().engine(engine).stall_timeout(Duration::from_millis(1)).build().is_ok());
    }

    #[test]
    fn refuses_an_invalid_or_framing_header_and_hides_its_value() {
        assert!(Client::builder().header("X-Trace", "a:b").is_ok());
        for (name, value, says) in [
            ("bad name", "v", "not a header name"),
            ("Content-Length", "0", "only Laneway may set"),
            ("host", "elsewhere", "only Laneway may set"),
            ("x-secret", "hush\nhush", "control character"),
        ] {
            let error = Client::builder().header(name, value).unwrap_err();
            let text = error.to_string();
            assert!(error.is_usage() && text.contains(says) && !text.contains("hush"), "{text}");
        }
    }
}
