//! Promises about copies inside a store.

use laneway_store::{Condition, ErrorKind, PutOptions};

use crate::world::{World, crc32c, noise};

fn described() -> PutOptions {
    let mut options = PutOptions::default().content_type("text/x-first");
    options.metadata.insert("k".into(), "v".into());
    options
}

pub(crate) async fn a_copy_keeps_bytes_and_description(world: World) {
    let bytes = noise(100_000);
    world.try_put("from", &bytes, &described()).await.unwrap_or_else(|e| panic!("{e}"));
    let (from, to) = (world.id("from"), world.id("to /+%é"));
    let none = Condition::None;
    let copied =
        world.store.copy(&from, &to, &PutOptions::default(), &none).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((copied.size, copied.checksums.crc32c), (100_000, Some(crc32c(&bytes))));
    let got = world.store.get(laneway_store::Get::new(&to)).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(got.body == bytes);
    assert_eq!(got.meta.content_type.as_deref(), Some("text/x-first"));
    // GCS returns user metadata only with the whole resource.
    let meta = world.store.head(&to, None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(meta.metadata, Some(described().metadata));
    assert_eq!(got.meta.version, copied.version);
}

pub(crate) async fn a_copy_may_be_described_anew(world: World) {
    world.try_put("from", b"bytes", &described()).await.unwrap_or_else(|e| panic!("{e}"));
    let options = PutOptions::default().content_type("text/x-second");
    let (from, to) = (world.id("from"), world.id("to"));
    world.store.copy(&from, &to, &options, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
    let got = world.get("to").await;
    assert_eq!(got.meta.content_type, options.content_type);
    let meta = world.store.head(&to, None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(meta.metadata, Some(described().metadata), "other fields are kept");
}

pub(crate) async fn a_copy_of_what_is_missing_is_not_found(world: World) {
    let (from, to) = (world.id("missing"), world.id("to"));
    let copied = world.store.copy(&from, &to, &PutOptions::default(), &Condition::None).await;
    let error = copied.expect_err("missing");
    assert!(error.is_not_found(), "{error}");
}

pub(crate) async fn a_copy_is_bound_to_its_sources_version(world: World) {
    let first = world.put("from", b"first").await.version.expect("a version");
    let second = world.put("from", b"second").await.version.expect("a version");
    let (from, to) = (world.id("from"), world.id("to"));
    let options = PutOptions::default();
    let refused = world.store.copy(&from, &to, &options, &Condition::Matches(first)).await;
    // S3 takes a condition. On GCS the copy names a generation that no longer exists.
    let error = refused.expect_err("it was replaced");
    assert!(error.is_precondition() || error.is_not_found(), "{error}");
    world
        .store
        .copy(&from, &to, &options, &Condition::Matches(second))
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(world.get("to").await.body, "second");
}

pub(crate) async fn a_copy_spares_what_is_there(world: World) {
    world.put("from", b"from").await;
    world.put("to", b"to").await;
    let options = PutOptions::default().condition(Condition::Absent);
    let (from, to) = (world.id("from"), world.id("to"));
    let error = world.store.copy(&from, &to, &options, &Condition::None).await.expect_err("there is one");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(world.get("to").await.body, "to");
}
