//! Promises about listings.

use futures_util::future::join_all;
use laneway_store::{List, ObjectId, Page};

use crate::world::World;

async fn page(world: &World, list: &List) -> Page {
    world.store.list(list).await.unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the keys of a page, without the behaviour's prefix.
fn keys(world: &World, page: &Page) -> Vec<String> {
    let own = |id: &ObjectId| id.key.strip_prefix(&world.prefix).expect("the prefix").to_owned();
    page.objects.iter().map(|object| own(&object.id)).collect()
}

async fn put_all(world: &World, keys: &[&str]) {
    join_all(keys.iter().map(|key| world.put(key, key.as_bytes()))).await;
}

pub(crate) async fn everything_under_a_prefix_is_listed_in_order(world: World) {
    put_all(&world, &["b", "a/2", "a/1", "a-", "c", "é"]).await;
    let all = page(&world, &List::new(&world.bucket, &world.prefix)).await;
    assert_eq!(keys(&world, &all), ["a-", "a/1", "a/2", "b", "c", "é"]);
    let first = &all.objects[1];
    assert_eq!(first.size, 3);
    assert!(first.updated.is_some());
    let head = world.store.head(&first.id, None).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(first.version, head.version);
    let some = page(&world, &List::new(&world.bucket, format!("{}a/", world.prefix))).await;
    assert_eq!(keys(&world, &some), ["a/1", "a/2"]);
    assert_eq!(some.next, None);
    let none = page(&world, &List::new(&world.bucket, format!("{}zz", world.prefix))).await;
    assert_eq!(none, Page::default());
}

pub(crate) async fn a_delimiter_rolls_keys_up(world: World) {
    put_all(&world, &["a/1", "a/2", "b", "c d/3/4"]).await;
    let list = List { delimiter: Some("/".into()), ..List::new(&world.bucket, &world.prefix) };
    let rolled = page(&world, &list).await;
    assert_eq!(keys(&world, &rolled), ["b"]);
    assert_eq!(rolled.prefixes, ["a/", "c d/"].map(|p| format!("{}{p}", world.prefix)));
}

pub(crate) async fn pages_follow_one_another_without_gaps(world: World) {
    let names: Vec<String> = (0..25).map(|n| format!("{n:02} +/x")).collect();
    put_all(&world, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut list = List { max: Some(10), ..List::new(&world.bucket, &world.prefix) };
    let mut seen = Vec::new();
    loop {
        let page = page(&world, &list).await;
        assert!(page.objects.len() <= 10);
        seen.extend(keys(&world, &page));
        match page.next {
            Some(next) => list.token = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, names);
}

pub(crate) async fn a_listing_starts_after_and_ends_before(world: World) {
    put_all(&world, &["a", "b", "b1", "c", "d"]).await;
    let list = List {
        start_after: Some(world.id("b").key),
        end_before: Some(world.id("d").key),
        ..List::new(&world.bucket, &world.prefix)
    };
    let middle = page(&world, &list).await;
    assert_eq!(keys(&world, &middle), ["b1", "c"]);
    assert_eq!(middle.next, None);
}

pub(crate) async fn a_bucket_that_does_not_exist_is_not_found(world: World) {
    let missing = List::new("laneway-no-such-bucket", "");
    let error = world.store.list(&missing).await.expect_err("no such bucket");
    assert!(error.is_not_found(), "{error}");
    let id = ObjectId::new("laneway-no-such-bucket", "k");
    let sums = crate::world::sums(b"x");
    let error =
        world.store.put(&id, "x".into(), &sums, &Default::default()).await.expect_err("no such bucket");
    assert!(error.is_not_found(), "{error}");
}

pub(crate) async fn the_bucket_is_among_the_buckets(world: World) {
    let buckets = world.store.buckets().await.unwrap_or_else(|e| panic!("{e}"));
    assert!(buckets.contains(&world.bucket), "{buckets:?}");
}
