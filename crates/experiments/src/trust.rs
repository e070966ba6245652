//! Which certificates the rivals trust: the platform's and those of the CA files, as Laneway does.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

use crate::Error;
use crate::rival::Protocol;

/// Read once, before any clock runs.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    base: ClientConfig,
}

impl Roots {
    /// Reads the CA files and the platform's certificates.
    ///
    /// # Errors
    /// [`Error::Certificates`] naming the file that can't be read, or saying what the platform lacks.
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
            // Not dangerous: this is the platform's own verifier, which rustls takes only by this door.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self { base })
    }

    /// A configuration with rustls's defaults and no sessions yet.
    pub(crate) fn config(&self, protocol: Protocol) -> ClientConfig {
        let mut config = self.base.clone();
        // The clone would share the sessions of earlier runs. 256 of them are rustls's default.
        config.resumption = rustls::client::Resumption::in_memory_sessions(256);
        config.alpn_protocols = match protocol {
            Protocol::H1 => vec![b"http/1.1".to_vec()],
            // A server that has none of what is offered ends the handshake, instead of saying what it has.
            Protocol::H2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        config
    }
}
