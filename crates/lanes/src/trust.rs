//! Which certificates are trusted, and what is offered by ALPN.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

use crate::error::{Error, Kind};
use crate::{Protocol, Trust};

/// The TLS settings of an engine, one for each set of protocols a lane may offer.
#[derive(Debug)]
pub(crate) struct TlsSettings {
    both: Arc<ClientConfig>,
    h1: Arc<ClientConfig>,
}

impl TlsSettings {
    /// Builds the settings: the platform's roots and `extra`.
    ///
    /// The provider is ring: with aws-lc-rs's defaults a cold upload of 50 files took 70 ms longer (24 ms at the first
    /// random draw, and key-exchange groups in an order that costs another round trip). Ring offers X25519 first,
    /// which every store answers without a HelloRetryRequest.
    pub(crate) fn build(extra: Vec<CertificateDer<'static>>) -> Result<Self, Error> {
        let failed =
            |e: rustls::Error| Error::because(Kind::Invalid, "the platform's certificates can't be used", e);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(failed)?;
        let mut h1 = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            // Not dangerous: this is the platform's own verifier, which rustls takes only by this door.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        h1.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut both = h1.clone();
        both.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { both: Arc::new(both), h1: Arc::new(h1) })
    }

    /// The settings for a lane that may speak either protocol, or HTTP/1.1 only.
    pub(crate) fn offering(&self, only: Option<Protocol>) -> Arc<ClientConfig> {
        match only {
            Some(Protocol::H1) => Arc::clone(&self.h1),
            _ => Arc::clone(&self.both),
        }
    }
}

/// Reads the extra CA files.
///
/// # Errors
/// [`Kind::Invalid`] naming the file that can't be read or holds no certificate.
pub(crate) fn extra_roots(trust: &Trust) -> Result<Vec<CertificateDer<'static>>, Error> {
    let mut roots = Vec::new();
    for file in &trust.extra_ca_files {
        let name = file.display();
        let pem = std::fs::read(file).map_err(|e| {
            Error::because(Kind::Invalid, format!("CA file {name}{} can't be read", origin_of(file)), e)
        })?;
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let bad =
                |e| Error::because(Kind::Invalid, format!("CA file {name} is no PEM"), format!("{e:?}"));
            roots.push(certificate.map_err(bad)?);
        }
        if roots.len() == before {
            return Err(Error::new(Kind::Invalid, format!("CA file {name} holds no certificate")));
        }
    }
    Ok(roots)
}

/// The variable that names a file, in brackets, for an error about it.
fn origin_of(file: &std::path::Path) -> &'static str {
    match std::env::var_os("AWS_CA_BUNDLE").is_some_and(|named| named == file) {
        true => " (AWS_CA_BUNDLE)",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_or_empty_ca_file_is_named() {
        let missing = Trust { extra_ca_files: vec!["/nonexistent/ca.pem".into()] };
        assert!(extra_roots(&missing).unwrap_err().to_string().contains("/nonexistent/ca.pem"));
        let empty = Trust { extra_ca_files: vec!["/dev/null".into()] };
        assert!(extra_roots(&empty).unwrap_err().to_string().contains("no certificate"));
    }
}
