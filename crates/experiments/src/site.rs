//! Where an experiment's objects lie, as the rivals and Laneway are handed it.

mod requests;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, Request, Uri};
use laneway::internal::trace::Trace as Recorder;
use laneway::{Client, Engine, Provider};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use crate::Error;
use crate::access::Access;
use crate::place::Remote;
use crate::rival::{self, Protocol};
use crate::trust::Roots;

/// A server's scheme, host and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) https: bool,
    /// A name or an address, an IPv6 one without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A bucket behind an endpoint.
pub(crate) struct Site {
    pub(crate) origin: Origin,
    pub(crate) provider: Provider,
    pub(crate) bucket: String,
    /// What all keys of this experiment begin with; empty, or a slash at its end.
    pub(crate) prefix: String,
    /// The base URL, without a slash at its end.
    pub(crate) endpoint: String,
    pub(crate) access: Access,
    roots: Roots,
    region: String,
    anonymous: bool,
    imitated_rtt: Duration,
    ca_files: Vec<PathBuf>,
}

impl Origin {
    /// Reads a URL's beginning.
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

    /// What the server's certificate has to name.
    ///
    /// # Errors
    /// For a host that is neither a DNS name nor an address.
    pub(crate) fn server_name(&self) -> io::Result<ServerName<'static>> {
        ServerName::try_from(self.host.clone()).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
    }
}

impl Site {
    /// Finds out all that the rungs need: certificates and credentials, so that no rung's time holds them. `unique` is a
    /// prefix that no other experiment uses.
    ///
    /// # Errors
    /// For an endpoint that is no URL, an unreadable CA file, and credentials that can't be used.
    pub(crate) async fn prepare(remote: &Remote, bucket: &str, unique: &str) -> Result<Self, Error> {
        // Google's clients read an emulator's address without a scheme as plain HTTP.
        let endpoint = match remote.endpoint.contains("://") {
            true => remote.endpoint.clone(),
            false => format!("http://{}", remote.endpoint),
        };
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let url: Option<Uri> = endpoint.parse().ok();
        let origin = url.as_ref().and_then(Origin::of);
        let origin =
            origin.ok_or_else(|| Error::Plan(format!("{:?} is no endpoint URL", remote.endpoint)))?;
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

    /// The path and query that uploads of a kind go to.
    pub(crate) fn upload_target(&self, kind: &str) -> String {
        let bucket = utf8_percent_encode(&self.bucket, NON_ALPHANUMERIC);
        format!("{}/upload/storage/v1/b/{bucket}/o?uploadType={kind}", self.base())
    }

    /// The path of the bucket's resource.
    pub(crate) fn bucket_target(&self) -> String {
        format!("{}/{}", self.buckets_target(), utf8_percent_encode(&self.bucket, NON_ALPHANUMERIC))
    }

    /// The path of all buckets.
    pub(crate) fn buckets_target(&self) -> String {
        format!("{}/storage/v1/b", self.base())
    }

    /// A request with the token, where there is one. One that has to be signed isn't yet.
    ///
    /// # Errors
    /// For a target that is none.
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

    /// TLS as a plain user of rustls has it; `None` for plain HTTP. Without sessions of earlier runs to resume.
    pub(crate) fn tls(&self, protocol: Protocol) -> Option<ClientConfig> {
        self.origin.https.then(|| self.roots.config(protocol))
    }

    /// Laneway on an engine of its own: the same server, certificates and token as the rivals have, no proxy.
    ///
    /// # Errors
    /// As [`ClientBuilder::build`](laneway::ClientBuilder::build).
    pub(crate) fn laneway(&self, recorder: Option<&Recorder>) -> Result<Client, laneway::Error> {
        // Its dispatcher goes by how far the server is, which the handshake is the first to show.
        let mut engine = Engine::builder().tcp_handshake_min(self.imitated_rtt);
        if let Some(recorder) = recorder {
            engine = engine.trace(recorder.clone());
        }
        // A GCS token is handed over as a header, found already; S3 requests have to be signed one by one.
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

    /// The endpoint's own path, without a slash at its end.
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
