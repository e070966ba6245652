//! Mutual TLS: servers that ask for a certificate, over both HTTP protocols and both versions of TLS.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use laneway_lanes::{
    Call, ClientCertificate, Error, Kind, Lanes, LanesConfig, Origin, Request, Response as Answer, Trust,
    Verdict,
};
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio_rustls::server::TlsStream;

use super::support::get;

struct Ca(Certificate, Issuer<'static, KeyPair>);

impl Ca {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(params.self_signed(&key).unwrap(), Issuer::new(params, key))
    }

    fn issue(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.1).unwrap(), key)
    }
}

/// A server that answers with its peer's certificate, and a folder with certificate files.
struct Server {
    origin: Origin,
    folder: tempfile::TempDir,
    ca: Ca,
    lanes: Lanes,
}

impl Server {
    async fn start(protocol: &'static str, version: &'static SupportedProtocolVersion) -> Self {
        let (folder, ca) = (tempfile::tempdir().unwrap(), Ca::new("own"));
        let mut roots = RootCertStore::empty();
        roots.add(ca.0.der().clone()).unwrap();
        let (certificate, key) = ca.issue("localhost");
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
            .unwrap();
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(acceptor.clone(), tcp));
            }
        });
        std::fs::write(folder.path().join("ca"), ca.0.pem()).unwrap();
        let trust = Trust { extra_ca_files: vec![folder.path().join("ca")] };
        let lanes = Lanes::start(LanesConfig { trust, ..LanesConfig::default() }).unwrap();
        Self { origin: Origin::parse(&format!("https://localhost:{port}")).unwrap(), folder, ca, lanes }
    }

    /// Writes a client's certificate and its key, and returns their paths.
    fn client(&self, ca: &Ca, name: &str) -> (Bytes, ClientCertificate) {
        let (certificate, key) = ca.issue(name);
        let shown = ClientCertificate {
            certificate_file: self.path(name),
            key_file: self.path(&format!("{name}.key")),
        };
        std::fs::write(&shown.certificate_file, certificate.pem()).unwrap();
        std::fs::write(&shown.key_file, key.serialize_pem()).unwrap();
        (certificate.der().to_vec().into(), shown)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn ask(&self, certificate: Option<&ClientCertificate>) -> Result<Bytes, Error> {
        let origin = Origin { client_certificate: certificate.cloned().map(Arc::new), ..self.origin.clone() };
        let Ok(ended) = self.lanes.run(&RetriedCall(origin)).await;
        ended.outcome.map(|answer| answer.body)
    }
}

async fn serve(acceptor: TlsAcceptor, tcp: TcpStream) {
    let Ok(mut tls) = acceptor.accept(tcp).await else { return };
    let peer = Bytes::copy_from_slice(&tls.get_ref().1.peer_certificates().unwrap()[0]);
    if tls.get_ref().1.alpn_protocol() == Some(b"h2") {
        return serve_h2(tls, peer).await;
    }
    let mut head = Vec::new();
    while tls.read_buf(&mut head).await.is_ok_and(|read| read > 0) {
        if head.ends_with(b"\r\n\r\n") {
            let answer = format!("HTTP/1.1 200 x\r\nContent-Length: {}\r\n\r\n", peer.len());
            tls.write_all(&[answer.as_bytes(), &peer].concat()).await.unwrap();
            head.clear();
        }
    }
}

async fn serve_h2(tls: TlsStream<TcpStream>, peer: Bytes) {
    let Ok(mut http2) = h2::server::handshake(tls).await else { return };
    while let Some(Ok((_, mut respond))) = http2.accept().await {
        respond.send_response(Response::new(()), false).unwrap().send_data(peer.clone(), true).unwrap();
    }
}

/// A request that is retried as long as that may help.
struct RetriedCall(Origin);

impl Call for RetriedCall {
    type Refusal = std::convert::Infallible;

    async fn request(&self, _attempt: u32) -> Result<Request, Self::Refusal> {
        Ok(get(&self.0, "/"))
    }

    fn judge(&self, outcome: &Result<Answer, Error>) -> Verdict {
        match outcome {
            Err(error) if error.is_transient() => Verdict::Retry,
            _ => Verdict::Done,
        }
    }

    fn throttle_key(&self) -> &str {
        "test"
    }
}

const TRANSPORTS: [(&str, &SupportedProtocolVersion); 4] =
    [("h2", &TLS13), ("h2", &TLS12), ("http/1.1", &TLS13), ("http/1.1", &TLS12)];

#[tokio::test]
async fn shows_its_certificate_on_request_and_keeps_connections_apart() {
    for (protocol, version) in TRANSPORTS {
        let server = Server::start(protocol, version).await;
        let (one, first) = server.client(&server.ca, "one");
        let (two, second) = server.client(&server.ca, "two");
        for _ in 0..2 {
            assert_eq!(server.ask(Some(&first)).await.unwrap(), one, "{protocol} {version:?}");
            assert_eq!(server.ask(Some(&second)).await.unwrap(), two, "{protocol} {version:?}");
        }
    }
}

/// After the refusal, Laneway doesn't retry, as it would after a broken connection.
#[tokio::test]
async fn a_server_that_refuses_the_certificate_ends_the_request() {
    for (protocol, version) in TRANSPORTS {
        let server = Server::start(protocol, version).await;
        let (_, foreign) = server.client(&Ca::new("foreign"), "foreign");
        let error = server.ask(Some(&foreign)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Certificate, "{protocol} {version:?}: {error}");
        assert!(error.to_string().contains("client certificate"), "{error}");
    }
}

#[tokio::test]
async fn a_certificate_that_can_not_be_shown_is_told_with_its_file() {
    let server = Server::start("h2", &TLS13).await;
    let (_, good) = server.client(&server.ca, "good");
    let (_, other) = server.client(&server.ca, "other");
    let gone = server.path("gone");
    let empty = server.path("empty");
    std::fs::write(&empty, "").unwrap();
    let with = |certificate_file: &PathBuf, key_file: &PathBuf| ClientCertificate {
        certificate_file: certificate_file.clone(),
        key_file: key_file.clone(),
    };
    for (shown, words) in [
        (with(&gone, &good.key_file), "gone can't be read"),
        (with(&good.certificate_file, &gone), "gone can't be read"),
        (with(&empty, &good.key_file), "empty holds no certificate"),
        (with(&good.certificate_file, &empty), "empty holds no private key"),
        (with(&good.certificate_file, &other.key_file), "other.key doesn't belong to"),
    ] {
        let error = server.ask(Some(&shown)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Client certificates often last only for hours, and new ones replace the files.
#[tokio::test]
async fn a_certificate_that_was_replaced_is_shown_on_the_next_connection() {
    let server = Server::start("http/1.1", &TLS13).await;
    let (_, shown) = server.client(&Ca::new("foreign"), "me");
    assert_eq!(server.ask(Some(&shown)).await.unwrap_err().kind(), Kind::Certificate);
    let (renewed, shown) = server.client(&server.ca, "me");
    assert_eq!(server.ask(Some(&shown)).await.unwrap(), renewed);
}
