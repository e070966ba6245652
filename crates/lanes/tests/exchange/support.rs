//! Scripted servers and small requests.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use http::Method;
use laneway_lanes::{Lanes, LanesConfig, Origin, Request, ResponseHead, Route, Sink, SinkError};

/// A plain server that handles each connection by a script. Connections are numbered from 0.
pub(crate) struct Script {
    pub(crate) origin: Origin,
}

impl Script {
    pub(crate) fn serve(script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let script = Arc::new(script);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (script, stream) = (Arc::clone(&script), stream.unwrap());
                thread::spawn(move || script(number, stream));
            }
        });
        Self { origin }
    }

    /// Returns an origin without a server.
    pub(crate) fn closed() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap()
    }
}

/// Reads one request's head and returns the length of its body. `None` if the connection ends before that.
pub(crate) fn read_head(stream: &mut TcpStream) -> Option<u64> {
    let text = read_text(stream)?.to_lowercase();
    Some(text.lines().find_map(|l| l.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap()))
}

/// Reads one request's head as text. `None` if the connection ends before that.
pub(crate) fn read_text(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Reads a request without a body and returns its target. `None` if the connection ends before that.
pub(crate) fn read_target(stream: &mut TcpStream) -> Option<String> {
    let head = read_text(stream)?;
    head.split(' ').nth(1).map(str::to_owned)
}

/// Reads one request and returns its body.
pub(crate) fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut body = Vec::new();
    if let Some(length) = read_head(stream) {
        // If the client closes the connection early, this returns the bytes that came.
        let _ = stream.take(length).read_to_end(&mut body);
    }
    body
}

pub(crate) fn lanes() -> Lanes {
    Lanes::start(LanesConfig::default()).unwrap()
}

pub(crate) fn request(origin: &Origin, method: Method, target: &str) -> Request {
    Request::new(origin.clone(), method, target.parse().unwrap())
}

pub(crate) fn get(origin: &Origin, target: &str) -> Request {
    request(origin, Method::GET, target)
}

/// A sink that keeps its bytes, and stops after `limit` of them.
pub(crate) struct Collecting {
    route: Route,
    limit: u64,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Collecting {
    pub(crate) fn new(route: Route, limit: u64) -> (Self, Arc<Mutex<Vec<u8>>>) {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        (Self { route, limit, bytes: Arc::clone(&bytes) }, bytes)
    }
}

impl Sink for Collecting {
    fn begin(&mut self, _: &ResponseHead) -> Result<Route, SinkError> {
        Ok(self.route)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        let mut all = self.bytes.lock().unwrap();
        all.extend_from_slice(bytes);
        Ok(if all.len() as u64 >= self.limit { Route::Stop } else { Route::Stay })
    }
}

/// A sink that panics at the head, or at the first bytes.
pub(crate) struct Panicking {
    pub(crate) at_head: bool,
    pub(crate) route: Route,
}

impl Sink for Panicking {
    fn begin(&mut self, _: &ResponseHead) -> Result<Route, SinkError> {
        assert!(!self.at_head, "a sink that panics on purpose");
        Ok(self.route)
    }

    fn write(&mut self, _: &[u8]) -> Result<Route, SinkError> {
        panic!("a sink that panics on purpose")
    }
}
