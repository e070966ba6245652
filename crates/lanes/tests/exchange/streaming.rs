//! Answers whose bodies are read as they come, and the record of an engine's lanes.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc;

use futures_util::StreamExt as _;
use http::Method;
use laneway_lanes::trace::{Trace, TraceEvent};
use laneway_lanes::{Body, BodyStream, Kind, Lanes, LanesConfig, Protocol, Request, Role, Streamed};

use super::support::{Script, get, lanes, read_head, read_request, request};

const LEN: u64 = 24 << 20;

/// The maximum number of bytes that a connection reads at once.
const AT_ONCE: u64 = 256 << 10;

/// Reads a body of `len` bytes chunk by chunk. Before each chunk, checks that the connection received no more bytes than
/// its buffer can hold.
pub(super) async fn read_slowly(lanes: &Lanes, request: Request, len: u64) -> Vec<u8> {
    let mut body = lanes.stream(request).await.unwrap().body;
    let (mut all, room) = (Vec::new(), BodyStream::ROOM as u64);
    let received = || lanes.counters().bytes_received;
    loop {
        let read = all.len() as u64;
        // Wait until the buffer is full.
        while received() < (read + room).min(len) {
            tokio::task::yield_now().await;
        }
        // Then the connection receives no more bytes, even if other tasks run.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        assert!(received() <= read + room + AT_ONCE, "{} of {read}", received());
        match body.next().await {
            Some(chunk) => all.extend_from_slice(&chunk.unwrap()),
            None => break,
        }
    }
    assert_eq!(all.len() as u64, len);
    all
}

fn head(stream: &mut TcpStream, length: u64) {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").unwrap();
}

/// Sends up to `len` bytes in a pattern that shows their position.
fn send(stream: &mut TcpStream, len: u64) {
    let pattern: Vec<u8> = (0..251).cycle().take(251 * 1024).map(|i: u32| i as u8).collect();
    let mut left = len as usize;
    while left > 0 {
        let part = left.min(pattern.len());
        if stream.write_all(&pattern[..part]).is_err() {
            return;
        }
        left -= part;
    }
}

#[tokio::test]
async fn a_body_that_is_not_read_on_is_not_received_on() {
    let server = Script::serve(|_, mut stream| {
        while read_head(&mut stream).is_some() {
            head(&mut stream, LEN);
            send(&mut stream, LEN);
        }
    });
    for expected in [None, Some(LEN)] {
        let lanes = lanes();
        let mut request = get(&server.origin, "/");
        request.expected = expected;
        let body = read_slowly(&lanes, request, LEN).await;
        assert!(body.iter().enumerate().all(|(i, byte)| *byte == (i % 251) as u8));
        // The connection can carry the next request.
        lanes.stream(get(&server.origin, "/")).await.unwrap();
        assert_eq!(lanes.counters().connections, 1);
    }
}

#[tokio::test]
async fn a_body_that_is_dropped_frees_its_lane() {
    let server = Script::serve(|_, mut stream| {
        while read_head(&mut stream).is_some() {
            head(&mut stream, LEN);
            send(&mut stream, LEN);
        }
    });
    let lanes = Lanes::start(LanesConfig { connections_max: Some(1), ..LanesConfig::default() }).unwrap();
    for _ in 0..4 {
        let Streamed { head, mut body } = lanes.stream(get(&server.origin, "/")).await.unwrap();
        assert_eq!(head.content_length(), Some(LEN));
        body.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_came_before_a_body_broke_off_is_read_and_then_why_it_ended() {
    let server = Script::serve(|number, mut stream| {
        read_head(&mut stream);
        if number == 0 {
            head(&mut stream, LEN);
            send(&mut stream, LEN / 4);
        }
    });
    let lanes = lanes();
    let mut body = lanes.stream(get(&server.origin, "/")).await.unwrap().body;
    let mut read = 0;
    let error = loop {
        match body.next().await.unwrap() {
            Ok(chunk) => read += chunk.len() as u64,
            Err(error) => break error,
        }
    };
    assert_eq!((read, error.kind()), (LEN / 4, Kind::Interrupted));
    assert!(body.next().await.is_none());
    // If the head doesn't arrive, `stream` itself returns the error, because there is no body yet.
    let error = lanes.stream(get(&server.origin, "/")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Interrupted);
}

#[tokio::test]
async fn bodies_of_errors_and_empty_ones_are_there_with_their_heads() {
    let (ask, asked) = mpsc::channel::<&str>();
    let asked = std::sync::Mutex::new(asked);
    let server = Script::serve(move |_, mut stream| {
        while read_head(&mut stream).is_some() {
            let answer = asked.lock().unwrap().recv().unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let lanes = lanes();
    for (answer, status, text) in [
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone", 404, "gone"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, ""),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, "abc"),
    ] {
        ask.send(answer).unwrap();
        let Streamed { head, body } = lanes.stream(get(&server.origin, "/")).await.unwrap();
        let chunks: Vec<_> = body.map(|chunk| chunk.unwrap().to_vec()).collect().await;
        assert_eq!((head.status.as_u16(), chunks.concat()), (status, text.as_bytes().to_vec()));
    }
}

#[tokio::test]
async fn a_recorder_hears_of_each_lane_and_each_request_on_it() {
    let script = Script::serve(|_, mut stream| {
        while !read_request(&mut stream).is_empty() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour").unwrap();
        }
    });
    let trace = Trace::default();
    let lanes = Lanes::start(LanesConfig { trace: Some(trace.clone()), ..LanesConfig::default() }).unwrap();
    for _ in 0..2 {
        let mut put = request(&script.origin, Method::PUT, "/key?signature=secret");
        put.body = Body::from(bytes::Bytes::from_static(b"123"));
        lanes.exchange(put).await.unwrap();
    }

    let moments = trace.moments();
    assert!(moments.is_sorted_by_key(|moment| moment.at));
    let of_the_first_lane: Vec<TraceEvent> = moments
        .into_iter()
        .map(|moment| moment.what)
        .filter(|what| {
            !matches!(what, TraceEvent::Dialled { lane: 1.., .. } | TraceEvent::Opened { lane: 1.., .. })
        })
        .collect();
    let sent = |attempt| TraceEvent::Sent {
        attempt,
        lane: 0,
        role: Role::Express,
        label: "PUT /key".to_owned(),
        bytes: 3,
    };
    let expected = [
        TraceEvent::Dialled { lane: 0, role: Role::Express },
        TraceEvent::Opened { lane: 0, protocol: Protocol::H1 },
        sent(0),
        TraceEvent::Finished { attempt: 0, bytes: 4 },
        sent(1),
        TraceEvent::Finished { attempt: 1, bytes: 4 },
    ];
    assert_eq!(of_the_first_lane, expected);
}
