//! A server whose answers a test writes itself, for answers that no real store can be made to send.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The body.
    pub body: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl Asked {
    /// Returns a header's value, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn read(from: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = || {
            let mut line = String::new();
            let read = from.read_line(&mut line).ok()?;
            (read > 0).then(|| line.trim_end().to_owned())
        };
        let first = line()?;
        let (method, rest) = first.split_once(' ')?;
        let target = rest.split(' ').next()?;
        let mut headers = Vec::new();
        loop {
            let line = line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut asked =
            Self { method: method.to_owned(), target: target.to_owned(), body: Vec::new(), headers };
        let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        from.read_exact(&mut body).ok()?;
        asked.body = body;
        Some(asked)
    }
}

/// A plain HTTP/1.1 server with scripted answers.
#[derive(Debug)]
pub struct Scripted {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// Serves on a free port of this machine until the process ends. `answer` gets each request and returns the bytes
    /// to send. The connection is closed if there are none, or after an answer with `Connection: close`.
    ///
    /// # Panics
    /// Panics if there is no port to listen on.
    pub fn serve(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (answer, asked) = (Arc::new(answer), Arc::<Mutex<Vec<Asked>>>::default());
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, asked) = (Arc::clone(&answer), Arc::clone(&asked));
                thread::spawn(move || {
                    let Ok(reading) = stream.try_clone() else { return };
                    let (mut reading, mut stream) = (BufReader::new(reading), stream);
                    while let Some(one) = Asked::read(&mut reading) {
                        asked.lock().unwrap_or_else(PoisonError::into_inner).push(one.clone());
                        let bytes = answer(&one);
                        if bytes.is_empty() || stream.write_all(&bytes).is_err() || says_close(&bytes) {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, asked: kept }
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns true if an answer's head has `Connection: close`.
fn says_close(answer: &[u8]) -> bool {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
    String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase().contains("\r\nconnection: close")
}

/// Returns an answer with a body and its length.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut answer = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    for (name, value) in headers {
        answer.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    answer.extend_from_slice(b"\r\n");
    answer.extend_from_slice(body);
    answer
}
