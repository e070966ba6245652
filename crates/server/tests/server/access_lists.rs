//! Access control lists in all dialects. The server enforces none.

use serde_json::{Value, json};

use crate::client::{Answer, Protocol, Rig};

const XML: (&str, &str) = ("x-goog-api-version", "2");

/// Returns a server with an object `k`. It keeps access control lists, but doesn't enforce them.
fn keeping() -> Rig {
    let rig = Rig::with(Protocol::PlainH1, |config| config.accept_unenforced = true);
    rig.server.store().put("demo", "k", b"x").unwrap();
    rig
}

fn json(rig: &Rig, method: &str, path: &str, body: &Value) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    rig.send(method, &format!("/storage/v1/b{path}"), &[("content-type", "application/json")], text).unwrap()
}

/// Returns the entities and roles in the JSON API.
fn entries(list: &Value) -> Vec<(String, String)> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter().map(|entry| (text(entry, "entity"), text(entry, "role"))).collect()
}

fn in_json(rig: &Rig, key: &str) -> Vec<(String, String)> {
    let full =
        json(rig, "GET", &format!("/demo/o/{key}?projection=full&fields=acl(entity,role)"), &Value::Null);
    entries(&full.json()["acl"])
}

fn in_s3(rig: &Rig, key: &str) -> String {
    let answer = rig.get(&format!("/demo/{key}?acl"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.element("AccessControlList").to_owned()
}

fn pair(entity: &str, role: &str) -> (String, String) {
    (entity.to_owned(), role.to_owned())
}

#[test]
fn a_list_of_one_dialect_is_shown_in_the_other() {
    let rig = keeping();
    let owner = pair("user-000000000000", "OWNER");
    let json_upload = "/upload/storage/v1/b/demo/o?uploadType=media&name=json&predefinedAcl=publicRead";
    assert_eq!(rig.send("POST", json_upload, &[], "x").unwrap().status, 200);
    let composed = json!({"sourceObjects": [{"name": "k"}]});
    let path = "/demo/o/composed/compose?destinationPredefinedAcl=publicRead";
    assert_eq!(json(&rig, "POST", path, &composed).status, 200);
    let path = "/demo/o/k/copyTo/b/demo/o/copied?destinationPredefinedAcl=publicRead";
    assert_eq!(json(&rig, "POST", path, &json!({})).status, 200);
    let xml = [XML, ("x-goog-acl", "public-read")];
    assert_eq!(rig.send("PUT", "/demo/xml", &xml, "x").unwrap().status, 200);
    assert_eq!(rig.send("PUT", "/demo/s3", &[("x-amz-acl", "public-read")], "x").unwrap().status, 200);
    for key in ["json", "composed", "copied", "xml", "s3"] {
        assert_eq!(in_json(&rig, key), [owner.clone(), pair("allUsers", "READER")], "{key}");
        let list = in_s3(&rig, key);
        assert!(list.contains("global/AllUsers") && list.contains(">READ<"), "{key}: {list}");
    }
    assert_eq!(in_json(&rig, "k"), [owner]);
    assert!(json(&rig, "GET", "/demo/o/s3", &Value::Null).json()["acl"].is_null(), "no full projection");
    let listed = json(&rig, "GET", "/demo/o?projection=full&prefix=s3", &Value::Null).json();
    assert_eq!(entries(&listed["items"][0]["acl"])[1], pair("allUsers", "READER"));
}

#[test]
fn a_list_is_set_and_read_in_place() {
    let rig = keeping();
    let set = |acl: &str| rig.send("PUT", "/demo/k?acl", &[("x-amz-acl", acl)], "").unwrap().status;
    assert_eq!(set("public-read-write"), 200);
    let list = in_s3(&rig, "k");
    assert!(list.contains(">READ<") && list.contains(">WRITE<") && list.contains("FULL_CONTROL"), "{list}");
    assert_eq!(set("authenticated-read"), 200);
    assert!(in_s3(&rig, "k").contains("global/AuthenticatedUsers"));
    assert_eq!(set("private"), 200);
    assert!(!in_s3(&rig, "k").contains("global/"));
    assert_eq!(rig.get("/demo/none?acl").status, 404);
    let document = "<AccessControlPolicy><Owner><ID>o</ID></Owner></AccessControlPolicy>";
    assert_eq!(rig.send("PUT", "/demo/k?acl", &[], document).unwrap().status, 501);
    assert_eq!(json(&rig, "PATCH", "/demo/o/k?predefinedAcl=authenticatedRead", &json!({})).status, 200);
    assert_eq!(in_json(&rig, "k")[1], pair("allAuthenticatedUsers", "READER"));
}

#[test]
fn a_buckets_list_is_set_and_read_in_s3() {
    let rig = keeping();
    let set = |acl: &str| rig.send("PUT", "/demo?acl", &[("x-amz-acl", acl)], "").unwrap();
    assert_eq!(set("public-read").status, 200);
    assert!(in_s3(&rig, "").contains("global/AllUsers"));
    let full = json(&rig, "GET", "/demo?projection=full", &Value::Null).json();
    assert_eq!(entries(&full["acl"])[1], pair("allUsers", "READER"));
    assert_eq!((set("bogus").status, set("bogus").element("Code")), (400, "InvalidArgument"));
    assert_eq!(set("private").status, 200);
    assert!(!in_s3(&rig, "").contains("global/"));
    assert_eq!(rig.get("/none?acl").status, 404);
    let document = "<AccessControlPolicy><Owner><ID>o</ID></Owner></AccessControlPolicy>";
    assert_eq!(rig.send("PUT", "/demo?acl", &[], document).unwrap().status, 501);
}

#[test]
fn a_private_list_is_taken_and_others_are_refused_by_default() {
    let rig = Rig::new();
    rig.server.store().put("demo", "k", b"x").unwrap();
    let set = |acl: &str| rig.send("PUT", "/demo/k?acl", &[("x-amz-acl", acl)], "").unwrap();
    assert_eq!(set("private").status, 200);
    let refused = set("public-read");
    assert_eq!((refused.status, refused.element("Code")), (501, "NotImplemented"));
    assert!(!in_s3(&rig, "k").contains("global/"));
    let bucket = [XML, ("x-goog-acl", "public-read")];
    assert_eq!(rig.send("PUT", "/public", &bucket, "").unwrap().status, 501);
}

#[test]
fn grants_are_refused_even_if_lists_are_kept() {
    let rig = keeping();
    for (method, path, more) in [
        ("PUT", "/demo/granted", None),
        ("PUT", "/demo/k?acl", None),
        ("PUT", "/new", None),
        ("POST", "/demo/granted?uploads", None),
        ("PUT", "/demo/granted", Some(("x-amz-copy-source", "demo/k"))),
    ] {
        let headers: Vec<_> = [("x-amz-grant-read", "id=1")].into_iter().chain(more).collect();
        let refused = rig.send(method, path, &headers, "").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (501, "NotImplemented"), "{method} {path}");
    }
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
}

#[test]
fn a_bucket_has_a_list_and_one_for_new_objects() {
    let rig = keeping();
    let path = "?project=p&predefinedAcl=publicReadWrite&predefinedDefaultObjectAcl=publicRead";
    assert_eq!(json(&rig, "POST", path, &json!({"name": "made"})).status, 200);
    let full = json(&rig, "GET", "/made?projection=full", &Value::Null).json();
    assert_eq!(entries(&full["acl"])[1], pair("allUsers", "WRITER"));
    assert_eq!(entries(&full["defaultObjectAcl"])[1], pair("allUsers", "READER"));
    assert!(json(&rig, "GET", "/made", &Value::Null).json()["acl"].is_null());
    assert_eq!(rig.send("PUT", "/made/k", &[XML], "x").unwrap().status, 200);
    let object = json(&rig, "GET", "/made/o/k?projection=full", &Value::Null).json();
    assert_eq!(entries(&object["acl"])[1], pair("allUsers", "READER"));
    assert_eq!(rig.send("PUT", "/amazon", &[("x-amz-acl", "public-read")], "").unwrap().status, 200);
    assert_eq!(rig.send("PUT", "/xml-made", &[XML, ("x-goog-acl", "public-read")], "").unwrap().status, 200);
    for name in ["amazon", "xml-made"] {
        let full = json(&rig, "GET", &format!("/{name}?projection=full"), &Value::Null).json();
        assert_eq!(entries(&full["acl"])[1], pair("allUsers", "READER"), "{name}");
    }
    let uniform = json!({"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}}});
    assert_eq!(json(&rig, "PATCH", "/made", &uniform).status, 200);
    for path in ["/made?projection=full", "/made/o/k?projection=full"] {
        assert!(json(&rig, "GET", path, &Value::Null).json()["acl"].is_null(), "{path}");
    }
}

#[test]
fn a_resource_can_be_sent_back_with_its_list() {
    let rig = keeping();
    for acl in ["private", "publicRead", "authenticatedRead"] {
        let path = format!("/demo/o/k?projection=full&predefinedAcl={acl}");
        let read = json(&rig, "PATCH", &path, &json!({})).json();
        let updated = json(&rig, "PUT", "/demo/o/k?projection=full", &read);
        assert_eq!((updated.status, &updated.json()["acl"]), (200, &read["acl"]), "{acl}");
    }
    let bucket = json(&rig, "GET", "/demo?projection=full", &Value::Null).json();
    assert_eq!(json(&rig, "PUT", "/demo", &bucket).status, 200);
    let other = json!({"acl": [{"entity": "user-me@example.com", "role": "READER"}]});
    assert_eq!(json(&rig, "PATCH", "/demo/o/k", &other).status, 501);
}
