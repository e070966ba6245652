//! OpenDAL's services over Laneway's lanes, against both dialects of the embedded server.
#![cfg(feature = "opendal-transport")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use http::Request;
use laneway::Client;
use laneway_object_store::transport::LanewayTransport;
use laneway_server::{Config, Server};
use laneway_testkit::random_bytes;
use opendal_core::{Buffer, ErrorKind, HttpRedirect, HttpTransporter, Operator};
use opendal_service_gcs::Gcs;
use opendal_service_s3::S3;

fn client() -> Client {
    Client::builder().build().expect("a client")
}

fn over(client: &Client, operator: Operator) -> Operator {
    let transport = HttpTransporter::new(LanewayTransport::new(client.clone()));
    let context = operator.base_context().with_http_transport(transport);
    operator.with_context(context)
}

/// Returns the server's bucket in both of OpenDAL's services, over the lanes of one client.
fn operators(server: &Server, client: &Client) -> [Operator; 2] {
    server.create_bucket("bucket").expect("a bucket");
    let s3 = S3::default()
        .bucket("bucket")
        .endpoint(&server.url())
        .region("us-east-1")
        .access_key_id("laneway")
        .secret_access_key("lanewaysecret")
        .disable_config_load();
    let gcs = Gcs::default().bucket("bucket").endpoint(&server.url()).skip_signature();
    [Operator::new(s3).expect("an operator"), Operator::new(gcs).expect("an operator")]
        .map(|operator| over(client, operator))
}

fn run<T>(scenario: impl Future<Output = T>) -> T {
    // The transport needs no I/O and no timers from the caller's runtime.
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(scenario)
}

#[test]
fn objects_are_written_read_listed_and_removed_by_opendals_services() {
    let server = Server::start(Config::default()).expect("a server");
    let client = client();
    for (operator, key) in operators(&server, &client).into_iter().zip(["s3/k", "gcs/k"]) {
        run(async {
            let bytes = random_bytes(1, 9 << 20);
            operator.write(key, bytes.clone()).await.expect("written");
            assert!(operator.read(key).await.expect("read").to_bytes() == bytes);
            let part = operator.read_with(key).range(5..3 << 20).await.expect("a range");
            assert!(part.to_bytes() == bytes[5..3 << 20]);
            assert_eq!(operator.stat(key).await.expect("described").content_length(), 9 << 20);
            let folder = key.split_once('k').expect("a folder").0;
            let listed = operator.list(folder).await.expect("a listing");
            assert_eq!(listed.iter().map(|entry| entry.path()).collect::<Vec<_>>(), [key]);
            operator.delete(key).await.expect("removed");
            let gone = operator.read(key).await.expect_err("it is gone");
            assert_eq!(gone.kind(), ErrorKind::NotFound);
        });
    }
    assert!(client.counters().bytes_received > 2 * (9 << 20), "{:?}", client.counters());
}

/// Receives one request for each text, answers with that text, and returns the requests.
fn answering(texts: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let served = thread::spawn(move || {
        let asked = texts.into_iter().map(|text| {
            let (mut connection, _) = listener.accept().expect("a connection");
            let asked = head(&mut connection);
            connection.write_all(text.as_bytes()).expect("an answer");
            asked
        });
        asked.collect()
    });
    (url, served)
}

fn head(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).expect("a request");
        head.extend(byte);
    }
    String::from_utf8(head).expect("text")
}

#[test]
fn a_redirect_is_followed_and_another_host_is_told_no_secret() {
    const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let moved = |to: &str| {
        format!("HTTP/1.1 307 Moved\r\nlocation: {to}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    };
    let (elsewhere, there) = answering(vec![OK.to_owned()]);
    let (url, here) = answering(vec![moved("/same"), moved(&format!("{elsewhere}/other"))]);
    let transport = HttpTransporter::new(LanewayTransport::new(client()));
    let request = Request::get(format!("{url}/k"))
        .header("authorization", "secret")
        .header("x-amz-server-side-encryption-customer-key", "secret")
        .header("accept", "text/plain");
    let answer = run(transport.send(request.body(Buffer::new()).expect("a request"))).expect("an answer");
    assert_eq!(answer.body().to_bytes(), "ok");
    let redirect = answer.extensions().get::<HttpRedirect>().expect("where it was found");
    assert_eq!(redirect.uri().original_uri(), format!("{elsewhere}/other"));
    let (here, there) = (here.join().expect("served"), there.join().expect("served"));
    assert!(here.iter().all(|asked| asked.matches("secret").count() == 2), "{here:?}");
    assert!(here[1].starts_with("GET /same ") && there[0].starts_with("GET /other "), "{here:?} {there:?}");
    assert!(!there[0].contains("secret") && there[0].contains("text/plain"), "{there:?}");
}

#[test]
fn what_changes_something_is_asked_again_as_it_was_and_of_no_other_host() {
    const OK: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    let moved = |to: &str| {
        format!("HTTP/1.1 301 Moved\r\nlocation: {to}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    };
    let transport = HttpTransporter::new(LanewayTransport::new(client()));
    let delete = |url: &str| Request::delete(format!("{url}/k")).body(Buffer::new()).expect("a request");
    let (url, here) = answering(vec![moved("/same"), OK.to_owned()]);
    assert_eq!(run(transport.send(delete(&url))).expect("an answer").status(), 204);
    let here = here.join().expect("served");
    assert!(here[1].starts_with("DELETE /same "), "{here:?}");
    let (url, _here) = answering(vec![moved("http://127.0.0.1:1/k")]);
    assert_eq!(run(transport.send(delete(&url))).expect("an answer").status(), 301);
}

#[test]
fn ten_redirects_are_followed() {
    let moved = "HTTP/1.1 302 Found\r\nlocation: /on\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let found = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let transport = HttpTransporter::new(LanewayTransport::new(client()));
    for (redirects, is_found) in [(10, true), (11, false)] {
        let mut texts = vec![moved.to_owned(); redirects];
        texts.push(found.to_owned());
        let (url, _served) = answering(texts);
        let answer = run(transport.send(Request::get(&url).body(Buffer::new()).expect("a request")));
        assert_eq!(answer.is_ok(), is_found, "{redirects}");
    }
}

#[test]
fn an_error_longer_than_what_is_kept_of_it_stays_that_error() {
    let page = "x".repeat(80_000);
    let text = format!("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 80000\r\n\r\n{page}");
    let (url, _served) = answering(vec![text]);
    let transport = HttpTransporter::new(LanewayTransport::new(client()));
    let answer = run(transport.send(Request::get(&url).body(Buffer::new()).expect("a request")));
    assert_eq!(answer.expect("an answer").status(), 404);
}

#[test]
fn an_answer_that_breaks_off_is_an_error_that_passes() {
    let (url, served) = answering(vec!["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf ".to_owned()]);
    let transport = HttpTransporter::new(LanewayTransport::new(client()));
    let request = || Request::get(&url).body(Buffer::new()).expect("a request");
    let broken = run(transport.send(request())).expect_err("it broke off");
    assert!(broken.is_temporary(), "{broken}");
    served.join().expect("served");
    assert!(run(transport.send(request())).expect_err("nobody listens").is_temporary());
}
