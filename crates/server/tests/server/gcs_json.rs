//! The JSON API of the GCS dialect, with its resumable uploads.

use serde_json::{Value, json};

use crate::client::{Answer, PROTOCOLS, Protocol, Rig};

const UPLOAD: &str = "/upload/storage/v1/b/demo/o";

fn upload(rig: &Rig, name: &str, body: &str) -> Answer {
    rig.send(
        "POST",
        &format!("{UPLOAD}?uploadType=media&name={name}"),
        &[("content-type", "text/plain")],
        body.to_owned(),
    )
    .unwrap()
}

fn multipart(rig: &Rig, metadata: &str, media: &str) -> Answer {
    let body = format!(
        "--x\r\nContent-Type: application/json\r\n\r\n{metadata}\r\n--x\r\nContent-Type: text/css\r\n\r\n{media}\r\n--x--"
    );
    let headers = [("content-type", "multipart/related; boundary=x")];
    rig.send("POST", &format!("{UPLOAD}?uploadType=multipart"), &headers, body).unwrap()
}

fn reason(answer: &Answer) -> String {
    answer.json()["error"]["errors"][0]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn an_object_goes_up_and_comes_down_over_every_protocol() {
    for protocol in PROTOCOLS {
        let rig = Rig::with(protocol, |_| {});
        let stored = upload(&rig, "a%2Fb", "hello").json();
        assert_eq!(stored["name"], "a/b");
        assert_eq!((&stored["size"], &stored["crc32c"]), (&"5".into(), &"mnG7TA==".into()));
        assert_eq!(stored["md5Hash"], "XUFAKrxLKna5cZ2REBfFkg==");
        let got = rig.get("/storage/v1/b/demo/o/a%2Fb?alt=media");
        assert_eq!((got.status, got.text()), (200, "hello"));
        assert_eq!(got.header("x-goog-generation"), stored["generation"].as_str().unwrap());
        assert_eq!(got.header("content-type"), "text/plain");
        let hashes: Vec<_> = got.headers.get_all("x-goog-hash").iter().collect();
        assert_eq!(hashes, ["crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg=="]);
        let media_link = stored["mediaLink"].as_str().unwrap();
        let path = media_link.strip_prefix(&rig.server.url()).unwrap();
        assert_eq!(rig.get(path).text(), "hello");
    }
}

#[test]
fn multipart_metadata_is_kept_and_its_checksums_are_honoured() {
    let rig = Rig::new();
    let metadata =
        r#"{"name":"k","crc32c":"mnG7TA==","cacheControl":"no-store","metadata":{"colour":"red"}}"#;
    let stored = multipart(&rig, metadata, "hello");
    assert_eq!(stored.status, 200, "{}", stored.text());
    let stored = stored.json();
    assert_eq!((&stored["contentType"], &stored["cacheControl"]), (&"text/css".into(), &"no-store".into()));
    assert_eq!(stored["metadata"]["colour"], "red");
    for wrong in
        [r#"{"name":"bad","crc32c":"AAAAAA=="}"#, r#"{"name":"bad","md5Hash":"AAAAAAAAAAAAAAAAAAAAAA=="}"#]
    {
        let refused = multipart(&rig, wrong, "hello");
        assert_eq!((refused.status, reason(&refused).as_str()), (400, "invalid"));
    }
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
}

#[test]
fn a_hash_header_is_verified() {
    let rig = Rig::new();
    let path = format!("{UPLOAD}?uploadType=media&name=k");
    let send = |hash| rig.send("POST", &path, &[("x-goog-hash", hash)], "hello").unwrap().status;
    assert_eq!(send("crc32c=AAAAAA=="), 400);
    assert!(rig.server.store().object("demo", "k").is_none());
    assert_eq!(send("crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg=="), 200);
}

#[test]
fn ranges_are_served_with_the_whole_objects_hash() {
    let rig = Rig::new();
    upload(&rig, "k", "0123456789");
    let range = |range| rig.send("GET", "/storage/v1/b/demo/o/k?alt=media", &[("range", range)], "").unwrap();
    for (asked, expected, content_range) in [
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=8-99", "89", "bytes 8-9/10"),
    ] {
        let got = range(asked);
        assert_eq!((got.status, got.text(), got.header("content-range")), (206, expected, content_range));
        assert!(got.header("x-goog-hash").starts_with("crc32c="));
    }
    let beyond = range("bytes=10-");
    assert_eq!((beyond.status, beyond.header("content-range")), (416, "bytes */10"));
    upload(&rig, "empty", "");
    let empty =
        rig.send("GET", "/storage/v1/b/demo/o/empty?alt=media", &[("range", "bytes=0-")], "").unwrap();
    assert_eq!(empty.status, 416);
}

#[test]
fn preconditions_hold_or_refuse() {
    let rig = Rig::new();
    let path = format!("{UPLOAD}?uploadType=media&name=k");
    let put = |condition: &str| rig.send("POST", &format!("{path}&{condition}"), &[], "x").unwrap();
    let generation = put("ifGenerationMatch=0").json()["generation"].as_str().unwrap().to_owned();
    let refused = put("ifGenerationMatch=0");
    assert_eq!((refused.status, reason(&refused).as_str()), (412, "conditionNotMet"));
    let object = |condition: &str| rig.get(&format!("/storage/v1/b/demo/o/k?alt=media&{condition}")).status;
    assert_eq!(object(&format!("ifGenerationMatch={generation}")), 200);
    assert_eq!(object("ifGenerationMatch=7"), 412);
    assert_eq!(object(&format!("ifGenerationNotMatch={generation}")), 304);
    assert_eq!(object("ifMetagenerationMatch=2"), 412);
    assert_eq!(object(&format!("generation={generation}")), 200);
    assert_eq!(object("generation=7"), 404);
    assert_eq!(object("generation=x"), 400);
    let delete = |condition: &str| {
        rig.send("DELETE", &format!("/storage/v1/b/demo/o/k?{condition}"), &[], "").unwrap().status
    };
    assert_eq!(delete("ifGenerationMatch=7"), 412);
    assert_eq!(delete(&format!("ifGenerationMatch={generation}")), 204);
    assert_eq!(delete(""), 404);
}

#[test]
fn what_is_stored_as_gzip_is_unpacked_unless_gzip_is_accepted() {
    use std::io::Write;
    let rig = Rig::new();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(b"hello, hello, hello").unwrap();
    let packed = packer.finish().unwrap();
    let path = format!("{UPLOAD}?uploadType=media&name=k&contentEncoding=gzip");
    rig.send("POST", &path, &[], packed.clone()).unwrap();
    let get =
        |headers: &[(&str, &str)]| rig.send("GET", "/storage/v1/b/demo/o/k?alt=media", headers, "").unwrap();
    let unpacked = get(&[("range", "bytes=0-1")]);
    // A range of the decompressed bytes isn't supported, so it is ignored.
    assert_eq!((unpacked.status, unpacked.text()), (200, "hello, hello, hello"));
    assert_eq!(unpacked.header("content-encoding"), "");
    assert_eq!(unpacked.header("x-goog-stored-content-encoding"), "gzip");
    let stored = get(&[("accept-encoding", "deflate, gzip")]);
    assert_eq!((&stored.body[..], stored.header("content-encoding")), (&packed[..], "gzip"));
    let ranged = get(&[("accept-encoding", "gzip"), ("range", "bytes=0-1")]);
    assert_eq!((ranged.status, &ranged.body[..]), (206, &packed[..2]));
}

#[test]
fn listings_come_in_pages_with_prefixes() {
    let rig = Rig::new();
    for key in ["a", "b/1", "b/2", "c", "d//e"] {
        rig.server.store().put("demo", key, b"").unwrap();
    }
    let mut names = Vec::new();
    let mut token = String::new();
    loop {
        let page =
            rig.get(&format!("/storage/v1/b/demo/o?delimiter=/&maxResults=2&pageToken={token}")).json();
        let items = page["items"].as_array().cloned().unwrap_or_default();
        names.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        let prefixes = page["prefixes"].as_array().cloned().unwrap_or_default();
        names.extend(prefixes.iter().map(|prefix| prefix.as_str().unwrap().to_owned()));
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.replace('=', "%3D").replace('+', "%2B"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b/", "c", "d/"]);
    let offsets = rig.get("/storage/v1/b/demo/o?startOffset=b%2F2&endOffset=d").json();
    let found: Vec<_> = offsets["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(found, ["b/2", "c"]);
    assert_eq!(rig.get("/storage/v1/b/demo/o?pageToken=%00").status, 400);
    assert_eq!(rig.get("/storage/v1/b/missing/o").status, 404);
}

#[test]
fn metadata_is_patched_and_counts_its_own_generation() {
    let rig = Rig::new();
    upload(&rig, "k", "x");
    let patched = rig
        .send("PATCH", "/storage/v1/b/demo/o/k", &[], r#"{"contentType":"image/png","metadata":{"a":"1"}}"#)
        .unwrap()
        .json();
    assert_eq!((&patched["metageneration"], &patched["contentType"]), (&"2".into(), &"image/png".into()));
    let got = rig.get("/storage/v1/b/demo/o/k?alt=media");
    // Media answers of this API have no user metadata.
    assert_eq!((got.header("x-goog-meta-a"), got.text()), ("", "x"));
    assert_eq!(rig.get("/demo/k").header("x-goog-meta-a"), "1");
    assert_eq!(rig.send("PATCH", "/storage/v1/b/demo/o/k", &[], "{").unwrap().status, 400);
}

#[test]
fn a_rewrite_takes_as_many_rounds_as_its_limit_demands() {
    let rig = Rig::with(crate::client::Protocol::PlainH1, |config| config.gcs.rewrite_bytes_max = Some(4));
    rig.server.create_bucket("other").unwrap();
    upload(&rig, "k", "0123456789");
    let path = "/storage/v1/b/demo/o/k/rewriteTo/b/other/o/new%2Fk";
    let (mut query, mut rounds) = (String::new(), 0);
    let done = loop {
        let answer = rig.send("POST", &format!("{path}{query}"), &[], "").unwrap().json();
        rounds += 1;
        if answer["done"] == true {
            break answer;
        }
        query = format!("?rewriteToken={}", answer["rewriteToken"].as_str().unwrap());
    };
    assert_eq!((rounds, &done["totalBytesRewritten"]), (3, &"10".into()));
    assert_eq!(done["resource"]["name"], "new/k");
    assert_eq!(rig.server.store().read("other", "new/k").unwrap(), b"0123456789");
    let wrong = rig.send("POST", &format!("{path}?rewriteToken=nonsense"), &[], "").unwrap();
    assert_eq!(wrong.status, 400);
}

#[test]
fn a_copy_pinned_to_another_generation_is_refused() {
    let rig = Rig::new();
    upload(&rig, "k", "x");
    let copy = |query: &str| {
        rig.send("POST", &format!("/storage/v1/b/demo/o/k/copyTo/b/demo/o/c{query}"), &[], "").unwrap()
    };
    assert_eq!(copy("?ifSourceGenerationMatch=1").status, 412);
    assert_eq!(copy("").status, 200);
    assert_eq!(copy("?ifGenerationMatch=0").status, 412);
}

#[test]
fn composing_puts_objects_end_to_end() {
    let rig = Rig::new();
    upload(&rig, "a", "hel");
    upload(&rig, "b", "lo");
    let request =
        r#"{"sourceObjects":[{"name":"a"},{"name":"b"}],"destination":{"contentType":"text/plain"}}"#;
    let composed = rig.send("POST", "/storage/v1/b/demo/o/c/compose", &[], request).unwrap().json();
    assert_eq!((&composed["componentCount"], &composed["crc32c"]), (&2.into(), &"mnG7TA==".into()));
    assert!(composed["md5Hash"].is_null());
    assert_eq!(rig.server.store().read("demo", "c").unwrap(), b"hello");
    let missing = r#"{"sourceObjects":[{"name":"nothing"}]}"#;
    assert_eq!(rig.send("POST", "/storage/v1/b/demo/o/c/compose", &[], missing).unwrap().status, 404);
    assert_eq!(rig.send("POST", "/storage/v1/b/demo/o/c/compose", &[], "{}").unwrap().status, 400);
}

#[test]
fn a_batch_answers_each_of_its_calls() {
    let rig = Rig::new();
    upload(&rig, "a", "x");
    let call = |id: &str, line: &str| {
        format!(
            "--b\r\nContent-Type: application/http\r\nContent-ID: <{id}>\r\n\r\n{line} HTTP/1.1\r\n\r\n\r\n"
        )
    };
    let body =
        call("1", "DELETE /storage/v1/b/demo/o/a") + &call("2", "DELETE /storage/v1/b/demo/o/gone") + "--b--";
    let headers = [("content-type", "multipart/mixed; boundary=\"b\"")];
    let answer = rig.send("POST", "/batch/storage/v1", &headers, body).unwrap();
    assert_eq!(answer.status, 200);
    let parts: Vec<&str> = answer.text().split("--batch_laneway").collect();
    assert!(parts[1].contains("Content-ID: <response-1>") && parts[1].contains("HTTP/1.1 204"), "{parts:?}");
    assert!(parts[2].contains("Content-ID: <response-2>") && parts[2].contains("HTTP/1.1 404"), "{parts:?}");
    assert!(rig.server.store().keys("demo").is_empty());
    let many: String = (0..101).map(|id| call(&id.to_string(), "DELETE /storage/v1/b/demo/o/x")).collect();
    assert_eq!(rig.send("POST", "/batch/storage/v1", &headers, many + "--b--").unwrap().status, 400);
}

#[test]
fn buckets_are_created_listed_and_deleted() {
    let rig = Rig::new();
    let create = |name: &str| {
        rig.send("POST", "/storage/v1/b?project=p", &[], format!(r#"{{"name":"{name}"}}"#)).unwrap()
    };
    assert_eq!(create("new").status, 200);
    assert_eq!(create("new").status, 409);
    assert_eq!(create("../x").status, 400);
    let listed = rig.get("/storage/v1/b?project=p").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    rig.server.store().put("new", "k", b"").unwrap();
    assert_eq!(rig.send("DELETE", "/storage/v1/b/new", &[], "").unwrap().status, 409);
    rig.server.store().remove("new", "k");
    assert_eq!(rig.send("DELETE", "/storage/v1/b/new", &[], "").unwrap().status, 204);
    assert_eq!(rig.get("/storage/v1/b/new").status, 404);
}

#[test]
fn errors_tell_reason_and_message() {
    let rig = Rig::new();
    let missing = rig.get("/storage/v1/b/demo/o/nothing");
    assert_eq!((missing.status, reason(&missing).as_str()), (404, "notFound"));
    assert_eq!(missing.json()["error"]["message"], "No such object: demo/nothing");
    let bucket =
        rig.send("POST", "/upload/storage/v1/b/missing/o?uploadType=media&name=k", &[], "x").unwrap();
    assert_eq!(bucket.status, 404);
    let unnamed = rig.send("POST", &format!("{UPLOAD}?uploadType=media"), &[], "x").unwrap();
    assert_eq!((unnamed.status, reason(&unnamed).as_str()), (400, "required"));
    assert_eq!(rig.send("POST", &format!("{UPLOAD}?uploadType=new&name=k"), &[], "x").unwrap().status, 400);
    let cut = rig
        .send(
            "POST",
            &format!("{UPLOAD}?uploadType=multipart"),
            &[("content-type", "multipart/related; boundary=x")],
            "--x\r\n",
        )
        .unwrap();
    assert_eq!(cut.status, 400);
}

#[test]
fn without_md5s_only_an_object_whose_writer_sent_one_has_it() {
    let rig = Rig::with(Protocol::PlainH1, |config| config.gcs.md5_bytes_max = 0);
    assert!(upload(&rig, "k", "hello").json()["md5Hash"].is_null());
    let sent = multipart(&rig, r#"{"name":"sent","md5Hash":"XUFAKrxLKna5cZ2REBfFkg=="}"#, "hello");
    assert_eq!(sent.json()["md5Hash"], "XUFAKrxLKna5cZ2REBfFkg==");
}

#[test]
fn json_is_indented_unless_it_is_asked_for_compact() {
    let rig = Rig::new();
    upload(&rig, "k", "hello");
    let path = "/storage/v1/b/demo/o/k";
    assert!(rig.get(path).text().starts_with("{\n  \""));
    assert!(rig.get(&format!("{path}?prettyPrint=true")).text().contains("\n"));
    let compact = rig.get(&format!("{path}?prettyPrint=false"));
    assert!(!compact.text().contains('\n'), "{}", compact.text());
    assert_eq!(compact.header("content-length"), compact.body.len().to_string());
}

#[test]
fn an_answer_has_the_fields_that_were_asked_for() {
    let rig = Rig::new();
    upload(&rig, "d/k", "hello");
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let object = rig.get("/storage/v1/b/demo/o/d%2Fk?fields=size,name").json();
    assert_eq!(object, json!({"name": "d/k", "size": "5"}));
    let page = rig.get("/storage/v1/b/demo/o?fields=kind,items(name,generation)").json();
    assert_eq!(names(&page), ["items", "kind"]);
    assert_eq!(names(&page["items"][0]), ["generation", "name"]);
    let folders = rig.get("/storage/v1/b/demo/o?delimiter=/&fields=prefixes").json();
    assert_eq!(folders, json!({"prefixes": ["d/"]}));
    multipart(&rig, r#"{"name":"m","metadata":{"a":"1","b":"2"}}"#, "hello");
    let deep = rig.get("/storage/v1/b/demo/o?prefix=m&fields=items(metadata/a)").json();
    assert_eq!(deep, json!({"items": [{"metadata": {"a": "1"}}]}));
    for fields in ["", "nam", "items(nam)", "items(name"] {
        let refused = rig.get(&format!("/storage/v1/b/demo/o?fields={fields}"));
        assert_eq!(refused.status, 400, "{fields}");
        assert_eq!(refused.json()["error"]["errors"][0]["reason"], "invalidParameter", "{fields}");
    }
    let missing = rig.get("/storage/v1/b/demo/o/none?fields=size");
    assert_eq!(missing.json()["error"]["code"], 404, "`fields` leaves an error complete");
}

const CHUNK: usize = 256 << 10;

fn begin(rig: &Rig, query: &str, metadata: &str) -> String {
    let path = format!("/upload/storage/v1/b/demo/o?uploadType=resumable{query}");
    let begun =
        rig.send("POST", &path, &[("content-type", "application/json")], metadata.to_owned()).unwrap();
    assert_eq!(begun.status, 200, "{}", begun.text());
    begun.header("location").strip_prefix(&rig.server.url()).unwrap().to_owned()
}

fn chunk(rig: &Rig, session: &str, range: &str, body: &[u8]) -> Answer {
    rig.send("PUT", session, &[("content-range", range)], body.to_vec()).unwrap()
}

#[test]
fn chunks_make_an_object_and_the_session_tells_how_far_it_is() {
    for protocol in [Protocol::PlainH1, Protocol::TlsH2] {
        let rig = Rig::with(protocol, |_| {});
        let data: Vec<u8> = (0..CHUNK + 100).map(|n| n as u8).collect();
        let session = begin(&rig, "", r#"{"name":"a b","contentType":"text/plain"}"#);
        let total = data.len();
        let nothing = chunk(&rig, &session, &format!("bytes */{total}"), b"");
        assert_eq!((nothing.status, nothing.header("range")), (308, ""));
        let first = chunk(&rig, &session, &format!("bytes 0-{}/{total}", CHUNK - 1), &data[..CHUNK]);
        assert_eq!((first.status, first.header("range")), (308, "bytes=0-262143"));
        let asked = chunk(&rig, &session, "bytes */*", b"");
        assert_eq!((asked.status, asked.header("range")), (308, "bytes=0-262143"));
        assert_eq!(rig.server.counters().resumable_open, 1);
        // Bytes that were sent before may be sent again.
        let again = chunk(
            &rig,
            &session,
            &format!("bytes {}-{}/{total}", CHUNK - 50, total - 1),
            &data[CHUNK - 50..],
        );
        assert_eq!(again.status, 200, "{}", again.text());
        assert_eq!(again.json()["contentType"], "text/plain");
        assert_eq!(rig.server.store().read("demo", "a b").unwrap(), data);
        // A lost answer can be requested again.
        assert_eq!(chunk(&rig, &session, "bytes */*", b"").json()["name"], "a b");
        assert_eq!(rig.server.counters().resumable_open, 0);
    }
}

#[test]
fn one_request_without_a_range_is_the_whole_object() {
    let rig = Rig::new();
    let session = begin(&rig, "&name=k", "");
    assert_eq!(rig.send("PUT", &session, &[], "hello").unwrap().status, 200);
    assert_eq!(rig.server.store().read("demo", "k").unwrap(), b"hello");
    let empty = begin(&rig, "&name=empty", "");
    assert_eq!(chunk(&rig, &empty, "bytes */0", b"").status, 200);
    assert_eq!(rig.server.store().read("demo", "empty").unwrap(), b"");
}

#[test]
fn a_gap_a_crooked_chunk_and_a_wrong_checksum_are_refused() {
    let rig = Rig::new();
    let session = begin(&rig, "", r#"{"name":"k","crc32c":"AAAAAA=="}"#);
    let gap = chunk(&rig, &session, "bytes 5-9/10", b"56789");
    assert_eq!((gap.status, gap.header("range")), (308, ""));
    assert_eq!(chunk(&rig, &session, "bytes 0-4/10", b"01234").status, 400);
    assert_eq!(chunk(&rig, &session, "nonsense", b"").status, 400);
    let whole = begin(&rig, "", r#"{"name":"k","crc32c":"AAAAAA=="}"#);
    assert_eq!(chunk(&rig, &whole, "bytes 0-4/5", b"hello").status, 400);
    assert_eq!(chunk(&rig, &whole, "bytes */*", b"").status, 410);
    assert!(rig.server.store().keys("demo").is_empty());
}

#[test]
fn a_session_is_cancelled_and_gone() {
    let rig = Rig::new();
    let session = begin(&rig, "&name=k", "");
    assert_eq!(rig.send("DELETE", &session, &[], "").unwrap().status, 499);
    assert_eq!(chunk(&rig, &session, "bytes */*", b"").status, 404);
    assert_eq!(rig.server.counters().resumable_open, 0);
}

#[test]
fn a_precondition_is_checked_at_the_beginning_and_at_the_end() {
    let rig = Rig::new();
    let session = begin(&rig, "&name=k&ifGenerationMatch=0", "");
    rig.server.store().put("demo", "k", b"somebody was faster").unwrap();
    assert_eq!(rig.send("PUT", &session, &[], "hello").unwrap().status, 412);
    let path = "/upload/storage/v1/b/demo/o?uploadType=resumable&name=k&ifGenerationMatch=0";
    assert_eq!(rig.send("POST", path, &[], "").unwrap().status, 412);
}

#[test]
fn what_arrived_of_a_broken_chunk_is_kept() {
    let rig = Rig::faulty(Protocol::PlainH1, "part:1 reset@300KiB");
    let data = vec![3; 1 << 20];
    let session = begin(&rig, "&name=k", "");
    let total = data.len();
    assert!(
        rig.send(
            "PUT",
            &session,
            &[("content-range", &format!("bytes 0-{}/{total}", total - 1))],
            data.clone()
        )
        .is_err()
    );
    let asked = chunk(&rig, &session, &format!("bytes */{total}"), b"");
    let last: usize = asked.header("range").strip_prefix("bytes=0-").unwrap().parse().unwrap();
    assert_eq!(last + 1, 300 << 10);
    let rest = chunk(&rig, &session, &format!("bytes {}-{}/{total}", last + 1, total - 1), &data[last + 1..]);
    assert_eq!(rest.status, 200);
    assert_eq!(rig.server.store().read("demo", "k").unwrap(), data);
}
