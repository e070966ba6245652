//! Everything that a client can be set to.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use http::{HeaderName, HeaderValue};
use laneway_store::{
    AccessKey, CredentialProvider, CustomerKey, Dialect, Environment, RequestChecksums, SseAlgorithm,
    may_be_added,
};

use crate::engine::EngineBuilder;
use crate::environment::Unreadable;
use crate::plan::copies::CopySizes;
use crate::settings::Settings;
use crate::{Client, Engine, Error, environment};

/// Sets a [`Client`] up. None of its settings has to be set for speed.
///
/// [`ClientBuilder::from_env`] begins with what the environment's variables say, as the program does, and
/// [`Client::builder`] with the public services and no variable but those of credentials, AWS's region and AWS's endpoint.
/// What is set by a method goes before either.
///
/// What a client does is told by `tracing`, to the program's own subscriber: see [the crate's page](crate#messages).
#[derive(Clone, Default)]
pub struct ClientBuilder {
    settings: Settings,
    engine: Option<Engine>,
    budgets: EngineBuilder,
    /// Variables that can't be read, and that nothing goes before.
    unreadable: Vec<Unreadable>,
}

impl Client {
    /// Begins a client with the public services.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client of what the environment's variables say: see [`ClientBuilder::from_env`].
    ///
    /// # Errors
    /// As [`ClientBuilder::build`].
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env().build()
    }
}

impl ClientBuilder {
    /// Begins with what the process's variables say. An empty variable counts as unset.
    ///
    /// | variables | what they set |
    /// |---|---|
    /// | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_PROFILE`, `AWS_CONFIG_FILE`, `AWS_SHARED_CREDENTIALS_FILE` and the others of AWS's chain | credentials of S3 |
    /// | `AWS_REGION`, `AWS_DEFAULT_REGION` | [`region`](Self::region) |
    /// | `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` | [`s3_endpoint`](Self::s3_endpoint) |
    /// | `AWS_USE_DUALSTACK_ENDPOINT`, `AWS_USE_FIPS_ENDPOINT` | [`s3_dualstack`](Self::s3_dualstack), [`s3_fips`](Self::s3_fips) |
    /// | `AWS_REQUEST_CHECKSUM_CALCULATION` | [`request_checksums`](Self::request_checksums) |
    /// | `AWS_CA_BUNDLE` | [`ca_file`](Self::ca_file) |
    /// | `SSL_CERT_FILE`, `SSL_CERT_DIR` | the platform's certificates |
    /// | `GOOGLE_APPLICATION_CREDENTIALS`, `CLOUDSDK_CONFIG` | credentials of GCS |
    /// | `GOOGLE_CLOUD_PROJECT`, `CLOUDSDK_CORE_PROJECT`, `GCLOUD_PROJECT` | [`project`](Self::project) |
    /// | `STORAGE_EMULATOR_HOST` | [`gcs_endpoint`](Self::gcs_endpoint): a URL, or `host:port` for plain HTTP |
    /// | `HTTPS_PROXY`, `ALL_PROXY`, their lower-case forms and `http_proxy` | [`https_proxy`](Self::https_proxy), [`http_proxy`](Self::http_proxy) |
    /// | `NO_PROXY`, `no_proxy` | [`no_proxy`](Self::no_proxy) |
    /// | `LANEWAY_RETRY_FOR` | [`retry_for`](Self::retry_for): `90s`, `10m`, `0` |
    /// | `LANEWAY_CUSTOMER_KEY`, `LANEWAY_SOURCE_CUSTOMER_KEY` | [`customer_key`](Self::customer_key), [`source_customer_key`](Self::source_customer_key): 32 bytes or their base64 |
    /// | `XDG_STATE_HOME`, `HOME` | [`upload_journals`](Self::upload_journals) below `laneway/uploads` there, or below `~/.local/state` |
    ///
    /// What is wrong with a variable of `LANEWAY_` is an error of [`build`](Self::build), unless a method sets what the variable would;
    /// what is wrong with the others is an error of the first call that needs them.
    pub fn from_env() -> Self {
        Self::of(Environment::process())
    }

    /// The same of these variables and no others: what a program takes that acts for several users. `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` stay those of the process.
    pub fn from_variables<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        Self::of(Environment::of(variables))
    }

    fn of(environment: Environment) -> Self {
        let (settings, unreadable) = environment::settings(environment);
        Self { settings, unreadable, ..Self::default() }
    }

    /// The client. Threads are started where the engine isn't at work yet; nothing is dialled.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a variable of `LANEWAY_` that can't be read, of which the error names the
    /// variable and not the value, an unreadable CA file, or a proxy that is no URL,
    /// [`ErrorKind::Local`](crate::ErrorKind::Local) for threads that can't be started. An endpoint that is no URL is an
    /// error of the first call that needs it.
    pub fn build(self) -> Result<Client, Error> {
        let Self { settings, engine, budgets, unreadable } = self;
        if let Some(unreadable) = unreadable.into_iter().next() {
            return Err(unreadable.into());
        }
        Client::start(engine.unwrap_or_else(|| Engine::of_process(&budgets)), settings)
    }

    /// Sends no credentials and looks for none.
    #[must_use]
    pub fn anonymous(mut self, anonymous: bool) -> Self {
        self.settings.store.anonymous = anonymous;
        self
    }

    /// Base URL of GCS's API, instead of `https://storage.googleapis.com`.
    #[must_use]
    pub fn gcs_endpoint(mut self, url: impl Into<String>) -> Self {
        self.settings.store.gcs_endpoint = Some(url.into());
        self
    }

    /// Base URL of S3's API, instead of what variables and the profile say, and else AWS's.
    #[must_use]
    pub fn s3_endpoint(mut self, url: impl Into<String>) -> Self {
        self.settings.store.s3_endpoint = Some(url.into());
        self
    }

    /// AWS profile whose credentials are used, and no others.
    #[must_use]
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.settings.store.profile = Some(name.into());
        self
    }

    /// AWS keys, instead of looking for some.
    #[must_use]
    pub fn access_key(mut self, key: AccessKey) -> Self {
        self.settings.store.access_key = Some(key);
        self
    }

    /// Asked for credentials, instead of looking for some in files and variables: see [`CredentialProvider`].
    #[must_use]
    pub fn credential_provider(mut self, provider: Arc<dyn CredentialProvider>) -> Self {
        self.settings.store.credential_provider = Some(provider);
        self
    }

    /// The key of a service account of Google's, as the file that its console hands out holds it (JSON), instead of looking for credentials
    /// of GCS. [`credential_provider`](Self::credential_provider) goes before it. What is wrong with it is an error of the first call that
    /// needs it, and doesn't repeat it.
    #[must_use]
    pub fn service_account_key(mut self, json: impl Into<String>) -> Self {
        self.settings.store.service_account_key = Some(json.into());
        self
    }

    /// AWS region, instead of the variables' or the profile's.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.settings.store.region = Some(region.into());
        self
    }

    /// Project that GCS bills, instead of the bucket's owner's.
    #[must_use]
    pub fn user_project(mut self, project: impl Into<String>) -> Self {
        self.settings.store.user_project = Some(project.into());
        self
    }

    /// Project whose GCS buckets are listed.
    #[must_use]
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.settings.store.project = Some(project.into());
        self
    }

    /// Whether the requester pays, on S3.
    #[must_use]
    pub fn request_payer(mut self, pays: bool) -> Self {
        self.settings.store.request_payer = pays;
        self
    }

    /// Customer-managed key of a key management service that new objects are encrypted with.
    #[must_use]
    pub fn kms_key(mut self, key: impl Into<String>) -> Self {
        self.settings.store.kms_key = Some(key.into());
        self
    }

    /// How S3 encrypts new objects.
    #[must_use]
    pub fn sse(mut self, algorithm: SseAlgorithm) -> Self {
        self.settings.store.encryption.algorithm = Some(algorithm);
        self
    }

    /// Whether S3 puts a key of the bucket between objects and the KMS key, which spares requests to KMS.
    #[must_use]
    pub fn kms_bucket_key(mut self, enabled: bool) -> Self {
        self.settings.store.encryption.bucket_key = Some(enabled);
        self
    }

    /// Adds a pair to what S3 binds the encryption with its key management service to.
    #[must_use]
    pub fn kms_context(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.store.encryption.context.insert(name.into(), value.into());
        self
    }

    /// A key that the store doesn't keep: new objects are encrypted with it, and others read. `None` takes back what the
    /// environment says.
    #[must_use]
    pub fn customer_key(mut self, key: impl Into<Option<CustomerKey>>) -> Self {
        self.settings.store.encryption.customer_key = key.into();
        self.without(environment::CUSTOMER_KEY)
    }

    /// The key of the objects that are copied from, where it is another than that of the copies.
    #[must_use]
    pub fn source_customer_key(mut self, key: impl Into<Option<CustomerKey>>) -> Self {
        self.settings.store.encryption.source_customer_key = key.into();
        self.without(environment::SOURCE_CUSTOMER_KEY)
    }

    /// Adds a header to each request to the store, before it is signed.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for what is no header, and for one that says where a request goes, where
    /// it ends or how its connection is kept: `Host`, `Content-Length`, `Range` and the like.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let header: HeaderName =
            name.parse().map_err(|_| Error::usage("", format!("{name:?} is no header name")))?;
        if !may_be_added(&header) {
            let message = format!("{header} can't be added: it belongs to the request's framing");
            return Err(Error::usage("", message));
        }
        // The value isn't told: it may be a secret.
        let value = HeaderValue::from_str(value)
            .map_err(|_| Error::usage("", format!("the value of {header} holds a control character")))?;
        self.settings.store.headers.push((header, value));
        Ok(self)
    }

    /// Whether S3 buckets stand in the path instead of in the host name. Where nothing is said the profile
    /// (`s3.addressing_style`) and then the endpoint decide.
    #[must_use]
    pub fn s3_path_style(mut self, in_path: bool) -> Self {
        self.settings.store.s3_path_style = Some(in_path);
        self
    }

    /// Whether Amazon's endpoints are those that have IPv6 addresses too.
    #[must_use]
    pub fn s3_dualstack(mut self, dualstack: bool) -> Self {
        self.settings.store.s3_dualstack = Some(dualstack);
        self
    }

    /// Whether Amazon's endpoints are those whose cryptography is validated by FIPS 140.
    #[must_use]
    pub fn s3_fips(mut self, fips: bool) -> Self {
        self.settings.store.s3_fips = Some(fips);
        self
    }

    /// Whether Amazon's endpoints are those of Transfer Acceleration.
    #[must_use]
    pub fn s3_accelerate(mut self, accelerate: bool) -> Self {
        self.settings.store.s3_accelerate = Some(accelerate);
        self
    }

    /// When S3 requests carry checksums for the store to check.
    #[must_use]
    pub fn request_checksums(mut self, when: RequestChecksums) -> Self {
        self.settings.store.request_checksums = Some(when);
        self
    }

    /// Asks somebody for the code of the MFA device that is named, for profiles with an `mfa_serial`. It may block.
    #[must_use]
    pub fn mfa_prompt(mut self, ask: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static) -> Self {
        self.settings.store.mfa_prompt = Some(Arc::new(ask));
        self
    }

    /// Trusts the certificates in a PEM file too, beside the platform's. It is read by [`build`](Self::build).
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.network.ca_files.push(path.into());
        self
    }

    /// Proxy for `https` URLs: `http://host:port` or `https://host:port`, credentials allowed.
    #[must_use]
    pub fn https_proxy(mut self, url: impl Into<String>) -> Self {
        self.settings.network.https_proxy = Some(url.into());
        self
    }

    /// Proxy for `http` URLs.
    #[must_use]
    pub fn http_proxy(mut self, url: impl Into<String>) -> Self {
        self.settings.network.http_proxy = Some(url.into());
        self
    }

    /// Hosts that are reached directly: names with their subdomains, `.suffixes`, addresses, networks (`10.0.0.0/8`), each of
    /// these but networks with a `:port` or without, and `*`.
    #[must_use]
    pub fn no_proxy<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        let lower = |host: H| host.into().to_ascii_lowercase();
        self.settings.network.no_proxy = hosts.into_iter().map(lower).collect();
        self
    }

    /// Addresses of a host, which are connected to in turn without asking the resolver: for private endpoints that no name
    /// server knows of.
    #[must_use]
    pub fn resolve(mut self, host: &str, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let addresses = addresses.into_iter().collect();
        self.settings.network.resolve.insert(host.to_ascii_lowercase(), addresses);
        self
    }

    /// How long a request may go without a byte in either direction until it is tried again; 30 s where nothing is said.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.settings.network.stall_timeout = timeout;
        self
    }

    /// How long nothing may come from a server that is asked again and again (no connection, no answer but 500, 502, 503
    /// and 504, no byte of a body) until calls end; 2 min where nothing is said, and 15 s at a server that has never answered. Zero tries nothing again.
    #[must_use]
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.settings.set_retry_for(time);
        self.without(environment::RETRY_FOR)
    }

    /// Forgets what is wrong with a variable: something goes before it.
    fn without(mut self, variable: &str) -> Self {
        self.unreadable.retain(|unreadable| unreadable.name != variable);
        self
    }

    /// Adds a product to the `User-Agent` of requests, such as `shop/2.1`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for what no header can hold.
    pub fn user_agent_suffix(mut self, product: &str) -> Result<Self, Error> {
        let ours = laneway_lanes::Config::default().user_agent;
        let ours = String::from_utf8_lossy(ours.as_bytes()).into_owned();
        let whole = HeaderValue::try_from(format!("{ours} {product}"));
        self.settings.user_agent = whole
            .map_err(|_| Error::usage("", "a user agent holds neither control characters nor line breaks"))?;
        Ok(self)
    }

    /// Which copies inside a store go part by part; for tests, which would have to copy GiBs.
    #[doc(hidden)]
    #[must_use]
    pub fn copy_sizes(mut self, sizes: CopySizes) -> Self {
        self.settings.copy_sizes = sizes;
        self
    }

    /// The folder of this user's in which journals of large uploads are kept, so that one that was interrupted can be gone
    /// on with; it is made when it is needed. Where nothing is said there are none: an upload that is interrupted is
    /// aborted where that is still possible. Journals hold what lets their reader write to an upload, so that only their
    /// owner can read them.
    #[must_use]
    pub fn upload_journals(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.upload_journals = Some(folder.into());
        self
    }

    /// Adds a dialect of the caller's: URLs of its scheme ([`Provider::other`](crate::Provider::other)) name objects of its store, for every
    /// verb and job. Of several for one scheme the last counts.
    #[must_use]
    pub fn dialect(mut self, dialect: Arc<dyn Dialect>) -> Self {
        self.settings.dialects.retain(|other| other.provider() != dialect.provider());
        self.settings.dialects.push(dialect);
        self
    }

    /// What the times of [`Item`](crate::Item)s count from, instead of this builder's beginning.
    #[must_use]
    pub fn epoch(mut self, epoch: Instant) -> Self {
        self.settings.epoch = epoch;
        self
    }

    /// The engine, instead of the one that clients of the process share.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// [`EngineBuilder::memory`] of the process's engine. As the two settings below it counts where no other client has
    /// started that engine before, and where [`engine`](Self::engine) names no other.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.budgets = self.budgets.memory(bytes);
        self
    }

    /// [`EngineBuilder::connections_max`] of the process's engine.
    #[must_use]
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.budgets = self.budgets.connections_max(connections);
        self
    }

    /// [`EngineBuilder::bandwidth_limit`] of the process's engine.
    #[must_use]
    pub fn bandwidth_limit(mut self, bytes_per_second: u64) -> Self {
        self.budgets = self.budgets.bandwidth_limit(bytes_per_second);
        self
    }
}

impl fmt::Debug for ClientBuilder {
    /// Holds no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("store", &self.settings.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_none_or_frames_requests_is_bad_usage_and_its_value_is_not_told() {
        assert!(Client::builder().header("X-Trace", "a:b").is_ok());
        for (name, value, says) in [
            ("bad name", "v", "no header name"),
            ("Content-Length", "0", "framing"),
            ("host", "elsewhere", "framing"),
            ("x-secret", "hush\nhush", "control character"),
        ] {
            let error = Client::builder().header(name, value).unwrap_err();
            let text = error.to_string();
            assert!(error.is_usage() && text.contains(says) && !text.contains("hush"), "{text}");
        }
    }
}
