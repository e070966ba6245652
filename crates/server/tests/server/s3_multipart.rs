//! Multipart uploads of the S3 dialect.

use crate::client::{Answer, Protocol, Rig};

fn rig() -> Rig {
    Rig::with(Protocol::PlainH1, |config| config.s3.part_size_min = 0)
}

fn begin(rig: &Rig, headers: &[(&str, &str)]) -> String {
    let begun = rig.send("POST", "/demo/k?uploads", headers, "").unwrap();
    assert_eq!(begun.status, 200, "{}", begun.text());
    begun.element("UploadId").to_owned()
}

fn part(rig: &Rig, id: &str, number: u32, headers: &[(&str, &str)], body: &str) -> Answer {
    rig.send("PUT", &format!("/demo/k?partNumber={number}&uploadId={id}"), headers, body.to_owned()).unwrap()
}

fn complete(rig: &Rig, id: &str, headers: &[(&str, &str)], parts: &[(u32, &str)]) -> Answer {
    let parts: String = parts
        .iter()
        .map(|(number, etag)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"))
        .collect();
    let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    rig.send("POST", &format!("/demo/k?uploadId={id}"), headers, body).unwrap()
}

#[test]
fn the_etag_is_the_md5_of_md5s_and_the_checksum_is_of_the_whole() {
    let rig = rig();
    let id = begin(&rig, &[]);
    let second = part(&rig, &id, 2, &[], "lo").header("etag").to_owned();
    let first = part(&rig, &id, 1, &[], "hel").header("etag").to_owned();
    assert_eq!(rig.server.counters().multipart_open, 1);
    let done = complete(&rig, &id, &[], &[(1, &first), (2, &second)]);
    // The ETag is the MD5 of both parts' MD5s, md5(md5("hel") + md5("lo")), and the number of parts.
    assert!(
        done.element("ETag").trim_matches('"').trim_matches(['&', ';']).contains("-2"),
        "{}",
        done.text()
    );
    assert_eq!((done.element("ChecksumType"), rig.get("/demo/k").text()), ("FULL_OBJECT", "hello"));
    let whole = rig.send("PUT", "/demo/whole", &[], "hello").unwrap();
    assert_eq!(done.element("ChecksumCRC64NVME"), whole.header("x-amz-checksum-crc64nvme"));
    assert_eq!(rig.server.counters().multipart_open, 0);
}

#[test]
fn crc32c_is_composite_or_of_the_full_object_as_chosen() {
    for (kind, expected) in [("COMPOSITE", None), ("FULL_OBJECT", Some("mnG7TA=="))] {
        let rig = rig();
        let id = begin(&rig, &[("x-amz-checksum-algorithm", "CRC32C"), ("x-amz-checksum-type", kind)]);
        let first = part(&rig, &id, 1, &[], "hel");
        assert_ne!(first.header("x-amz-checksum-crc32c"), "");
        let second = part(&rig, &id, 2, &[], "lo");
        let done = complete(&rig, &id, &[], &[(1, first.header("etag")), (2, second.header("etag"))]);
        assert_eq!(done.element("ChecksumType"), kind);
        let value = done.element("ChecksumCRC32C");
        match expected {
            Some(expected) => assert_eq!(value, expected),
            None => assert!(value.ends_with("-2")),
        }
        let head = rig.send("HEAD", "/demo/k", &[("x-amz-checksum-mode", "ENABLED")], "").unwrap();
        assert_eq!((head.header("x-amz-checksum-crc32c"), head.header("x-amz-checksum-type")), (value, kind));
    }
}

#[test]
fn attributes_list_the_parts_that_have_checksums_page_by_page() {
    let upload = |rig: &Rig, headers: &[(&str, &str)]| {
        let id = begin(rig, headers);
        let parts = [(1, "hel"), (2, "l"), (3, "o")];
        let tags = parts.map(|(number, body)| (number, part(rig, &id, number, &[], body)));
        let named: Vec<_> = tags.iter().map(|(number, answer)| (*number, answer.header("etag"))).collect();
        assert_eq!(complete(rig, &id, &[], &named).status, 200);
    };
    let ask = |rig: &Rig, marker: &str| {
        let asked = ("x-amz-object-attributes", "ObjectParts");
        let page = [asked, ("x-amz-max-parts", "2"), ("x-amz-part-number-marker", marker)];
        rig.send("GET", "/demo/k?attributes", &page, "").unwrap()
    };
    let sizes = |answer: &Answer| answer.text().matches("<Size>").count();
    let rig = rig();
    upload(&rig, &[("x-amz-checksum-algorithm", "CRC32")]);
    let (first, second) = (ask(&rig, "0"), ask(&rig, "2"));
    assert_eq!(
        (sizes(&first), first.element("IsTruncated"), first.element("NextPartNumberMarker")),
        (2, "true", "2")
    );
    assert_eq!((first.element("Size"), first.element("PartsCount")), ("3", "3"));
    assert_eq!(
        (sizes(&second), second.element("IsTruncated"), second.element("PartNumber")),
        (1, "false", "3")
    );
    assert_ne!(second.element("ChecksumCRC32"), "");
    // If the parts have no checksums, Amazon returns only their count.
    upload(&rig, &[]);
    let counted = ask(&rig, "0");
    assert_eq!((sizes(&counted), counted.element("PartsCount")), (0, "3"));
}

#[test]
fn wrong_checksums_of_part_and_whole_are_refused() {
    let rig = rig();
    let id = begin(&rig, &[("x-amz-checksum-algorithm", "CRC32C"), ("x-amz-checksum-type", "FULL_OBJECT")]);
    assert_eq!(
        part(&rig, &id, 1, &[("x-amz-checksum-crc32c", "AAAAAA==")], "hello").element("Code"),
        "BadDigest"
    );
    assert_eq!(
        part(&rig, &id, 1, &[("x-amz-checksum-sha1", "AAAA")], "hello").element("Code"),
        "InvalidRequest"
    );
    let etag =
        part(&rig, &id, 1, &[("x-amz-checksum-crc32c", "mnG7TA==")], "hello").header("etag").to_owned();
    let wrong = complete(&rig, &id, &[("x-amz-checksum-crc32c", "AAAAAA==")], &[(1, &etag)]);
    assert_eq!(wrong.element("Code"), "BadDigest");
    assert_eq!(complete(&rig, &id, &[("x-amz-checksum-crc32c", "mnG7TA==")], &[(1, &etag)]).status, 200);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let rig = Rig::new();
    let id = begin(&rig, &[]);
    let etags: Vec<String> =
        [1, 2].map(|number| part(&rig, &id, number, &[], "x").header("etag").to_owned()).into();
    let code = |parts: &[(u32, &str)]| complete(&rig, &id, &[], parts).element("Code").to_owned();
    assert_eq!(code(&[(1, &etags[0]), (2, &etags[1])]), "EntityTooSmall");
    assert_eq!(code(&[(2, &etags[1]), (1, &etags[0])]), "InvalidPartOrder");
    assert_eq!(code(&[(3, &etags[0])]), "InvalidPart");
    assert_eq!(code(&[(1, "\"0\"")]), "InvalidPart");
    assert_eq!(part(&rig, &id, 0, &[], "x").element("Code"), "InvalidArgument");
    // A single part is the last one, and may be small.
    assert_eq!(code(&[(1, &etags[0])]), "");
    assert_eq!(code(&[(1, &etags[0]), (2, &etags[1])]), "NoSuchUpload", "it was completed of other parts");
}

#[test]
fn who_completes_again_gets_the_same_answer() {
    let rig = rig();
    let id = begin(&rig, &[]);
    let etag = part(&rig, &id, 1, &[], "x").header("etag").to_owned();
    let first = complete(&rig, &id, &[("if-none-match", "*")], &[(1, &etag)]);
    assert_eq!(first.status, 200);
    rig.send("PUT", "/demo/k", &[], "newer").unwrap();
    let again = complete(&rig, &id, &[("if-none-match", "*")], &[(1, &etag)]);
    assert_eq!((again.status, again.text()), (200, first.text()));
    assert_eq!(rig.get("/demo/k").text(), "newer");
}

#[test]
fn a_range_beyond_the_end_of_its_source_is_refused() {
    let rig = rig();
    rig.send("PUT", "/demo/source", &[], "0123456789").unwrap();
    let id = begin(&rig, &[]);
    for range in ["bytes=8-10", "bytes=10-12", "bytes=2-", "bytes=-2"] {
        let headers = [("x-amz-copy-source", "/demo/source"), ("x-amz-copy-source-range", range)];
        let refused = part(&rig, &id, 1, &headers, "");
        assert_eq!((refused.status, refused.element("Code")), (400, "InvalidArgument"), "{range}");
    }
    let stale = [("x-amz-copy-source", "/demo/source"), ("x-amz-copy-source-if-match", "\"0\"")];
    assert_eq!(part(&rig, &id, 1, &stale, "").status, 412);
}

#[test]
fn a_copied_part_tells_the_encryption_of_its_upload() {
    let rig = rig();
    rig.send("PUT", "/demo/source", &[], "hello").unwrap();
    let id = begin(&rig, &[("x-amz-server-side-encryption", "aws:kms")]);
    let copied = part(&rig, &id, 1, &[("x-amz-copy-source", "/demo/source")], "");
    assert_eq!((copied.status, copied.header("x-amz-server-side-encryption")), (200, "aws:kms"));
}

#[test]
fn a_part_is_read_by_its_number() {
    let rig = rig();
    let id = begin(&rig, &[]);
    let etags: Vec<String> = [(1, "hel"), (2, "lo")]
        .map(|(n, text)| part(&rig, &id, n, &[], text).header("etag").to_owned())
        .into();
    complete(&rig, &id, &[], &[(1, &etags[0]), (2, &etags[1])]);
    let second = rig.get("/demo/k?partNumber=2");
    assert_eq!((second.status, second.text(), second.header("content-range")), (206, "lo", "bytes 3-4/5"));
    assert_eq!(second.header("x-amz-mp-parts-count"), "2");
    assert_eq!(rig.get("/demo/k?partNumber=3").status, 416);
    let both = rig.send("GET", "/demo/k?partNumber=1", &[("range", "bytes=0-1")], "").unwrap();
    assert_eq!(both.element("Code"), "InvalidRequest");
    rig.send("PUT", "/demo/empty", &[], "").unwrap();
    for method in ["GET", "HEAD"] {
        let empty = rig.send(method, "/demo/empty?partNumber=1", &[], "").unwrap();
        assert_eq!((empty.status, empty.header("content-length")), (200, "0"));
    }
}

#[test]
fn a_completion_may_demand_that_nobody_was_faster() {
    let rig = rig();
    let id = begin(&rig, &[]);
    let etag = part(&rig, &id, 1, &[], "x").header("etag").to_owned();
    rig.send("PUT", "/demo/k", &[], "faster").unwrap();
    let refused = complete(&rig, &id, &[("if-none-match", "*")], &[(1, &etag)]);
    assert_eq!(refused.element("Code"), "PreconditionFailed");
    assert_eq!(rig.get("/demo/k").text(), "faster");
}

#[test]
fn a_part_is_copied_from_a_range_of_an_object() {
    let rig = rig();
    rig.send("PUT", "/demo/source", &[], "0123456789").unwrap();
    let id = begin(&rig, &[]);
    let headers = [("x-amz-copy-source", "/demo/source"), ("x-amz-copy-source-range", "bytes=2-4")];
    let copied = part(&rig, &id, 1, &headers, "");
    assert_eq!(copied.status, 200, "{}", copied.text());
    let etag = copied.element("ETag").replace("&quot;", "\"");
    assert_eq!(complete(&rig, &id, &[], &[(1, &etag)]).status, 200);
    assert_eq!(rig.get("/demo/k").text(), "234");
}

#[test]
fn uploads_and_parts_are_listed_and_aborted() {
    let rig = rig();
    let id = begin(&rig, &[]);
    for number in 1..=3 {
        part(&rig, &id, number, &[], "x");
    }
    let page = rig.get(&format!("/demo/k?uploadId={id}&max-parts=2"));
    assert_eq!((page.element("IsTruncated"), page.element("NextPartNumberMarker")), ("true", "2"));
    let rest = rig.get(&format!("/demo/k?uploadId={id}&part-number-marker=2"));
    assert_eq!((rest.element("PartNumber"), rest.element("IsTruncated")), ("3", "false"));
    assert!(rig.get("/demo?uploads").text().contains(&id));
    assert_eq!(rig.send("DELETE", &format!("/demo/k?uploadId={id}"), &[], "").unwrap().status, 204);
    assert_eq!(rig.get(&format!("/demo/k?uploadId={id}")).element("Code"), "NoSuchUpload");
    assert!(!rig.get("/demo?uploads").text().contains(&id));
}

#[test]
fn uploads_are_folded_by_a_delimiter_over_pages() {
    let rig = rig();
    for key in ["a", "b%20c/1", "b%20c/2", "d"] {
        assert_eq!(rig.send("POST", &format!("/demo/{key}?uploads"), &[], "").unwrap().status, 200);
    }
    let mut found = Vec::new();
    let mut marker = String::new();
    loop {
        let page = rig
            .get(&format!("/demo?uploads&delimiter=/&encoding-type=url&max-uploads=1&key-marker={marker}"));
        let text = page.text();
        assert_eq!(text.matches("<Upload>").count() + text.matches("<CommonPrefixes>").count(), 1, "{text}");
        let folder = text.split_once("<CommonPrefixes><Prefix>").and_then(|(_, rest)| rest.split_once('<'));
        found.push(folder.map_or(page.element("Key"), |(folder, _)| folder).to_owned());
        if page.element("IsTruncated") == "false" {
            break;
        }
        marker = page.element("NextKeyMarker").to_owned();
    }
    assert_eq!(found, ["a", "b%20c/", "d"]);
    let whole = rig.get("/demo?uploads&prefix=b");
    assert_eq!((whole.text().matches("<Upload>").count(), whole.element("StorageClass")), (2, "STANDARD"));
}
