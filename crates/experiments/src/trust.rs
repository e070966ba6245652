//! The certificates that the rivals trust. Like Laneway, they trust the platform's certificates and those of the CA
//! files.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

use crate::Error;
use crate::rival::Protocol;

/// Trusted certificates, which are read once before the measurement starts.
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
