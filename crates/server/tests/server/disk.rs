//! The store on disk, through the protocols.

use std::path::Path;

use laneway_server::Storage;

use crate::client::{Protocol, Rig};

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
fn parts_and_compositions_share_files_that_are_removed_with_their_last_object() {
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
