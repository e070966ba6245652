//! Requests that Google's own clients and other GCS clients send to an emulator.

use crate::client::{Answer, Rig};

const UPLOAD: &str = "/upload/storage/v1/b/demo/o";

fn put(rig: &Rig, key: &str, body: impl Into<bytes::Bytes>) -> serde_json::Value {
    let path = format!("{UPLOAD}?uploadType=media&name={key}");
    rig.send("POST", &path, &[], body).unwrap().json()
}

fn post(rig: &Rig, path: &str, body: &str) -> Answer {
    rig.send("POST", path, &[("content-type", "application/json")], body.to_owned()).unwrap()
}

#[test]
fn a_multipart_body_with_bare_line_feeds_and_a_quoted_boundary_is_taken() {
    let rig = Rig::new();
    for (name, content_type, boundary) in [
        ("gcsfs", "multipart/related; boundary=\"==0==\"", "==0=="),
        ("gcloud", "multipart/related; boundary='===1=='", "===1=="),
    ] {
        let body = format!(
            "--{boundary}\nContent-Type: application/json\n\n{{\"name\":\"{name}\"}}\n--{boundary}\n\
             Content-Type: text/plain\n\na\r\n\n--{boundary}--"
        );
        let path = format!("{UPLOAD}?uploadType=multipart");
        let stored = rig.send("POST", &path, &[("content-type", content_type)], body).unwrap();
        assert_eq!(stored.status, 200, "{}", stored.text());
        assert_eq!(rig.get(&format!("/storage/v1/b/demo/o/{name}?alt=media")).text(), "a\r\n");
    }
}

#[test]
fn go_is_told_in_a_header_that_a_session_is_incomplete() {
    let rig = Rig::new();
    let begun = post(&rig, &format!("{UPLOAD}?uploadType=resumable&name=k"), "{}");
    let session = begun.header("location").strip_prefix(&rig.server.url()).unwrap();
    let chunk = vec![b'x'; 256 << 10];
    let headers = [("content-range", "bytes 0-262143/*"), ("x-guploader-no-308", "yes")];
    let answer = rig.send("PUT", session, &headers, chunk.clone()).unwrap();
    assert_eq!((answer.status, answer.header("x-http-status-code-override")), (200, "308"));
    assert_eq!(answer.header("range"), "bytes=0-262143");
    let usual = rig.send("PUT", session, &[("content-range", "bytes */*")], "").unwrap();
    assert_eq!((usual.status, usual.header("x-http-status-code-override")), (308, ""));
    let last = [("content-range", "bytes 262144-524287/524288"), ("x-guploader-no-308", "yes")];
    let done = rig.send("PUT", session, &last, chunk).unwrap();
    assert_eq!((done.status, done.header("x-http-status-code-override")), (200, ""));
}

#[test]
fn every_object_that_is_not_composed_has_an_md5() {
    let rig = Rig::new();
    let large = put(&rig, "large", vec![b'x'; (8 << 20) + 1]);
    assert_eq!(large["md5Hash"].as_str().unwrap().len(), 24);
    put(&rig, "small", "x");
    let sources = r#"{"sourceObjects":[{"name":"large"},{"name":"small"}]}"#;
    let composed = post(&rig, "/storage/v1/b/demo/o/both/compose", sources).json();
    assert!(composed["md5Hash"].is_null() && composed["crc32c"].is_string(), "{composed}");
}

#[test]
fn an_empty_bearer_token_speaks_the_xml_api() {
    let rig = Rig::new();
    let token = ("authorization", "Bearer ");
    let stored = rig.send("PUT", "/demo/k", &[token], "bytes").unwrap();
    assert!(stored.status == 200 && !stored.header("x-goog-generation").is_empty());
    let got = rig.send("GET", "/demo/k", &[token], "").unwrap();
    assert_eq!((got.text(), got.header("x-goog-stored-content-length")), ("bytes", "5"));
}

#[test]
fn a_request_without_any_mark_is_told_what_either_dialect_tells() {
    let rig = Rig::new();
    let marked = [("x-goog-meta-colour", "red")];
    let generation =
        rig.send("PUT", "/demo/k", &marked, "bytes").unwrap().header("x-goog-generation").to_owned();
    for method in ["GET", "HEAD"] {
        let bare = rig.send(method, "/demo/k", &[], "").unwrap();
        assert_eq!(bare.header("x-goog-generation"), generation, "{method}");
        assert_eq!((bare.header("x-goog-meta-colour"), bare.header("x-amz-meta-colour")), ("red", "red"));
        let s3 = rig.send(method, "/demo/k", &[("x-amz-checksum-mode", "ENABLED")], "").unwrap();
        assert_eq!(s3.header("x-goog-generation"), "", "{method}");
    }
    assert_ne!(rig.send("PUT", "/demo/other", &[], "x").unwrap().header("x-goog-generation"), "");
}

#[test]
fn a_bucket_tells_its_layout() {
    let rig = Rig::new();
    let layout = rig.get("/storage/v1/b/demo/storageLayout").json();
    assert_eq!((&layout["kind"], &layout["bucket"]), (&"storage#storageLayout".into(), &"demo".into()));
    assert_eq!(layout["hierarchicalNamespace"]["enabled"], false);
    assert_eq!(rig.get("/storage/v1/b/missing/storageLayout").status, 404);
}

#[test]
fn managed_folders_are_made_listed_and_removed() {
    let rig = Rig::new();
    let path = "/storage/v1/b/demo/managedFolders";
    assert_eq!(rig.get(path).json()["items"].as_array(), None);
    for name in ["a/", "a/b", "c/"] {
        assert_eq!(post(&rig, path, &format!("{{\"name\":\"{name}\"}}")).status, 200);
    }
    assert_eq!(post(&rig, path, "{\"name\":\"a/\"}").status, 409);
    let first = rig.get(&format!("{path}?prefix=a&pageSize=1")).json();
    assert_eq!(first["items"][0]["name"], "a/");
    let token = first["nextPageToken"].as_str().unwrap();
    let second = rig.get(&format!("{path}?prefix=a&pageSize=1&pageToken={token}")).json();
    assert_eq!(
        (&second["items"][0]["name"], &second["nextPageToken"]),
        (&"a/b/".into(), &serde_json::Value::Null)
    );
    assert_eq!(rig.get(&format!("{path}/a%2Fb%2F")).json()["kind"], "storage#managedFolder");
    put(&rig, "c%2Fobject", "x");
    let delete = |name: &str| rig.send("DELETE", &format!("{path}/{name}"), &[], "").unwrap().status;
    assert_eq!((delete("a%2F"), delete("a%2F"), delete("c%2F")), (204, 404, 409));
    assert_eq!(delete("c%2F?allowNonEmpty=true"), 204);
}

#[test]
fn a_listing_is_filtered_by_a_pattern() {
    let rig = Rig::new();
    for key in ["a.txt", "b%2Fc.csv", "b%2Fd.txt"] {
        put(&rig, key, "x");
    }
    let names = |query: &str| -> Vec<String> {
        let listed = rig.get(&format!("/storage/v1/b/demo/o?{query}")).json();
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("matchGlob=**.txt"), ["a.txt", "b/d.txt"]);
    assert_eq!(names("matchGlob=*.txt"), ["a.txt"]);
    assert_eq!(names("matchGlob=b%2F*.{csv,json}"), ["b/c.csv"]);
    assert_eq!(rig.get("/storage/v1/b/demo/o?matchGlob=%5Ba").status, 400);
    assert_eq!(rig.get("/storage/v1/b/demo/o?matchGlob=a&delimiter=x").status, 400);
}

#[test]
fn custom_time_is_kept_and_only_moves_on() {
    let rig = Rig::new();
    put(&rig, "k", "x");
    let patch = |time: &str| {
        let body = format!("{{\"customTime\":{time}}}");
        rig.send("PATCH", "/storage/v1/b/demo/o/k", &[], body).unwrap()
    };
    assert_eq!(patch("\"2026-11-22T01:02:03Z\"").json()["customTime"], "2026-11-22T01:02:03Z");
    assert_eq!(patch("\"2026-11-21T00:00:00Z\"").status, 400);
    assert_eq!(patch("null").status, 400);
    let got = rig.get("/storage/v1/b/demo/o/k?alt=media");
    assert_eq!(got.header("x-goog-custom-time"), "2026-11-22T01:02:03Z");
}

#[test]
fn a_move_leaves_nothing_behind_and_respects_both_ends() {
    let rig = Rig::new();
    let generation = put(&rig, "from", "bytes")["generation"].as_str().unwrap().to_owned();
    put(&rig, "there", "x");
    let described = r#"{"contentType":"x/y","metadata":{"a":"b"}}"#;
    assert_eq!(rig.send("PATCH", "/storage/v1/b/demo/o/from", &[], described).unwrap().status, 200);
    let to =
        |key: &str, query: &str| post(&rig, &format!("/storage/v1/b/demo/o/from/moveTo/o/{key}?{query}"), "");
    assert_eq!(to("there", "ifGenerationMatch=0").status, 412);
    assert_eq!(to("new", "ifSourceGenerationMatch=7").status, 412);
    assert_eq!(to("from", "").status, 400);
    let moved = to("a%2Fnew", &format!("ifSourceGenerationMatch={generation}&ifGenerationMatch=0")).json();
    assert_eq!((&moved["name"], &moved["size"]), (&"a/new".into(), &"5".into()));
    assert_ne!(moved["generation"].as_str(), Some(generation.as_str()));
    assert_eq!((&moved["metageneration"], &moved["metadata"]["a"]), (&"1".into(), &"b".into()));
    assert_eq!(moved["contentType"], "x/y");
    assert_eq!(rig.server.store().keys("demo"), ["a/new", "there"]);
    assert_eq!(to("b", "").status, 404);
}

#[test]
fn paths_without_their_version_are_answered() {
    let rig = Rig::new();
    put(&rig, "k", "bytes");
    assert_eq!(rig.get("/b/demo/o/k?alt=media").text(), "bytes");
    assert_eq!(rig.get("/b/demo/o").json()["items"][0]["name"], "k");
    assert_eq!(rig.get("/b/demo").json()["kind"], "storage#bucket");
    assert_eq!(post(&rig, "/b?project=p", "{\"name\":\"made\"}").status, 200);
}

#[test]
fn accepts_gzip_json_bodies_even_empty_ones_as_googles_java_client_does() {
    let rig = Rig::new();
    put(&rig, "from", "text");
    let send = |path: &str, body: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, body).unwrap();
        let headers = [("content-encoding", "gzip"), ("content-type", "application/json")];
        rig.send("POST", path, &headers, gzip.finish().unwrap()).unwrap()
    };
    let copied = send("/storage/v1/b/demo/o/from/rewriteTo/b/demo/o/to", b"");
    assert_eq!(copied.status, 200, "{}", copied.text());
    assert_eq!(rig.get("/storage/v1/b/demo/o/to?alt=media").text(), "text");
    let described =
        send("/storage/v1/b/demo/o/from/rewriteTo/b/demo/o/html", br#"{"contentType":"text/html"}"#);
    assert_eq!(described.json()["resource"]["contentType"], "text/html");
    assert_eq!(send("/storage/v1/b/demo/o/from/rewriteTo/b/demo/o/large", &vec![b' '; 2 << 20]).status, 400);
    let headers = [("content-encoding", "gzip")];
    let plain =
        rig.send("POST", "/storage/v1/b/demo/o/from/rewriteTo/b/demo/o/plain", &headers, "{}").unwrap();
    assert_eq!(plain.status, 400);
}
