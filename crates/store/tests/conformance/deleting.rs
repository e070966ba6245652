//! Promises about deletes.

use futures_util::future::join_all;
use laneway_store::{Condition, Deletion, List};

use crate::world::World;

pub(crate) async fn a_deleted_object_is_gone(world: World) {
    world.put("object", b"bytes").await;
    world.store.delete(&world.id("object"), &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(world.store.head(&world.id("object"), None).await.is_err_and(|e| e.is_not_found()));
}

pub(crate) async fn deleting_what_is_missing_says_so(world: World) {
    let error = world.store.delete(&world.id("missing"), &Condition::None).await.expect_err("missing");
    assert!(error.is_not_found(), "{error}");
    let results = world
        .store
        .delete_many(&world.bucket, &["m1", "m2"].map(|name| Deletion::any(world.id(name).key)))
        .await;
    assert!(results.iter().all(|r| r.as_ref().is_err_and(|e| e.is_not_found())), "{results:?}");
}

pub(crate) async fn a_delete_bound_to_a_version_spares_its_successor(world: World) {
    let first = world.put("object", b"first").await.version.expect("a version");
    let second = world.put("object", b"second").await.version.expect("a version");
    let id = world.id("object");
    let error = world.store.delete(&id, &Condition::Matches(first)).await.expect_err("it has changed");
    assert!(error.is_precondition(), "{error}");
    assert_eq!(world.get("object").await.body, "second");
    world.store.delete(&id, &Condition::Matches(second)).await.unwrap_or_else(|e| panic!("{e}"));
}

pub(crate) async fn many_are_deleted_in_the_order_they_were_named(world: World) {
    let names: Vec<String> = (0..230).map(|n| format!("a b/{n:03}<&>")).collect();
    join_all(names.iter().map(|name| world.put(name, b"x"))).await;
    let keys: Vec<_> = names.iter().map(|name| Deletion::any(world.id(name).key)).collect();
    let requests = world.store.lanes().counters().requests;
    let results = world.store.delete_many(&world.bucket, &keys).await;
    assert_eq!(results.len(), keys.len());
    for (key, result) in names.iter().zip(results) {
        result.unwrap_or_else(|e| panic!("{key}: {e}"));
    }
    let page =
        world.store.list(&List::new(&world.bucket, &world.prefix)).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(page.objects.is_empty());
    println!("{} requests", world.store.lanes().counters().requests - requests);
    assert!(world.store.delete_many(&world.bucket, &[]).await.is_empty());
}
