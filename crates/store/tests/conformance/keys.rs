//! Promises about keys: the store keeps their bytes exactly.

use laneway_store::{Condition, Deletion, List, PutOptions};

use crate::world::World;

/// Writes, reads, heads, lists, copies and deletes each key, and checks that no other key is affected.
async fn kept_exactly(world: World, keys: &[&str]) {
    for key in keys {
        world.put(key, key.as_bytes()).await;
    }
    for key in keys {
        assert_eq!(world.get(key).await.body, key.as_bytes(), "{key:?}");
        let head = world.store.head(&world.id(key), None).await.unwrap_or_else(|e| panic!("{key:?}: {e}"));
        assert_eq!((head.size, head.id), (key.len() as u64, world.id(key)));
    }
    let page =
        world.store.list(&List::new(&world.bucket, &world.prefix)).await.unwrap_or_else(|e| panic!("{e}"));
    let mut listed: Vec<String> = page.objects.into_iter().map(|object| object.id.key).collect();
    listed.sort();
    let mut wanted: Vec<String> = keys.iter().map(|key| world.id(key).key).collect();
    wanted.sort();
    assert_eq!(listed, wanted);

    let (first, copy) = (world.id(keys[0]), world.id("the copy"));
    let none = Condition::None;
    let copied = world.store.copy(&first, &copy, &PutOptions::default(), &none).await;
    assert_eq!(copied.unwrap_or_else(|e| panic!("{e}")).size, keys[0].len() as u64);
    world.store.copy(&copy, &first, &PutOptions::default(), &none).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(world.get(keys[0]).await.body, keys[0].as_bytes());

    world.store.delete(&world.id(keys[0]), &none).await.unwrap_or_else(|e| panic!("{e}"));
    let rest = keys[1..].iter().map(|key| world.id(key).key).chain([copy.key]);
    let rest: Vec<_> = rest.map(Deletion::any).collect();
    for (key, result) in rest.iter().zip(world.store.delete_many(&world.bucket, &rest).await) {
        result.unwrap_or_else(|e| panic!("{key:?}: {e}"));
    }
    let page =
        world.store.list(&List::new(&world.bucket, &world.prefix)).await.unwrap_or_else(|e| panic!("{e}"));
    let left: Vec<String> = page.objects.into_iter().map(|object| object.id.key).collect();
    assert_eq!(left, [""; 0]);
}

pub(crate) async fn ordinary_awkward_keys_are_kept_exactly(world: World) {
    let keys = [
        "a b",
        "a+b",
        "a%b",
        "a%20b",
        "a%2Fb",
        "100%",
        "é/ü",
        "\u{65e5}\u{672c}",
        "a&b=c?d#e",
        "a'b\"c",
        "a<b>c",
        "~!@$^*(),;:[]{}",
        "a=b",
        " lead",
        "trail ",
        ".hidden",
        "a.b..c",
        "...",
        "\u{1f600}",
    ];
    kept_exactly(world, &keys).await;
}

pub(crate) async fn double_slashes_are_kept_exactly(world: World) {
    kept_exactly(world, &["a//b", "a/b", "/a/b", "//a/b", "a///b"]).await;
}

pub(crate) async fn trailing_slashes_are_kept_exactly(world: World) {
    kept_exactly(world, &["a", "b/", "c/d/"]).await;
}

pub(crate) async fn dot_segments_are_kept_exactly(world: World) {
    kept_exactly(world, &["a/./b", "a/../b", "a/b", "../c", "./d", "e/..", "f/."]).await;
}

pub(crate) async fn a_key_of_1024_bytes_is_kept_exactly(world: World) {
    let mut key = String::new();
    while world.prefix.len() + key.len() < 1024 {
        key.push(if key.len() % 100 == 99 { '/' } else { 'k' });
    }
    kept_exactly(world, &[&key]).await;
}

pub(crate) async fn a_component_of_1024_bytes_is_kept_exactly(world: World) {
    let key = "k".repeat(1024 - world.prefix.len());
    kept_exactly(world, &[&key]).await;
}
