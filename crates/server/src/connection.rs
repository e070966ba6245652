//! One connection: TLS if asked for, then h1 or h2 as ALPN agreed, for as long as it lasts.
//!
//! Heads are bounded in size and time, JSON and XML bodies in size where they are read. Objects are not bounded, and a
//! body may take as long as it likes: whoever tests slow clients needs that.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::body::Held;
use crate::service::{Caller, Shared};
use crate::socket::{Control, Socket, Transport};

/// SETTINGS_MAX_CONCURRENT_STREAMS where nothing else is asked for, as at GCS.
const STREAMS_MAX: u32 = 100;
/// Receive windows of h2: what a client may have under way. At 50 ms they allow 80 MB/s a stream and 320 MB/s a
/// connection; a connection holds at most that much unread.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// What is queued to be sent on one h2 stream: a client that reads nothing has a hundred of them on each of its connections.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// Largest head of an h2 request; h1 takes hyper's 100 headers in a buffer of [`H1_BUFFER_BYTES`]. Beyond it: 431.
const HEADERS_BYTES_MAX: u32 = 64 << 10;
const H1_BUFFER_BYTES: usize = 256 << 10;
/// How long a client may take to finish the TLS handshake or, on h1, until a request's head has come, where nothing else is
/// asked for.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until the connection ends; how it ends is nobody's business but the client's.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    // Answers are written whole; without this the second one on a connection would wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let control = Arc::new(Control::default());
    let transport = match &shared.link {
        Some(link) => Transport::Delayed(Box::new(link.connect(stream))),
        None => Transport::Plain(stream),
    };
    shared.tally.connections.fetch_add(1, Relaxed);
    let open = shared.tally.connections_open.fetch_add(1, Relaxed) + 1;
    shared.tally.connections_peak.fetch_max(open, Relaxed);
    let cap = shared.connection_bandwidth;
    let socket = Socket::new(transport, cap, shared.tally.clone(), control.clone());

    let places = shared.places.read().unwrap_or_else(PoisonError::into_inner).clone();
    let _place = match places {
        Some(places) if shared.reset_surplus => match places.try_acquire_owned() {
            Ok(place) => Some(place),
            // The socket's end is the reset.
            Err(_) => return control.kill(),
        },
        // A closed semaphore is a limit that has gone: all that wait are served.
        Some(places) => places.acquire_owned().await.ok(),
        None => None,
    };
    let Some(acceptor) = shared.acceptor.clone() else {
        return speak_h1(shared, socket, control).await;
    };
    // With an imitated RTT the client's part of the handshake takes that much longer.
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
    shared: Arc<Shared>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    control: Arc<Control>,
) {
    let idle_max = shared.idle_max.unwrap_or(TIMEOUT);
    let caller = Arc::new(Caller {
        shared,
        control: control.clone(),
        streams: Arc::new(AtomicU64::new(0)),
        documents: Held::default(),
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
    // hyper itself ends an idle connection without TLS's close_notify, which a client takes for an attack.
    let mut stream = connection.into_parts().io.into_inner();
    let _ = tokio::time::timeout(TIMEOUT, stream.shutdown()).await;
}

async fn speak_h2(
    shared: Arc<Shared>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    control: Arc<Control>,
) {
    shared.tally.h2_connections.fetch_add(1, Relaxed);
    let streams_max = shared.streams_max.unwrap_or(STREAMS_MAX);
    let caller = Arc::new(Caller {
        shared,
        control: control.clone(),
        streams: Arc::new(AtomicU64::new(0)),
        documents: Held::default(),
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
