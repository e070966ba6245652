//! HTTP/1.1 connections against a server that follows a script.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};

use super::hedging::HedgedCall;
use super::support::{
    Collecting, Panicking, Script, get, lanes, read_head, read_request, read_text, request,
};
use http::Method;
use laneway_lanes::{Body, Kind, Lanes, LanesConfig, Route};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn answer(stream: &mut TcpStream, bytes: &[u8]) {
    read_request(stream);
    stream.write_all(bytes).unwrap();
}

#[tokio::test]
async fn a_connection_is_kept_and_used_again() {
    let server = Script::serve(|_, mut stream| (0..3).for_each(|_| answer(&mut stream, OK)));
    let lanes = lanes();
    for _ in 0..3 {
        let response = lanes.exchange(get(&server.origin, "/a")).await.unwrap();
        assert_eq!(&response.body[..], b"ok");
    }
    let counters = lanes.counters();
    assert_eq!((counters.connections, counters.requests, counters.bytes_received), (1, 3, 6));
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_replaced() {
    let close = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = Script::serve(move |_, mut stream| answer(&mut stream, close));
    let lanes = lanes();
    for _ in 0..3 {
        assert!(lanes.exchange(get(&server.origin, "/a")).await.is_ok());
    }
    assert_eq!(lanes.counters().connections, 3);
}

#[tokio::test]
async fn an_idle_connection_that_went_away_costs_no_request() {
    // The server doesn't announce that it closes.
    let (closed, is_closed) = mpsc::channel();
    let server = Script::serve(move |_, mut stream| {
        answer(&mut stream, OK);
        drop(stream);
        closed.send(()).unwrap();
    });
    let lanes = lanes();
    for _ in 0..3 {
        assert!(lanes.exchange(get(&server.origin, "/a")).await.is_ok());
        is_closed.recv().unwrap();
    }
}

#[tokio::test]
async fn a_chunked_body_reaches_the_sink_whole() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    let server = Script::serve(move |_, mut stream| (0..2).for_each(|_| answer(&mut stream, chunked)));
    let lanes = lanes();
    for route in [Route::Stay, Route::Freight] {
        let (sink, bytes) = Collecting::new(route, u64::MAX);
        let mut request = get(&server.origin, "/a");
        request.sink = Some(Box::new(sink));
        let response = lanes.exchange(request).await.unwrap();
        assert_eq!((&bytes.lock().unwrap()[..], response.sunk), (&b"abcdefg"[..], 7));
    }
    assert_eq!(lanes.counters().connections, 1);
}

#[tokio::test]
async fn an_error_answer_never_reaches_the_sink() {
    let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone";
    let server = Script::serve(move |_, mut stream| answer(&mut stream, missing));
    let (sink, bytes) = Collecting::new(Route::Stay, u64::MAX);
    let mut request = get(&server.origin, "/a");
    request.sink = Some(Box::new(sink));
    let response = lanes().exchange(request).await.unwrap();
    assert_eq!((response.head.status.as_u16(), &response.body[..]), (404, &b"gone"[..]));
    assert!(bytes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_sink_that_has_enough_ends_the_body() {
    let server = Script::serve(|_, mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while stream.write_all(&[7; 65536]).is_ok() {}
    });
    let (sink, bytes) = Collecting::new(Route::Freight, 100_000);
    let mut request = get(&server.origin, "/a");
    request.sink = Some(Box::new(sink));
    let response = lanes().exchange(request).await.unwrap();
    assert!(response.stopped && response.sunk >= 100_000);
    assert_eq!(bytes.lock().unwrap().len() as u64, response.sunk);
}

#[tokio::test]
async fn a_body_that_ends_early_is_an_error() {
    let server = Script::serve(|_, mut stream| {
        answer(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort");
    });
    let error = lanes().exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Interrupted);
    assert!(!error.is_unsent());
}

#[tokio::test]
async fn an_answer_that_comes_before_the_body_is_out_is_read() {
    let server = Script::serve(|_, mut stream| {
        // The server reads the head and a little of the body, and refuses the request. Then it discards the rest.
        let _ = stream.read(&mut [0; 1000]);
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").unwrap();
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut request = request(&server.origin, Method::PUT, "/a");
    request.body = Body::from(vec![1; 64 << 20]);
    let response = lanes().exchange(request).await.unwrap();
    assert_eq!((response.head.status.as_u16(), &response.body[..]), (403, &b"no"[..]));
}

#[tokio::test]
async fn informational_answers_while_the_body_is_sent_do_not_stop_it() {
    let server = Script::serve(|_, mut stream| {
        let length = read_head(&mut stream).unwrap();
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
        stream.write_all(hint.repeat(3).as_bytes()).unwrap();
        let body = std::io::copy(&mut Read::by_ref(&mut stream).take(length), &mut std::io::sink());
        let text = body.unwrap().to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
        stream.write_all(format!("{hint}{head}{text}").as_bytes()).unwrap();
    });
    let mut put = request(&server.origin, Method::PUT, "/a");
    put.body = Body::from(vec![1; 64 << 20]);
    let response = lanes().exchange(put).await.unwrap();
    assert_eq!((response.head.status.as_u16(), &response.body[..]), (200, &b"67108864"[..]));
}

#[tokio::test]
async fn informational_answers_without_end_are_refused() {
    let server = Script::serve(|_, mut stream| {
        read_request(&mut stream);
        while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {}
    });
    let error = lanes().exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Protocol, "{error}");
}

#[tokio::test]
async fn a_long_error_answer_is_cut_and_its_connection_closed() {
    let server = Script::serve(|_, mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 1000000000\r\n\r\n");
        while stream.write_all(&[7; 65536]).is_ok() {}
    });
    let lanes = lanes();
    for connections in 1..=2 {
        let response = lanes.exchange(get(&server.origin, "/a")).await.unwrap();
        assert_eq!(response.body.len(), laneway_lanes::Response::ERROR_BODY_MAX);
        assert!(response.stopped);
        assert_eq!(lanes.counters().connections, connections);
    }
}

#[tokio::test]
async fn trailers_without_end_are_refused() {
    let server = Script::serve(|_, mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
        while stream.write_all(b"Trailer: value\r\n").is_ok() {}
    });
    let error = lanes().exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Protocol, "{error}");
}

#[tokio::test]
async fn a_sink_that_panics_costs_its_own_request_only() {
    let server = Script::serve(
        |_, mut stream| while read_head(&mut stream).is_some() && stream.write_all(OK).is_ok() {},
    );
    let lanes = Lanes::start(LanesConfig { connections_max: Some(1), ..LanesConfig::default() }).unwrap();
    for (at_head, route) in [(true, Route::Stay), (false, Route::Stay), (false, Route::Freight)] {
        let mut ask = get(&server.origin, "/a");
        ask.sink = Some(Box::new(Panicking { at_head, route }));
        let error = lanes.exchange(ask).await.unwrap_err();
        assert!(error.kind() == Kind::Sink && error.to_string().contains("panicked"), "{error}");
        assert_eq!(&lanes.exchange(get(&server.origin, "/b")).await.unwrap().body[..], b"ok");
    }
}

#[tokio::test]
async fn a_connection_that_says_close_is_replaced_before_its_body_has_come() {
    const REQUESTS: usize = 12;
    // The server sends no body before every request has come.
    let all_here = std::sync::Barrier::new(REQUESTS);
    let server = Script::serve(move |_, mut stream| {
        read_request(&mut stream);
        let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n";
        stream.write_all(head).unwrap();
        all_here.wait();
        stream.write_all(b"ok").unwrap();
    });
    let lanes = lanes();
    let ask = |_| {
        let (lanes, mut bulk) = (lanes.clone(), get(&server.origin, "/a"));
        bulk.expected = Some(100 << 20);
        tokio::spawn(async move { lanes.exchange(bulk).await })
    };
    for asked in (0..REQUESTS).map(ask).collect::<Vec<_>>() {
        assert_eq!(&asked.await.unwrap().unwrap().body[..], b"ok");
    }
}

#[tokio::test]
async fn a_file_range_arrives_as_it_is_and_a_short_file_is_an_error() {
    let server = Script::serve(|_, mut stream| {
        for _ in 0..2 {
            let body = read_request(&mut stream);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    let content: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content).unwrap();
    let file = std::sync::Arc::new(file);
    let lanes = lanes();
    let mut put = request(&server.origin, Method::PUT, "/a");
    put.body = Body::file(file.clone(), 1000, 2_000_000);
    let response = lanes.exchange(put).await.unwrap();
    assert!(response.body[..] == content[1000..2_001_000]);
    let mut put = request(&server.origin, Method::PUT, "/a");
    put.body = Body::file(file, 2_000_000, 2_000_000);
    assert_eq!(lanes.exchange(put).await.unwrap_err().kind(), Kind::Source);
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_another_connection_is_not() {
    let server = Script::serve(|number, mut stream| {
        read_request(&mut stream);
        if number == 0 {
            let _ = stream.read(&mut [0; 1]);
        } else {
            let _ = stream.write_all(OK);
        }
    });
    let config = LanesConfig { no_progress: std::time::Duration::from_millis(50), ..LanesConfig::default() };
    let lanes = Lanes::start(config).unwrap();
    let error = lanes.exchange(get(&server.origin, "/a")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Timeout);
    // On a busy machine, this answer may also come too late. The call then retries.
    let ended = lanes.run(&HedgedCall { origin: server.origin.clone(), target: "/a" }).await.unwrap();
    assert_eq!(ended.outcome.unwrap().head.status, 200);
}

#[tokio::test]
async fn a_cancelled_request_frees_its_place() {
    let (arrived, has_arrived) = mpsc::channel();
    let server = Script::serve(move |number, mut stream| {
        read_request(&mut stream);
        if number == 0 {
            arrived.send(()).unwrap();
            let _ = stream.read(&mut [0; 1]);
        } else {
            let _ = stream.write_all(OK);
        }
    });
    let lanes = Lanes::start(LanesConfig { connections_max: Some(1), ..LanesConfig::default() }).unwrap();
    let (held, origin) = (lanes.clone(), server.origin.clone());
    let waiting = tokio::spawn(async move { held.exchange(get(&origin, "/a")).await.is_ok() });
    tokio::task::spawn_blocking(move || has_arrived.recv()).await.unwrap().unwrap();
    waiting.abort();
    assert!(lanes.exchange(get(&server.origin, "/b")).await.is_ok());
}

#[tokio::test]
async fn nobody_listening_is_a_connect_error_for_every_request() {
    let origin = Script::closed();
    let lanes = lanes();
    for _ in 0..3 {
        let error = lanes.exchange(get(&origin, "/a")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Connect);
        assert!(error.is_unsent() && error.to_string().contains(&origin.to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_request_says_who_sends_it_unless_it_says_so_itself() {
    let agents = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&agents);
    let script = Script::serve(move |_, mut stream| {
        while let Some(head) = read_text(&mut stream) {
            let agent = head.lines().find_map(|line| line.strip_prefix("user-agent: ")).map(str::to_owned);
            seen.lock().unwrap().push(agent);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    });
    let lanes = lanes();
    lanes.exchange(get(&script.origin, "/")).await.unwrap();
    let mut own = get(&script.origin, "/");
    own.headers.insert(http::header::USER_AGENT, "other".parse().unwrap());
    lanes.exchange(own).await.unwrap();
    use std::env::consts::{ARCH, OS};
    let ours = format!("laneway/{} ({OS}; {ARCH})", env!("CARGO_PKG_VERSION"));
    assert_eq!(*agents.lock().unwrap(), [Some(ours), Some("other".to_owned())]);
}
