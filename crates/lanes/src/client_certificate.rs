//! The client certificate for servers that ask for one (mutual TLS), and the errors of servers that refuse it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{AlertDescription, ClientConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, Kind};

/// A client certificate with its key, as PEM files. Both files are read for each new connection, because such certificates often expire
/// after some hours and new ones are written to the same files.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClientCertificate {
    /// The certificate, followed by its issuers' certificates if the server needs them.
    pub certificate_file: PathBuf,
    /// The private key of the certificate.
    pub key_file: PathBuf,
}

impl ClientCertificate {
    /// Reads the files, and returns a copy of these TLS settings with the certificate added.
    ///
    /// # Errors
    /// [`Kind::Invalid`], naming the file and the cause.
    pub(crate) fn shown(&self, settings: &ClientConfig) -> Result<ClientConfig, Error> {
        let chain = certificates(&self.certificate_file, "client certificate")?;
        let key = read(&self.key_file, "client key")?;
        let named = || format!("client key {}", self.key_file.display());
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|e| {
            // The error doesn't quote the file's text. Even a text that isn't PEM may be the secret key.
            let why = match e {
                rustls_pki_types::pem::Error::NoItemsFound => "holds no private key in PEM",
                _ => "isn't PEM",
            };
            Error::new(Kind::Invalid, format!("{} {why}", named()))
        })?;
        let pair = CertifiedKey::from_der(chain, key, settings.crypto_provider()).map_err(|e| match e {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = self.certificate_file.display();
                Error::new(Kind::Invalid, format!("{} doesn't belong to {certificate}", named()))
            }
            e => Error::because(Kind::Invalid, format!("{} can't be used", named()), e),
        })?;
        let mut settings = settings.clone();
        settings.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(pair));
        // A resumed TLS session keeps the client certificate of its first handshake, or none if that handshake had none. So sessions aren't
        // resumed.
        settings.resumption = Resumption::disabled();
        Ok(settings)
    }
}

/// Returns whether a connection ended because the server refuses our client certificate, or requires one that we didn't send. With TLS 1.3,
/// the server refuses only after our side has finished the handshake. So this error comes instead of the first response.
pub(crate) fn is_refused(error: &io::Error) -> bool {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked,
        CertificateUnknown, UnknownCA, UnsupportedCertificate,
    };
    let refusals = [
        AccessDenied,
        BadCertificate,
        CertificateExpired,
        CertificateRequired,
        CertificateRevoked,
        CertificateUnknown,
        UnknownCA,
        UnsupportedCertificate,
    ];
    // The crate `h2` keeps only the text of an I/O error, so the texts are compared.
    let words = error.to_string();
    refusals.iter().any(|alert| words.ends_with(&rustls::Error::AlertReceived(*alert).to_string()))
}

/// Makes the error for a refused certificate.
pub(crate) fn refused(place: &str, error: io::Error) -> Error {
    let message = format!(
        "{place}: the server refused the client certificate, or requires one; give one that it trusts"
    );
    Error::because(Kind::Certificate, message, error)
}

/// Reads the certificates of a PEM file. `what` names the file's purpose in errors.
///
/// # Errors
/// [`Kind::Invalid`] if the file can't be read, isn't PEM or holds no certificate. The error names the file and the cause.
pub(crate) fn certificates(file: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let pem = read(file, what)?;
    let name = file.display();
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let bad = |e| Error::because(Kind::Invalid, format!("{what} {name} isn't PEM"), format!("{e:?}"));
    let found = found.map_err(bad)?;
    match found.is_empty() {
        true => Err(Error::new(Kind::Invalid, format!("{what} {name} holds no certificate"))),
        false => Ok(found),
    }
}

/// Reads a whole file.
///
/// # Errors
/// [`Kind::Invalid`], naming the file and the cause.
pub(crate) fn read(file: &Path, what: &str) -> Result<Vec<u8>, Error> {
    let name = file.display();
    std::fs::read(file).map_err(|e| Error::because(Kind::Invalid, format!("{what} {name} can't be read"), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_alert_also_through_other_errors() {
        let alert = |alert| io::Error::other(rustls::Error::AlertReceived(alert));
        assert!(is_refused(&alert(AlertDescription::CertificateRequired)));
        let wrapped = io::Error::other(alert(AlertDescription::UnknownCA).to_string());
        assert!(is_refused(&wrapped));
        assert!(!is_refused(&alert(AlertDescription::InternalError)));
        assert!(!is_refused(&io::Error::other("reset")));
    }
}
