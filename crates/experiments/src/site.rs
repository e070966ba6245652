//! The store and prefix of an experiment's objects. Both the rivals and Laneway build their clients and requests from a [`Site`].

mod requests;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, Request, Uri};
use laneway::internal::trace::Trace as Recorder;
use laneway::{Client, Engine, EngineBuilder, Provider};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use crate::Error;
use crate::access::{Access, Roots};
use crate::place::Remote;
use crate::rival::{self, Protocol};

/// A server's scheme, host and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) https: bool,
    /// A name or an address. An IPv6 address has no brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A bucket of a server, with the certificates and credentials to use it.
pub(crate) struct Site {
    pub(crate) origin: Origin,
    pub(crate) provider: Provider,
    pub(crate) bucket: String,
    /// The prefix of all keys of this experiment: empty, or with a final slash.
    pub(crate) prefix: String,
    /// The base URL without a final slash.
    pub(crate) endpoint: String,
    pub(crate) access: Access,
    roots: Roots,
    region: String,
    anonymous: bool,
    imitated_rtt: Duration,
    ca_files: Vec<PathBuf>,
}

impl Origin {
    /// Parses the origin of a URL.
    pub(crate) fn of(url: &Uri) -> Option<Self> {
        let https = match url.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = url.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_u16().unwrap_or(if https { 443 } else { 80 });
        Some(Self { https, host, port })
    }

    /// Returns the name that the server's certificate must contain.
    ///
    /// # Errors
    /// Fails if the host is neither a DNS name nor an IP address.
    pub(crate) fn server_name(&self) -> io::Result<ServerName<'static>> {
        ServerName::try_from(self.host.clone()).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
    }
}

impl Site {
    /// Prepares certificates and credentials for all methods, so that no method's time includes this. `unique` is a
    /// prefix that no other experiment uses.
    ///
    /// # Errors
    /// Fails if the endpoint isn't a URL, the CA file is unreadable, or the credentials can't be used.
    pub(crate) async fn prepare(remote: &Remote, bucket: &str, unique: &str) -> Result<Self, Error> {
        // Google's clients treat an emulator's address without a scheme as plain HTTP.
        let endpoint = match remote.endpoint.contains("://") {
            true => remote.endpoint.clone(),
            false => format!("http://{}", remote.endpoint),
        };
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let url: Option<Uri> = endpoint.parse().ok();
        let origin = url.as_ref().and_then(Origin::of);
        let origin =
            origin.ok_or_else(|| Error::Plan(format!("{:?} isn't an endpoint URL", remote.endpoint)))?;
        let roots = Roots::read(&remote.ca_files)?;
        let access = Access::find(remote, &origin, &roots).await?;
        let above = remote.prefix.trim_end_matches('/');
        let prefix = if above.is_empty() { format!("{unique}/") } else { format!("{above}/{unique}/") };
        let ca_files = remote.ca_files.clone();
        Ok(Self {
            origin,
            provider: remote.provider,
            bucket: bucket.to_owned(),
            prefix,
            endpoint,
            access,
            roots,
            region: remote.region.clone(),
            anonymous: remote.anonymous,
            imitated_rtt: remote.imitated_rtt,
            ca_files,
        })
    }

    /// Returns the path and query for an upload to GCS with this `uploadType`.
    pub(crate) fn upload_target(&self, kind: &str) -> String {
        let bucket = utf8_percent_encode(&self.bucket, NON_ALPHANUMERIC);
        format!("{}/upload/storage/v1/b/{bucket}/o?uploadType={kind}", self.base())
    }

    /// Returns the path of the bucket's resource.
    pub(crate) fn bucket_target(&self) -> String {
        format!("{}/{}", self.buckets_target(), utf8_percent_encode(&self.bucket, NON_ALPHANUMERIC))
    }

    /// Returns the path of all buckets.
    pub(crate) fn buckets_target(&self) -> String {
        format!("{}/storage/v1/b", self.base())
    }

    /// Builds a request, with the `Authorization` header if it is the same for all requests. A request to S3 must be
    /// signed afterwards.
    ///
    /// # Errors
    /// Fails if the target isn't valid in a URL.
    pub(crate) fn request(
        &self,
        method: Method,
        target: &str,
        body: Bytes,
    ) -> Result<Request<Bytes>, rival::Error> {
        let scheme_and_host = &self.endpoint[..self.endpoint.len() - self.base().len()];
        let mut request = Request::builder().method(method).uri(format!("{scheme_and_host}{target}"));
        if let Some(token) = self.access.bearer() {
            request = request.header(AUTHORIZATION, token);
        }
        Ok(request.body(body)?)
    }

    /// Returns rustls's usual TLS configuration, or `None` for plain HTTP. The configuration contains no TLS sessions
    /// of earlier runs that could be resumed.
    pub(crate) fn tls(&self, protocol: Protocol) -> Option<ClientConfig> {
        self.origin.https.then(|| self.roots.config(protocol))
    }

    /// Creates a client of Laneway on a new engine. It has the same server, certificates and credentials as the rivals,
    /// and uses no proxy.
    ///
    /// # Errors
    /// Returns the errors of [`ClientBuilder::build`](laneway::ClientBuilder::build).
    pub(crate) fn laneway(&self, recorder: Option<&Recorder>) -> Result<Client, laneway::Error> {
        // Laneway's dispatcher first learns the round trip from the TCP handshake. A simulated path can't delay that,
        // so set the round trip here.
        let mut engine = Engine::builder().tcp_handshake_min(self.imitated_rtt);
        if let Some(recorder) = recorder {
            engine = engine.trace(recorder.clone());
        }
        self.client_on(engine)
    }

    /// Returns a client that learns the round trip as the program does: from the TLS handshake, which a simulated path
    /// delays. If the round trip were set as the minimum of the TCP handshake, large downloads would open more
    /// connections. The reason is that the kernel's round trips over loopback show no queue, even if the simulated
    /// queue is full.
    ///
    /// # Errors
    /// Fails if a setting can't be used.
    pub(crate) fn laneway_by_tls(&self) -> Result<Client, laneway::Error> {
        self.client_on(Engine::builder())
    }

    fn client_on(&self, engine: EngineBuilder) -> Result<Client, laneway::Error> {
        // For GCS, the token that was found before is added as a header below. For S3, Laneway has to sign each
        // request, so it finds the credentials itself.
        let mut client = Client::builder()
            .engine(engine.build())
            .anonymous(self.provider == Provider::Gcs || self.anonymous)
            .s3_path_style(true)
            .region(self.region.clone());
        client = match self.provider {
            Provider::Gcs => client.gcs_endpoint(self.endpoint.clone()),
            _ => client.s3_endpoint(self.endpoint.clone()),
        };
        if let Some(token) = self.access.bearer() {
            client = client.header(AUTHORIZATION.as_str(), &String::from_utf8_lossy(token.as_bytes()))?;
        }
        self.ca_files.iter().fold(client, |client, file| client.ca_file(file)).build()
    }

    /// Returns the path in the endpoint's URL, without a final slash.
    fn base(&self) -> &str {
        let after_scheme = self.endpoint.find("://").map_or(0, |at| at + 3);
        self.endpoint[after_scheme..].find('/').map_or("", |slash| &self.endpoint[after_scheme + slash..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(endpoint: &str, prefix: &str) -> Site {
        let remote = Remote { prefix: prefix.to_owned(), anonymous: true, ..Remote::gcs(endpoint) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(Site::prepare(&remote, "b c", "unique")).unwrap()
    }

    #[test]
    fn an_endpoint_may_have_a_path_and_lack_a_scheme() {
        let site = site("localhost:4443/base/", "");
        assert_eq!(site.upload_target("media"), "/base/upload/storage/v1/b/b%20c/o?uploadType=media");
        let request = site.request(Method::GET, &site.bucket_target(), Bytes::new()).unwrap();
        assert_eq!(request.uri(), "http://localhost:4443/base/storage/v1/b/b%20c");
        assert_eq!(site.origin, Origin { https: false, host: "localhost".to_owned(), port: 4443 });
        assert!(site.tls(Protocol::H1).is_none());
    }

    #[test]
    fn an_experiment_keeps_to_a_prefix_of_its_own() {
        assert_eq!(site("http://h", "").prefix, "unique/");
        assert_eq!(site("http://h", "a/b/").prefix, "a/b/unique/");
    }

    #[test]
    fn an_address_in_brackets_is_dialled_without_them() {
        let origin = site("https://[::1]:9", "").origin;
        assert_eq!((origin.host.as_str(), origin.port), ("::1", 9));
        assert!(origin.server_name().is_ok());
    }
}
