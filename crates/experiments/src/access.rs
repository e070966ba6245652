//! Finds the rivals' credentials before the measurement starts: Google's application default credentials, or those of
//! AWS's default chain.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use laneway::Provider;
use reqsign_aws_v4::Credential;
use reqsign_core::{CommandExecute, CommandOutput, Context, FileRead, HttpSend, OsEnv, Signer};
use reqsign_google::{DefaultCredentialProvider, EnvCredentialProvider};
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

use crate::Error;
use crate::place::Remote;
use crate::rival::{self, Protocol, Rival};
use crate::site::Origin;

/// Time limit of a token server. Without a limit, the search could hang, because a network without a metadata server
/// often drops the packets to it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The credentials that a rival puts into its requests.
#[derive(Clone)]
pub(crate) enum Access {
    /// No credentials.
    Open,
    /// The same header in every request.
    Bearer(HeaderValue),
    /// A signature over each request's head.
    Signed(Box<Signer<Credential>>),
}

/// The credentials that a GCS server may receive. The rule is the same as in the crate `laneway-store`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trusted {
    Google,
    Named,
    Nobody,
}

impl Access {
    /// Finds credentials. For GCS, [`trusted`] decides which ones the server may receive. For S3, AWS's default chain
    /// finds them.
    ///
    /// # Errors
    /// Returns [`Error::Credentials`] if credentials are needed and none exist, or if they can't be used.
    pub(crate) async fn find(remote: &Remote, origin: &Origin, roots: &Roots) -> Result<Self, Error> {
        if remote.anonymous {
            return Ok(Self::Open);
        }
        let context = Context::new()
            .with_http_send(OverRival { roots: roots.clone() })
            .with_file_read(Files)
            .with_env(OsEnv)
            .with_command_execute(NoCommands);
        if remote.provider == Provider::S3 {
            let chain = reqsign_aws_v4::DefaultCredentialProvider::new();
            let signer = reqsign_aws_v4::RequestSigner::new("s3", &remote.region);
            let access = Self::Signed(Box::new(Signer::new(context, chain, signer)));
            // Search for credentials now, so that no run's time includes the search.
            let trial = http::Request::get(&remote.endpoint).body(Bytes::new());
            access.sign(&mut trial.map_err(failed)?).await.map_err(failed)?;
            return Ok(access);
        }
        let named = std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS").is_some_and(|name| !name.is_empty());
        let signer = reqsign_google::RequestSigner::new("storage");
        let signer = match trusted(origin, named) {
            Trusted::Nobody => return Ok(Self::Open),
            Trusted::Google => Signer::new(context, DefaultCredentialProvider::new(), signer),
            Trusted::Named => Signer::new(context, EnvCredentialProvider::new(), signer),
        };
        let request = http::Request::get("https://storage.googleapis.com/").body(());
        let mut parts = request.map_err(failed)?.into_parts().0;
        signer.sign(&mut parts, None).await.map_err(failed)?;
        Ok(parts.headers.remove(AUTHORIZATION).map_or(Self::Open, Self::Bearer))
    }

    /// Returns the `Authorization` header, if it is the same for all requests.
    pub(crate) fn bearer(&self) -> Option<&HeaderValue> {
        match self {
            Self::Bearer(token) => Some(token),
            Self::Open | Self::Signed(_) => None,
        }
    }

    /// Signs a request's head, which must be complete.
    ///
    /// # Errors
    /// Fails if there are no credentials or the head can't be signed.
    pub(crate) async fn sign<B>(&self, request: &mut http::Request<B>) -> Result<(), rival::Error> {
        match self {
            Self::Open => Ok(()),
            Self::Bearer(token) => {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
                Ok(())
            }
            Self::Signed(signer) => {
                // The signature needn't include the body, because TLS protects it and the store compares its checksum.
                let unsigned = HeaderValue::from_static("UNSIGNED-PAYLOAD");
                request.headers_mut().insert("x-amz-content-sha256", unsigned);
                let mut head = http::Request::new(()).into_parts().0;
                head.method = request.method().clone();
                head.uri = request.uri().clone();
                head.headers = request.headers().clone();
                signer.sign(&mut head, None).await.map_err(|e| rival::Error::Unsigned(e.to_string()))?;
                *request.headers_mut() = head.headers;
                Ok(())
            }
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Credentials(error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// Decides which credentials a GCS server may receive. Default credentials are sent only to Google's own hosts, over
/// TLS. Another server over TLS receives only the credentials in `GOOGLE_APPLICATION_CREDENTIALS`. A server over plain
/// HTTP receives none.
fn trusted(origin: &Origin, named: bool) -> Trusted {
    let google = origin.host == "googleapis.com" || origin.host.ends_with(".googleapis.com");
    match origin.https {
        false => Trusted::Nobody,
        true if google => Trusted::Google,
        true if named => Trusted::Named,
        true => Trusted::Nobody,
    }
}

#[derive(Debug)]
struct OverRival {
    roots: Roots,
}

impl HttpSend for OverRival {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let invalid = || reqsign_core::Error::config_invalid("the token URL is invalid");
        let origin = Origin::of(request.uri()).ok_or_else(invalid)?;
        let tls = origin.https.then(|| self.roots.config(Protocol::H1));
        let failed = |e: String| reqsign_core::Error::unexpected(e);
        let exchange = async {
            let rival = Rival::at(origin.clone(), tls);
            rival.connect_h1().await?.send(request).await
        };
        let answer = tokio::time::timeout(TIMEOUT, exchange)
            .await
            .map_err(|_| failed(format!("{} doesn't answer", origin.host)))?
            .map_err(|e| failed(e.to_string()))?;
        let mut response = http::Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        std::fs::read(path).map_err(|e| reqsign_core::Error::config_invalid(format!("{path}: {e}")))
    }
}

/// Refuses to run the commands that a profile may name as a source of credentials. The benchmark doesn't support them.
#[derive(Debug)]
struct NoCommands;

impl CommandExecute for NoCommands {
    async fn command_execute<'a>(
        &'a self,
        program: &'a str,
        _: &'a [&'a str],
    ) -> reqsign_core::Result<CommandOutput> {
        Err(reqsign_core::Error::config_invalid(format!("benchmarks don't run {program}")))
    }
}

/// Trusted certificates, which are read once before the measurement starts. Like Laneway, the rivals trust the
/// platform's certificates and those of the CA files.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    base: ClientConfig,
}

impl Roots {
    /// Reads the CA files and the platform's certificates.
    ///
    /// # Errors
    /// Returns [`Error::Certificates`] with the file that can't be read, or with the platform's problem.
    pub(crate) fn read(ca_files: &[PathBuf]) -> Result<Self, Error> {
        let mut extra = Vec::new();
        for file in ca_files {
            let failed = |e: rustls_pki_types::pem::Error| Error::Certificates {
                what: format!("CA file {}", file.display()),
                source: Box::new(e),
            };
            for certificate in CertificateDer::pem_file_iter(file).map_err(failed)? {
                extra.push(certificate.map_err(failed)?);
            }
        }
        let failed = |e: rustls::Error| Error::Certificates {
            what: "the platform's certificates".to_owned(),
            source: Box::new(e),
        };
        let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(failed)?;
        let base = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            // The call's name is only a warning: this verifier is the platform's own. rustls accepts a custom verifier only through this
            // call.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self { base })
    }

    /// Returns a TLS configuration with rustls's defaults, and without sessions to resume.
    pub(crate) fn config(&self, protocol: Protocol) -> ClientConfig {
        let mut config = self.base.clone();
        // Replace the session cache, because a clone would share the sessions of earlier runs. By default, rustls also
        // keeps 256 sessions.
        config.resumption = rustls::client::Resumption::in_memory_sessions(256);
        config.alpn_protocols = match protocol {
            Protocol::H1 => vec![b"http/1.1".to_vec()],
            // Offer HTTP/1.1 too, because a server ends the handshake if it supports none of the offered protocols.
            Protocol::H2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_google_or_where_it_was_meant_to() {
        let origin = |url: &str| Origin::of(&url.parse().unwrap()).unwrap();
        assert_eq!(trusted(&origin("https://storage.googleapis.com"), false), Trusted::Google);
        assert_eq!(trusted(&origin("https://evilgoogleapis.com"), false), Trusted::Nobody);
        assert_eq!(trusted(&origin("https://127.0.0.1:1"), true), Trusted::Named);
        assert_eq!(trusted(&origin("http://storage.googleapis.com"), true), Trusted::Nobody);
    }
}
