//! Buckets of the JSON API: their settings, their names, and the names of their objects.

use serde_json::{Value, json};

use crate::client::{Answer, Rig};

fn json(rig: &Rig, method: &str, path: &str, body: &Value) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    rig.send(method, path, &[("content-type", "application/json")], text).unwrap()
}

#[test]
fn settings_are_kept_and_answered() {
    let rig = Rig::new();
    let made = json!({
        "name": "made", "location": "europe-west3", "storageClass": "NEARLINE", "labels": {"team": "data"},
        "softDeletePolicy": {"retentionDurationSeconds": "0"},
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}, "publicAccessPrevention": "enforced"},
        "cors": [{"origin": ["*"], "method": ["GET"], "responseHeader": ["ETag"], "maxAgeSeconds": 60}],
        "website": {"mainPageSuffix": "index.html"}, "billing": {"requesterPays": true},
        "hierarchicalNamespace": {"enabled": false},
    });
    assert_eq!(json(&rig, "POST", "/storage/v1/b?project=p", &made).status, 200);
    let answer = json(&rig, "GET", "/storage/v1/b/made", &Value::Null).json();
    for (field, value) in [
        ("location", json!("EUROPE-WEST3")),
        ("locationType", json!("region")),
        ("storageClass", json!("NEARLINE")),
        ("labels", made["labels"].clone()),
        ("cors", made["cors"].clone()),
        ("website", made["website"].clone()),
        ("billing", made["billing"].clone()),
        ("metageneration", json!("1")),
    ] {
        assert_eq!(answer[field], value, "{field}");
    }
    assert_eq!(answer["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"], true);
    assert_eq!(answer["iamConfiguration"]["publicAccessPrevention"], "enforced");
    let layout = json(&rig, "GET", "/storage/v1/b/made/storageLayout", &Value::Null).json();
    assert_eq!((&layout["location"], &layout["locationType"]), (&json!("EUROPE-WEST3"), &json!("region")));
}

#[test]
fn a_change_moves_the_metageneration_and_keeps_its_conditions() {
    let rig = Rig::new();
    let patch = |query: &str, body: &Value| json(&rig, "PATCH", &format!("/storage/v1/b/demo{query}"), body);
    assert_eq!(patch("", &json!({})).json()["metageneration"], "1", "nothing is changed");
    let changed = patch("?ifMetagenerationMatch=1", &json!({"labels": {"a": "1"}})).json();
    assert_eq!((&changed["metageneration"], &changed["labels"]["a"]), (&json!("2"), &json!("1")));
    assert_ne!(changed["etag"], "CAE=");
    assert_eq!(patch("?ifMetagenerationMatch=1", &json!({"labels": null})).status, 412);
    assert_eq!(patch("?ifMetagenerationNotMatch=2", &json!({"labels": null})).status, 304);
    let got = |query: &str| json(&rig, "GET", &format!("/storage/v1/b/demo{query}"), &Value::Null).status;
    assert_eq!((got("?ifMetagenerationMatch=1"), got("?ifMetagenerationNotMatch=2")), (412, 304));
    let deleted = json(&rig, "DELETE", "/storage/v1/b/demo?ifMetagenerationMatch=1", &Value::Null);
    assert_eq!(deleted.status, 412);
    let updated = json(&rig, "PUT", "/storage/v1/b/demo", &changed);
    assert_eq!((updated.status, &updated.json()["labels"]["a"]), (200, &json!("1")), "{}", updated.text());
    let bare = json(&rig, "PUT", "/storage/v1/b/demo", &json!({"name": "demo"})).json();
    assert_eq!((&bare["labels"], &bare["metageneration"]), (&Value::Null, &json!("4")));
}

#[test]
fn what_is_not_here_is_refused_by_its_name_and_nothing_is_made() {
    let rig = Rig::new();
    for (field, value) in [
        ("lifecycle", json!({"rule": [{"action": {"type": "Delete"}, "condition": {"age": 1}}]})),
        ("autoclass", json!({"enabled": true})),
        ("acl", json!([{"entity": "allUsers", "role": "READER"}])),
    ] {
        let refused =
            json(&rig, "POST", "/storage/v1/b?project=p", &json!({"name": "made", field: value.clone()}));
        assert_eq!(refused.status, 501, "{field}");
        assert!(refused.json()["error"]["message"].as_str().unwrap().contains(field), "{}", refused.text());
        assert_eq!(json(&rig, "GET", "/storage/v1/b/made", &Value::Null).status, 404, "{field}");
        assert_eq!(json(&rig, "PATCH", "/storage/v1/b/demo", &json!({field: value})).status, 501, "{field}");
    }
    let public =
        json(&rig, "POST", "/storage/v1/b?project=p&predefinedAcl=publicRead", &json!({"name": "made"}));
    assert_eq!(public.status, 501);
    let upload = "/upload/storage/v1/b/demo/o?uploadType=media&name=k";
    assert_eq!(
        rig.send("POST", &format!("{upload}&predefinedAcl=publicRead"), &[], "x").unwrap().status,
        501
    );
    assert_eq!(rig.send("POST", &format!("{upload}&predefinedAcl=bogus"), &[], "x").unwrap().status, 400);
    assert_eq!(rig.send("POST", &format!("{upload}&predefinedAcl=private"), &[], "x").unwrap().status, 200);
    let described = json(
        &rig,
        "PATCH",
        "/storage/v1/b/demo/o/k",
        &json!({"contexts": {"custom": {"a": {"value": "b"}}}}),
    );
    assert_eq!(described.status, 501);
    let class = json(&rig, "PATCH", "/storage/v1/b/demo/o/k", &json!({"storageClass": "BOGUS"}));
    assert_eq!(class.status, 400);
}

#[test]
fn folders_of_a_hierarchical_bucket_stay_when_their_objects_are_gone() {
    let rig = Rig::new();
    let send =
        |method: &str, path: &str, body: &Value| json(&rig, method, &format!("/storage/v1/b{path}"), body);
    let mut made = json!({"name": "tree", "hierarchicalNamespace": {"enabled": true}});
    assert_eq!(send("POST", "?project=p", &made).status, 400, "it needs uniform access");
    made["iamConfiguration"] = json!({"uniformBucketLevelAccess": {"enabled": true}});
    assert_eq!(send("POST", "?project=p", &made).status, 200);
    let layout = send("GET", "/tree/storageLayout", &Value::Null).json();
    assert_eq!(layout["hierarchicalNamespace"]["enabled"], true);
    rig.server.store().put("tree", "a/b/k", b"x").unwrap();
    let names = |query: &str| {
        let listed = send("GET", &format!("/tree/folders{query}"), &Value::Null).json();
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["a/", "a/b/"]);
    assert_eq!(names("?prefix=a/b"), ["a/b/"]);
    assert_eq!(send("DELETE", "/tree/folders/a%2Fb%2F", &Value::Null).status, 409);
    assert_eq!(send("DELETE", "/tree/o/a%2Fb%2Fk", &Value::Null).status, 204);
    assert_eq!(names(""), ["a/", "a/b/"]);
    assert_eq!(send("DELETE", "/tree", &Value::Null).status, 409, "it holds folders");
    rig.server.store().put("tree", "a/b/k", b"x").unwrap();
    let renamed = send("POST", "/tree/folders/a%2Fb%2F/renameTo/folders/c%2F", &json!({})).json();
    assert_eq!(renamed["done"], Value::Null, "an operation is asked for until it is done");
    let id = renamed["name"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    assert_eq!(send("GET", &format!("/tree/operations/{id}"), &Value::Null).json()["done"], true);
    assert_eq!(
        (names(""), rig.server.store().keys("tree")),
        (vec!["a/".into(), "c/".into()], vec!["c/k".into()])
    );
    assert_eq!(send("POST", "/tree/folders/c%2F/deleteRecursive", &json!({})).status, 200);
    assert_eq!(send("DELETE", "/tree/folders/a%2F", &Value::Null).status, 204);
    assert_eq!(send("DELETE", "/tree", &Value::Null).status, 204);
    assert_eq!(send("GET", "/demo/folders", &Value::Null).status, 409, "it is flat");
}

#[test]
fn a_deleted_object_is_kept_and_restored_if_the_bucket_says_so() {
    let rig = Rig::new();
    let send =
        |method: &str, path: &str, body: &Value| json(&rig, method, &format!("/storage/v1/b{path}"), body);
    rig.server.store().put("demo", "d/k", b"kept").unwrap();
    assert_eq!(send("GET", "/demo/o?softDeleted=true", &Value::Null).status, 400);
    let policy = |seconds: &str| json!({"softDeletePolicy": {"retentionDurationSeconds": seconds}});
    assert_eq!(send("PATCH", "/demo", &policy("60")).status, 400);
    assert_eq!(send("PATCH", "/demo", &policy("604800")).status, 200);
    assert_eq!(send("DELETE", "/demo/o/d%2Fk", &Value::Null).status, 204);
    let listed = send("GET", "/demo/o?softDeleted=true&prefix=d/", &Value::Null).json();
    let item = &listed["items"][0];
    assert_eq!(item["name"], "d/k");
    assert!(item["softDeleteTime"].as_str() < item["hardDeleteTime"].as_str(), "{item}");
    let restore = format!("/demo/o/d%2Fk/restore?generation={}", item["generation"].as_str().unwrap());
    assert_eq!(send("POST", "/demo/o/d%2Fk/restore?generation=1", &json!({})).status, 404);
    rig.server.store().put("demo", "d/k", b"other").unwrap();
    assert_eq!(send("POST", &format!("{restore}&ifGenerationMatch=0"), &json!({})).status, 412);
    let restored = send("POST", &restore, &json!({})).json();
    assert_ne!(restored["generation"], item["generation"]);
    assert_eq!(rig.server.store().read("demo", "d/k").unwrap(), b"kept");
    let left = send("GET", "/demo/o?softDeleted=true", &Value::Null).json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "the object that was overwritten is kept now");
}

#[test]
fn names_of_buckets_are_checked() {
    let rig = Rig::new();
    for name in ["MyBucket", "ab", "a..b", "192.168.1.1", "goog-x", "my-google-b", "a b"] {
        let refused = json(&rig, "POST", "/storage/v1/b?project=p", &json!({"name": name}));
        assert_eq!(refused.status, 400, "{name}");
    }
    assert_eq!(json(&rig, "POST", "/storage/v1/b?project=p", &json!({"name": "my_b.1"})).status, 200);
}

#[test]
fn names_of_objects_are_checked() {
    let rig = Rig::new();
    rig.send("POST", "/upload/storage/v1/b/demo/o?uploadType=media&name=k", &[], "x").unwrap();
    let long = "x".repeat(1025);
    for name in ["", ".", "..", "a%0Ab", "a%0Db", ".well-known%2Facme-challenge%2Fx", &long] {
        let media = format!("/upload/storage/v1/b/demo/o?uploadType=media&name={name}");
        assert_eq!(rig.send("POST", &media, &[], "x").unwrap().status, 400, "{name}");
        let session = format!("/upload/storage/v1/b/demo/o?uploadType=resumable&name={name}");
        if name.len() < 1025 {
            assert_eq!(rig.send("POST", &session, &[], "").unwrap().status, 400, "{name}");
        }
        if !name.is_empty() {
            let copy = format!("/storage/v1/b/demo/o/k/copyTo/b/demo/o/{name}");
            assert_eq!(json(&rig, "POST", &copy, &json!({})).status, 400, "{name}");
            let xml = rig.send("PUT", &format!("/demo/{name}"), &[("x-goog-api-version", "2")], "x").unwrap();
            assert_eq!(xml.status, 400, "{name}");
        }
    }
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
}

#[test]
fn buckets_are_listed_in_pages() {
    let rig = Rig::new();
    rig.server.create_bucket("other").unwrap();
    let page =
        |query: &str| json(&rig, "GET", &format!("/storage/v1/b?project=p{query}"), &Value::Null).json();
    let first = page("&maxResults=1");
    assert_eq!((&first["items"][0]["name"], first["items"].as_array().unwrap().len()), (&json!("demo"), 1));
    let token = first["nextPageToken"].as_str().unwrap();
    let second = page(&format!("&maxResults=1&pageToken={token}"));
    assert_eq!((&second["items"][0]["name"], &second["nextPageToken"]), (&json!("other"), &Value::Null));
    assert_eq!(page("&softDeleted=true")["items"], Value::Null);
    let deleted = json(&rig, "GET", "/storage/v1/b/demo/o?softDeleted=true", &Value::Null);
    assert_eq!(deleted.status, 400);
}
