//! Generates certificates for a server that has none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::{Duration, OffsetDateTime};

use crate::Error;

/// A CA and a leaf that it signed.
pub(crate) struct Generated {
    pub(crate) ca_pem: String,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Makes a certificate authority for this run, and a leaf for `localhost`, 127.0.0.1, ::1 and `listen`. Both are valid
/// for 90 days, from yesterday because clocks differ. The authority's key isn't kept.
pub(crate) fn generate(listen: IpAddr) -> Result<Generated, Error> {
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

    Ok(Generated {
        ca_pem: authority_cert.pem(),
        chain: vec![leaf_cert.der().clone()],
        key: PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into(),
    })
}
