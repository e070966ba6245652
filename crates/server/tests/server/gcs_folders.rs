//! Folders of buckets with a hierarchical namespace, in every dialect.

use laneway_server::Storage;
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
