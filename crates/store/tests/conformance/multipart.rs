//! Promises about multipart uploads.

use bytes::Bytes;
use futures_util::future::join_all;
use laneway_store::{Body, Checksums, Condition, ErrorKind, Multipart, Part, PartChecksums, PutOptions};

use crate::world::{World, crc32c, noise, sums};

/// Every part except the last must have at least 5 MiB.
const PART: usize = 5 << 20;

async fn begin(world: &World, options: &PutOptions) -> Multipart {
    world.store.begin(&world.id("object"), options).await.unwrap_or_else(|e| panic!("{e}"))
}

async fn part(world: &World, upload: &Multipart, number: u32, bytes: &[u8]) -> Part {
    let body = Body::from(Bytes::copy_from_slice(bytes));
    world.store.part(upload, number, body, crc32c(bytes)).await.unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) async fn parts_become_one_checked_object(world: World) {
    let bytes = noise(2 * PART + 12345);
    let mut options = PutOptions::default().content_type("text/x-parts");
    options.metadata.insert("k".into(), "v".into());
    let upload = begin(&world, &options).await;
    let parts = bytes.chunks(PART).zip(1..).map(|(chunk, number)| part(&world, &upload, number, chunk));
    let parts = join_all(parts).await;
    let meta = world.store.complete(&upload, &parts, &sums(&bytes), &Condition::None).await;
    let meta = meta.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(meta.size, bytes.len() as u64);
    assert!(!meta.checksums.is_empty(), "the store's own checksum");
    let got = world.get("object").await;
    assert!(got.body == bytes);
    assert_eq!(got.meta.version, meta.version);
    assert_eq!(got.meta.content_type, options.content_type);
    let described = world.store.head(&world.id("object"), None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(described.metadata, Some(options.metadata));
    if upload.checksums == PartChecksums::FullObject {
        assert_eq!(got.meta.checksums.crc32c, Some(crc32c(&bytes)));
    }
}

pub(crate) async fn parts_may_come_in_any_order(world: World) {
    let bytes = noise(PART + 10);
    let upload = begin(&world, &PutOptions::default()).await;
    let second = part(&world, &upload, 2, &bytes[PART..]).await;
    part(&world, &upload, 1, &noise(PART - 1)).await;
    let first = part(&world, &upload, 1, &bytes[..PART]).await;
    let meta = world.store.complete(&upload, &[second, first], &sums(&bytes), &Condition::None).await;
    assert_eq!(meta.unwrap_or_else(|e| panic!("{e}")).size, bytes.len() as u64);
    assert!(world.get("object").await.body == bytes);
}

pub(crate) async fn the_parts_that_are_there_are_listed(world: World) {
    let upload = begin(&world, &PutOptions::default()).await;
    let list = || async { world.store.list_parts(&upload).await };
    assert_eq!(list().await.unwrap_or_else(|e| panic!("{e}")), []);
    let replaced = part(&world, &upload, 3, b"early").await;
    let first = part(&world, &upload, 1, &noise(PART)).await;
    let third = part(&world, &upload, 3, b"late").await;
    let listed = list().await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        listed.iter().map(|part| (part.number, part.size)).collect::<Vec<_>>(),
        [(1, PART as u64), (3, 4)]
    );
    assert!(listed[0].is_same(&first) && listed[1].is_same(&third), "{listed:?} {first:?} {third:?}");
    assert!(!listed[1].is_same(&replaced));
    world.store.abort(&upload).await.unwrap_or_else(|e| panic!("{e}"));
}

/// Lists more parts than one answer can contain.
pub(crate) async fn a_thousand_and_one_parts_are_listed(world: World) {
    let upload = begin(&world, &PutOptions::default()).await;
    for numbers in (1..=1001).collect::<Vec<u32>>().chunks(100) {
        join_all(numbers.iter().map(|number| part(&world, &upload, *number, b"x"))).await;
    }
    let listed = world.store.list_parts(&upload).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(listed.iter().map(|part| part.number).eq(1..=1001));
    world.store.abort(&upload).await.unwrap_or_else(|e| panic!("{e}"));
}

pub(crate) async fn uploads_under_way_are_listed(world: World) {
    let ids = ["jobs/a b&c", "jobs/a b&c", "jobs/\u{e9}\u{2028}", "job"].map(|key| world.id(key));
    let mut begun = Vec::new();
    for id in &ids {
        let upload = world.store.begin(id, &PutOptions::default()).await;
        begun.push(upload.unwrap_or_else(|e| panic!("{e}")));
    }
    let prefix = world.id("jobs/").key;
    let names = |uploads: &[Multipart]| {
        let below = uploads.iter().filter(|upload| upload.id.key.starts_with(&prefix));
        let mut names: Vec<_> = below.map(|upload| (upload.id.clone(), upload.upload_id.clone())).collect();
        names.sort();
        names
    };
    let list = || async {
        let found = world.store.list_uploads(&ids[0].bucket, &prefix).await;
        let found = found.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(names(&found).len(), found.len(), "others are left out");
        names(&found)
    };
    assert_eq!(list().await, names(&begun));
    let gone = begun.remove(1);
    world.store.abort(&gone).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(list().await, names(&begun));
    for upload in &begun {
        world.store.abort(upload).await.unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(list().await, []);
}

pub(crate) async fn an_aborted_upload_is_gone(world: World) {
    let upload = begin(&world, &PutOptions::default()).await;
    part(&world, &upload, 1, b"bytes").await;
    world.store.abort(&upload).await.unwrap_or_else(|e| panic!("{e}"));
    let late = world.store.part(&upload, 2, Body::from("x"), crc32c(b"x")).await.expect_err("it is gone");
    assert!(late.is_not_found(), "{late}");
    assert!(world.store.head(&world.id("object"), None).await.is_err_and(|e| e.is_not_found()));
}

pub(crate) async fn a_part_with_a_wrong_checksum_is_refused(world: World) {
    let upload = begin(&world, &PutOptions::default()).await;
    let refused = world.store.part(&upload, 1, Body::from("bytes"), crc32c(b"bytes") ^ 1).await;
    let error = refused.expect_err("refused");
    assert!(error.is_integrity(), "{error}");
    world.store.abort(&upload).await.unwrap_or_else(|e| panic!("{e}"));
}

pub(crate) async fn a_wrong_checksum_of_the_whole_is_an_integrity_error(world: World) {
    let upload = begin(&world, &PutOptions::default()).await;
    if upload.checksums != PartChecksums::FullObject {
        world.store.abort(&upload).await.unwrap_or_else(|e| panic!("{e}"));
        return;
    }
    let parts = [part(&world, &upload, 1, b"bytes").await];
    let wrong = Checksums::crc32c(crc32c(b"bytes") ^ 1);
    let error =
        world.store.complete(&upload, &parts, &wrong, &Condition::None).await.expect_err("they differ");
    assert!(error.is_integrity(), "{error}");
}

pub(crate) async fn completing_takes_a_precondition(world: World) {
    world.put("object", b"old").await;
    let upload = begin(&world, &PutOptions::default()).await;
    let parts = [part(&world, &upload, 1, b"new").await];
    let refused = world.store.complete(&upload, &parts, &sums(b"new"), &Condition::Absent).await;
    let error = refused.expect_err("there is one");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(world.get("object").await.body, "old");
}

pub(crate) async fn a_part_may_be_copied_from_an_object(world: World) {
    let source = noise(PART + 1000);
    let version = world.put("source", &source).await.version;
    let upload = begin(&world, &PutOptions::default()).await;
    let from = world.id("source");
    let copied = world.store.part_copy(&upload, 1, &from, version.as_ref(), 500..(PART as u64 + 500)).await;
    let copied = copied.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(copied.size, PART as u64);
    let last = part(&world, &upload, 2, b"the end").await;
    let whole = [&source[500..PART + 500], b"the end"].concat();
    let meta = world.store.complete(&upload, &[copied, last], &sums(&whole), &Condition::None).await;
    assert_eq!(meta.unwrap_or_else(|e| panic!("{e}")).size, whole.len() as u64);
    assert!(world.get("object").await.body == whole);
}

pub(crate) async fn a_server_without_multipart_uploads_is_recognised(world: World) {
    for _ in 0..2 {
        let error =
            world.store.begin(&world.id("object"), &PutOptions::default()).await.expect_err("it has none");
        assert!(error.is_unsupported(), "{error}");
        assert!(!world.store.supports_multipart());
    }
}
