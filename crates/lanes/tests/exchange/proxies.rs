//! Connections through proxies, over clear text, TLS or SOCKS5.

use std::sync::{Arc, Mutex};

use http::header::USER_AGENT;
use laneway_lanes::{Kind, Lanes, LanesConfig, Origin, Trust};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::support::get;

/// Two servers whose certificates each have one name, and the settings that trust both.
struct Scene {
    folder: tempfile::TempDir,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), heads: Arc::default() }
    }

    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        std::fs::write(self.folder.path().join(name), certified.cert.pem()).unwrap();
        let key = certified.signing_key.serialize_der().try_into().unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(tls))
    }

    /// Listens on a port, and handles each connection by `answer`.
    async fn serve<F, Fut>(&self, tls: Option<TlsAcceptor>, answer: F) -> u16
    where
        F: Fn(Box<dyn Both>, Arc<Mutex<Vec<String>>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, answer, heads) =
            (listener.local_addr().unwrap().port(), Arc::new(answer), Arc::clone(&self.heads));
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (tls, answer, heads) = (tls.clone(), Arc::clone(&answer), Arc::clone(&heads));
                tokio::spawn(async move {
                    let stream: Box<dyn Both> = match tls {
                        None => Box::new(tcp),
                        Some(tls) => match tls.accept(tcp).await {
                            Ok(stream) => Box::new(stream),
                            Err(_) => return,
                        },
                    };
                    answer(stream, heads).await;
                });
            }
        });
        port
    }

    fn lanes(&self, https: Option<String>, http: Option<String>) -> Lanes {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let extra_ca_files = files.map(|entry| entry.unwrap().path()).collect();
        let trust = Trust { extra_ca_files };
        Lanes::start(LanesConfig { https_proxy: https, http_proxy: http, trust, ..LanesConfig::default() })
            .unwrap()
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

trait Both: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Both for S {}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// Answers each request with the same body.
async fn store(mut stream: Box<dyn Both>, heads: Arc<Mutex<Vec<String>>>) {
    while let Some(head) = head(&mut stream).await {
        heads.lock().unwrap().push(head);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nbytes").await.unwrap();
        stream.flush().await.unwrap();
    }
}

/// Connects every tunnel to a port of this machine.
async fn proxy(mut stream: Box<dyn Both>, heads: Arc<Mutex<Vec<String>>>, to: u16) {
    let Some(head) = head(&mut stream).await else { return };
    heads.lock().unwrap().push(head);
    stream.write_all(b"HTTP/1.1 200 Tunneling\r\n\r\n").await.unwrap();
    stream.flush().await.unwrap();
    let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}

#[tokio::test]
async fn tls_requests_take_a_tunnel_also_through_a_tls_proxy() {
    for is_secret in [false, true] {
        let scene = Scene::new();
        let port = scene.serve(Some(scene.acceptor("store.test")), store).await;
        let tls = is_secret.then(|| scene.acceptor("localhost"));
        let through = scene.serve(tls, move |stream, heads| proxy(stream, heads, port)).await;
        let scheme = if is_secret { "https" } else { "http" };
        let lanes = scene.lanes(Some(format!("{scheme}://user:pass@localhost:{through}")), None);
        let origin = Origin::parse("https://store.test").unwrap();
        for _ in 0..2 {
            let response = lanes.exchange(get(&origin, "/k")).await.unwrap();
            assert_eq!(&response.body[..], b"bytes");
        }
        assert_eq!(lanes.counters().connections, 1);
        let heads = scene.heads();
        assert!(heads[0].starts_with("CONNECT store.test:443 HTTP/1.1\r\n"), "{heads:?}");
        assert!(heads[0].contains("Proxy-Authorization: Basic dXNlcjpwYXNz\r\n"));
        assert!(heads[0].contains(&format!("User-Agent: laneway/{} (", env!("CARGO_PKG_VERSION"))));
        assert!(heads[1].starts_with("GET /k HTTP/1.1\r\n") && !heads[1].contains("uthorization"));
    }
}

#[tokio::test]
async fn plain_requests_go_to_a_proxy_over_tls_with_their_whole_url() {
    let scene = Scene::new();
    let through = scene.serve(Some(scene.acceptor("localhost")), store).await;
    let lanes = scene.lanes(None, Some(format!("https://localhost:{through}")));
    let mut request = get(&Origin::parse("http://store.test:9000").unwrap(), "/k");
    request.headers.insert(USER_AGENT, "own".parse().unwrap());
    assert_eq!(&lanes.exchange(request).await.unwrap().body[..], b"bytes");
    assert!(scene.heads()[0].starts_with("GET http://store.test:9000/k HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_proxy_whose_certificate_is_not_trusted_gets_nothing() {
    let scene = Scene::new();
    let through = scene.serve(Some(scene.acceptor("elsewhere.test")), store).await;
    let lanes = scene.lanes(Some(format!("https://user:pass@localhost:{through}")), None);
    let error = lanes.exchange(get(&Origin::parse("https://store.test").unwrap(), "/k")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Certificate, "{error}");
    assert!(error.to_string().contains("localhost") && !error.to_string().contains("pass"), "{error}");
    assert!(scene.heads().is_empty());
}

/// Reads text that follows its length in one byte.
async fn text(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = vec![0; usize::from(stream.read_u8().await.ok()?)];
    stream.read_exact(&mut text).await.ok()?;
    String::from_utf8(text).ok()
}

/// Reads the greeting, the login and the name that a SOCKS5 client sends (RFC 1928 and 1929), as `user:password@host:port`. Refuses a
/// client without a login, or with a password other than `p@ss`.
async fn socks_request(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<String> {
    const NAME: u8 = 3;
    let version = stream.read_u8().await.ok()?;
    let methods = text(stream).await?.into_bytes();
    let can_log_in = methods.contains(&2);
    stream.write_all(&[version, if can_log_in { 2 } else { 0xff }]).await.ok()?;
    let _version = stream.read_u8().await.ok().filter(|_| can_log_in)?;
    let (user, password) = (text(stream).await?, text(stream).await?);
    let is_welcome = password == "p@ss";
    stream.write_all(&[1, u8::from(!is_welcome)]).await.ok()?;
    let mut request = [0; 4];
    stream.read_exact(&mut request).await.ok().filter(|_| is_welcome)?;
    assert_eq!(request, [5, 1, 0, NAME], "the proxy resolves the host");
    let host = text(stream).await?;
    Some(format!("{user}:{password}@{host}:{}", stream.read_u16().await.ok()?))
}

/// Answers a SOCKS5 client with a code. If the code is 0, connects it to a port of this machine.
async fn socks(mut stream: Box<dyn Both>, heads: Arc<Mutex<Vec<String>>>, to: u16, code: u8) {
    let Some(request) = socks_request(&mut stream).await else { return };
    heads.lock().unwrap().push(request);
    stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    if code == 0 {
        let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut server).await;
    }
}

#[tokio::test]
async fn a_socks_proxy_gets_the_hosts_name_and_all_requests() {
    for (url, scheme) in [("http://store.test:9000", "socks5"), ("https://store.test:9000", "socks5h")] {
        let scene = Scene::new();
        let tls = url.starts_with("https").then(|| scene.acceptor("store.test"));
        let port = scene.serve(tls, store).await;
        let through = scene.serve(None, move |stream, heads| socks(stream, heads, port, 0)).await;
        let proxy = Some(format!("{scheme}://user:p%40ss@localhost:{through}"));
        let lanes = scene.lanes(proxy.clone(), proxy);
        for _ in 0..2 {
            let response = lanes.exchange(get(&Origin::parse(url).unwrap(), "/k")).await.unwrap();
            assert_eq!(&response.body[..], b"bytes");
        }
        assert_eq!(lanes.counters().connections, 1);
        let heads = scene.heads();
        assert_eq!(heads[0], "user:p@ss@store.test:9000");
        assert!(
            heads[1].starts_with("GET /k HTTP/1.1\r\n") && !heads[1].contains("uthorization"),
            "{heads:?}"
        );
    }
}

#[tokio::test]
async fn a_host_of_no_proxy_is_reached_without_the_socks_proxy() {
    let scene = Scene::new();
    let port = scene.serve(None, store).await;
    let lanes = Lanes::start(LanesConfig {
        http_proxy: Some("socks5://127.0.0.1:1".into()),
        no_proxy: vec!["store.test".into()],
        resolve: [("store.test".to_owned(), vec![[127, 0, 0, 1].into()])].into(),
        ..LanesConfig::default()
    })
    .unwrap();
    let origin = Origin::parse(&format!("http://store.test:{port}")).unwrap();
    assert_eq!(&lanes.exchange(get(&origin, "/k")).await.unwrap().body[..], b"bytes");
}

#[tokio::test]
async fn a_refusing_socks_proxy_is_named_without_its_password() {
    const UNREACHABLE: u8 = 4;
    for (login, why) in [
        ("user:p%40ss@", "Host unreachable"),
        ("user:wr%40ng@", "Password auth failure"),
        ("", "No acceptable auth methods"),
    ] {
        let scene = Scene::new();
        let through = scene.serve(None, move |stream, heads| socks(stream, heads, 0, UNREACHABLE)).await;
        let proxy = Some(format!("socks5://{login}localhost:{through}"));
        let no_retries = std::time::Duration::ZERO;
        let config = LanesConfig { http_proxy: proxy, retry_for: no_retries, ..LanesConfig::default() };
        let lanes = Lanes::start(config).unwrap();
        let error =
            lanes.exchange(get(&Origin::parse("http://store.test").unwrap(), "/k")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Connect, "{error}");
        let message = format!("{error} {error:?}");
        assert!(
            message.contains(&format!("socks5://localhost:{through}")) && message.contains(why),
            "{message}"
        );
        assert!(
            !message.contains("p@ss") && !message.contains("p%40ss") && !message.contains("wr"),
            "{message}"
        );
    }
}
