//! HTTP/2 connections against a server built on the `h2` crate, over TLS.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::streaming::read_slowly;
use super::support::{Collecting, Panicking, get, request};
use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{Method, Response};
use laneway_lanes::{Body, Call, Kind, Lanes, LanesConfig, Origin, Protocol, Request, Route, Trust, Verdict};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

type Http2 = Connection<TlsStream<TcpStream>, Bytes>;

struct Server {
    origin: Origin,
    ca: tempfile::NamedTempFile,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Serves each connection, numbered from 0, by `script`.
    async fn start<F, Fut>(host: &str, builder: h2::server::Builder, script: F) -> Self
    where
        F: Fn(usize, Http2) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let ca = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(ca.path(), certified.cert.pem()).unwrap();
        let key = certified.signing_key.serialize_der().try_into().unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin =
            Origin::parse(&format!("https://{host}:{}", listener.local_addr().unwrap().port())).unwrap();
        let connections = Arc::<AtomicUsize>::default();
        let (script, counted) = (Arc::new(script), Arc::clone(&connections));
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let number = counted.fetch_add(1, Ordering::Relaxed);
                let (acceptor, builder, script) = (acceptor.clone(), builder.clone(), Arc::clone(&script));
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(tcp).await else { return };
                    let Ok(http2) = builder.handshake(tls).await else { return };
                    script(number, http2).await;
                });
            }
        });
        Self { origin, ca, connections }
    }

    fn lanes(&self) -> Lanes {
        let trust = Trust { extra_ca_files: vec![self.ca.path().to_owned()] };
        Lanes::start(LanesConfig { trust, ..LanesConfig::default() }).unwrap()
    }
}

/// A call that never retries by itself.
struct SingleCall {
    origin: Origin,
    target: String,
}

impl Call for SingleCall {
    type Refusal = std::convert::Infallible;

    async fn request(&self, _: u32) -> Result<Request, Self::Refusal> {
        Ok(get(&self.origin, &self.target))
    }

    fn judge(&self, _: &Result<laneway_lanes::Response, laneway_lanes::Error>) -> Verdict {
        Verdict::Done
    }

    fn throttle_key(&self) -> &str {
        "key"
    }
}

fn answer(mut respond: SendResponse<Bytes>, body: Vec<u8>) {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream.send_data(body.into(), true).unwrap();
}

/// Answers each request with its own body, or with its path if it has none.
async fn echo(_: usize, mut http2: Http2) {
    while let Some(Ok((request, respond))) = http2.accept().await {
        tokio::spawn(async move {
            let path = request.uri().path().to_owned();
            let mut body = request.into_body();
            let mut all = Vec::new();
            while let Some(Ok(bytes)) = body.data().await {
                let _ = body.flow_control().release_capacity(bytes.len());
                all.extend_from_slice(&bytes);
            }
            answer(respond, if all.is_empty() { path.into_bytes() } else { all });
        });
    }
}

#[tokio::test]
async fn many_requests_share_a_few_connections() {
    let server = Server::start("localhost", h2::server::Builder::new(), echo).await;
    let lanes = server.lanes();
    let ask = |i: usize| {
        let (lanes, request) = (lanes.clone(), get(&server.origin, &format!("/{i}")));
        tokio::spawn(async move { lanes.exchange(request).await.unwrap() })
    };
    for (i, asked) in (0..200).map(ask).collect::<Vec<_>>().into_iter().enumerate() {
        let response = asked.await.unwrap();
        assert_eq!((&response.body[..], response.protocol), (format!("/{i}").as_bytes(), Protocol::H2));
    }
    assert!(lanes.counters().connections <= 16, "{:?}", lanes.counters());
}

#[tokio::test]
async fn a_body_larger_than_every_window_arrives_whole() {
    let server = Server::start("localhost", h2::server::Builder::new(), echo).await;
    let body: Vec<u8> = (0..5_000_000u32).map(|i| (i % 251) as u8).collect();
    for route in [Route::Stay, Route::Freight] {
        let (sink, bytes) = Collecting::new(route, u64::MAX);
        let mut put = request(&server.origin, Method::PUT, "/a");
        put.body = Body::from(body.clone());
        put.sink = Some(Box::new(sink));
        let response = server.lanes().exchange(put).await.unwrap();
        assert_eq!(response.sunk, body.len() as u64);
        assert!(*bytes.lock().unwrap() == body);
    }
}

#[tokio::test]
async fn a_body_that_is_not_read_on_is_not_received_on() {
    for is_announced in [false, true] {
        let answers = move |_: usize, mut http2: Http2| async move {
            while let Some(Ok((request, mut respond))) = http2.accept().await {
                let body: Vec<u8> = (0..6_000_000u32).map(|i| (i % 251) as u8).collect();
                let mut response = Response::new(());
                if is_announced {
                    response.headers_mut().insert("content-length", body.len().into());
                }
                drop(request);
                let mut stream = respond.send_response(response, false).unwrap();
                // This fails if the client gives up the answer and requests it again as bulk.
                let _ = stream.send_data(body.into(), true);
            }
        };
        let server = Server::start("localhost", h2::server::Builder::new(), answers).await;
        let body = read_slowly(&server.lanes(), get(&server.origin, "/"), 6_000_000).await;
        assert!(body.iter().enumerate().all(|(i, byte)| *byte == (i % 251) as u8));
    }
}

#[tokio::test]
async fn a_body_that_is_empty_has_a_length_where_the_method_wants_one() {
    let server = Server::start("localhost", h2::server::Builder::new(), |_, mut http2| async move {
        while let Some(Ok((request, respond))) = http2.accept().await {
            let length = request.headers().get(http::header::CONTENT_LENGTH);
            answer(respond, length.map_or(b"none".to_vec(), |length| length.as_bytes().to_vec()));
        }
    })
    .await;
    let lanes = server.lanes();
    for (method, length) in [
        (Method::POST, "0"),
        (Method::PUT, "0"),
        (Method::PATCH, "0"),
        (Method::GET, "none"),
        (Method::DELETE, "none"),
    ] {
        let response = lanes.exchange(request(&server.origin, method.clone(), "/a")).await.unwrap();
        assert_eq!(&response.body[..], length.as_bytes(), "{method}");
    }
    let mut put = request(&server.origin, Method::PUT, "/a");
    put.body = Body::from(vec![7; 9]);
    assert_eq!(&lanes.exchange(put).await.unwrap().body[..], b"9");
}

#[tokio::test]
async fn a_refused_stream_is_known_to_be_unprocessed() {
    let server = Server::start("localhost", h2::server::Builder::new(), |_, mut http2| async move {
        while let Some(Ok((_, mut respond))) = http2.accept().await {
            respond.send_reset(Reason::REFUSED_STREAM);
        }
    })
    .await;
    let error = server.lanes().exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert!(error.is_unsent() && error.kind() == Kind::Interrupted, "{error:?}");
}

#[tokio::test]
async fn a_reset_after_the_request_was_taken_is_not() {
    let server = Server::start("localhost", h2::server::Builder::new(), |_, mut http2| async move {
        while let Some(Ok((_, mut respond))) = http2.accept().await {
            respond.send_reset(Reason::INTERNAL_ERROR);
        }
    })
    .await;
    let error = server.lanes().exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert!(!error.is_unsent() && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_says_goaway_finishes_its_work_and_is_replaced() {
    let server = Server::start("localhost", h2::server::Builder::new(), |_, mut http2| async move {
        if let Some(Ok((_, respond))) = http2.accept().await {
            http2.graceful_shutdown();
            answer(respond, b"last".to_vec());
        }
        while http2.accept().await.is_some() {}
    })
    .await;
    let lanes = server.lanes();
    for turn in 1..=3 {
        let response = lanes.exchange(get(&server.origin, "/a")).await.unwrap();
        assert_eq!(&response.body[..], b"last");
        assert_eq!(server.connections.load(Ordering::Relaxed), turn);
    }
}

#[tokio::test]
async fn a_server_with_few_streams_gets_everything_in_the_end() {
    // Requests sent before the server's SETTINGS arrive may be refused. A refused request is unprocessed, so it is sent again at once.
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(3);
    let server = Server::start("localhost", builder, echo).await;
    let lanes = server.lanes();
    let asked: Vec<_> = (0..60)
        .map(|i| {
            let (lanes, ask) =
                (lanes.clone(), SingleCall { origin: server.origin.clone(), target: format!("/{i}") });
            tokio::spawn(async move { lanes.run(&ask).await.unwrap().outcome.is_ok() })
        })
        .collect();
    for one in asked {
        assert!(one.await.unwrap());
    }
}

#[tokio::test]
async fn bulk_reaches_a_server_that_speaks_h2_alone() {
    let server = Server::start("localhost", h2::server::Builder::new(), echo).await;
    let mut bulk = get(&server.origin, "/a");
    bulk.expected = Some(100 << 20);
    let response = server.lanes().exchange(bulk).await.unwrap();
    assert_eq!(response.protocol, Protocol::H2);
}

#[tokio::test]
async fn a_sink_that_panics_costs_its_own_request_only() {
    let server = Server::start("localhost", h2::server::Builder::new(), echo).await;
    let trust = Trust { extra_ca_files: vec![server.ca.path().to_owned()] };
    let lanes =
        Lanes::start(LanesConfig { trust, connections_max: Some(1), ..LanesConfig::default() }).unwrap();
    for (at_head, route) in [(true, Route::Stay), (false, Route::Stay), (false, Route::Freight)] {
        let mut ask = get(&server.origin, "/a");
        ask.sink = Some(Box::new(Panicking { at_head, route }));
        let error = lanes.exchange(ask).await.unwrap_err();
        assert!(error.kind() == Kind::Sink && error.to_string().contains("panicked"), "{error}");
        assert_eq!(&lanes.exchange(get(&server.origin, "/b")).await.unwrap().body[..], b"/b");
    }
}

#[tokio::test]
async fn a_long_error_answer_is_cut_and_its_stream_reset() {
    let server = Server::start("localhost", h2::server::Builder::new(), |_, mut http2| async move {
        while let Some(Ok((_, mut respond))) = http2.accept().await {
            let missing = Response::builder().status(404).body(()).unwrap();
            let mut stream = respond.send_response(missing, false).unwrap();
            let _ = stream.send_data(vec![7; 1 << 20].into(), true);
        }
    })
    .await;
    let lanes = server.lanes();
    for _ in 0..20 {
        let response = lanes.exchange(get(&server.origin, "/a")).await.unwrap();
        assert_eq!(response.body.len(), laneway_lanes::Response::ERROR_BODY_MAX);
        assert!(response.stopped && response.head.status == 404);
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_head_beyond_the_bound_is_refused() {
    let server = Server::start("localhost", h2::server::Builder::new(), |_, mut http2| async move {
        while let Some(Ok((request, mut respond))) = http2.accept().await {
            let len: usize = request.uri().path()[1..].parse().unwrap();
            let long = Response::builder().header("x-long", "x".repeat(len)).body(()).unwrap();
            let _ = respond.send_response(long, true);
        }
    })
    .await;
    let lanes = server.lanes();
    assert!(lanes.exchange(get(&server.origin, "/30000")).await.is_ok());
    let error = lanes.exchange(get(&server.origin, "/80000")).await.unwrap_err();
    assert!(!error.is_unsent(), "{error:?}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let server = Server::start("127.0.0.1", h2::server::Builder::new(), echo).await;
    let error = server.lanes().exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Certificate, "{error}");
    let unknown = Lanes::start(LanesConfig::default()).unwrap();
    let error = unknown.exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Certificate, "{error}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_connection_on_which_everything_has_stopped_is_not_asked_again() {
    let stopping = |_: usize, mut http2: Http2| async move {
        while let Some(Ok((request, respond))) = http2.accept().await {
            if request.uri().path() == "/odd" && !ODD.swap(true, Ordering::Relaxed) {
                // The server no longer reads or writes this connection.
                return std::future::pending().await;
            }
            answer(respond, b"usual".to_vec());
        }
    };
    static ODD: AtomicBool = AtomicBool::new(false);
    let server = Server::start("localhost", h2::server::Builder::new(), stopping).await;
    let lanes = server.lanes();
    let ask = |target| {
        let (lanes, call) = (&lanes, super::hedging::HedgedCall { origin: server.origin.clone(), target });
        async move { lanes.run(&call).await.unwrap().outcome.unwrap() }
    };
    for _ in 0..5 {
        ask("/").await;
    }
    ask("/odd").await;
    for _ in 0..5 {
        ask("/").await;
    }
    let counters = lanes.counters();
    assert_eq!((counters.hedges, counters.retries, counters.requests), (1, 0, 12));
    assert_eq!(server.connections.load(Ordering::Relaxed), 2);
}
