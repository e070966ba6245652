//! Promises about GCS's resumable sessions.

use bytes::Bytes;
use laneway_store::{Appended, Body, Condition, Error, ObjectMeta, PutOptions, Resumable};

use crate::world::{World, crc32c, noise, sums};

const PART: usize = 512 << 10;

async fn begin(world: &World, bytes: &[u8], options: &PutOptions) -> Resumable {
    let begun = world
        .store
        .resumable_begin(&world.id("object"), Some(bytes.len() as u64), options, Some(&sums(bytes)))
        .await;
    begun.unwrap_or_else(|e| panic!("{e}"))
}

async fn append(world: &World, session: &Resumable, offset: usize, bytes: &[u8], last: bool) -> Appended {
    let body = Body::from(Bytes::copy_from_slice(bytes));
    let appended = world.store.resumable_append(session, offset as u64, body, last).await;
    appended.unwrap_or_else(|e| panic!("{e}"))
}

fn finished(appended: Appended) -> ObjectMeta {
    match appended {
        Appended::Finished(meta) => *meta,
        stands => panic!("the session stands at {stands:?}"),
    }
}

pub(crate) async fn parts_become_one_object(world: World) {
    let bytes = noise(2 * PART + 7);
    let mut options = PutOptions::default().content_type("text/x-session");
    options.metadata.insert("k".into(), "v".into());
    let session = begin(&world, &bytes, &options).await;
    assert!(!format!("{session:?}").contains("upload_id"), "the URL is a secret");
    let stands = append(&world, &session, 0, &bytes[..PART], false).await;
    assert_eq!(stands, Appended::Continue { next_offset: PART as u64 });
    append(&world, &session, PART, &bytes[PART..2 * PART], false).await;
    let meta = finished(append(&world, &session, 2 * PART, &bytes[2 * PART..], true).await);
    assert_eq!((meta.size, meta.checksums.crc32c), (bytes.len() as u64, Some(crc32c(&bytes))));
    let got = world.get("object").await;
    assert!(got.body == bytes);
    assert_eq!(got.meta.content_type, options.content_type);
    let described = world.store.head(&world.id("object"), None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(described.metadata, Some(options.metadata));
}

pub(crate) async fn an_empty_object_is_a_session_too(world: World) {
    let session = begin(&world, b"", &PutOptions::default()).await;
    assert_eq!(finished(append(&world, &session, 0, b"", true).await).size, 0);
}

pub(crate) async fn a_session_tells_where_it_stands(world: World) {
    let bytes = noise(PART + 1);
    let session = begin(&world, &bytes, &PutOptions::default()).await;
    let status = || async { world.store.resumable_status(&session).await.unwrap_or_else(|e| panic!("{e}")) };
    assert_eq!(status().await, Appended::Continue { next_offset: 0 });
    append(&world, &session, 0, &bytes[..PART], false).await;
    assert_eq!(status().await, Appended::Continue { next_offset: PART as u64 });
    append(&world, &session, PART, &bytes[PART..], true).await;
    assert_eq!(finished(status().await).size, bytes.len() as u64);
}

pub(crate) async fn a_session_takes_a_precondition(world: World) {
    world.put("object", b"old").await;
    let options = PutOptions::default().condition(Condition::Absent);
    let begun =
        world.store.resumable_begin(&world.id("object"), Some(3), &options, Some(&sums(b"new"))).await;
    let error = match begun {
        Err(error) => error,
        Ok(session) => world
            .store
            .resumable_append(&session, 0, Body::from("new"), true)
            .await
            .expect_err("there is one"),
    };
    assert!(error.is_precondition(), "{error}");
    assert_eq!(world.get("object").await.body, "old");
}

pub(crate) async fn a_cancelled_session_is_gone(world: World) {
    let session = begin(&world, b"bytes", &PutOptions::default()).await;
    world.store.resumable_cancel(&session).await.unwrap_or_else(|e| panic!("{e}"));
    let late = world.store.resumable_append(&session, 0, Body::from("bytes"), true).await;
    assert!(late.as_ref().is_err_and(Error::is_not_found), "{late:?}");
    assert!(world.store.head(&world.id("object"), None).await.is_err_and(|e| e.is_not_found()));
}
