//! Promises about reading an object.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::try_join_all;
use laneway_lanes::Protocol;
use laneway_store::{
    ErrorKind, Get, GetRange, GetSink, ObjectMeta, PutOptions, Route, SinkError, Unless, Version,
};
use laneway_testkit::Wire;

use crate::world::{Place, World, crc32c, noise};

/// A sink that keeps all it receives.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    begun: Vec<(u64, Range<u64>)>,
    bytes: Vec<u8>,
}

struct Keeper {
    kept: Kept,
    stop_after: Option<usize>,
    fail_after: Option<usize>,
}

impl GetSink for Keeper {
    fn begin(&mut self, meta: &ObjectMeta, range: Range<u64>) -> Result<Route, SinkError> {
        self.kept.0.lock().expect("a lock").begun.push((meta.size, range));
        Ok(Route::Stay)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        let mut seen = self.kept.0.lock().expect("a lock");
        seen.bytes.extend_from_slice(bytes);
        if self.fail_after.is_some_and(|limit| seen.bytes.len() >= limit) {
            return Err(std::io::Error::new(std::io::ErrorKind::StorageFull, "no room").into());
        }
        let stop = self.stop_after.is_some_and(|limit| seen.bytes.len() >= limit);
        Ok(if stop { Route::Stop } else { Route::Stay })
    }
}

impl Kept {
    fn keeper(
        &self,
        stop_after: Option<usize>,
        fail_after: Option<usize>,
    ) -> impl Fn() -> Box<dyn GetSink> + Send + Sync + use<> {
        let kept = self.clone();
        move || Box::new(Keeper { kept: kept.clone(), stop_after, fail_after })
    }
}

pub(crate) async fn head_says_what_put_said(world: World) {
    let put = world.put("object", &noise(777)).await;
    let head = world.store.head(&world.id("object"), None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((head.size, &head.version), (777, &put.version));
    assert_eq!(head.checksums.crc32c, put.checksums.crc32c);
    assert_eq!(head.id, world.id("object"));
    assert!(head.updated.is_some());
}

pub(crate) async fn a_whole_get_brings_metadata_and_checksum(world: World) {
    let bytes = noise(5000);
    let put = world.put("object", &bytes).await;
    let got = world.get("object").await;
    assert_eq!((got.meta.size, &got.meta.version), (5000, &put.version));
    assert_eq!(got.meta.checksums.crc32c, Some(crc32c(&bytes)));
    assert_eq!(got.attempts, 1);
}

pub(crate) async fn a_range_brings_its_bytes_and_the_size_of_the_whole(world: World) {
    let bytes = noise(5000);
    let put = world.put("object", &bytes).await;
    let id = world.id("object");
    for range in [0..1, 0..5000, 1..4999, 4999..5000, 1000..2000] {
        let get = Get { range: Some(range.clone().into()), version: put.version.as_ref(), ..Get::new(&id) };
        let got = world.store.get(get).await.unwrap_or_else(|e| panic!("{range:?}: {e}"));
        assert_eq!((got.meta.size, &got.range), (5000, &range));
        assert!(got.body == bytes[range.start as usize..range.end as usize], "{range:?}");
        assert_eq!(got.meta.version, put.version);
    }
}

pub(crate) async fn a_range_beyond_the_end_is_cut_there(world: World) {
    let bytes = noise(100);
    world.put("object", &bytes).await;
    let id = world.id("object");
    let got = world
        .store
        .get(Get { range: Some((90..1000).into()), ..Get::new(&id) })
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(got.range, 90..100);
    assert!(got.body == bytes[90..]);
}

pub(crate) async fn a_range_that_starts_at_the_end_is_invalid(world: World) {
    world.put("object", &noise(100)).await;
    let id = world.id("object");
    let error = world
        .store
        .get(Get { range: Some((100..200).into()), ..Get::new(&id) })
        .await
        .expect_err("no such bytes");
    assert_eq!(error.kind(), ErrorKind::InvalidRange, "{error}");
}

pub(crate) async fn a_range_of_an_empty_object_is_its_emptiness(world: World) {
    world.put("object", b"").await;
    let id = world.id("object");
    let kept = Kept::default();
    let maker = kept.keeper(None, None);
    let get = Get { range: Some((0..1000).into()), sink: Some(&maker), ..Get::new(&id) };
    let got = world.store.get(get).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((got.range, got.sunk, got.meta.size), (0..0, 0, 0));
    assert_eq!(kept.0.lock().expect("a lock").begun.last(), Some(&(0, 0..0)));
    let error = world
        .store
        .get(Get { range: Some((1..2).into()), ..Get::new(&id) })
        .await
        .expect_err("no such bytes");
    assert_eq!(error.kind(), ErrorKind::InvalidRange, "{error}");
}

pub(crate) async fn the_end_of_an_object_is_read_without_knowing_its_size(world: World) {
    let bytes = noise(5000);
    let put = world.put("object", &bytes).await;
    let id = world.id("object");
    for (range, came) in [
        (GetRange::Last(1), 4999..5000),
        (GetRange::Last(1000), 4000..5000),
        (GetRange::Last(5000), 0..5000),
        (GetRange::Last(9000), 0..5000),
        (GetRange::From(4990), 4990..5000),
    ] {
        let kept = Kept::default();
        let maker = kept.keeper(None, None);
        for sink in [None, Some(&maker as _)] {
            let get =
                Get { range: Some(range.clone()), version: put.version.as_ref(), sink, ..Get::new(&id) };
            let got = world.store.get(get).await.unwrap_or_else(|e| panic!("{range:?}: {e}"));
            assert_eq!((got.meta.size, &got.range), (5000, &came), "{range:?}");
            assert_eq!(got.meta.version, put.version);
            let expected = &bytes[came.start as usize..came.end as usize];
            let seen = kept.0.lock().expect("a lock");
            assert!(if sink.is_some() { seen.bytes == expected } else { got.body == expected }, "{range:?}");
        }
        assert_eq!(kept.0.lock().expect("a lock").begun, [(5000, came)]);
    }
    let nothing = world.store.get(Get { range: Some(GetRange::Last(0)), ..Get::new(&id) }).await;
    assert_eq!(nothing.expect_err("no byte").kind(), ErrorKind::InvalidRange);
}

pub(crate) async fn the_end_of_an_empty_object_is_its_emptiness(world: World) {
    let put = world.put("object", b"").await;
    let id = world.id("object");
    let kept = Kept::default();
    let maker = kept.keeper(None, None);
    for range in [GetRange::Last(7), GetRange::From(0)] {
        let get =
            Get { range: Some(range), sink: Some(&maker), version: put.version.as_ref(), ..Get::new(&id) };
        let got = world.store.get(get).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((got.range, got.sunk, got.meta.size), (0..0, 0, 0));
        assert_eq!(kept.0.lock().expect("a lock").begun.last(), Some(&(0, 0..0)));
    }
}

pub(crate) async fn the_end_of_a_replaced_version_is_a_failed_precondition(world: World) {
    let version = world.put("object", b"first").await.version;
    world.put("object", b"second").await;
    let id = world.id("object");
    let get = Get { range: Some(GetRange::Last(3)), version: version.as_ref(), ..Get::new(&id) };
    let error = world.store.get(get).await.expect_err("it has changed");
    assert!(error.is_precondition(), "{error}");
}

pub(crate) async fn only_what_the_reader_does_not_have_is_sent(world: World) {
    let first = world.put("object", b"first").await.version.expect("a version");
    let id = world.id("object");
    let meta = world.store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
    let etag = Version::ETag(meta.etag.clone().expect("an entity tag"));
    let updated = meta.updated.expect("a time");
    let known = [Unless::Version(first), Unless::Version(etag), Unless::ModifiedSince(updated)];
    for unless in &known {
        let error = world.store.head_unless(&id, None, unless).await.expect_err("nothing new");
        assert!(error.is_not_modified(), "{unless:?}: {error}");
        for range in [None, Some(GetRange::Last(2))] {
            let get = Get { range, unless: Some(unless), ..Get::new(&id) };
            let error = world.store.get(get).await.expect_err("nothing new");
            assert!(error.is_not_modified() && !error.is_retryable(), "{unless:?}: {error}");
            assert!(error.attempts() <= 1, "{error}");
        }
    }
    let before = Unless::ModifiedSince(updated - Duration::from_secs(1));
    let second = world.put("object", b"second").await;
    for unless in [&known[0], &known[1], &before] {
        let meta = world.store.head_unless(&id, None, unless).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(meta.version, second.version);
        let get = Get { unless: Some(unless), ..Get::new(&id) };
        assert_eq!(world.store.get(get).await.unwrap_or_else(|e| panic!("{e}")).body, "second");
    }
}

pub(crate) async fn gcs_tells_the_whole_checksum_with_a_range(world: World) {
    let bytes = noise(5000);
    world.put("object", &bytes).await;
    let id = world.id("object");
    let got = world
        .store
        .get(Get { range: Some((7..9).into()), ..Get::new(&id) })
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(got.meta.checksums.crc32c, Some(crc32c(&bytes)));
}

pub(crate) async fn a_sink_sees_the_head_and_then_the_bytes(world: World) {
    let bytes = noise(300_000);
    world.put("object", &bytes).await;
    let id = world.id("object");
    let kept = Kept::default();
    let maker = kept.keeper(None, None);
    let get = Get { range: Some((1000..200_000).into()), sink: Some(&maker), ..Get::new(&id) };
    let got = world.store.get(get).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((got.sunk, got.stopped, got.body.len()), (199_000, false, 0));
    let seen = kept.0.lock().expect("a lock");
    assert_eq!(seen.begun, [(300_000, 1000..200_000)]);
    assert!(seen.bytes == bytes[1000..200_000]);
}

pub(crate) async fn a_sink_may_stop_the_body(world: World) {
    world.put("object", &noise(3 << 20)).await;
    let id = world.id("object");
    let kept = Kept::default();
    let maker = kept.keeper(Some(1000), None);
    let got =
        world.store.get(Get { sink: Some(&maker), ..Get::new(&id) }).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(got.stopped && got.sunk >= 1000 && got.sunk < 3 << 20, "{} bytes", got.sunk);
    assert_eq!(got.range, 0..3 << 20);
}

pub(crate) async fn a_sinks_error_comes_back_as_it_was(world: World) {
    world.put("object", &noise(1 << 20)).await;
    let id = world.id("object");
    let maker = Kept::default().keeper(None, Some(1000));
    let error =
        world.store.get(Get { sink: Some(&maker), ..Get::new(&id) }).await.expect_err("the sink failed");
    assert_eq!(
        (error.kind(), error.is_retryable(), error.attempts()),
        (ErrorKind::Sink, false, 1),
        "{error}"
    );
    let source = error.into_sink_error().expect("the sink's error");
    let io = source.downcast_ref::<std::io::Error>().expect("an I/O error");
    assert_eq!(io.kind(), std::io::ErrorKind::StorageFull);
}

pub(crate) async fn a_pinned_version_is_read_while_it_is_there(world: World) {
    let version = world.put("object", b"bytes").await.version.expect("a version");
    let id = world.id("object");
    let get = Get { version: Some(&version), ..Get::new(&id) };
    assert_eq!(world.store.get(get).await.unwrap_or_else(|e| panic!("{e}")).body, "bytes");
    assert!(world.store.head(&id, Some(&version)).await.is_ok());
}

pub(crate) async fn a_replaced_version_is_a_failed_precondition(world: World) {
    let version = world.put("object", b"first").await.version.expect("a version");
    world.put("object", b"second").await;
    let id = world.id("object");
    let error =
        world.store.get(Get { version: Some(&version), ..Get::new(&id) }).await.expect_err("it has changed");
    assert!(error.is_precondition(), "{error}");
    let range = Get { version: Some(&version), range: Some((0..2).into()), ..Get::new(&id) };
    let error = world.store.get(range).await.expect_err("it has changed");
    assert!(error.is_precondition(), "{error}");
    let error = world.store.head(&id, Some(&version)).await.expect_err("it has changed");
    assert!(error.is_precondition(), "{error}");
}

pub(crate) async fn what_is_missing_is_not_found(world: World) {
    let id = world.id("missing");
    for error in [
        world.store.head(&id, None).await.expect_err("missing"),
        world.store.get(Get::new(&id)).await.expect_err("missing"),
        world.store.get(Get { range: Some((0..1).into()), ..Get::new(&id) }).await.expect_err("missing"),
    ] {
        assert!(error.is_not_found() && !error.is_retryable(), "{error}");
        assert_eq!(error.attempts(), 1);
        assert!(error.to_string().contains(&id.key), "{error}");
    }
}

pub(crate) async fn a_large_object_is_read_in_ranges_at_once(world: World) {
    for len in [(8 << 20) - 1, 8 << 20, (8 << 20) + 1] {
        let bytes = noise(len);
        let version = world.put("object", &bytes).await.version;
        let id = world.id("object");
        let ranges = (0..len as u64).step_by(1 << 20).map(|start| start..(start + (1 << 20)).min(len as u64));
        let slices = ranges.map(|range| {
            let expected = Some(range.end - range.start);
            world.store.get(Get {
                range: Some(range.into()),
                version: version.as_ref(),
                expected,
                ..Get::new(&id)
            })
        });
        let slices = try_join_all(slices).await.unwrap_or_else(|e| panic!("{e}"));
        let whole: Vec<u8> = slices.iter().flat_map(|slice| slice.body.iter().copied()).collect();
        assert!(whole == bytes, "{len} bytes");
    }
}

pub(crate) async fn an_object_stored_as_gzip_comes_back_as_stored(world: World) {
    // The output of `printf laneway | gzip -n`.
    let stored = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xcb, 0x49, 0xcc, 0x4b, 0x2d, 0x4f, 0xac,
        0x04, 0x00, 0xaf, 0x09, 0xe2, 0xc9, 0x07, 0x00, 0x00, 0x00,
    ];
    let options = PutOptions::default().content_encoding("gzip").content_type("text/plain");
    world.try_put("object", &stored, &options).await.unwrap_or_else(|e| panic!("{e}"));
    let got = world.get("object").await;
    assert_eq!(got.body[..], stored[..]);
    assert_eq!(got.meta.size, stored.len() as u64);
    assert_eq!(got.meta.content_encoding.as_deref(), Some("gzip"));
    assert_eq!(got.meta.checksums.crc32c, Some(crc32c(&stored)));
    let id = world.id("object");
    let got = world
        .store
        .get(Get { range: Some((5..12).into()), ..Get::new(&id) })
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((&got.body[..], got.meta.size), (&stored[5..12], stored.len() as u64));
}

pub(crate) async fn the_connection_speaks_what_was_negotiated(world: World) {
    world.put("object", b"bytes").await;
    let spoken = world.get("object").await.timings.protocol;
    match world.place {
        Place::Embedded(_, Wire::TlsH2) | Place::Like(_, _, Wire::TlsH2) => assert_eq!(spoken, Protocol::H2),
        Place::Embedded(..) | Place::Like(..) => assert_eq!(spoken, Protocol::H1),
        Place::External(_) | Place::Memory => println!("{}", spoken.name()),
    }
}
