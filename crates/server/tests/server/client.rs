//! A plain HTTP client. It opens a connection for each request unless the test passes one.

use std::sync::Arc;

use http::{HeaderMap, Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use laneway_server::{Config, Server, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::client::TlsStream;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    PlainH1,
    TlsH1,
    TlsH2,
}

pub(crate) const PROTOCOLS: [Protocol; 3] = [Protocol::PlainH1, Protocol::TlsH1, Protocol::TlsH2];

/// A server with one bucket, `demo`, and a client for it.
pub(crate) struct Rig {
    pub(crate) server: Server,
    runtime: Runtime,
    protocol: Protocol,
}

/// An answer, as far as it arrived.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The error if the body broke off.
    pub(crate) broken: Option<String>,
}

pub(crate) enum Connection {
    H1(http1::SendRequest<Full<Bytes>>),
    H2(http2::SendRequest<Full<Bytes>>),
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(Protocol::PlainH1, |_| {})
    }

    pub(crate) fn with(protocol: Protocol, change: impl FnOnce(&mut Config)) -> Rig {
        let mut config = Config::default();
        if protocol != Protocol::PlainH1 {
            config.tls = Some(Tls::Generated);
        }
        change(&mut config);
        let server = Server::start(config).unwrap();
        server.create_bucket("demo").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Rig { server, runtime, protocol }
    }

    pub(crate) fn faulty(protocol: Protocol, rule: &str) -> Rig {
        let rule = laneway_server::parse_fault(rule).unwrap();
        Rig::with(protocol, |config| config.faults.rules.push(rule))
    }

    /// Sends a request on a new connection. Returns an error if there is no answer.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        let mut connection = self.connect();
        self.send_on(&mut connection, method, path, headers, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").unwrap()
    }

    pub(crate) fn connect(&self) -> Connection {
        self.runtime.block_on(connect(&self.server, self.protocol))
    }

    pub(crate) fn send_on(
        &self,
        connection: &mut Connection,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        self.runtime.block_on(exchange(&self.server, connection, method, path, headers, body.into()))
    }

    /// Runs a future that needs several connections at once.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the text of the first XML element with this name.
    pub(crate) fn element(&self, name: &str) -> &str {
        let text = self.text();
        let Some(start) = text.find(&format!("<{name}>")) else { return "" };
        let rest = &text[start + name.len() + 2..];
        &rest[..rest.find(&format!("</{name}>")).unwrap()]
    }
}

pub(crate) async fn connect(server: &Server, protocol: Protocol) -> Connection {
    let socket = TcpStream::connect(server.addr()).await.unwrap();
    if protocol == Protocol::PlainH1 {
        return Connection::H1(speak_h1(socket).await);
    }
    let stream = secure(server, protocol, socket).await;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Connection::H1(speak_h1(stream).await);
    }
    let (sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    Connection::H2(sender)
}

/// Makes the TLS handshake of a protocol.
pub(crate) async fn secure(server: &Server, protocol: Protocol, socket: TcpStream) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem().unwrap().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = match protocol {
        Protocol::TlsH2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        _ => vec![b"http/1.1".to_vec()],
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap()
}

async fn speak_h1(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> http1::SendRequest<Full<Bytes>> {
    let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    sender
}

pub(crate) async fn exchange(
    server: &Server,
    connection: &mut Connection,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Answer, String> {
    let mut request = Request::builder().method(method);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    // On HTTP/1.1, hyper doesn't send the length of an empty body.
    let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if matches!(method, "POST" | "PUT" | "PATCH") && !is_given("content-length") {
        request = request.header("content-length", body.len());
    }
    let body = Full::new(body);
    let answer = match connection {
        Connection::H1(sender) => {
            sender.ready().await.map_err(|error| format!("{error:?}"))?;
            let request = request.uri(path).header("host", server.addr().to_string());
            sender.send_request(request.body(body).unwrap()).await
        }
        Connection::H2(sender) => {
            sender.ready().await.map_err(|error| format!("{error:?}"))?;
            let request = request.version(Version::HTTP_2).uri(format!("{}{path}", server.url()));
            sender.send_request(request.body(body).unwrap()).await
        }
    };
    let (head, mut body) = answer.map_err(|error| format!("{error:?}"))?.into_parts();
    let (mut bytes, mut broken) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Err(error) => {
                broken = Some(format!("{error:?}"));
                break;
            }
        }
    }
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body: bytes.into(), broken })
}
