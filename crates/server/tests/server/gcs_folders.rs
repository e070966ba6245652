//! Folders of buckets with a hierarchical namespace, and soft deletion, in every dialect.

use laneway_server::{Storage, Versioning};
use serde_json::{Value, json};

use crate::client::{Answer, Protocol, Rig};

const XML: (&str, &str) = ("x-goog-api-version", "2");

fn send(rig: &Rig, method: &str, path: &str, body: &Value) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let headers = [("content-type", "application/json")];
    rig.send(method, &format!("/storage/v1/b{path}"), &headers, text).unwrap()
}

fn status(rig: &Rig, method: &str, path: &str) -> u16 {
    send(rig, method, path, &Value::Null).status
}

/// Creates the bucket `tree` with a hierarchical namespace and these objects.
fn tree(rig: &Rig, keys: &[&str]) {
    let made = json!({
        "name": "tree", "hierarchicalNamespace": {"enabled": true},
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}},
    });
    assert_eq!(send(rig, "POST", "?project=p", &made).status, 200);
    for key in keys {
        rig.server.store().put("tree", key, b"x").unwrap();
    }
}

fn folders(rig: &Rig, query: &str) -> Vec<String> {
    let listed = send(rig, "GET", &format!("/tree/folders?{query}"), &Value::Null).json();
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_failed_delete_or_move_creates_no_folders() {
    let rig = Rig::new();
    tree(&rig, &[]);
    assert_eq!(status(&rig, "DELETE", "/tree/o/nosuch%2Fkey"), 404);
    assert_eq!(status(&rig, "POST", "/tree/o/nosuch%2Fkey/moveTo/o/other%2Fkey"), 404);
    assert!(folders(&rig, "").is_empty());
    assert_eq!(status(&rig, "DELETE", "/tree"), 204);
}

#[test]
fn every_dialect_keeps_the_folders_of_deleted_objects() {
    let rig = Rig::new();
    tree(&rig, &["json/k", "xml/k", "s3/k"]);
    assert_eq!(status(&rig, "DELETE", "/tree/o/json%2Fk"), 204);
    assert_eq!(rig.send("DELETE", "/tree/xml/k", &[XML], "").unwrap().status, 204);
    let many = "<Delete><Object><Key>s3/k</Key></Object></Delete>";
    assert_eq!(rig.send("POST", "/tree?delete", &[], many).unwrap().status, 200);
    assert!(rig.server.store().keys("tree").is_empty());
    assert_eq!(folders(&rig, ""), ["json/", "s3/", "xml/"]);
    for (dialect, status) in [(&[XML][..], 409), (&[], 409)] {
        assert_eq!(rig.send("DELETE", "/tree", dialect, "").unwrap().status, status, "it holds folders");
    }
    for folder in ["json", "s3", "xml"] {
        assert_eq!(status(&rig, "DELETE", &format!("/tree/folders/{folder}")), 204);
    }
    assert_eq!(rig.send("DELETE", "/tree", &[XML], "").unwrap().status, 204);
    assert_eq!(send(&rig, "POST", "?project=p", &json!({"name": "tree"})).status, 200);
    assert_eq!(status(&rig, "DELETE", "/tree"), 204, "a flat bucket of the same name has no folders");
}

#[test]
fn a_rename_or_a_recursive_delete_leaves_the_folders_above() {
    let rig = Rig::new();
    tree(&rig, &["a/b/k", "d/e/f/k", "d/g/k"]);
    assert_eq!(status(&rig, "POST", "/tree/folders/a%2Fb/renameTo/folders/c"), 200);
    assert_eq!(folders(&rig, ""), ["a/", "c/", "d/", "d/e/", "d/e/f/", "d/g/"]);
    assert_eq!(status(&rig, "POST", "/tree/folders/d%2Fe/deleteRecursive"), 200);
    assert_eq!(folders(&rig, ""), ["a/", "c/", "d/", "d/g/"]);
    assert_eq!(rig.server.store().keys("tree"), ["c/k", "d/g/k"]);
}

#[test]
fn a_rename_is_refused_as_a_whole_if_a_hold_protects_one_object() {
    let rig = Rig::new();
    tree(&rig, &["a/1", "a/2"]);
    assert_eq!(send(&rig, "PATCH", "/tree/o/a%2F2", &json!({"temporaryHold": true})).status, 200);
    assert_eq!(status(&rig, "POST", "/tree/folders/a/renameTo/folders/b"), 403);
    assert_eq!(
        (folders(&rig, ""), rig.server.store().keys("tree")),
        (vec!["a/".into()], vec!["a/1".into(), "a/2".into()])
    );
}

#[test]
fn a_listing_of_folders_has_offsets_pages_and_one_delimiter() {
    let rig = Rig::new();
    tree(&rig, &["a/b/k", "c/k", "e/k"]);
    assert_eq!(folders(&rig, "startOffset=a/b/&endOffset=e/"), ["a/b/", "c/"]);
    assert_eq!(folders(&rig, "delimiter=/"), ["a/", "c/", "e/"]);
    assert_eq!(folders(&rig, "delimiter=/&prefix=a/"), ["a/", "a/b/"]);
    assert_eq!(folders(&rig, "pageSize=2&pageToken=a/"), ["a/b/", "c/"]);
    assert_eq!(status(&rig, "GET", "/tree/folders?delimiter=x"), 400);
}

#[test]
fn folders_have_preconditions() {
    let rig = Rig::new();
    tree(&rig, &["a/k"]);
    assert_eq!(status(&rig, "POST", "/tree/folders/a/renameTo/folders/b?ifSourceMetagenerationMatch=2"), 412);
    assert_eq!(status(&rig, "POST", "/tree/folders/a/deleteRecursive?ifMetagenerationMatch=2"), 412);
    assert_eq!(status(&rig, "GET", "/tree/folders/a?ifMetagenerationNotMatch=1"), 304);
    assert_eq!(status(&rig, "DELETE", "/tree/o/a%2Fk"), 204);
    assert_eq!(status(&rig, "DELETE", "/tree/folders/a?ifMetagenerationMatch=2"), 412);
    assert_eq!(status(&rig, "DELETE", "/tree/folders/a?ifMetagenerationMatch=1"), 204);
    assert_eq!(status(&rig, "DELETE", "/tree/folders/a?ifMetagenerationMatch=1"), 404);
}

#[test]
fn the_folders_of_present_objects_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk =
        || Rig::with(Protocol::PlainH1, |config| config.storage = Storage::Disk(folder.path().to_owned()));
    let rig = on_disk();
    tree(&rig, &["a/b/k"]);
    let created = send(&rig, "GET", "/tree/folders/a", &Value::Null).json()["createTime"].clone();
    drop(rig);
    let rig = on_disk();
    assert_eq!(folders(&rig, ""), ["a/", "a/b/"]);
    let again = send(&rig, "GET", "/tree/folders/a", &Value::Null).json()["createTime"].clone();
    assert!(again.is_string() && again.as_str() <= created.as_str(), "{again} {created}");
}

/// Returns a server whose bucket `demo` keeps deleted objects, and has these objects.
fn keeping(keys: &[&str]) -> Rig {
    let rig = Rig::new();
    rig.server.store().keep_deleted("demo").unwrap();
    for key in keys {
        rig.server.store().put("demo", key, b"first").unwrap();
    }
    rig
}

fn page(rig: &Rig, query: &str) -> Value {
    let listed = send(rig, "GET", &format!("/demo/o?softDeleted=true&{query}"), &Value::Null);
    assert_eq!(listed.status, 200, "{}", listed.text());
    listed.json()
}

/// Returns the names and generations of the soft-deleted objects on a page.
fn deleted(page: &Value) -> Vec<(String, String)> {
    let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (text(item, "name"), text(item, "generation")))
        .collect()
}

fn names(page: &Value) -> Vec<String> {
    deleted(page).into_iter().map(|(name, _)| name).collect()
}

fn restore_deleted(rig: &Rig, (name, generation): &(String, String)) -> u16 {
    status(rig, "POST", &format!("/demo/o/{name}/restore?generation={generation}"))
}

#[test]
fn every_dialect_keeps_deleted_and_overwritten_objects() {
    let rig = keeping(&["a", "b", "c", "d", "e", "f", "g", "h"]);
    let generation = rig.server.store().object("demo", "b").unwrap().generation;
    assert_eq!(status(&rig, "DELETE", "/demo/o/a"), 204);
    assert_eq!(status(&rig, "DELETE", &format!("/demo/o/b?generation={generation}")), 204);
    assert_eq!(rig.send("DELETE", "/demo/c", &[XML], "").unwrap().status, 204);
    assert_eq!(
        rig.send("DELETE", "/demo/d", &[("x-amz-expected-bucket-owner", "000000000000")], "").unwrap().status,
        204
    );
    let many = "<Delete><Object><Key>e</Key></Object></Delete>";
    assert_eq!(rig.send("POST", "/demo?delete", &[], many).unwrap().status, 200);
    assert_eq!(rig.send("PUT", "/demo/f", &[], "second").unwrap().status, 200);
    assert_eq!(status(&rig, "POST", "/demo/o/h/moveTo/o/g"), 200);
    let found = deleted(&page(&rig, ""));
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g"], "a move keeps only the object that it replaces");
    for object in &found {
        assert_eq!(restore_deleted(&rig, object), 200, "{object:?}");
        assert_eq!(rig.server.store().read("demo", &object.0).unwrap(), b"first");
    }
}

#[test]
fn a_recursive_delete_of_a_folder_keeps_its_objects() {
    let rig = keeping(&["d/1", "d/2"]);
    rig.server.store().make_hierarchical("demo").unwrap();
    assert_eq!(status(&rig, "POST", "/demo/folders/d/deleteRecursive"), 200);
    assert_eq!(names(&page(&rig, "")), ["d/1", "d/2"]);
}

#[test]
fn a_refused_delete_keeps_no_copy() {
    let rig = keeping(&["held", "k"]);
    assert_eq!(send(&rig, "PATCH", "/demo/o/held", &json!({"temporaryHold": true})).status, 200);
    assert_eq!(status(&rig, "DELETE", "/demo/o/held"), 403);
    assert_eq!(status(&rig, "DELETE", "/demo/o/k?ifGenerationMatch=1"), 412);
    assert!(deleted(&page(&rig, "")).is_empty());
    assert_eq!(send(&rig, "PATCH", "/demo/o/k", &json!({"metadata": {"a": "b"}})).status, 200);
    assert!(deleted(&page(&rig, "")).is_empty(), "a change of metadata deletes nothing");
}

#[test]
fn with_versions_an_object_is_kept_when_its_last_version_is_deleted() {
    let rig = keeping(&[]);
    rig.server.store().keep_versions("demo", Versioning::Enabled).unwrap();
    let generation = rig.server.store().put("demo", "k", b"first").unwrap().generation;
    assert_eq!(status(&rig, "DELETE", "/demo/o/k"), 204);
    assert!(deleted(&page(&rig, "")).is_empty(), "it is noncurrent");
    assert_eq!(status(&rig, "DELETE", &format!("/demo/o/k?generation={generation}")), 204);
    assert_eq!(deleted(&page(&rig, "")), [("k".to_owned(), generation.to_string())]);
}

#[test]
fn a_listing_goes_on_after_its_entries_were_restored() {
    let keys = ["a", "b", "c", "d", "e"];
    let rig = keeping(&keys);
    for key in keys {
        assert_eq!(status(&rig, "DELETE", &format!("/demo/o/{key}")), 204);
    }
    let (mut query, mut seen) = (String::from("maxResults=2"), Vec::new());
    loop {
        let page = page(&rig, &query);
        for object in deleted(&page) {
            assert_eq!(restore_deleted(&rig, &object), 200);
            seen.push(object.0);
        }
        let Some(token) = page["nextPageToken"].as_str() else { break };
        query = format!("maxResults=2&pageToken={}", token.replace('=', "%3D").replace('+', "%2B"));
    }
    assert_eq!(seen, keys);
    assert_eq!(rig.server.store().keys("demo"), keys);
}

#[test]
fn a_listing_has_a_delimiter_and_a_pattern() {
    let rig = keeping(&["a.txt", "b/c.csv", "b/d.txt"]);
    for key in ["a.txt", "b%2Fc.csv", "b%2Fd.txt"] {
        assert_eq!(status(&rig, "DELETE", &format!("/demo/o/{key}")), 204);
    }
    let folded = page(&rig, "delimiter=/");
    assert_eq!((names(&folded), &folded["prefixes"]), (vec!["a.txt".to_owned()], &json!(["b/"])));
    assert_eq!(names(&page(&rig, "matchGlob=**.txt")), ["a.txt", "b/d.txt"]);
    assert_eq!(names(&page(&rig, "startOffset=b/&endOffset=b/d")), ["b/c.csv"]);
    assert_eq!(page(&rig, "fields=items(name)&endOffset=b")["items"], json!([{"name": "a.txt"}]));
}

#[test]
fn deleted_objects_go_with_their_bucket() {
    let rig = keeping(&["k"]);
    assert_eq!(status(&rig, "DELETE", "/demo/o/k"), 204);
    let object = deleted(&page(&rig, "")).remove(0);
    assert_eq!(rig.send("DELETE", "/demo", &[XML], "").unwrap().status, 204);
    rig.server.create_bucket("demo").unwrap();
    rig.server.store().keep_deleted("demo").unwrap();
    assert!(deleted(&page(&rig, "")).is_empty());
    assert_eq!(restore_deleted(&rig, &object), 404);
}

#[test]
fn a_duration_that_is_no_whole_number_is_refused() {
    let rig = keeping(&[]);
    for seconds in [json!("7d"), json!(-1), json!(604_800.5), json!("60")] {
        let policy = json!({"softDeletePolicy": {"retentionDurationSeconds": seconds}});
        assert_eq!(send(&rig, "PATCH", "/demo", &policy).status, 400, "{seconds}");
    }
    let policy = send(&rig, "GET", "/demo", &Value::Null).json()["softDeletePolicy"].clone();
    assert_eq!(policy, json!({"retentionDurationSeconds": "604800"}));
    assert_eq!(send(&rig, "PATCH", "/demo", &json!({"softDeletePolicy": null})).status, 200);
    assert_eq!(status(&rig, "GET", "/demo/o?softDeleted=true"), 400);
}
