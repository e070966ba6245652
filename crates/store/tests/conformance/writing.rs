//! Promises about writing an object.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use laneway_store::{Body, Checksums, Condition, ErrorKind, PutOptions, Version};

use crate::world::{World, crc32c, noise, sums};

pub(crate) async fn a_put_object_comes_back_byte_for_byte(world: World) {
    for len in [0, 1, 4700, (1 << 20) + 1] {
        let bytes = noise(len);
        let meta = world.put("object", &bytes).await;
        assert_eq!(meta.size, len as u64);
        let got = world.get("object").await;
        assert!(got.body == bytes, "{len} bytes came back changed");
        assert_eq!(got.range, 0..len as u64);
    }
}

pub(crate) async fn a_put_reports_size_version_and_checksum(world: World) {
    let bytes = noise(1000);
    let first = world.put("object", &bytes).await;
    assert_eq!(first.size, 1000);
    assert_eq!(first.checksums.crc32c, Some(crc32c(&bytes)), "the store's own checksum");
    let second = world.put("object", &noise(1001)).await;
    assert!(first.version.is_some());
    assert_ne!(first.version, second.version);
}

pub(crate) async fn what_describes_an_object_is_kept(world: World) {
    let mut options = PutOptions::default()
        .content_type("text/x-laneway; charset=utf-8")
        .content_disposition("attachment; filename=\"a b.txt\"");
    options.metadata.insert("colour".into(), "dark  green".into());
    options.metadata.insert("n".into(), "1".into());
    world.try_put("object", b"bytes", &options).await.unwrap_or_else(|e| panic!("{e}"));
    let head = world.store.head(&world.id("object"), None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(head.metadata.as_ref(), Some(&options.metadata));
    let got = world.get("object").await.meta;
    // If an answer leaves the metadata out, the object may still have some.
    let of_answer = world.store.capabilities().get_tells_metadata.then_some(options.metadata);
    assert_eq!(got.metadata, of_answer);
    for meta in [head, got] {
        assert_eq!(meta.content_type, options.content_type);
        assert_eq!(meta.content_disposition, options.content_disposition);
    }
}

pub(crate) async fn cache_control_is_kept(world: World) {
    let options = PutOptions::default().cache_control("no-cache, max-age=7");
    world.try_put("object", b"bytes", &options).await.unwrap_or_else(|e| panic!("{e}"));
    let head = world.store.head(&world.id("object"), None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(head.cache_control, options.cache_control);
    // The `Cache-Control` that GCS sends with the bytes describes the answer and not the object.
    let of_answer = world.store.capabilities().get_tells_metadata.then_some(options.cache_control).flatten();
    assert_eq!(world.get("object").await.meta.cache_control, of_answer);
}

pub(crate) async fn content_language_is_kept(world: World) {
    let options = PutOptions::default().content_language("de");
    world.try_put("object", b"bytes", &options).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(world.get("object").await.meta.content_language, options.content_language);
}

pub(crate) async fn a_body_may_be_a_range_of_a_file(world: World) {
    let bytes = noise(300_000);
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&bytes).expect("written");
    let file: Arc<File> = Arc::new(file);
    let body = Body::file(file, 1000, 250_000);
    let id = world.id("object");
    let part = &bytes[1000..251_000];
    world.store.put(&id, body, &sums(part), &PutOptions::default()).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(world.get("object").await.body == part);
}

pub(crate) async fn an_object_with_a_wrong_checksum_is_refused(world: World) {
    let wrong = Checksums::crc32c(crc32c(b"bytes") ^ 1);
    let id = world.id("object");
    let error =
        world.store.put(&id, Body::from("bytes"), &wrong, &PutOptions::default()).await.expect_err("refused");
    assert!(error.is_integrity(), "{error}");
    let gone = world.store.head(&id, None).await.expect_err("nothing is stored");
    assert!(gone.is_not_found(), "{gone}");
}

pub(crate) async fn absent_lets_only_the_first_write_through(world: World) {
    let options = PutOptions::default().condition(Condition::Absent);
    world.try_put("object", b"first", &options).await.unwrap_or_else(|e| panic!("{e}"));
    let error = world.try_put("object", b"second", &options).await.expect_err("there is one");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(world.get("object").await.body, "first");
}

pub(crate) async fn matches_lets_only_the_known_version_be_replaced(world: World) {
    let first = world.put("object", b"first").await.version.expect("a version");
    let known = |version: &Version| PutOptions::default().condition(Condition::Matches(version.clone()));
    world.try_put("object", b"second", &known(&first)).await.unwrap_or_else(|e| panic!("{e}"));
    let error = world.try_put("object", b"third", &known(&first)).await.expect_err("it has changed");
    assert_eq!(error.kind(), ErrorKind::Precondition, "{error}");
    assert_eq!(world.get("object").await.body, "second");
}

pub(crate) async fn two_hundred_small_objects_at_once(world: World) {
    let puts = (0..200).map(|n| {
        let world = world.clone();
        async move { world.put(&format!("{n:03}"), format!("object {n}").as_bytes()).await }
    });
    assert_eq!(stream::iter(puts).buffer_unordered(200).count().await, 200);
    let gets = (0..200).map(|n| {
        let world = world.clone();
        async move { assert_eq!(world.get(&format!("{n:03}")).await.body, format!("object {n}").as_bytes()) }
    });
    assert_eq!(stream::iter(gets).buffer_unordered(200).count().await, 200);
}
