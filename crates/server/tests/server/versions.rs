//! Buckets that keep versions, in both dialects, and versioning requests to a store without versioning.

use laneway_server::{Storage, Versioning};
use serde_json::{Value, json};

use crate::client::{Answer, Protocol, Rig};

/// Returns a rig whose bucket keeps versions, enabled by S3's own request.
fn versioned() -> Rig {
    let rig = Rig::new();
    assert_eq!(versioning(&rig, "Enabled").status, 200);
    rig
}

fn versioning(rig: &Rig, status: &str) -> Answer {
    let body = format!("<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>");
    rig.send("PUT", "/demo?versioning", &[], body).unwrap()
}

/// Puts an object by S3, and returns its version.
fn put(rig: &Rig, key: &str, text: &str) -> String {
    let answer = rig.send("PUT", &format!("/demo/{key}"), &[], text.to_owned()).unwrap();
    assert_eq!(answer.status, 200);
    answer.header("x-amz-version-id").to_owned()
}

/// Returns the `Version` and `DeleteMarker` entries in their order: key, version, is latest, is marker.
fn listed(answer: &Answer) -> Vec<(String, String, bool, bool)> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let mut entries: Vec<(usize, bool)> =
        text.match_indices("<Version>").map(|(at, _)| (at, false)).collect();
    entries.extend(text.match_indices("<DeleteMarker>").map(|(at, _)| (at, true)));
    entries.sort_unstable();
    let element = |from: usize, name: &str| {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let rest = &text[from..];
        let begin = rest.find(&open).unwrap() + open.len();
        rest[begin..begin + rest[begin..].find(&close).unwrap()].to_owned()
    };
    let entry = |(at, is_marker)| {
        let is_latest = element(at, "IsLatest") == "true";
        (element(at, "Key"), element(at, "VersionId"), is_latest, is_marker)
    };
    entries.into_iter().map(entry).collect()
}

fn entry(key: &str, id: &str, is_latest: bool, is_marker: bool) -> (String, String, bool, bool) {
    (key.to_owned(), id.to_owned(), is_latest, is_marker)
}

fn status(rig: &Rig) -> String {
    rig.get("/demo?versioning").element("Status").to_owned()
}

#[test]
fn versioning_is_enabled_and_suspended_and_never_unsaid() {
    let rig = Rig::new();
    assert_eq!(status(&rig), "");
    versioning(&rig, "Enabled");
    assert_eq!(status(&rig), "Enabled");
    versioning(&rig, "Suspended");
    assert_eq!(status(&rig), "Suspended");
    let wrong = versioning(&rig, "On");
    assert_eq!(
        (wrong.status, wrong.element("Code")),
        (400, "IllegalVersioningConfigurationException"),
        "{}",
        wrong.text()
    );
    let absent = rig.send(
        "PUT",
        "/absent?versioning",
        &[],
        "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    );
    assert_eq!(absent.unwrap().element("Code"), "NoSuchBucket");
}

#[test]
fn every_write_is_a_version_and_each_can_be_read() {
    let rig = versioned();
    let (first, second) = (put(&rig, "k", "one"), put(&rig, "k", "two!"));
    assert_ne!(first, second);
    let newest = rig.get("/demo/k");
    assert_eq!((newest.text(), newest.header("x-amz-version-id")), ("two!", &*second));
    let old = rig.get(&format!("/demo/k?versionId={first}"));
    assert_eq!((old.text(), old.header("x-amz-version-id")), ("one", &*first));
    let head = rig.send("HEAD", &format!("/demo/k?versionId={first}"), &[], "").unwrap();
    assert_eq!((head.header("content-length"), head.header("x-amz-version-id")), ("3", &*first));
    let from = format!("/demo/k?versionId={first}");
    let copied = rig.send("PUT", "/demo/copy", &[("x-amz-copy-source", &from)], "").unwrap();
    assert_eq!(copied.header("x-amz-copy-source-version-id"), first);
    assert_eq!(rig.get("/demo/copy").header("x-amz-version-id"), copied.header("x-amz-version-id"));
    assert_eq!(rig.get("/demo/copy").text(), "one");
    let back = rig.send("PUT", "/demo/k", &[("x-amz-copy-source", &from)], "").unwrap();
    assert_eq!(back.status, 200, "an older version is copied onto its own key");
    assert_eq!(rig.get("/demo/k").text(), "one");
}

#[test]
fn a_completed_upload_is_a_version_too() {
    let rig = versioned();
    let begun = rig.send("POST", "/demo/k?uploads", &[], "").unwrap();
    let upload = begun.element("UploadId").to_owned();
    let part = rig.send("PUT", &format!("/demo/k?partNumber=1&uploadId={upload}"), &[], "part").unwrap();
    let body = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
        part.header("etag")
    );
    let done = rig.send("POST", &format!("/demo/k?uploadId={upload}"), &[], body).unwrap();
    let id = done.header("x-amz-version-id").to_owned();
    assert_eq!(rig.get(&format!("/demo/k?versionId={id}")).text(), "part");
}

#[test]
fn a_deleted_key_leaves_a_marker_that_can_be_deleted() {
    let rig = versioned();
    let id = put(&rig, "k", "one");
    let deleted = rig.send("DELETE", "/demo/k", &[], "").unwrap();
    let marker = deleted.header("x-amz-version-id").to_owned();
    assert_eq!((deleted.status, deleted.header("x-amz-delete-marker")), (204, "true"));
    let gone = rig.get("/demo/k");
    assert_eq!((gone.status, gone.element("Code")), (404, "NoSuchKey"));
    assert_eq!((gone.header("x-amz-delete-marker"), gone.header("x-amz-version-id")), ("true", &*marker));
    for method in ["GET", "HEAD"] {
        let refused = rig.send(method, &format!("/demo/k?versionId={marker}"), &[], "").unwrap();
        assert_eq!((refused.status, refused.header("allow")), (405, "DELETE"), "{method}");
        assert_eq!(refused.header("x-amz-delete-marker"), "true");
    }
    let from = format!("/demo/k?versionId={marker}");
    let copied = rig.send("PUT", "/demo/c", &[("x-amz-copy-source", &from)], "").unwrap();
    assert_eq!((copied.status, copied.element("Code")), (400, "InvalidRequest"));
    let expected = [entry("k", &marker, true, true), entry("k", &id, false, false)];
    assert_eq!(listed(&rig.get("/demo?versions")), expected);
    assert_eq!(rig.get("/demo?list-type=2").element("KeyCount"), "0");

    let undone = rig.send("DELETE", &from, &[], "").unwrap();
    assert_eq!((undone.header("x-amz-delete-marker"), undone.header("x-amz-version-id")), ("true", &*marker));
    assert_eq!(rig.get("/demo/k").text(), "one");
    assert_eq!(listed(&rig.get("/demo?versions")), [entry("k", &id, true, false)]);
    let last = rig.send("DELETE", &format!("/demo/k?versionId={id}"), &[], "").unwrap();
    assert_eq!((last.header("x-amz-delete-marker"), last.header("x-amz-version-id")), ("", &*id));
    assert_eq!(listed(&rig.get("/demo?versions")), []);
    let again = rig.send("DELETE", &format!("/demo/k?versionId={id}"), &[], "").unwrap();
    assert_eq!(again.status, 204, "what isn't there is deleted");
}

#[test]
fn suspended_a_bucket_has_one_null_version_of_a_key_beside_the_older_ones() {
    let rig = Rig::new();
    put(&rig, "k", "zero");
    versioning(&rig, "Enabled");
    let one = put(&rig, "k", "one");
    assert_eq!(rig.get("/demo/k?versionId=null").text(), "zero");
    versioning(&rig, "Suspended");
    assert_eq!(put(&rig, "k", "two"), "null");
    assert_eq!(put(&rig, "k", "three"), "null");
    let expected = [entry("k", "null", true, false), entry("k", &one, false, false)];
    assert_eq!(listed(&rig.get("/demo?versions")), expected);
    let deleted = rig.send("DELETE", "/demo/k", &[], "").unwrap();
    let reported = (deleted.header("x-amz-delete-marker"), deleted.header("x-amz-version-id"));
    assert_eq!(reported, ("true", "null"));
    let expected = [entry("k", "null", true, true), entry("k", &one, false, false)];
    assert_eq!(listed(&rig.get("/demo?versions")), expected);
}

#[test]
fn versions_are_listed_in_pages_newest_first_with_markers_between() {
    let rig = versioned();
    let (first, second) = (put(&rig, "a&b", "1"), put(&rig, "a&b", "2"));
    let deleted = rig.send("DELETE", "/demo/a&b", &[], "").unwrap();
    let marker = deleted.header("x-amz-version-id").to_owned();
    let third = put(&rig, "a&b", "3");
    let (_, other) = (put(&rig, "d/x", "1"), put(&rig, "e", "1"));
    let key = "a%26b";
    let all = [
        entry(key, &third, true, false),
        entry(key, &marker, false, true),
        entry(key, &second, false, false),
        entry(key, &first, false, false),
        entry("e", &other, true, false),
    ];
    for max in 1..6 {
        let (mut found, mut prefixes) = (Vec::new(), 0);
        let mut marker = String::new();
        loop {
            let page =
                rig.get(&format!("/demo?versions&encoding-type=url&delimiter=/&max-keys={max}{marker}"));
            found.extend(listed(&page));
            prefixes += page.text().matches("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>").count();
            if page.element("IsTruncated") == "false" {
                break;
            }
            let (key, id) = (page.element("NextKeyMarker"), page.element("NextVersionIdMarker"));
            marker = format!("&key-marker={key}");
            if !id.is_empty() {
                marker += &format!("&version-id-marker={id}");
            }
        }
        assert_eq!((found, prefixes), (all.to_vec(), 1), "{max} a page");
    }
    let plain = rig.get("/demo?versions&prefix=a");
    assert!(plain.text().contains("<Key>a&amp;b</Key>"), "{}", plain.text());
    let behind = rig.get(&format!("/demo?versions&key-marker={key}&version-id-marker={second}"));
    assert_eq!(listed(&behind)[0].1, first);
    assert_eq!(listed(&rig.get(&format!("/demo?versions&key-marker={key}")))[0].0, "d/x");
    let wrong = rig.get("/demo?versions&version-id-marker=null");
    assert_eq!(wrong.element("Code"), "InvalidArgument");
}

#[test]
fn many_versions_are_deleted_in_one_request() {
    let rig = versioned();
    let (first, second) = (put(&rig, "k", "1"), put(&rig, "k", "2"));
    put(&rig, "l", "1");
    let body = format!(
        "<Delete><Object><Key>k</Key><VersionId>{first}</VersionId></Object><Object><Key>l</Key></Object>\
         <Object><Key>k</Key><VersionId>wrong</VersionId></Object></Delete>"
    );
    let deleted = rig.send("POST", "/demo?delete", &[], body).unwrap();
    assert!(deleted.text().contains(&format!("<VersionId>{first}</VersionId>")), "{}", deleted.text());
    assert_eq!(deleted.element("DeleteMarker"), "true");
    assert_eq!(deleted.element("Code"), "NoSuchVersion");
    let left: Vec<_> =
        listed(&rig.get("/demo?versions")).into_iter().map(|entry| (entry.0, entry.3)).collect();
    assert_eq!(left, [("k".to_owned(), false), ("l".to_owned(), true), ("l".to_owned(), false)]);
    assert_eq!(rig.get(&format!("/demo/k?versionId={second}")).text(), "2");
    assert_eq!(rig.send("DELETE", "/demo", &[], "").unwrap().element("Code"), "BucketNotEmpty");
}

#[test]
fn tags_and_attributes_are_those_of_the_version() {
    let rig = versioned();
    let first = put(&rig, "k", "1");
    put(&rig, "k", "22");
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    let tagged = rig.send("PUT", &format!("/demo/k?tagging&versionId={first}"), &[], tags).unwrap();
    assert_eq!(tagged.header("x-amz-version-id"), first);
    assert_eq!(rig.get(&format!("/demo/k?tagging&versionId={first}")).element("Key"), "a");
    assert_eq!(rig.get("/demo/k?tagging").element("Key"), "");
    let asked = [("x-amz-object-attributes", "ObjectSize")];
    let of = rig.send("GET", &format!("/demo/k?attributes&versionId={first}"), &asked, "").unwrap();
    assert_eq!(of.element("ObjectSize"), "1");
}

/// Uploads by JSON, and returns the generation.
fn upload(rig: &Rig, name: &str, text: &str) -> String {
    let path = format!("/upload/storage/v1/b/demo/o?uploadType=media&name={name}");
    let answer = rig.send("POST", &path, &[], text.to_owned()).unwrap();
    answer.json()["generation"].as_str().unwrap().to_owned()
}

fn patch(rig: &Rig, path: &str, body: &Value) -> Answer {
    rig.send("PATCH", path, &[("content-type", "application/json")], body.to_string()).unwrap()
}

fn generations(rig: &Rig, query: &str) -> Vec<String> {
    let listed = rig.get(&format!("/storage/v1/b/demo/o?{query}")).json();
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["generation"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_bucket_of_gcs_says_whether_it_keeps_versions() {
    let rig = Rig::new();
    let bucket = "/storage/v1/b/demo";
    assert_eq!(rig.get(bucket).json()["versioning"], Value::Null);
    let patched = patch(&rig, bucket, &json!({"versioning": {"enabled": true}}));
    assert_eq!((patched.status, &patched.json()["versioning"]["enabled"]), (200, &json!(true)));
    assert_eq!(status(&rig), "Enabled");
    assert_eq!(patch(&rig, bucket, &json!({"versioning": {"enabled": "yes"}})).status, 400);
    assert_eq!(patch(&rig, "/storage/v1/b/absent", &json!({})).status, 404);
    patch(&rig, bucket, &json!({"versioning": {"enabled": false}}));
    assert_eq!(rig.get(bucket).json()["versioning"]["enabled"], false);
    let made = json!({"name": "made", "versioning": {"enabled": true}}).to_string();
    let made = rig.send("POST", "/storage/v1/b?project=p", &[], made).unwrap();
    assert_eq!(made.json()["versioning"]["enabled"], true);
}

#[test]
fn generations_are_kept_read_and_listed_oldest_first() {
    let rig = versioned();
    let (first, second) = (upload(&rig, "k", "one"), upload(&rig, "k", "two!"));
    let other = upload(&rig, "l", "x");
    assert_eq!(generations(&rig, ""), [&*second, &*other]);
    assert_eq!(generations(&rig, "versions=true"), [&*first, &*second, &*other]);
    let old = rig.get(&format!("/storage/v1/b/demo/o/k?generation={first}")).json();
    assert_eq!((&old["size"], old["timeDeleted"].is_string()), (&json!("3"), true));
    assert_eq!(rig.get("/storage/v1/b/demo/o/k").json()["timeDeleted"], Value::Null);
    assert_eq!(rig.get(&format!("/storage/v1/b/demo/o/k?alt=media&generation={first}")).text(), "one");
    let to = format!("/storage/v1/b/demo/o/k/rewriteTo/b/demo/o/copy?sourceGeneration={first}");
    assert_eq!(rig.send("POST", &to, &[], "").unwrap().status, 200);
    assert_eq!(rig.get("/storage/v1/b/demo/o/copy?alt=media").text(), "one");
    let change = json!({"metadata": {"colour": "red"}});
    assert_eq!(patch(&rig, &format!("/storage/v1/b/demo/o/k?generation={first}"), &change).status, 200);
    let old = rig.get(&format!("/storage/v1/b/demo/o/k?generation={first}")).json();
    assert_eq!((&old["metadata"]["colour"], &old["metageneration"]), (&json!("red"), &json!("2")));
    assert_eq!(rig.get("/storage/v1/b/demo/o/k").json()["metadata"], Value::Null);
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let page =
            rig.get(&format!("/storage/v1/b/demo/o?versions=true&prefix=k&maxResults=1{token}")).json();
        seen.push(page["items"][0]["generation"].as_str().unwrap().to_owned());
        match page["nextPageToken"].as_str() {
            Some(next) => token = format!("&pageToken={next}"),
            None => break,
        }
    }
    assert_eq!(seen, [first, second]);
}

#[test]
fn a_delete_makes_noncurrent_and_one_with_a_generation_is_for_good() {
    let rig = versioned();
    let (first, second) = (upload(&rig, "k", "one"), upload(&rig, "k", "two"));
    let object = "/storage/v1/b/demo/o/k";
    assert_eq!(rig.send("DELETE", object, &[], "").unwrap().status, 204);
    assert_eq!(rig.send("DELETE", object, &[], "").unwrap().status, 404);
    assert_eq!(rig.get(object).status, 404);
    assert_eq!(generations(&rig, "versions=true"), [&*first, &*second]);
    let gone = |generation: &str| {
        rig.send("DELETE", &format!("{object}?generation={generation}"), &[], "").unwrap().status
    };
    assert_eq!((gone(&second), gone(&second)), (204, 404));
    assert_eq!(rig.get(object).status, 404, "nothing becomes live again");
    assert_eq!(generations(&rig, "versions=true"), [&*first]);
    assert_eq!(rig.send("DELETE", "/storage/v1/b/demo", &[], "").unwrap().status, 409);
    assert_eq!(gone(&first), 204);
    assert_eq!(rig.send("DELETE", "/storage/v1/b/demo", &[], "").unwrap().status, 204);
}

#[test]
fn versions_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        Rig::with(Protocol::PlainH1, |config| {
            config.storage = Storage::Disk(folder.path().to_owned());
        })
    };
    let rig = start();
    rig.server.store().keep_versions("demo", Versioning::Enabled).unwrap();
    let (first, second) = (put(&rig, "k", "one"), put(&rig, "k", "two"));
    rig.send("DELETE", "/demo/l", &[], "").unwrap();
    let before = listed(&rig.get("/demo?versions"));
    drop(rig);
    let rig = start();
    assert_eq!(status(&rig), "Enabled");
    assert_eq!(listed(&rig.get("/demo?versions")), before);
    assert_eq!(rig.get(&format!("/demo/k?versionId={first}")).text(), "one");
    rig.send("DELETE", &format!("/demo/k?versionId={second}"), &[], "").unwrap();
    drop(rig);
    assert_eq!(start().get("/demo/k").text(), "one");
}

#[test]
fn every_bucket_keeps_versions_where_the_server_was_told_so() {
    let rig = Rig::with(Protocol::PlainH1, |config| config.versions = true);
    assert_eq!(status(&rig), "Enabled");
    put(&rig, "k", "one");
    put(&rig, "k", "two");
    assert_eq!(rig.server.store().versions("demo", "k").len(), 2);
}

fn stored(rig: &Rig) -> String {
    rig.send("PUT", "/demo/k", &[("x-amz-checksum-crc32c", "mnG7TA==")], "hello").unwrap();
    rig.get("/demo/k").header("etag").to_owned()
}

#[test]
fn the_only_version_of_an_object_is_null() {
    let rig = Rig::new();
    stored(&rig);
    assert_eq!(rig.get("/demo/k").header("x-amz-version-id"), "", "the answer names no version");
    assert_eq!(rig.get("/demo/k?versionId=null").text(), "hello");
    for (method, path) in [("GET", "/demo/k?versionId=v1"), ("DELETE", "/demo/k?versionId=v1")] {
        let refused = rig.send(method, path, &[], "").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (400, "InvalidArgument"), "{method}");
    }
    let copied = rig.send("PUT", "/demo/c", &[("x-amz-copy-source", "/demo/k?versionId=v1")], "").unwrap();
    assert_eq!((copied.status, copied.element("Code")), (400, "InvalidArgument"));
    let absent = rig.get("/demo/k?versionId=00c0ffee00c0ffee");
    assert_eq!((absent.status, absent.element("Code")), (404, "NoSuchVersion"));
    let body = "<Delete><Object><Key>k</Key><VersionId>v1</VersionId></Object></Delete>";
    let deleted = rig.send("POST", "/demo?delete", &[], body).unwrap();
    assert_eq!(deleted.element("Code"), "NoSuchVersion");
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
    assert_eq!(rig.send("DELETE", "/demo/k?versionId=null", &[], "").unwrap().status, 204);
}

#[test]
fn objects_are_listed_as_their_only_versions() {
    let rig = Rig::new();
    for key in ["a", "d/1", "d/2", "e"] {
        rig.server.store().put("demo", key, b"xy").unwrap();
    }
    let first = rig.get("/demo?versions&max-keys=2&delimiter=/");
    assert_eq!(
        (first.element("Key"), first.element("VersionId"), first.element("IsLatest")),
        ("a", "null", "true")
    );
    assert_eq!((first.element("IsTruncated"), first.element("NextKeyMarker")), ("true", "d/"));
    assert!(first.text().contains("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>"));
    let second = rig.get("/demo?versions&delimiter=/&key-marker=d/&version-id-marker=null");
    assert_eq!((second.element("Key"), second.element("IsTruncated")), ("e", "false"));
    assert_eq!(rig.get("/demo?versions&version-id-marker=null").element("Code"), "InvalidArgument");
}

#[test]
fn attributes_are_those_that_are_asked_for() {
    let rig = Rig::new();
    let etag = stored(&rig);
    let ask = |names: &str| {
        let headers = [("x-amz-object-attributes", names)];
        rig.send("GET", "/demo/k?attributes", &headers, "").unwrap()
    };
    let all = ask("ETag,Checksum,ObjectParts,StorageClass,ObjectSize");
    assert_eq!((all.status, all.element("ObjectSize"), all.element("StorageClass")), (200, "5", "STANDARD"));
    assert_eq!((all.element("ChecksumCRC32C"), all.element("ChecksumType")), ("mnG7TA==", "FULL_OBJECT"));
    assert!(all.element("ETag").contains(etag.trim_matches('"')), "{}", all.text());
    assert_ne!(all.header("last-modified"), "");
    assert_eq!(ask("ObjectSize").element("StorageClass"), "");
    assert_eq!(ask("Colour").element("Code"), "InvalidArgument");
}

#[test]
fn what_is_no_request_for_the_object_itself_leaves_it_alone() {
    let rig = Rig::new();
    stored(&rig);
    let send = |method: &str, path: &str, headers: &[(&str, &str)]| -> Answer {
        rig.send(method, path, headers, "other").unwrap()
    };
    let offset = [("x-amz-write-offset-bytes", "5")];
    let rename = [("x-amz-rename-source", "/k")];
    assert_eq!(send("PUT", "/demo/k", &offset).element("Code"), "NotImplemented");
    assert_eq!(send("PUT", "/demo/new?renameObject", &rename).element("Code"), "NotImplemented");
    assert_eq!(send("PUT", "/demo/k?attributes", &[]).element("Code"), "MethodNotAllowed");
    assert_eq!(send("DELETE", "/demo/k?acl", &[]).element("Code"), "MethodNotAllowed");
    assert_eq!(send("DELETE", "/demo?versioning", &[]).element("Code"), "MethodNotAllowed");
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
    assert_eq!(rig.get("/demo/k").text(), "hello");
}

#[test]
fn copies_are_bound_to_both_ends() {
    let rig = Rig::new();
    let etag = stored(&rig);
    let (past, future) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 2100 00:00:00 GMT");
    let copy = |headers: &[(&str, &str)]| {
        let headers = [&[("x-amz-copy-source", "/demo/k")], headers].concat();
        rig.send("PUT", "/demo/copy", &headers, "").unwrap().status
    };
    assert_eq!(copy(&[("x-amz-copy-source-if-none-match", &etag)]), 412);
    assert_eq!(copy(&[("x-amz-copy-source-if-modified-since", future)]), 412);
    assert_eq!(copy(&[("x-amz-copy-source-if-unmodified-since", past)]), 412);
    assert!(!rig.server.store().keys("demo").contains(&"copy".to_owned()));
    let both =
        [("x-amz-copy-source-if-match", etag.as_str()), ("x-amz-copy-source-if-unmodified-since", past)];
    assert_eq!(copy(&both), 200, "the ETag decides");
    assert_eq!(copy(&[("if-none-match", "*")]), 412);
    assert_eq!(copy(&[("if-match", "\"0\"")]), 412);
    assert_eq!(copy(&[("if-match", &etag)]), 200);
}

#[test]
fn an_answer_that_nothing_has_changed_says_which_state_it_means() {
    let rig = Rig::new();
    let etag = stored(&rig);
    for method in ["GET", "HEAD"] {
        for condition in
            [("if-none-match", etag.as_str()), ("if-modified-since", "Fri, 31 Dec 2100 00:00:00 GMT")]
        {
            let unchanged = rig.send(method, "/demo/k", &[condition], "").unwrap();
            assert_eq!((unchanged.status, unchanged.header("etag")), (304, etag.as_str()), "{method}");
            assert!(!unchanged.header("last-modified").is_empty() && unchanged.body.is_empty());
        }
    }
}

#[test]
fn checksums_that_are_not_computed_are_refused_not_ignored() {
    let rig = Rig::new();
    for headers in [
        &[("x-amz-checksum-blake3", "AAAA")][..],
        &[("x-amz-checksum-crc32c", "mnG7TA=="), ("x-amz-checksum-crc32", "NhCmhg==")],
        &[("x-amz-sdk-checksum-algorithm", "CRC32C")],
    ] {
        let refused = rig.send("PUT", "/demo/k", headers, "hello").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (400, "InvalidRequest"), "{headers:?}");
    }
    for headers in [
        [("x-amz-checksum-sha512", "AAAA")],
        [("x-amz-checksum-xxhash64", "AAAA")],
        [("x-amz-trailer", "x-amz-checksum-md5")],
        [("x-amz-checksum-algorithm", "XXHASH3")],
    ] {
        let refused = rig.send("PUT", "/demo/k", &headers, "hello").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (501, "NotImplemented"), "{headers:?}");
    }
    let begun = rig.send("POST", "/demo/k?uploads", &[("x-amz-checksum-algorithm", "SHA512")], "").unwrap();
    assert_eq!(begun.element("Code"), "NotImplemented");
    let begun = rig.send("POST", "/demo/k?uploads", &[("x-amz-checksum-algorithm", "CRC8")], "").unwrap();
    assert_eq!(begun.element("Code"), "InvalidRequest");
    assert!(rig.server.store().keys("demo").is_empty());
}

#[test]
fn buckets_have_names_that_s3_allows() {
    let rig = Rig::new();
    for name in ["ab", "Capital", "under_score", "xn--puny", "10.0.0.1"] {
        assert_eq!(
            rig.send("PUT", &format!("/{name}"), &[], "").unwrap().element("Code"),
            "InvalidBucketName",
            "{name}"
        );
    }
    assert_eq!(rig.send("PUT", "/fine.name-1", &[], "").unwrap().status, 200);
}
