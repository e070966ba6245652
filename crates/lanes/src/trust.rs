//! The TLS settings: trusted certificates, the protocols offered by ALPN, and the explanations of refused certificates.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;
use webpki::EndEntityCert;

use crate::client_certificate::certificates;
use crate::error::{Error, Kind};
use crate::{Origin, Protocol, Trust};

/// The TLS settings of an engine, one for each list of protocols that a connection offers.
#[derive(Debug)]
pub(crate) struct TlsSettings {
    both: Arc<ClientConfig>,
    h1: Arc<ClientConfig>,
}

impl TlsSettings {
    /// Builds the settings. They trust the operating system's root certificates and `extra`.
    ///
    /// The cryptographic provider is ring. With aws-lc-rs and its defaults, an upload of 50 files by a new process took 70 ms longer. The
    /// first random number took 24 ms, and the order of aws-lc-rs's key-exchange groups cost another round trip. Ring offers X25519 first,
    /// which every store accepts without a HelloRetryRequest.
    pub(crate) fn build(extra: Vec<CertificateDer<'static>>) -> Result<Self, Error> {
        check_named(variable("SSL_CERT_FILE"), variable("SSL_CERT_DIR"))?;
        let failed = |e: rustls::Error| {
            Error::because(Kind::Invalid, "the platform's certificates can't be used", why(e))
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(failed)?;
        let mut h1 = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            // This isn't dangerous here, because the operating system's own verifier decides. rustls accepts such a verifier only through
            // this method.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(CertificateVerifier::new(verifier)))
            .with_no_client_auth();
        h1.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut both = h1.clone();
        both.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { both: Arc::new(both), h1: Arc::new(h1) })
    }

    /// Returns the settings for a connection to this origin. The connection offers HTTP/2 and HTTP/1.1, or only HTTP/1.1 if `only` says so.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a client certificate that can't be used.
    pub(crate) async fn to(
        &self,
        origin: &Origin,
        only: Option<Protocol>,
    ) -> Result<Arc<ClientConfig>, Error> {
        let settings = match only {
            Some(Protocol::H1) => Arc::clone(&self.h1),
            _ => Arc::clone(&self.both),
        };
        let Some(certificate) = origin.client_certificate.clone() else { return Ok(settings) };
        // The files are read on a blocking thread, so that the express thread doesn't wait for the disk.
        let shown = tokio::task::spawn_blocking(move || certificate.shown(&settings)).await;
        let shown =
            shown.map_err(|e| Error::because(Kind::Closed, "the TLS settings can't be built", e))??;
        Ok(Arc::new(shown))
    }
}

/// Returns the reason why the system's certificates can't be loaded. rustls doesn't report a lack of file descriptors (EMFILE, ENFILE), so
/// this function checks for it.
fn why(error: rustls::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match File::open("/dev/null") {
        Err(lacking) if matches!(lacking.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => lacking.into(),
        _ => error.into(),
    }
}

/// Returns the value of an environment variable that replaces the system's certificates. macOS ignores these variables, so it returns
/// `None` there.
fn variable(name: &str) -> Option<OsString> {
    let is_known = cfg!(all(unix, not(target_vendor = "apple")));
    std::env::var_os(name).filter(|value| is_known && !value.is_empty())
}

/// Checks that the files of `SSL_CERT_FILE` and `SSL_CERT_DIR` can be read. Without this check, the only sign of a mistake in these
/// variables would be that every server's certificate is refused.
///
/// # Errors
/// [`Kind::Invalid`], naming the variable, the file and the cause.
fn check_named(file: Option<OsString>, folders: Option<OsString>) -> Result<(), Error> {
    if let Some(file) = file {
        certificates(Path::new(&file), "SSL_CERT_FILE: CA file")?;
    }
    for folder in folders.iter().flat_map(std::env::split_paths) {
        std::fs::read_dir(&folder).map_err(|e| {
            let message = format!("SSL_CERT_DIR: folder {} can't be read", folder.display());
            Error::because(Kind::Invalid, message, e)
        })?;
    }
    Ok(())
}

/// Reads the extra CA files.
///
/// # Errors
/// [`Kind::Invalid`] naming the file that can't be read or holds no certificate.
pub(crate) fn extra_roots(trust: &Trust) -> Result<Vec<CertificateDer<'static>>, Error> {
    let mut roots = Vec::new();
    for file in &trust.extra_ca_files {
        roots.extend(certificates(file, &format!("{}CA file", origin_of(file)))?);
    }
    Ok(roots)
}

/// Returns the environment variable that set this file, for error messages.
fn origin_of(file: &Path) -> &'static str {
    match std::env::var_os("AWS_CA_BUNDLE").is_some_and(|named| named == file) {
        true => "AWS_CA_BUNDLE: ",
        false => "",
    }
}

/// The operating system's verifier. In addition, it distinguishes a self-signed certificate from one with an unknown issuer, because the
/// user must solve the two problems in different ways.
#[derive(Debug)]
pub(crate) struct CertificateVerifier(Verifier);

impl CertificateVerifier {
    pub(crate) fn new(platforms: Verifier) -> Self {
        Self(platforms)
    }
}

/// The error for a certificate that is its own issuer.
#[derive(Debug)]
struct SelfSigned {
    /// True if the certificate is marked as a CA's. webpki never accepts such a certificate from a server, even if it is trusted.
    is_ca: bool,
}

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed certificate")
    }
}

impl std::error::Error for SelfSigned {}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.0.verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        verified.map_err(|error| match is_untrusted(&error) && is_self_signed(certificate) {
            true => {
                let is_ca = is_ca_of_server(&error);
                CertificateError::Other(OtherError(Arc::new(SelfSigned { is_ca }))).into()
            }
            false => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Returns whether a certificate was refused because its signer isn't trusted. The result is also true if a server uses a CA certificate as
/// its own.
fn is_untrusted(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))
        || is_ca_of_server(error)
}

/// Returns whether a server's certificate was refused because it is marked as a CA's.
fn is_ca_of_server(error: &rustls::Error) -> bool {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
            matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
        }
        _ => false,
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate)
        .is_ok_and(|certificate| certificate.issuer() == certificate.subject())
}

/// Returns a text that explains why a certificate was refused, and what the user can do about it.
pub(crate) fn cause(why: &CertificateError) -> &'static str {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate isn't valid yet; is this machine's clock right?"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host"
        }
        CertificateError::Revoked => "its certificate was revoked",
        CertificateError::UnknownIssuer => {
            "its certificate comes from an unknown authority; if you trust that authority, give its certificate with --ca-cert FILE or AWS_CA_BUNDLE"
        }
        CertificateError::Other(OtherError(cause))
            if cause.downcast_ref::<SelfSigned>().is_some_and(|own| own.is_ca) =>
        {
            "its certificate is self-signed and marked as a CA's (basicConstraints CA:TRUE), so a server can't use it; make one with basicConstraints=CA:FALSE, and give it with --ca-cert FILE or AWS_CA_BUNDLE"
        }
        CertificateError::Other(OtherError(cause)) if cause.is::<SelfSigned>() => {
            "its certificate is self-signed and not trusted; if you trust it, give it with --ca-cert FILE or AWS_CA_BUNDLE"
        }
        _ => "its certificate is not accepted",
    }
}

/// Returns the details of a refusal, such as the end of the validity. They are `None` if [`cause`] says everything.
pub(crate) fn details(why: &CertificateError) -> Option<String> {
    match why {
        CertificateError::Other(OtherError(cause)) if cause.is::<SelfSigned>() => None,
        CertificateError::Other(OtherError(cause)) => Some(cause.to_string()),
        _ => Some(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_named_by_variables_must_be_readable() {
        let named = |text: &str| Some(OsString::from(text));
        let file = check_named(named("/nonexistent/ca.pem"), None).unwrap_err().to_string();
        assert!(file.contains("SSL_CERT_FILE") && file.contains("/nonexistent/ca.pem"), "{file}");
        let empty = check_named(named("/dev/null"), None).unwrap_err().to_string();
        assert!(empty.contains("SSL_CERT_FILE") && empty.contains("no certificate"), "{empty}");
        let folder = check_named(None, named("/:/nonexistent")).unwrap_err().to_string();
        assert!(folder.contains("SSL_CERT_DIR") && folder.contains("/nonexistent"), "{folder}");
        assert!(check_named(None, named("/")).is_ok() && check_named(None, None).is_ok());
    }

    #[test]
    fn an_unreadable_or_empty_ca_file_is_named() {
        let missing = Trust { extra_ca_files: vec!["/nonexistent/ca.pem".into()] };
        assert!(extra_roots(&missing).unwrap_err().to_string().contains("/nonexistent/ca.pem"));
        let empty = Trust { extra_ca_files: vec!["/dev/null".into()] };
        assert!(extra_roots(&empty).unwrap_err().to_string().contains("no certificate"));
    }
}
