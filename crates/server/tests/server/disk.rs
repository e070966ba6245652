//! The content that a server begins with and is reset to, its endpoints for tests, and the store on disk.

use std::path::Path;

use laneway_server::{Config, Server, Storage};

use crate::client::{Answer, Protocol, Rig};

fn rig(root: &Path) -> Rig {
    Rig::with(Protocol::TlsH2, |config| {
        config.storage = Storage::Disk(root.to_owned());
        config.s3.part_size_min = 0;
    })
}

#[test]
fn objects_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let first = rig(folder.path());
    let headers = [("content-type", "text/plain"), ("x-amz-meta-a", "1")];
    let etag = first.send("PUT", "/demo/a//b", &headers, "hello").unwrap().header("etag").to_owned();
    let generation = first.get("/storage/v1/b/demo/o/a%2F%2Fb").json()["generation"].clone();
    drop(first);
    let second = rig(folder.path());
    let got = second.get("/demo/a//b");
    assert_eq!((got.text(), got.header("etag"), got.header("x-amz-meta-a")), ("hello", etag.as_str(), "1"));
    assert_eq!(second.get("/storage/v1/b/demo/o/a%2F%2Fb").json()["generation"], generation);
}

#[test]
fn parts_and_compositions_share_files_until_their_last_object_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(folder.path());
    let data = vec![9; 3 << 20];
    let begun = rig.send("POST", "/demo/k?uploads", &[], "").unwrap();
    let id = begun.element("UploadId");
    let part = |number: u32| {
        rig.send("PUT", &format!("/demo/k?partNumber={number}&uploadId={id}"), &[], data.clone()).unwrap()
    };
    let etags = [part(1), part(2)].map(|answer| answer.header("etag").to_owned());
    let body = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>\
         <Part><PartNumber>2</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
        etags[0], etags[1]
    );
    assert_eq!(rig.send("POST", &format!("/demo/k?uploadId={id}"), &[], body).unwrap().status, 200);
    rig.send("PUT", "/demo/copy", &[("x-amz-copy-source", "/demo/k")], "").unwrap();
    assert_eq!(rig.get("/demo/copy").body.len(), 6 << 20);
    assert_eq!(data_files(folder.path()), 2);
    rig.send("DELETE", "/demo/k", &[], "").unwrap();
    let crossing = rig.send("GET", "/demo/copy", &[("range", "bytes=3145727-3145728")], "").unwrap();
    assert_eq!(&crossing.body[..], [9, 9]);
    rig.send("DELETE", "/demo/copy", &[], "").unwrap();
    assert_eq!(data_files(folder.path()), 0);
}

#[test]
fn uploads_in_parts_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let key = "/demo/k";
    let first = rig(folder.path());
    let [id, aborted] = [(), ()].map(|()| {
        let begun = first.send("POST", &format!("{key}?uploads"), &[("x-amz-meta-a", "1")], "").unwrap();
        begun.element("UploadId").to_owned()
    });
    let part = |rig: &Rig, id: &str, number: u32, bytes: &'static str| {
        let target = format!("{key}?partNumber={number}&uploadId={id}");
        rig.send("PUT", &target, &[], bytes).unwrap().header("etag").to_owned()
    };
    part(&first, &id, 1, "replaced");
    let one = part(&first, &id, 1, "one, ");
    part(&first, &aborted, 1, "never");
    first.send("DELETE", &format!("{key}?uploadId={aborted}"), &[], "").unwrap();
    drop(first);
    let second = rig(folder.path());
    assert_eq!(second.get(&format!("{key}?uploadId={aborted}")).status, 404);
    let two = part(&second, &id, 2, "two");
    let parts = [(1, one), (2, two)]
        .map(|(number, etag)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"));
    let body = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.concat());
    assert_eq!(second.send("POST", &format!("{key}?uploadId={id}"), &[], body).unwrap().status, 200);
    drop(second);
    let third = rig(folder.path());
    let got = third.get(key);
    assert_eq!((got.text(), got.header("x-amz-meta-a")), ("one, two", "1"));
    assert_eq!(third.get(&format!("{key}?uploadId={id}")).status, 404);
    assert_eq!(data_files(folder.path()), 2);
    third.send("DELETE", key, &[], "").unwrap();
    assert_eq!(data_files(folder.path()), 0);
}

#[test]
fn resumable_sessions_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let begin = |rig: &Rig, name: &str, metadata: &str| {
        let target = format!("/upload/storage/v1/b/demo/o?uploadType=resumable&name={name}");
        let begun = rig.send("POST", &target, &[("content-type", "application/json")], metadata.to_owned());
        begun.unwrap().header("location").strip_prefix(&rig.server.url()).unwrap().to_owned()
    };
    let chunk = |rig: &Rig, session: &str, range: &str, body: &[u8]| {
        rig.send("PUT", session, &[("content-range", range)], body.to_vec()).unwrap()
    };
    let data: Vec<u8> = (0..(512 << 10) + 5).map(|n: u32| (n % 251) as u8).collect();
    let md5 = "qGyET30OH/RwbcEMH511Aw==";
    let first = rig(folder.path());
    let session = begin(&first, "k", &format!(r#"{{"md5Hash":"{md5}","metadata":{{"a":"1"}}}}"#));
    let untouched = begin(&first, "untouched", "");
    let cancelled = begin(&first, "cancelled", "");
    let done = begin(&first, "done", "");
    assert_eq!(chunk(&first, &session, "bytes 0-262143/*", &data[..262_144]).status, 308);
    chunk(&first, &cancelled, "bytes 0-262143/*", &data[..262_144]);
    assert_eq!(first.send("DELETE", &cancelled, &[], "").unwrap().status, 499);
    assert_eq!(chunk(&first, &done, "bytes 0-4/5", b"hello").status, 200);
    drop(first);
    let second = rig(folder.path());
    assert_eq!(second.server.counters().resumable_open, 2);
    assert_eq!(chunk(&second, &cancelled, "bytes */*", b"").status, 404);
    assert_eq!(chunk(&second, &done, "bytes */*", b"").json()["size"], "5");
    let asked = chunk(&second, &session, "bytes */524293", b"");
    assert_eq!((asked.status, asked.header("range")), (308, "bytes=0-262143"));
    let next = chunk(&second, &session, "bytes 262144-524287/524293", &data[262_144..524_288]);
    assert_eq!((next.status, next.header("range")), (308, "bytes=0-524287"));
    drop(second);
    let third = rig(folder.path());
    let other = chunk(&third, &session, "bytes */524294", b"");
    assert_eq!(other.status, 400, "the size was announced before the restart");
    let last = chunk(&third, &session, "bytes 524288-524292/524293", &data[524_288..]);
    assert_eq!((last.status, last.json()["md5Hash"].as_str()), (200, Some(md5)));
    assert_eq!((third.get("/demo/k").body, third.get("/demo/k").header("x-goog-meta-a")), (data.into(), "1"));
    assert_eq!(chunk(&third, &untouched, "bytes 0-1/2", b"hi").status, 200);
    assert_eq!(data_files(folder.path()), 3);
    for key in ["k", "untouched", "done"] {
        third.send("DELETE", &format!("/demo/{key}"), &[], "").unwrap();
    }
    assert_eq!(data_files(folder.path()), 0);
}

#[test]
fn an_overwritten_object_is_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(folder.path());
    for n in 0..20u8 {
        assert_eq!(rig.send("PUT", "/demo/k", &[], vec![n; 1000 + n as usize]).unwrap().status, 200);
        assert_eq!(rig.get("/demo/k").body, vec![n; 1000 + n as usize]);
    }
    assert_eq!(data_files(folder.path()), 1);
}

fn data_files(root: &Path) -> usize {
    let folders = std::fs::read_dir(root.join("data")).unwrap().flatten();
    folders.map(|folder| std::fs::read_dir(folder.path()).unwrap().count()).sum()
}

fn send(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    rig.send(method, path, headers, body.to_owned()).unwrap()
}

#[test]
fn the_server_tells_its_health_and_is_reset() {
    let rig = Rig::new();
    assert_eq!((rig.get("/_laneway/health").status, rig.get("/_laneway/health").text()), (200, "ok\n"));
    rig.server.store().put("demo", "k", b"x").unwrap();
    rig.server.store().put("other", "k", b"x").unwrap();
    send(
        &rig,
        "PATCH",
        "/storage/v1/b/demo/o/k",
        &[("content-type", "application/json")],
        r#"{"temporaryHold": true}"#,
    );
    send(&rig, "POST", "/demo/k?uploads", &[], "");
    assert_eq!(send(&rig, "POST", "/_laneway/reset", &[], "").status, 204);
    let buckets = rig.get("/").text().to_owned();
    assert!(buckets.contains("<Name>demo</Name>") && !buckets.contains("<Name>other</Name>"), "{buckets}");
    assert!(rig.server.store().keys("demo").is_empty() && rig.server.uploads_open("demo").is_empty());
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let storage = Storage::Disk(folder.path().to_owned());
        Server::start(Config { storage, ..Config::default() })
    };
    drop(start().unwrap());
    drop(start().unwrap());
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let refused = start().map(drop).unwrap_err().to_string();
    assert!(refused.contains("notes.txt"), "{refused}");
}

#[test]
fn a_reset_restores_the_files_of_a_seed() {
    let seed = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = seed.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("fixtures/a/b", "first");
    std::fs::create_dir(seed.path().join("bare")).unwrap();
    let rig = Rig::new();
    rig.server.sow(seed.path()).unwrap();
    assert_eq!(rig.get("/fixtures/a/b").text(), "first");
    assert_eq!(rig.get("/bare").status, 200);

    assert_eq!(send(&rig, "PUT", "/fixtures/a/b", &[], "other").status, 200);
    assert_eq!(send(&rig, "PUT", "/fixtures/c", &[], "more").status, 200);
    write("fixtures/d", "second");
    assert_eq!(send(&rig, "POST", "/_laneway/reset", &[], "").status, 204);
    assert_eq!(rig.server.store().keys("fixtures"), ["a/b", "d"]);
    assert_eq!(rig.get("/fixtures/a/b").text(), "first");
    assert_eq!(rig.get("/bare").status, 200);
    assert_eq!(rig.get("/demo").status, 200);
}

#[test]
fn a_seed_that_is_no_bucket_is_named() {
    let seed = tempfile::tempdir().unwrap();
    let rig = Rig::new();
    std::fs::create_dir(seed.path().join("Capital")).unwrap();
    let refused = rig.server.sow(seed.path()).unwrap_err().to_string();
    assert!(refused.contains("Capital"), "{refused}");
    std::fs::remove_dir(seed.path().join("Capital")).unwrap();
    std::fs::write(seed.path().join("stray"), "").unwrap();
    let refused = rig.server.sow(seed.path()).unwrap_err().to_string();
    assert!(refused.contains("stray") && refused.contains("only folders, one for each bucket"), "{refused}");
    let failed = send(&rig, "POST", "/_laneway/reset", &[], "");
    assert_eq!(failed.status, 500);
    assert!(failed.text().contains("stray"), "{}", failed.text());
}
