//! Names for the certificates that the platform's verifier refuses.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;
use webpki::EndEntityCert;

/// The platform's verifier, which tells a certificate that is signed by itself from one whose authority nobody knows: the cure is another.
#[derive(Debug)]
pub(crate) struct Naming(Verifier);

impl Naming {
    pub(crate) fn new(platforms: Verifier) -> Self {
        Self(platforms)
    }
}

/// The certificate's issuer is the certificate itself.
#[derive(Debug)]
struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed certificate")
    }
}

impl std::error::Error for SelfSigned {}

impl ServerCertVerifier for Naming {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.0.verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        verified.map_err(|error| match is_untrusted(&error) && is_self_signed(certificate) {
            true => CertificateError::Other(OtherError(Arc::new(SelfSigned))).into(),
            false => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Returns whether it is refused because of who signed it. An authority's own certificate in place of a server's is such a one too.
fn is_untrusted(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
            matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
        }
        _ => false,
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate)
        .is_ok_and(|certificate| certificate.issuer() == certificate.subject())
}

/// Returns what is wrong with a certificate, in words that say what to do about it where there is something.
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
            "its certificate comes from an unknown authority; if you trust it, give its CA with --ca-cert FILE or AWS_CA_BUNDLE"
        }
        CertificateError::Other(OtherError(cause)) if cause.is::<SelfSigned>() => {
            "its certificate is self-signed and not trusted; if you trust it, give it with --ca-cert FILE or AWS_CA_BUNDLE"
        }
        _ => "its certificate is not accepted",
    }
}
