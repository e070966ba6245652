//! Tests of the GCS dialect with answers that are valid but rare.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use laneway_lanes::{Lanes, LanesConfig};
use laneway_store::{
    Appended, Body, Checksums, Get, Multipart, ObjectId, Part, PartChecksums, Provider, PutOptions,
    Resumable, Settings, Store,
};
use laneway_testkit::{Asked, Scripted, answer};

fn settings(url: String) -> Settings {
    Settings { gcs_endpoint: Some(url), anonymous: true, ..Settings::default() }
}

fn store(url: String) -> Store {
    Store::new(Provider::Gcs, &settings(url), Lanes::start(LanesConfig::default()).expect("lanes"))
        .expect("a store")
}

fn id() -> ObjectId {
    ObjectId::new("b", "k")
}

fn json(body: &str) -> Vec<u8> {
    answer(200, &[("Content-Type", "application/json")], body)
}

#[tokio::test]
async fn a_write_whose_answer_tells_neither_size_nor_generation_is_done() {
    let server = Scripted::serve(|_: &Asked| json(r#"{"name":"k"}"#));
    let store = store(server.url());
    let body = Body::from(Bytes::from_static(b"123456789"));
    let put = store.put(&id(), body, &Checksums::crc32c(0xe306_9283), &PutOptions::default()).await;
    let meta = put.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((meta.size, meta.version, meta.checksums.crc32c), (9, None, None));
    assert_eq!(server.asked().len(), 1, "one request is enough");
}

#[tokio::test]
async fn a_packed_listing_is_read_to_its_checksum() {
    let page = r#"{"kind":"storage#objects","items":[{"name":"k","size":"1","generation":"7"}]}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, page.as_bytes()).expect("it is packed");
    let packed = gzip.finish().expect("it is packed");
    for (cut, is_whole) in [(0, true), (1, false), (9, false)] {
        let packed = packed[..packed.len() - cut].to_vec();
        let server = Scripted::serve(move |asked: &Asked| {
            let agent = asked.header("user-agent").unwrap_or_default();
            assert!(agent.ends_with(" (gzip)") && asked.header("accept-encoding") == Some("gzip"));
            answer(200, &[("Content-Encoding", "gzip")], &packed)
        });
        let listed = store(server.url()).list(&laneway_store::List::new("b", "")).await;
        assert_eq!(listed.is_ok_and(|page| page.objects.len() == 1), is_whole, "{cut}");
    }
    let server = Scripted::serve(|_: &Asked| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let error = br#"{"error":{"code":403,"message":"not you","errors":[{"reason":"forbidden"}]}}"#;
        std::io::Write::write_all(&mut gzip, error).expect("it is packed");
        answer(403, &[("Content-Encoding", "gzip")], gzip.finish().expect("it is packed"))
    });
    let error = store(server.url()).list(&laneway_store::List::new("b", "")).await.expect_err("refused");
    assert_eq!((error.message(), error.code()), ("not you", Some("forbidden")));
}

#[tokio::test]
async fn what_goes_on_without_end_is_ended() {
    let server = Scripted::serve(|asked: &Asked| match asked.target.contains("/rewriteTo/") {
        true => json(r#"{"done":false,"rewriteToken":"t","totalBytesRewritten":"5"}"#),
        false => json(r#"{"kind":"storage#buckets","nextPageToken":"t","items":[{"name":"a"}]}"#),
    });
    let settings = Settings { project: Some("p".into()), ..settings(server.url()) };
    let store = Store::new(Provider::Gcs, &settings, Lanes::start(LanesConfig::default()).expect("lanes"));
    let store = store.expect("a store");
    let error = store.buckets().await.expect_err("the page has come before");
    assert!(error.message().contains("earlier page"), "{error}");
    let to = ObjectId::new("b", "to");
    let copied = store.copy(&id(), &to, &PutOptions::default(), &laneway_store::Condition::None).await;
    let error = copied.expect_err("it makes no progress");
    assert!(error.message().contains("no progress"), "{error}");
    assert_eq!(server.asked().len(), 2 + 4);
}

/// GCS returns 412 to a conditional delete of an object that no longer exists.
#[tokio::test]
async fn checks_a_conditional_delete_whose_second_attempt_gets_412() {
    for (is_there, is_done) in [(false, true), (true, false)] {
        let asked_before = AtomicBool::new(false);
        let server = Scripted::serve(move |asked: &Asked| match asked.method.as_str() {
            "DELETE" if !asked_before.swap(true, Ordering::Relaxed) => Vec::new(),
            "DELETE" => answer(412, &[], r#"{"error":{"message":"conditionNotMet"}}"#),
            _ if is_there => json(r#"{"name":"k","size":"5","generation":"9"}"#),
            _ => answer(404, &[], r#"{"error":{"message":"No such object: b/k"}}"#),
        });
        let state = laneway_store::Condition::Matches(laneway_store::Version::Generation(7));
        let deleted = store(server.url()).delete(&id(), &state).await;
        assert_eq!(deleted.is_ok(), is_done, "{deleted:?}");
    }
}

#[tokio::test]
async fn an_upload_that_may_not_be_looked_at_is_completed() {
    let server = Scripted::serve(|asked: &Asked| match asked.method.as_str() {
        "POST" => answer(200, &[("Content-Type", "application/xml")], "<CompleteMultipartUploadResult/>"),
        _ => answer(403, &[], r#"{"error":{"message":"b does not have storage.objects.get access"}}"#),
    });
    let upload = Multipart { id: id(), upload_id: "u".into(), checksums: PartChecksums::FullObject };
    let part = Part { number: 1, etag: "e".into(), size: 9, crc32c: Some(0xe306_9283), md5: None };
    let store = store(server.url());
    let completed = store
        .complete(&upload, &[part], &Checksums::crc32c(0xe306_9283), &laneway_store::Condition::None)
        .await;
    let meta = completed.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((meta.size, meta.checksums.crc32c), (9, None));
}

#[tokio::test]
async fn a_chunked_answer_without_a_size_takes_it_from_the_metadata() {
    let server = Scripted::serve(|asked: &Asked| {
        match asked.target.contains("alt=media") {
        true => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-goog-generation: 7\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n".to_vec(),
        false => json(r#"{"name":"k","size":"10","generation":"7"}"#),
    }
    });
    let store = store(server.url());
    let got = store.get(Get::new(&id())).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((&got.body[..], got.meta.size), (&b"0123456789"[..], 10));
    let targets: Vec<_> = server.asked().into_iter().map(|asked| asked.target).collect();
    assert!(targets.len() == 3 && targets[2].contains("generation=7"), "{targets:?}");
    let listed = store.get(Get { size: Some(10), ..Get::new(&id()) }).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((&listed.body[..], server.asked().len()), (&b"0123456789"[..], 4), "known from a listing");
}

#[tokio::test]
async fn where_multipart_uploads_are_forbidden_that_is_asked_once_a_bucket() {
    let refused = "<Error><Code>AccessDenied</Code><Details>no storage.multipartUploads.create access</Details></Error>";
    let server = Scripted::serve(move |_: &Asked| answer(403, &[], refused));
    let store = store(server.url());
    for bucket in ["b", "b", "other"] {
        let begun = store.begin(&ObjectId::new(bucket, "k"), &PutOptions::default()).await;
        let error = begun.expect_err("no multipart upload");
        assert!(error.is_unsupported(), "{error}");
    }
    assert!(store.supports_multipart(), "what one bucket forbids another may allow");
    assert_eq!(server.asked().len(), 2);
}

/// The answer to the last chunk is cut off, and in one case also the answer about the session's state. In that case,
/// the caller must read the object.
#[tokio::test]
async fn the_unreadable_end_of_a_session_is_asked_for_again() {
    const WHOLE: &str = r#"{"name":"k","size":"9","generation":"7","crc32c":"4waSgw=="}"#;
    for (status, expected) in [(WHOLE, true), (&WHOLE[..20], false)] {
        let server = Scripted::serve(move |asked: &Asked| {
            let is_question = asked.header("content-range") == Some("bytes */9");
            json(if is_question { status } else { &WHOLE[..30] })
        });
        let session = Resumable { id: id(), url: format!("{}/session", server.url()), len: None };
        let body = Body::from(Bytes::from_static(b"123456789"));
        let ended = store(server.url()).resumable_append(&session, 0, body, true).await;
        match ended.unwrap_or_else(|e| panic!("{e}")) {
            Appended::Finished(meta) => assert!(expected && meta.checksums.crc32c == Some(0xe306_9283)),
            Appended::Ended => assert!(!expected),
            Appended::Continue { next_offset } => panic!("it goes on at {next_offset}"),
        }
        let asked = server.asked();
        assert_eq!(asked.len(), 2, "the bytes are sent once");
        assert_eq!(asked[1].header("content-length"), Some("0"));
    }
}

/// The store sends the bytes only once. The caller decides if they are sent again.
#[tokio::test]
async fn a_session_that_takes_bytes_and_has_none_of_them_is_sent_them_once() {
    let server = Scripted::serve(|asked: &Asked| match asked.header("content-range") {
        Some("bytes */9") => answer(308, &[], ""),
        _ => json(r#"{"name"#),
    });
    let session = Resumable { id: id(), url: format!("{}/session", server.url()), len: None };
    let body = Body::from(Bytes::from_static(b"123456789"));
    let ended = store(server.url()).resumable_append(&session, 0, body, true).await;
    assert!(matches!(ended, Ok(Appended::Continue { next_offset: 0 })), "{ended:?}");
    assert_eq!(server.asked().len(), 2, "the second requests the session's offset");
}

/// If the answer to a write is a 200 with half a document, Laneway reads the object to find out if the write succeeded.
#[tokio::test]
async fn the_unreadable_answer_to_a_write_is_settled_by_the_object() {
    const WHOLE: &str = r#"{"name":"k","size":"9","generation":"7","crc32c":"4waSgw=="}"#;
    const OTHER: &str = r#"{"name":"k","size":"9","generation":"8","crc32c":"AAAAAA=="}"#;
    for (found, is_ours) in [(WHOLE, true), (OTHER, false)] {
        let server = Scripted::serve(move |asked: &Asked| match asked.method.as_str() {
            "POST" => json(&WHOLE[..20]),
            _ => json(found),
        });
        let body = Body::from(Bytes::from_static(b"123456789"));
        let sums = Checksums::crc32c(0xe306_9283);
        let put = store(server.url()).put(&id(), body, &sums, &PutOptions::default()).await;
        assert_eq!(put.is_ok(), is_ours, "{put:?}");
        assert_eq!(server.asked().len(), 2);
    }
}

#[tokio::test]
async fn another_storage_class_keeps_the_key_and_the_custom_time() {
    const KEY: &str = "projects/p/locations/l/keyRings/r/cryptoKeys/k";
    let server = Scripted::serve(|asked: &Asked| {
        let time = match asked.target.contains("customTime") {
            true => r#","customTime":"2026-01-31T00:00:00Z""#,
            false => "",
        };
        let object = format!(
            r#"{{"name":"k","size":"9","generation":"7","kmsKeyName":"{KEY}/cryptoKeyVersions/3"{time}}}"#
        );
        match asked.target.contains("/rewriteTo/") {
            true => json(&format!(r#"{{"done":true,"resource":{object}}}"#)),
            false => json(&object),
        }
    });
    let change = laneway_store::MetaChange::default().storage_class("NEARLINE");
    store(server.url()).set_meta(&id(), &change).await.unwrap_or_else(|e| panic!("{e}"));
    let asked = server.asked();
    let rewrite = asked.iter().find(|asked| asked.target.contains("/rewriteTo/")).expect("a rewrite");
    assert!(
        rewrite.target.contains(&format!("destinationKmsKeyName={}&", KEY.replace('/', "%2F"))),
        "{rewrite:?}"
    );
    let body = String::from_utf8_lossy(&rewrite.body);
    assert!(body.contains(r#""customTime":"2026-01-31T00:00:00Z""#), "{body}");
    assert!(rewrite.target.contains("ifGenerationMatch=7"), "{rewrite:?}");
}

#[tokio::test]
async fn another_storage_class_keeps_the_access_control_list_of_the_same_change() {
    let server = Scripted::serve(|asked: &Asked| {
        let object = r#"{"name":"k","size":"9","generation":"7","storageClass":"STANDARD"}"#;
        match asked.target.contains("/rewriteTo/") {
            true => json(&format!(r#"{{"done":true,"resource":{object}}}"#)),
            false => json(object),
        }
    });
    let change = laneway_store::MetaChange::default().storage_class("NEARLINE").acl("private");
    store(server.url()).set_meta(&id(), &change).await.unwrap_or_else(|e| panic!("{e}"));
    let asked = server.asked();
    let rewrite = asked.iter().find(|asked| asked.target.contains("/rewriteTo/")).expect("a rewrite");
    assert!(rewrite.target.contains("destinationPredefinedAcl=private"), "{rewrite:?}");
}

/// A single answer that comes from a proxy or is damaged shows nothing about the server.
#[tokio::test]
async fn an_unreadable_answer_to_the_beginning_of_an_upload_is_asked_for_again() {
    const BEGUN: &str =
        "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
    for (unreadable, readable_after, is_begun) in [
        ("<html>please log in</html>", 1, true),
        (&BEGUN[..40], 2, true),
        ("", 2, true),
        ("<html>no such page</html>", 3, false),
    ] {
        let asked = AtomicUsize::new(0);
        let server = Scripted::serve(move |_: &Asked| match asked.fetch_add(1, Ordering::Relaxed) {
            before if before < readable_after => answer(200, &[], unreadable),
            _ => answer(200, &[], BEGUN),
        });
        let store = store(server.url());
        let begun = store.begin(&id(), &PutOptions::default()).await;
        assert_eq!(
            (begun.is_ok(), store.supports_multipart()),
            (is_begun, is_begun),
            "{unreadable:?} {begun:?}"
        );
        let asked = readable_after + usize::from(is_begun);
        assert_eq!(server.asked().len(), asked, "{unreadable:?}");
        assert!(begun.is_ok_and(|upload| upload.upload_id == "u") || !is_begun);
        // The store remembers if the server supports multipart uploads, and doesn't test this again.
        let again = store.begin(&id(), &PutOptions::default()).await;
        assert_eq!((again.is_ok(), server.asked().len()), (is_begun, asked + usize::from(is_begun)));
        assert!(again.is_ok() || again.is_err_and(|error| error.is_unsupported()));
    }
}
