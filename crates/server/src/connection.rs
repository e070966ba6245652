//! Serves one connection: TLS if configured, then HTTP/1.1 or HTTP/2 as ALPN agreed.
//!
//! The server limits the size of heads and the time they take, and the size of JSON and XML bodies. The content of
//! objects has no limit. A body may take any time, because tests of slow clients need that.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::body::DocumentBytes;
use crate::service::{ConnectionState, ServerState};
use crate::socket::{Control, Socket, SocketTransport};

/// The default SETTINGS_MAX_CONCURRENT_STREAMS, as in GCS.
const STREAMS_MAX: u32 = 100;
/// The receive windows of HTTP/2. At a round trip of 50 ms they allow 80 MB/s per stream and 320 MB/s per connection. A
/// client can't make the server buffer more unread bytes than that.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// The send queue of one HTTP/2 stream. It is small, because a client that reads nothing may have a hundred streams on
/// each connection.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// The maximum size of an HTTP/2 request's head. For HTTP/1.1, the limits are hyper's 100 headers and a buffer of
/// [`H1_BUFFER_BYTES`]. A larger head gets 431.
const HEADERS_BYTES_MAX: u32 = 64 << 10;
const H1_BUFFER_BYTES: usize = 256 << 10;
/// The default time limit of the TLS handshake and, on HTTP/1.1, of a request's head.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Serves an accepted connection, which is already counted, until it ends. Errors are reported only to the client.
pub(crate) async fn serve(shared: Arc<ServerState>, stream: TcpStream) {
    // Turn off Nagle's algorithm. Otherwise the second answer on a connection would wait for the acknowledgement of the
    // first.
    let _ = stream.set_nodelay(true);
    let control = Arc::new(Control::default());
    let transport = match &shared.link {
        Some(link) => SocketTransport::Delayed(Box::new(link.connect(stream))),
        None => SocketTransport::Plain(stream),
    };
    let cap = shared.connection_bandwidth;
    let socket = Socket::new(transport, cap, shared.tally.clone(), control.clone());

    let places = shared.places.read().unwrap_or_else(PoisonError::into_inner).clone();
    let _place = match places {
        Some(places) if shared.reset_surplus => match places.try_acquire_owned() {
            Ok(place) => Some(place),
            // Dropping the socket resets the connection.
            Err(_) => return control.kill(),
        },
        // If the limit is replaced or removed, the semaphore is closed. Then all waiting connections are served.
        Some(places) => places.acquire_owned().await.ok(),
        None => None,
    };
    let Some(acceptor) = shared.acceptor.clone() else {
        return speak_h1(shared, socket, control).await;
    };
    // A simulated round-trip time also delays the client's part of the handshake.
    let timeout = TIMEOUT + shared.rtt * 4;
    if let Ok(Ok(stream)) = tokio::time::timeout(timeout, acceptor.accept(socket)).await {
        shared.tally.tls_handshakes.fetch_add(1, Relaxed);
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            speak_h2(shared, stream, control).await;
        } else {
            speak_h1(shared, stream, control).await;
        }
    }
}

async fn speak_h1(
    shared: Arc<ServerState>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    control: Arc<Control>,
) {
    let idle_max = shared.idle_max.unwrap_or(TIMEOUT);
    let caller = Arc::new(ConnectionState {
        shared,
        control: control.clone(),
        streams: Arc::new(AtomicU64::new(0)),
        documents: DocumentBytes::default(),
        h2: false,
    });
    let service =
        service_fn(move |request: http::Request<Incoming>| Box::pin(caller.clone().answer(request)));
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle_max)
        .max_buf_size(H1_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = poll_fn(|cx| connection.poll_without_shutdown(cx)) => {}
        () = control.killed() => return,
    }
    // Shut the stream down here, because hyper ends an idle connection without TLS's close_notify. Clients report that
    // as a possible attack.
    let mut stream = connection.into_parts().io.into_inner();
    let _ = tokio::time::timeout(TIMEOUT, stream.shutdown()).await;
}

async fn speak_h2(
    shared: Arc<ServerState>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    control: Arc<Control>,
) {
    shared.tally.h2_connections.fetch_add(1, Relaxed);
    let streams_max = shared.streams_max.unwrap_or(STREAMS_MAX);
    let caller = Arc::new(ConnectionState {
        shared,
        control: control.clone(),
        streams: Arc::new(AtomicU64::new(0)),
        documents: DocumentBytes::default(),
        h2: true,
    });
    let service = service_fn(move |request: http::Request<Incoming>| caller.clone().answer(request));
    let mut connection = std::pin::pin!(
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams_max)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_header_list_size(HEADERS_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = control.killed() => return,
            () = control.asked_to_go_away() => connection.as_mut().graceful_shutdown(),
        }
    }
}
