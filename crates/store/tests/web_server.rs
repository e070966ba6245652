//! Reading through the S3 dialect from any web server that answers GETs with `Content-Length`, `ETag` and ranges.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use laneway_lanes::{Lanes, LanesConfig};
use laneway_store::{AccessKey, Get, ObjectId, Provider, Settings, Store, Version};
use laneway_testkit::{Asked, Scripted};

const CONTENT: &[u8] = b"0123456789";

/// Serves one file as nginx does: without `x-amz-` headers, and with the given entity tag.
fn serve(etag: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            thread::spawn(move || answer_all(stream, etag));
        }
    });
    format!("http://{address}")
}

fn answer_all(stream: TcpStream, etag: &str) {
    let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
    let mut stream = stream;
    loop {
        let mut head = Vec::new();
        for line in lines.by_ref() {
            match line {
                Ok(line) if line.is_empty() => break,
                Ok(line) => head.push(line),
                Err(_) => return,
            }
        }
        let Some(first) = head.first() else { return };
        let header = |name: &str| {
            head.iter().find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let answer = if !first.contains(" /static/a%20file ") {
            "HTTP/1.1 404 Not Found\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>".to_owned()
        } else if header("if-match").is_some_and(|wanted| wanted != etag) {
            "HTTP/1.1 412 Precondition Failed\r\nServer: nginx\r\nContent-Length: 0\r\n\r\n".to_owned()
        } else {
            let (status, range, extra) = match header("range").as_deref() {
                Some("bytes=2-4") => ("206 Partial Content", 2..5, "Content-Range: bytes 2-4/10\r\n"),
                _ => ("200 OK", 0..10, "Accept-Ranges: bytes\r\n"),
            };
            let body = String::from_utf8_lossy(&CONTENT[range]).into_owned();
            format!(
                "HTTP/1.1 {status}\r\nServer: nginx\r\nETag: {etag}\r\nContent-Length: {}\r\n{extra}\r\n{body}",
                body.len()
            )
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn store(url: String, anonymous: bool) -> Store {
    let key = AccessKey::new("id", "secret");
    let settings =
        Settings { s3_endpoint: Some(url), anonymous, access_key: Some(key), ..Settings::default() };
    Store::new(Provider::S3, &settings, Lanes::start(LanesConfig::default()).expect("lanes"))
        .expect("a store")
}

#[tokio::test]
async fn a_file_is_read_whole_and_in_ranges_without_checksums() {
    let url = serve("\"67a0b1c2-a\"");
    for anonymous in [true, false] {
        let store = store(url.clone(), anonymous);
        let id = ObjectId::new("static", "a file");
        let got = store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(&got.body[..], CONTENT);
        assert!(got.meta.checksums.is_empty());
        let version = Version::ETag("67a0b1c2-a".into());
        assert_eq!(got.meta.version.as_ref(), Some(&version));
        let get = Get { range: Some((2..5).into()), version: Some(&version), ..Get::new(&id) };
        let got = store.get(get).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((&got.body[..], got.meta.size), (&CONTENT[2..5], 10));
        let other = Version::ETag("67a0b1c2-b".into());
        let error =
            store.get(Get { version: Some(&other), ..Get::new(&id) }).await.expect_err("it has changed");
        assert!(error.is_precondition(), "{error}");
        let missing = ObjectId::new("static", "missing");
        assert!(store.get(Get::new(&missing)).await.is_err_and(|e| e.is_not_found()));
    }
}

#[tokio::test]
async fn a_weak_tag_is_compared_though_it_cannot_be_asked_for() {
    let store = store(serve("W/\"67a0b1c2-a\""), true);
    let id = ObjectId::new("static", "a file");
    let version =
        store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}")).meta.version.expect("a tag");
    assert_eq!(version, Version::ETag("W/67a0b1c2-a".into()));
    let get = Get { version: Some(&version), range: Some((2..5).into()), ..Get::new(&id) };
    assert_eq!(store.get(get).await.unwrap_or_else(|e| panic!("{e}")).body, "234");
    let other = Version::ETag("W/other".into());
    let error = store.get(Get { version: Some(&other), ..Get::new(&id) }).await.expect_err("another one");
    assert!(error.is_precondition(), "{error}");
}

/// The answers of Go's, nginx's and Apache's TLS ports to a HEAD over plain HTTP. The answers to a GET would have a
/// message in the body.
const OF_TLS_PORTS: [&str; 2] = [
    "HTTP/1.0 400 Bad Request\r\n\r\n",
    "HTTP/1.1 400 Bad Request\r\nServer: nginx\r\nConnection: close\r\n\r\n",
];

#[tokio::test]
async fn a_head_that_comes_to_a_port_of_tls_names_the_scheme() {
    for silent in OF_TLS_PORTS {
        let server = Scripted::serve(move |_: &Asked| silent.as_bytes().to_vec());
        let id = ObjectId::new("static", "a file");
        let error = store(server.url(), false).head(&id, None).await.expect_err("no answer of a store");
        assert!(error.is_unreachable() && error.message().contains("https://"), "{error}");
    }
    // A store's own 400 has a request id.
    let own = "HTTP/1.1 400 Bad Request\r\nx-amz-request-id: 1\r\nConnection: close\r\n\r\n";
    let server = Scripted::serve(move |_: &Asked| own.as_bytes().to_vec());
    let error = store(server.url(), false).head(&ObjectId::new("b", "k"), None).await.expect_err("refused");
    assert!(error.is_unauthenticated() && !error.is_unreachable(), "{error}");
}
