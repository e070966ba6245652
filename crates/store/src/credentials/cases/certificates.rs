//! Certificates for the services and their clients, made anew in each process. The same as in `interop/credentials.py`.

use std::sync::{Arc, OnceLock};

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

pub(super) struct Certificates {
    authority: Certificate,
    server: Arc<ServerConfig>,
    client: (Certificate, KeyPair),
    /// One that the server doesn't trust.
    foreign: (Certificate, KeyPair),
}

pub(super) fn certificates() -> &'static Certificates {
    static MADE: OnceLock<Certificates> = OnceLock::new();
    MADE.get_or_init(Certificates::make)
}

struct Authority(Certificate, Issuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(params.self_signed(&key).expect("a certificate"), Issuer::new(params, key))
    }

    fn issue(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("names");
        (params.signed_by(&key, &self.1).expect("a certificate"), key)
    }
}

impl Certificates {
    fn make() -> Self {
        let authority = Authority::new("authority");
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let (certificate, key) = authority.issue("localhost");
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier.build().expect("a verifier"))
            .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().expect("a key"))
            .expect("a certificate");
        let (client, foreign) = (authority.issue("client"), Authority::new("foreign").issue("foreign"));
        Self { authority: authority.0, server: Arc::new(server), client, foreign }
    }

    pub(super) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// What trusts the server.
    pub(super) fn authority(&self) -> String {
        self.authority.pem()
    }

    /// The files that cases find in their home.
    pub(super) fn files(&self) -> [(&'static str, String); 7] {
        let (authority, client) = (self.authority.pem(), self.client.0.pem());
        [
            ("x509/client.key", self.client.1.serialize_pem()),
            ("x509/foreign.pem", self.foreign.0.pem()),
            ("x509/foreign.key", self.foreign.1.serialize_pem()),
            ("x509/chain.pem", format!("{client}{authority}")),
            ("x509/backwards.pem", format!("{authority}{client}")),
            ("x509/client.pem", client),
            ("x509/authority.pem", authority),
        ]
    }
}
