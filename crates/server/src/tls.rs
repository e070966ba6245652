//! The server's TLS: rustls with ring, ALPN `h2` and `http/1.1`.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::Tls;
use crate::{Error, certificate};

/// A ready acceptor, and the certificate authority to trust if it was generated here.
pub(crate) struct Ready {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) ca_pem: Option<String>,
}

/// Reads or generates the certificate.
pub(crate) fn prepare(tls: &Tls, listen: IpAddr, h1_only: bool) -> Result<Ready, Error> {
    let (chain, key, ca_pem) = match tls {
        Tls::Generated => {
            let made = certificate::generate(listen)?;
            (made.chain, made.key, Some(made.ca_pem))
        }
        Tls::Files { cert, key } => {
            let reading = |path: &std::path::Path| format!("reading {}", path.display());
            let chain: Vec<_> = CertificateDer::pem_file_iter(cert)
                .and_then(Iterator::collect)
                .map_err(|error| Error::tls(reading(cert), error))?;
            if chain.is_empty() {
                return Err(Error::tls(reading(cert), "there is no certificate in it"));
            }
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| Error::tls(reading(key), error))?;
            (chain, key, None)
        }
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::tls("setting up TLS", error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| Error::tls("using the certificate", error))?;
    config.alpn_protocols =
        if h1_only { vec![b"http/1.1".to_vec()] } else { vec![b"h2".to_vec(), b"http/1.1".to_vec()] };
    Ok(Ready { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem })
}
