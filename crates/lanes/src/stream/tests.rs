//! Tests how TLS connections are read. A rustls server writes to an in-memory stream.

use std::io::ErrorKind;
use std::sync::Arc;

use futures_util::FutureExt;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::{BufferedSocket, READ_BUFFER_BYTES, ReadBuffer, RecordBatcher, SPARE_BUFFERS_MAX, spare_buffers};

type Client = RecordBatcher<client::TlsStream<BufferedSocket<DuplexStream>>>;
type Server = server::TlsStream<DuplexStream>;

/// A buffer between client and server that is large enough for all bytes of a test.
const ROOMY: usize = 8 << 20;

async fn connected(room: usize, version: &'static SupportedProtocolVersion) -> (Client, Server) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let serving = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let asking = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (near, far) = duplex(room);
    let (client, server) = tokio::join!(
        TlsConnector::from(Arc::new(asking))
            .connect(ServerName::try_from("localhost").unwrap(), BufferedSocket::new(near)),
        TlsAcceptor::from(Arc::new(serving)).accept(far),
    );
    (RecordBatcher::new(client.unwrap()), server.unwrap())
}

/// Writes one TLS record, or several if there are more than 16 KiB.
async fn record(server: &mut Server, bytes: &[u8]) {
    server.write_all(bytes).await.unwrap();
    server.flush().await.unwrap();
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[tokio::test]
async fn records_of_odd_sizes_arrive_whole_however_the_network_cuts_them() {
    let sizes = [1, 16_384, 7, 16_383, 5_000, 300_000, 2, 16_385, 40_001];
    for version in [&version::TLS12, &version::TLS13] {
        for room in [777, 5_000, ROOMY] {
            let (mut client, mut server) = connected(room, version).await;
            let all = pattern(sizes.iter().sum());
            let write = async {
                let mut left = &all[..];
                for size in sizes {
                    let (now, later) = left.split_at(size);
                    record(&mut server, now).await;
                    left = later;
                }
                server.shutdown().await.unwrap();
            };
            let read = async {
                let mut got = Vec::new();
                loop {
                    let bytes = client.fill_buf().await.unwrap();
                    if bytes.is_empty() {
                        return got;
                    }
                    let taken = bytes.len().min(9_999);
                    got.extend_from_slice(&bytes[..taken]);
                    client.consume(taken);
                }
            };
            let ((), got) = tokio::join!(write, read);
            assert!(got == all, "{version:?}, {room} bytes between them");
        }
    }
}

#[tokio::test]
async fn records_that_have_arrived_come_as_one_read() {
    let (mut client, mut server) = connected(ROOMY, &version::TLS13).await;
    let all = pattern(20_000);
    for tiny in all.chunks(10) {
        record(&mut server, tiny).await;
    }
    assert_eq!(client.fill_buf().await.unwrap(), all);
}

#[tokio::test]
async fn what_is_there_is_handed_over_without_waiting_for_more() {
    let (mut client, mut server) = connected(ROOMY, &version::TLS13).await;
    for answer in ["a small answer", "another"] {
        record(&mut server, answer.as_bytes()).await;
        assert_eq!(client.fill_buf().await.unwrap(), answer.as_bytes());
        client.consume(answer.len());
        assert!(client.fill_buf().now_or_never().is_none(), "nothing more has come");
        assert_eq!(spare_buffers(), 2, "a connection that waits holds no buffer");
    }
}

#[tokio::test]
async fn what_follows_a_body_in_the_same_read_is_kept() {
    let (mut client, mut server) = connected(ROOMY, &version::TLS13).await;
    let (body, next) = (pattern(600_001), b"HTTP/1.1 204 No Content\r\n\r\n");
    record(&mut server, &[&body[..], next].concat()).await;
    let mut left = body.len();
    while left > 0 {
        let bytes = client.fill_buf().await.unwrap();
        let taken = bytes.len().min(left);
        assert!(bytes[..taken] == body[body.len() - left..][..taken]);
        client.consume(taken);
        left -= taken;
    }
    // Read into another buffer, as the crate `h2` does.
    let mut head = vec![0; next.len()];
    client.read_exact(&mut head).await.unwrap();
    assert_eq!(head, next);
}

#[tokio::test]
async fn an_announced_end_comes_after_the_last_byte_and_stays() {
    let (mut client, mut server) = connected(ROOMY, &version::TLS13).await;
    record(&mut server, b"the last").await;
    server.shutdown().await.unwrap();
    assert_eq!(client.fill_buf().await.unwrap(), b"the last");
    client.consume(8);
    for _ in 0..2 {
        assert_eq!(client.fill_buf().await.unwrap(), b"");
    }
}

#[tokio::test]
async fn an_end_without_a_close_notify_is_an_error_after_the_last_byte() {
    let (mut client, mut server) = connected(ROOMY, &version::TLS13).await;
    record(&mut server, b"cut").await;
    drop(server);
    assert_eq!(client.fill_buf().await.unwrap(), b"cut");
    client.consume(3);
    assert_eq!(client.fill_buf().await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_forged_record_is_an_error_and_nothing_behind_it_is_read() {
    let (mut client, mut server) = connected(ROOMY, &version::TLS13).await;
    record(&mut server, b"good").await;
    assert_eq!(client.fill_buf().await.unwrap(), b"good");
    server.get_mut().0.write_all(&[23, 3, 3, 0, 32]).await.unwrap();
    server.get_mut().0.write_all(&[0; 32]).await.unwrap();
    record(&mut server, b"good again, but nobody can know").await;
    client.consume(4);
    assert_eq!(client.fill_buf().await.unwrap_err().kind(), ErrorKind::InvalidData);
    assert!(!matches!(client.fill_buf().now_or_never(), Some(Ok(_))));
}

#[tokio::test]
async fn new_keys_in_the_middle_of_a_body_lose_nothing() {
    let (mut client, mut server) = connected(ROOMY, &version::TLS13).await;
    let all = pattern(90_000);
    for chunk in all.chunks(30_000) {
        record(&mut server, chunk).await;
        server.get_mut().1.refresh_traffic_keys().unwrap();
    }
    server.shutdown().await.unwrap();
    let mut got = Vec::new();
    client.read_to_end(&mut got).await.unwrap();
    assert!(got == all);
}

#[test]
fn a_buffer_is_lent_until_its_bytes_are_consumed() {
    let (mut one, mut other) = (ReadBuffer::default(), ReadBuffer::default());
    one.room()[..3].copy_from_slice(b"abc");
    one.filled(3);
    one.consume(2);
    assert_eq!((one.bytes(), spare_buffers()), (&b"c"[..], 0));
    one.consume(1);
    assert_eq!(spare_buffers(), 1);
    assert_eq!(other.room().len(), READ_BUFFER_BYTES);
    assert_eq!(spare_buffers(), 0);
    other.filled(0);
    assert_eq!(spare_buffers(), 1);
}

#[test]
fn a_connection_that_ends_gives_its_buffer_back_and_few_are_kept() {
    let mut held: Vec<ReadBuffer> = (0..10).map(|_| ReadBuffer::default()).collect();
    for one in &mut held {
        one.room()[0] = 1;
        one.filled(1);
    }
    drop(held);
    assert_eq!(spare_buffers(), SPARE_BUFFERS_MAX);
}

#[test]
fn more_goes_behind_what_is_there_until_it_is_full() {
    let mut held = ReadBuffer::default();
    for byte in *b"ab" {
        held.room()[0] = byte;
        held.filled(1);
    }
    assert_eq!(held.bytes(), b"ab");
    let room = held.room().len();
    assert_eq!(room, READ_BUFFER_BYTES - 2);
    held.filled(room);
    assert!(held.is_full() && held.room().is_empty());
}
