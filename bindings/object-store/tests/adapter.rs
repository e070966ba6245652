//! Tests that object_store's own suite lacks.
#![cfg(feature = "object_store_0_14")]

#[path = "stage/clients.rs"]
mod clients;

use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use laneway_object_store::v0_14::LanewayStore;
use laneway_server::{Config, Server};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, GetOptions, GetRange, MultipartUpload as _, ObjectStore,
    ObjectStoreExt as _, PutMode, PutOptions, TagSet, UpdateVersion,
};
use object_store_0_14 as object_store;

const URLS: [&str; 3] = ["s3://bucket/", "gs://bucket/", "az://bucket/"];

/// Runs a scenario in all dialects, each on its own server.
fn on_all(scenario: impl AsyncFn(LanewayStore, &Server)) {
    for url in URLS {
        let server = Server::start(Config::default()).expect("a server");
        server.create_bucket("bucket").expect("a bucket");
        let client = clients::client(&server.url());
        let store = LanewayStore::new(client.bucket(url).expect("a bucket"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(scenario(store, &server));
    }
}

async fn bytes(store: &LanewayStore, path: &Path, options: GetOptions) -> object_store::Result<Vec<u8>> {
    Ok(store.get_opts(path, options).await?.bytes().await?.to_vec())
}

#[test]
fn an_error_has_its_kind_and_the_librarys_error_as_its_source() {
    on_all(async |store, _| {
        let path = Path::from("nothing");
        let error = store.get(&path).await.expect_err("nothing is there");
        assert!(matches!(&error, Error::NotFound { path, .. } if path == "nothing"), "{error}");
        let source = std::error::Error::source(&error).expect("a source");
        let ours = source.downcast_ref::<laneway::Error>().expect("the library's");
        assert!(ours.url().is_some_and(|url| url.ends_with("://bucket/nothing")), "{ours}");

        store.put(&path, "a".into()).await.expect("written");
        let beyond = store.get_range(&path, 5..6).await.expect_err("beyond the end");
        assert!(matches!(beyond, Error::Generic { store: "Laneway", .. }), "{beyond}");
        let create = store.put_opts(&path, "b".into(), PutMode::Create.into()).await.expect_err("it exists");
        assert!(matches!(create, Error::AlreadyExists { .. }), "{create}");
        let update = PutMode::Update(UpdateVersion { e_tag: None, version: None });
        let nameless = store.put_opts(&path, "b".into(), update.into()).await.expect_err("no state is named");
        assert!(nameless.to_string().contains("ETag"), "{nameless}");
    });
}

#[test]
fn conditions_that_no_request_can_say_are_looked_up_and_hold_the_read() {
    on_all(async |store, _| {
        let path = Path::from("k");
        let e_tag = store.put(&path, "one".into()).await.expect("written").e_tag.expect("an ETag");
        let matching = |list: &str| GetOptions { if_match: Some(list.to_owned()), ..GetOptions::default() };
        let none = |list: &str| GetOptions { if_none_match: Some(list.to_owned()), ..GetOptions::default() };
        for list in ["*", &format!("x, {e_tag}"), &format!("\"{e_tag}\"")] {
            assert_eq!(bytes(&store, &path, matching(list)).await.expect(list), b"one");
            let same = bytes(&store, &path, none(list)).await.expect_err(list);
            assert!(matches!(same, Error::NotModified { .. }), "{list}: {same}");
        }
        for list in ["x", "x, y"] {
            let other = bytes(&store, &path, matching(list)).await.expect_err(list);
            assert!(matches!(other, Error::Precondition { .. }), "{list}: {other}");
            assert_eq!(bytes(&store, &path, none(list)).await.expect(list), b"one");
        }
        let epoch: DateTime<Utc> = std::time::SystemTime::UNIX_EPOCH.into();
        let unmodified = GetOptions { if_unmodified_since: Some(epoch), ..GetOptions::default() };
        let newer = bytes(&store, &path, unmodified.clone()).await.expect_err("it is newer");
        assert!(matches!(newer, Error::Precondition { .. }), "{newer}");
        // An ETag has precedence over a time.
        let both = GetOptions { if_match: Some(e_tag), ..unmodified };
        assert_eq!(bytes(&store, &path, both).await.expect("it is that one"), b"one");
    });
}

#[test]
fn a_head_tells_attributes_and_a_range_its_place() {
    on_all(async |store, _| {
        let path = Path::from("k");
        let attributes = Attributes::from_iter([
            (Attribute::ContentType, "text/x-a"),
            (Attribute::Metadata("color".into()), "green"),
        ]);
        store.put_opts(&path, "0123456789".into(), attributes.clone().into()).await.expect("written");
        let head = GetOptions { head: true, ..GetOptions::default() };
        let answer = store.get_opts(&path, head).await.expect("a head");
        assert_eq!((answer.attributes, answer.meta.size, answer.range), (attributes, 10, 0..10));
        let last = GetOptions { range: Some(GetRange::Suffix(4)), ..GetOptions::default() };
        let part = store.get_opts(&path, last).await.expect("a range");
        assert_eq!((part.range.clone(), part.meta.size), (6..10, 10));
        assert_eq!(part.bytes().await.expect("bytes"), "6789");
    });
}

#[test]
fn errors_among_locations_to_delete_keep_their_places() {
    on_all(async |store, _| {
        let keys: Vec<_> = (0..5).map(|n| Path::from(format!("k{n}"))).collect();
        for key in &keys {
            store.put(key, "".into()).await.expect("written");
        }
        let odd = || Err(Error::NotImplemented { operation: "x".to_owned(), implementer: "y".to_owned() });
        let mut given: Vec<_> = keys.iter().cloned().map(Ok).collect();
        given.insert(2, odd());
        given.push(odd());
        given.insert(0, odd());
        let outcomes: Vec<_> = store.delete_stream(stream::iter(given).boxed()).collect().await;
        let shape: Vec<_> = outcomes.iter().map(|one| one.as_ref().ok().map(Path::as_ref)).collect();
        assert_eq!(shape, [None, Some("k0"), Some("k1"), None, Some("k2"), Some("k3"), Some("k4"), None]);
        assert!(store.list(None).try_collect::<Vec<_>>().await.expect("a listing").is_empty());
    });
}

#[test]
fn keys_that_no_location_can_say_are_errors_and_folder_marks_are_left_out() {
    on_all(async |store, server| {
        server.store().put("bucket", "a/", b"").expect("stored");
        server.store().put("bucket", "a/k", b"").expect("stored");
        let listed: Vec<_> = store.list(None).try_collect().await.expect("a listing");
        assert_eq!(listed.iter().map(|meta| meta.location.as_ref()).collect::<Vec<_>>(), ["a/k"]);
        let directory = store.list_with_delimiter(Some(&Path::from("a"))).await.expect("a listing");
        assert_eq!((directory.objects.len(), directory.common_prefixes.len()), (1, 0));
        server.store().put("bucket", "a//b", b"").expect("stored");
        let odd = store.list(None).try_collect::<Vec<_>>().await.expect_err("no location");
        assert!(matches!(odd, Error::InvalidPath { .. }), "{odd}");
    });
}

#[test]
fn tags_go_where_the_store_has_some() {
    on_all(async |store, _| {
        let mut tags = TagSet::default();
        // Azure permits few characters in tags.
        tags.push("team", "a b=c+d");
        let put =
            store.put_opts(&Path::from("k"), "".into(), PutOptions { tags, ..PutOptions::default() }).await;
        match store.bucket().provider() {
            laneway::Provider::S3 | laneway::Provider::Azure => {
                put.expect("written");
                assert_eq!(store.bucket().head("k").await.expect("a head").tags, Some(1));
            }
            _ => {
                let error = put.expect_err("GCS has none");
                assert!(matches!(error, Error::NotSupported { .. }), "{error}");
            }
        }
    });
}

#[test]
fn an_upload_makes_no_object_after_a_lost_part_or_an_abort() {
    on_all(async |store, _| {
        let path = Path::from("k");
        let mut upload = store.put_multipart(&path).await.expect("an upload");
        let (first, second) = (upload.put_part("a".into()), upload.put_part("b".into()));
        // The program may await the parts in any order: awaiting the second part writes the first one too.
        second.await.expect("written");
        first.await.expect("written");
        drop(upload.put_part("c".into()));
        upload.complete().await.expect("an object");
        let again = upload.complete().await.expect_err("it has ended");
        assert!(again.to_string().contains("has ended"), "{again}");
        assert_eq!(bytes(&store, &path, GetOptions::default()).await.expect("bytes"), b"abc");

        let other = Path::from("other");
        let mut upload = store.put_multipart(&other).await.expect("an upload");
        upload.put_part(vec![7; 20 << 20].into()).await.expect("written");
        upload.abort().await.expect("given up");
        assert!(matches!(store.head(&other).await, Err(Error::NotFound { .. })));
    });
}
