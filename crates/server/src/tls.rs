//! The server's TLS: rustls with ring, and ALPN with `h2` and `http/1.1`. It generates a certificate if the
//! configuration names none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::{Duration, OffsetDateTime};
use tokio_rustls::TlsAcceptor;

use crate::Error;
use crate::config::Tls;

/// The acceptor of TLS connections. For a generated certificate, it also holds the certificate authority that clients
/// must trust.
pub(crate) struct TlsSetup {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) ca_pem: Option<String>,
}

/// Reads or generates the certificate.
pub(crate) fn prepare(tls: &Tls, listen: IpAddr, h1_only: bool) -> Result<TlsSetup, Error> {
    let (chain, key, ca_pem) = match tls {
        Tls::Generated => {
            let made = generate(listen)?;
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
    Ok(TlsSetup { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem })
}

/// A certificate authority, and a server certificate that it signed.
struct GeneratedCertificate {
    ca_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Generates a certificate authority for this run, and a certificate for `localhost`, 127.0.0.1, ::1 and `listen`. Both
/// are valid for 90 days. Their validity begins yesterday, because the clocks of clients may be behind. The authority's
/// key isn't kept.
fn generate(listen: IpAddr) -> Result<GeneratedCertificate, Error> {
    let refuse = |error: rcgen::Error| Error::tls("making a certificate", error);
    let yesterday = OffsetDateTime::now_utc() - Duration::DAY;

    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.distinguished_name.push(DnType::CommonName, "Laneway demo CA");
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.not_before = yesterday;
    authority.not_after = yesterday + Duration::days(90);
    let authority_key = KeyPair::generate().map_err(refuse)?;
    let authority_cert = authority.self_signed(&authority_key).map_err(refuse)?;
    let issuer = Issuer::new(authority, authority_key);

    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).map_err(refuse)?;
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    if !listen.is_unspecified() && !addresses.contains(&listen) {
        addresses.push(listen);
    }
    leaf.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
    leaf.distinguished_name.push(DnType::CommonName, "localhost");
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.not_before = yesterday;
    leaf.not_after = yesterday + Duration::days(90);
    let leaf_key = KeyPair::generate().map_err(refuse)?;
    let leaf_cert = leaf.signed_by(&leaf_key, &issuer).map_err(refuse)?;

    Ok(GeneratedCertificate {
        ca_pem: authority_cert.pem(),
        chain: vec![leaf_cert.der().clone()],
        key: PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into(),
    })
}
