//! S3's own behaviour: its clock, its HEADs without bodies, its 503s, its regions.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use bytes::Bytes;
use laneway_lanes::{Lanes, LanesConfig, Trust};
use laneway_server::{Config, Habits, S3Config, Server, Tls, parse_fault};
use laneway_store::{
    AccessKey, Body, BucketSetting, Checksums, Condition, Deletion, Environment, Error, ErrorKind, Get, List,
    MetaChange, Multipart, ObjectId, ObjectMeta, Operation, Part, PartChecksums, Provider, PutOptions,
    RequestChecksums, Settings, Store, Version,
};
use laneway_testkit::{Asked, Endpoint, Scripted, Wire, answer};

mod conditions;

fn faulty(rules: &[&str]) -> Config {
    let mut config = Config::default();
    config.faults.rules = rules.iter().map(|rule| parse_fault(rule).expect("a rule")).collect();
    config
}

fn settings(endpoint: &Endpoint) -> Settings {
    let keys = S3Config::default();
    Settings {
        s3_endpoint: Some(endpoint.url()),
        access_key: Some(AccessKey::new(keys.access_key, keys.secret_key)),
        region: Some(keys.region),
        ..Settings::default()
    }
}

/// Runs a scenario against a server with this configuration.
fn against<F: Future<Output = ()>>(config: Config, scenario: impl FnOnce(Store, ObjectId) -> F) {
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
    let store = Store::new(Provider::S3, &settings(&endpoint), lanes).expect("a store");
    run(scenario(store, ObjectId::new(Endpoint::BUCKET, "folder/key")));
}

fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(scenario);
}

async fn put(store: &Store, id: &ObjectId) -> Result<ObjectMeta, Error> {
    let sums = Checksums::crc32c(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, b"bytes") as u32);
    store.put(id, Body::from(Bytes::from_static(b"bytes")), &sums, &PutOptions::default()).await
}

#[test]
fn a_lone_503_is_tried_again_and_throttles_nothing() {
    let rules = ["put:1 status 503 ServiceUnavailable", "get:1 status 408", "head:1 status 500"];
    against(faulty(&rules), async |store, id| {
        put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}")).attempts, 2);
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
        let counters = store.lanes().counters();
        assert_eq!((counters.retries, counters.throttles), (3, 0));
    });
}

/// HeadObject needs `kms:Decrypt` for the checksum of an object that KMS encrypts.
#[test]
fn who_may_not_decrypt_looks_at_an_object_without_its_checksum() {
    let habits = Habits { may_decrypt: false, ..Habits::strict() };
    against(Config { habits, ..Config::default() }, async |store, id| {
        let mut options = PutOptions::default();
        options.kms_key = Some("key".into());
        let (body, sums) = (Body::from(Bytes::from_static(b"bytes")), Checksums::default());
        store.put(&id, body, &sums, &options).await.unwrap_or_else(|e| panic!("{e}"));
        let meta = store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((meta.size, meta.checksums.crc64nvme), (5, None));
        assert_eq!(store.get(Get::new(&id)).await.expect_err("encrypted").kind(), ErrorKind::Permission);
        let other = ObjectId::new(Endpoint::BUCKET, "plain");
        self::put(&store, &other).await.unwrap_or_else(|e| panic!("{e}"));
        let checksums = store.head(&other, None).await.unwrap_or_else(|e| panic!("{e}")).checksums;
        assert!(checksums.crc32c.is_some(), "one refusal doesn't apply to other objects");
    });
}

#[test]
fn buckets_are_listed_in_pages_where_the_store_has_them() {
    let habits = Habits { unpaged_buckets: false, ..Habits::strict() };
    against(Config { habits, ..Config::default() }, async |store, _| {
        assert_eq!(store.buckets().await.unwrap_or_else(|e| panic!("{e}")), [Endpoint::BUCKET]);
    });
    let page = |name: &str, rest: &str| {
        let bucket = format!("<Buckets><Bucket><Name>{name}</Name></Bucket></Buckets>");
        answer(200, &[], format!("<ListAllMyBucketsResult>{bucket}{rest}</ListAllMyBucketsResult>"))
    };
    // If a store refuses the parameter `max-buckets`, Laneway repeats the request without it.
    let (_server, store) = scripted(
        move |asked| match asked {
            asked if asked.target.contains("continuation-token=t") => page("b", ""),
            asked if asked.target.contains("max-buckets") => {
                answer(400, &[], "<Error><Code>InvalidArgument</Code></Error>")
            }
            _ => page("a", "<ContinuationToken>t</ContinuationToken>"),
        },
        Settings::default(),
    );
    run(async {
        assert_eq!(store.buckets().await.unwrap_or_else(|e| panic!("{e}")), ["a", "b"]);
    });
}

/// If a HEAD accepts encodings, Cloudflare answers without a length.
#[test]
fn the_size_of_an_object_is_told_behind_a_service_that_compresses() {
    let habits = Habits { head_lengths: false, ..Habits::strict() };
    against(Config { habits, ..Config::default() }, async |store, id| {
        put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}")).size, 5);
    });
}

/// Fastly encrypts every object, so its ETags only look like MD5s.
#[test]
fn a_put_whose_checksum_was_compared_shows_whether_etags_are_md5s() {
    for md5_etags in [true, false] {
        let habits = Habits { md5_etags, ..Habits::strict() };
        against(Config { habits, ..Config::default() }, async |store, id| {
            assert!(!store.has_opaque_etags(), "nothing is known yet");
            let written = put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
            let read = store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
            let got = store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}"));
            for meta in [written, read, got.meta] {
                assert_eq!(meta.checksums.md5.is_some(), md5_etags, "{:?}", meta.checksums);
                assert!(meta.checksums.crc32c.is_some());
            }
            assert_eq!(store.has_opaque_etags(), !md5_etags);
        });
    }
}

#[test]
fn a_policy_that_fixes_the_length_of_pages_is_found_out_once() {
    let mut habits = Habits::strict();
    habits.listings.max_keys = false;
    against(Config { habits, ..Config::default() }, async |store, id| {
        put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        let list = List { max: Some(1), ..List::new(Endpoint::BUCKET, "") };
        for requests in [3, 4] {
            assert_eq!(store.list(&list).await.unwrap_or_else(|e| panic!("{e}")).objects.len(), 1);
            assert_eq!(store.lanes().counters().requests, requests);
        }
    });
}

#[test]
fn a_listing_that_does_not_go_on_is_an_error() {
    let page = "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>p/a</Key><Size>1</Size></Contents></ListBucketResult>";
    let (server, store) = scripted(move |_| answer(200, &[], page), Settings::default());
    run(async {
        let list = List::new("bucket", "p/");
        let token = store.list(&list).await.unwrap_or_else(|e| panic!("{e}")).next;
        let error = store.list(&List { token, ..list }).await.expect_err("the same page").to_string();
        assert!(error.contains("but its next page would begin at"), "{error}");
    });
    assert!(server.asked()[1].target.ends_with("?encoding-type=url&prefix=p%2F&marker=p%2Fa"));
}

#[test]
fn a_wrong_clock_is_corrected_once_by_what_the_store_says() {
    for ahead_s in [3600, -3600] {
        let s3 = S3Config { clock_ahead_s: ahead_s, ..S3Config::default() };
        against(Config { s3, ..Config::default() }, async |store, id| {
            put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(store.lanes().counters().requests, 2);
            store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(store.lanes().counters().requests, 3, "it is remembered");
        });
    }
}

#[test]
fn corrects_the_clock_after_a_head_refused_without_a_reason() {
    let s3 = S3Config { clock_ahead_s: 7200, ..S3Config::default() };
    against(Config { s3, ..Config::default() }, async |store, id| {
        let absent = store.head(&id, None).await.expect_err("there is none");
        assert!(absent.is_not_found() && absent.attempts() == 2, "{absent}");
    });
}

#[test]
fn a_silent_400_to_a_head_is_credentials_that_have_expired() {
    against(faulty(&["head:1 status 400"]), async |store, id| {
        put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
    });
    against(faulty(&["head status 400"]), async |store, id| {
        let error = store.head(&id, None).await.expect_err("refused");
        assert!(error.is_unauthenticated() && error.to_string().contains("expired"), "{error}");
    });
}

/// A bucket in an opt-in region: the error doesn't name the region.
#[test]
fn a_bucket_in_an_opt_in_region_is_asked_for_once_and_remembered() {
    let mut s3 = S3Config::default();
    s3.bucket_regions.insert(Endpoint::BUCKET.to_owned(), "me-central-1".to_owned());
    s3.opt_in_regions.insert("me-central-1".to_owned());
    against(Config { s3, ..Config::default() }, async |store, id| {
        let other = ObjectId::new(Endpoint::BUCKET, "other");
        let (one, two) = futures_util::future::join(put(&store, &id), put(&store, &other)).await;
        one.and(two).unwrap_or_else(|e| panic!("{e}"));
        let requests = store.lanes().counters().requests;
        // Each request was refused at most once, and one other request asked for the bucket's region.
        assert!((4..=5).contains(&requests), "{requests}");
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.lanes().counters().requests, requests + 1);
    });
}

/// A proxy that connects every host name to `server`.
fn tunnel_to(server: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || tunnel(client, server));
        }
    });
    url
}

fn tunnel(mut client: TcpStream, server: SocketAddr) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut server = TcpStream::connect(server)?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || std::io::copy(&mut from, &mut to));
    std::io::copy(&mut client, &mut server).map(drop)
}

#[test]
fn without_a_region_one_head_bucket_goes_ahead_of_a_burst_of_puts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let hosts = ["us-east-1", "eu-west-3"].map(|region| format!("s3.{region}.amazonaws.com"));
    let made = rcgen::generate_simple_self_signed(hosts).expect("a certificate");
    std::fs::write(&cert, made.cert.pem()).expect("it is written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("it is written");
    let mut s3 = S3Config::default();
    s3.bucket_regions.insert(Endpoint::BUCKET.to_owned(), "eu-west-3".to_owned());
    let tls = Some(Tls::Files { cert: cert.clone(), key });
    let server = Server::start(Config { tls, s3, ..Config::default() }).expect("the server starts");
    server.create_bucket(Endpoint::BUCKET).expect("the bucket is made");
    let keys = S3Config::default();
    let settings = Settings {
        access_key: Some(AccessKey::new(keys.access_key, keys.secret_key)),
        s3_path_style: Some(true),
        environment: Environment::of([("HOME", "/nowhere")]),
        ..Settings::default()
    };
    let lanes = LanesConfig {
        https_proxy: Some(tunnel_to(server.addr())),
        trust: Trust { extra_ca_files: vec![cert] },
        ..LanesConfig::default()
    };
    let store = Store::new(Provider::S3, &settings, Lanes::start(lanes).expect("lanes")).expect("a store");
    run(async {
        let ids: Vec<_> = (0..20).map(|n| ObjectId::new(Endpoint::BUCKET, format!("k{n}"))).collect();
        let puts = ids.iter().map(|id| put(&store, id));
        for written in futures_util::future::join_all(puts).await {
            written.unwrap_or_else(|e| panic!("{e}"));
        }
        let seen = server.counters().requests_by_verb;
        assert_eq!((seen["bucket"], seen["put"]), (1, 20));
    });
}

fn sums(bytes: &[u8]) -> Checksums {
    Checksums::crc32c(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32)
}

async fn write(
    store: &Store,
    id: &ObjectId,
    bytes: &'static [u8],
    condition: Condition,
) -> Result<ObjectMeta, Error> {
    let options = PutOptions::default().condition(condition);
    store.put(id, Body::from(Bytes::from_static(bytes)), &sums(bytes), &options).await
}

async fn in_parts(
    store: &Store,
    id: &ObjectId,
    bytes: &'static [u8],
    condition: Condition,
) -> Result<ObjectMeta, Error> {
    let upload = store.begin(id, &PutOptions::default()).await?;
    let crc32c = sums(bytes).crc32c.expect("a checksum");
    let part = store.part(&upload, 1, Body::from(Bytes::from_static(bytes)), crc32c).await?;
    store.complete(&upload, &[part], &sums(bytes), &condition).await
}

async fn content(store: &Store, id: &ObjectId) -> Vec<u8> {
    store.get(Get::new(id)).await.unwrap_or_else(|e| panic!("{e}")).body.to_vec()
}

/// In quiet mode, an answer names only the objects that were not deleted. If an error names an unknown key, it may
/// concern any object of the request.
#[test]
fn a_batchs_error_that_names_no_key_of_it_deletes_each_by_itself() {
    let server = Scripted::serve(|asked: &Asked| match (asked.method.as_str(), asked.target.as_str()) {
        ("POST", _) => {
            let error = "<Error><Key>b%2Fkept</Key><Code>AccessDenied</Code><Message>no</Message></Error>";
            answer(200, &[], format!("<DeleteResult>{error}</DeleteResult>"))
        }
        (_, "/bucket/b/kept") => {
            answer(403, &[], "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
        }
        _ => answer(204, &[], ""),
    });
    let settings = Settings { s3_endpoint: Some(server.url()), anonymous: true, ..Settings::default() };
    let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
    let store = Store::new(Provider::S3, &settings, lanes).expect("a store");
    run(async {
        let results = store.delete_many("bucket", &["b/gone", "b/kept"].map(Deletion::any)).await;
        let refused: Vec<bool> = results.iter().map(Result::is_err).collect();
        assert_eq!(refused, [false, true]);
        assert!(results[1].as_ref().is_err_and(Error::is_permission));
    });
    assert_eq!(server.asked().len(), 3);
}

/// If the answer to a completion is a 200 without a document, Laneway reads the object to find out if the upload was
/// completed.
#[test]
fn the_unreadable_answer_to_a_completion_is_settled_by_the_object() {
    for (crc32c, is_ours) in [("4waSgw==", true), ("AAAAAA==", false)] {
        let server = Scripted::serve(move |asked: &Asked| {
            match asked.method.as_str() {
            "HEAD" => format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nETag: \"e-1\"\r\nx-amz-checksum-type: FULL_OBJECT\r\n\
                 x-amz-checksum-crc32c: {crc32c}\r\n\r\n"
            )
            .into_bytes(),
            _ => answer(200, &[], ""),
        }
        });
        let settings = Settings { s3_endpoint: Some(server.url()), anonymous: true, ..Settings::default() };
        let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
        let store = Store::new(Provider::S3, &settings, lanes).expect("a store");
        let id = ObjectId::new("bucket", "k");
        let upload = Multipart { id, upload_id: "u".into(), checksums: PartChecksums::FullObject };
        let part = Part { number: 1, etag: "e".into(), size: 9, crc32c: Some(0xe306_9283), md5: None };
        run(async {
            let whole = Checksums::crc32c(0xe306_9283);
            let completed = store.complete(&upload, &[part], &whole, &Condition::None).await;
            assert_eq!(completed.is_ok(), is_ours, "{completed:?}");
        });
        assert_eq!(server.asked().len(), 2);
    }
}

/// A single answer that comes from a proxy or is damaged doesn't show that an upload has begun. Laneway treats it like
/// a lost answer.
#[test]
fn an_unreadable_answer_to_the_beginning_of_an_upload_is_asked_for_again() {
    const BEGUN: &str =
        "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
    for (unreadable, times, is_begun) in [
        ("<html>please log in</html>", 1, true),
        (&BEGUN[..60], 2, true),
        ("", 2, true),
        ("<Error><Code>InternalError</Code></Error>", 3, false),
    ] {
        let asked = AtomicU32::new(0);
        let (server, store) = scripted(
            move |_: &Asked| match asked.fetch_add(1, Ordering::Relaxed) {
                before if before < times => answer(200, &[], unreadable),
                _ => answer(200, &[("x-amz-checksum-algorithm", "CRC32C")], BEGUN),
            },
            Settings::default(),
        );
        run(async {
            match store.begin(&ObjectId::new("bucket", "k"), &PutOptions::default()).await {
                Ok(upload) => {
                    assert_eq!((&*upload.upload_id, upload.checksums), ("u", PartChecksums::Composite));
                }
                Err(error) => {
                    assert!(error.kind() == ErrorKind::Server && !is_begun, "{unreadable:?}: {error}");
                    assert_eq!(error.attempts(), times);
                }
            }
        });
        assert_eq!(server.asked().len() as u32, times + u32::from(is_begun), "{unreadable:?}");
    }
}

fn scripted(
    answers: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static,
    settings: Settings,
) -> (Scripted, Store) {
    let server = Scripted::serve(answers);
    let settings = Settings { s3_endpoint: Some(server.url()), anonymous: true, ..settings };
    let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
    let store = Store::new(Provider::S3, &settings, lanes).expect("a store");
    (server, store)
}

fn described(etag: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nETag: \"{etag}\"\r\nServer: AmazonS3\r\n\r\n")
        .into_bytes()
}

/// If a store ignores conditions, an interfering writer is noticed afterwards, whatever the store calls itself.
#[test]
fn reports_an_interfering_writer_where_a_store_ignores_conditions() {
    let heads = AtomicU32::new(0);
    let (server, store) = scripted(
        move |asked| match (asked.method.as_str(), heads.load(Ordering::Relaxed)) {
            ("HEAD", 0) => {
                heads.fetch_add(1, Ordering::Relaxed);
                b"HTTP/1.1 404 Not Found\r\nServer: AmazonS3\r\nContent-Length: 0\r\n\r\n".to_vec()
            }
            ("HEAD", _) => described("theirs-1"),
            _ => {
                let body = "<CompleteMultipartUploadResult><ETag>\"ours-1\"</ETag>\
                            <ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME></CompleteMultipartUploadResult>";
                answer(200, &[("Server", "AmazonS3")], body)
            }
        },
        Settings::default(),
    );
    let upload =
        Multipart { id: ObjectId::new("bucket", "k"), upload_id: "u".into(), checksums: PartChecksums::None };
    let part = Part { number: 1, etag: "e".into(), size: 4, crc32c: sums(b"ours").crc32c, md5: None };
    run(async {
        let completed = store.complete(&upload, &[part], &Checksums::default(), &Condition::Absent).await;
        let error = completed.expect_err("it isn't ours");
        assert!(error.is_integrity() && error.message().contains("another writer"), "{error}");
    });
    assert_eq!(server.asked().len(), 3, "one HEAD before and one after");
}

#[test]
fn a_412_for_a_checksum_is_no_precondition_and_proves_no_conditions() {
    let (server, store) = scripted(
        |asked| match asked.method.as_str() {
            "HEAD" => answer(404, &[], ""),
            _ => answer(
                412,
                &[("Server", "nginx")],
                "<Error><Code>PreconditionFailed</Code><Message>The CRC32C doesn't match the data</Message></Error>",
            ),
        },
        Settings::default(),
    );
    run(async {
        let id = ObjectId::new("bucket", "k");
        let error = in_parts_of(&store, &id).await.expect_err("other bytes came");
        assert!(error.is_integrity() && !error.is_precondition(), "{error}");
        assert!(!store.keeps(Operation::Complete, &Condition::Absent));
    });
    assert!(server.asked().iter().any(|asked| asked.header("if-none-match") == Some("*")));
}

async fn in_parts_of(store: &Store, id: &ObjectId) -> Result<ObjectMeta, Error> {
    let upload = Multipart { id: id.clone(), upload_id: "u".into(), checksums: PartChecksums::FullObject };
    let part = Part { number: 1, etag: "e".into(), size: 4, crc32c: sums(b"ours").crc32c, md5: None };
    store.complete(&upload, &[part], &sums(b"ours"), &Condition::Absent).await
}

#[test]
fn sends_checksums_to_a_locked_bucket_even_if_they_are_turned_off() {
    const REFUSAL: &str = "<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is \
                           required for Put Object requests with Object Lock parameters</Message></Error>";
    let (server, store) = scripted(
        |asked| {
            let is_checked = asked.header("x-amz-checksum-crc32c").or(asked.header("content-md5")).is_some();
            match asked.target.starts_with("/locked/") && !is_checked {
                true => answer(400, &[], REFUSAL),
                false => answer(200, &[("ETag", "\"e\"")], ""),
            }
        },
        Settings { request_checksums: Some(RequestChecksums::WhenRequired), ..Settings::default() },
    );
    run(async {
        for bucket in ["open", "locked", "locked"] {
            put(&store, &ObjectId::new(bucket, "k")).await.unwrap_or_else(|e| panic!("{bucket}: {e}"));
        }
        let id = ObjectId::new("locked", "k");
        let upload = Multipart { id, upload_id: "u".into(), checksums: PartChecksums::None };
        let crc32c = sums(b"ours").crc32c.expect("a checksum");
        store.part(&upload, 1, Body::from("ours"), crc32c).await.unwrap_or_else(|e| panic!("{e}"));
    });
    let asked = server.asked();
    let sent: Vec<(bool, bool)> = asked
        .iter()
        .map(|asked| (asked.header("x-amz-checksum-crc32c").is_some(), asked.header("content-md5").is_some()))
        .collect();
    let (none, crc32c, md5) = ((false, false), (true, false), (false, true));
    assert_eq!(sent, [none, none, crc32c, crc32c, none, md5]);
}

#[test]
fn buckets_whose_pages_repeat_themselves_end_with_an_error() {
    let (server, store) = scripted(
        |_| {
            let body = "<ListAllMyBucketsResult><Buckets><Bucket><Name>a</Name></Bucket></Buckets>\
                        <ContinuationToken>t</ContinuationToken></ListAllMyBucketsResult>";
            answer(200, &[], body)
        },
        Settings::default(),
    );
    run(async {
        let error = store.buckets().await.expect_err("it would never end");
        assert!(error.message().contains("earlier page"), "{error}");
    });
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn a_description_is_changed_whatever_an_endpoint_makes_of_conditions() {
    for name in Habits::NAMES {
        let habits = Habits::named(name).expect("known");
        against(Config { habits, ..Config::default() }, async |store, id| {
            put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
            let change = MetaChange::default().cache_control("no-store").metadata("n", "1");
            let changed = store.set_meta(&id, &change).await.unwrap_or_else(|e| panic!("{name}: {e}"));
            let found = store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(
                (found.cache_control.as_deref(), found.version),
                (Some("no-store"), changed.version),
                "{name}"
            );
        });
    }
}

/// The ETag is a condition on both source and destination, so another writer's object stays.
#[tokio::test]
async fn a_description_is_not_changed_over_another_writers_object() {
    let server = Scripted::serve(|asked: &Asked| match asked.method.as_str() {
        "HEAD" => answer(200, &[("ETag", "\"e\""), ("Server", "laneway"), ("x-amz-request-id", "1")], ""),
        _ => answer(412, &[], "<Error><Code>PreconditionFailed</Code></Error>"),
    });
    let settings = Settings { s3_endpoint: Some(server.url()), anonymous: true, ..Settings::default() };
    let store = Store::new(Provider::S3, &settings, Lanes::start(LanesConfig::default()).expect("lanes"));
    let change = MetaChange::default().cache_control("no-store");
    let changed = store.expect("a store").set_meta(&ObjectId::new("b", "k"), &change).await;
    assert!(changed.expect_err("it was replaced").is_precondition());
    let copies: Vec<_> = server.asked().into_iter().filter(|asked| asked.method == "PUT").collect();
    assert_eq!(copies.len(), 1);
    for name in ["if-match", "x-amz-copy-source-if-match"] {
        assert_eq!(copies[0].header(name), Some("\"e\""), "{name}");
    }
}

/// The new object's ETag shows if the store has dropped a header, or if another writer has replaced the object.
#[test]
fn a_store_that_passes_over_a_description_is_not_taken_for_another_writer() {
    for (etag, is_ours) in [("ours-2", true), ("theirs-2", false)] {
        let (_server, store) = scripted(move |_| described(etag), Settings::default());
        run(async {
            let id = ObjectId::new("bucket", "k");
            let change = MetaChange::default().cache_control("no-store");
            let changing = store.changing(&id, &change).await.unwrap_or_else(|e| panic!("{e}"));
            let mut made = ObjectMeta::new(id, 4);
            made.version = Some(Version::ETag("ours-2".into()));
            let error = store.changed(&changing, &made).await.expect_err("it has no such description");
            assert_eq!((error.is_unsupported(), error.is_precondition()), (is_ours, !is_ours), "{error}");
            assert_eq!(error.message().contains("didn't accept the new cache control"), is_ours, "{error}");
        });
    }
}

/// A server that ignores the query would delete the bucket.
#[test]
fn refuses_to_remove_the_versioning_of_a_bucket_without_a_request() {
    against(Config::default(), async |store, id| {
        let removed = store.set_bucket_setting(&id.bucket, BucketSetting::Versioning, None).await;
        assert_eq!(removed.expect_err("S3 can only suspend it").kind(), ErrorKind::Invalid);
        assert_eq!(store.lanes().counters().requests, 0);
    });
}
