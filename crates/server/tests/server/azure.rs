//! Azure Blob Storage, from a plain client.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use laneway_server::{Config, Habits, Storage, Versioning, parse_fault};
use ring::hmac;

use crate::client::{Answer, Protocol, Rig};

const ACCOUNT: &str = "/devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const VERSION: &str = "2026-10-06";
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
/// The Content-MD5 and the little-endian CRC-64/NVME of `hello`.
const HELLO_MD5: &str = "XUFAKrxLKna5cZ2REBfFkg==";

fn azure(configure: impl FnOnce(&mut Config)) -> Rig {
    Rig::with(Protocol::PlainH1, configure)
}

/// Sends a request with a bearer token. `path` begins below the account.
fn ask(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let own = [("authorization", "Bearer token"), ("x-ms-version", VERSION)];
    rig.send(method, &format!("{ACCOUNT}{path}"), &[&own, headers].concat(), body.to_owned()).unwrap()
}

fn put(rig: &Rig, path: &str, body: &str) -> Answer {
    let answer = ask(rig, "PUT", path, &[BLOCK], body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status, answer.header("x-ms-error-code").to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn mac(text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(KEY).unwrap());
    STANDARD.encode(hmac::sign(&key, text.as_bytes()))
}

/// Returns a service SAS for a container.
fn sas(permissions: &str, expiry: &str) -> String {
    let signed =
        format!("{permissions}\n\n{expiry}\n/blob/devstoreaccount1/demo\n\n\n\n2020-12-06\nc\n\n\n\n\n\n\n");
    let signature = mac(&signed).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("sv=2020-12-06&sr=c&sp={permissions}&se={}&sig={signature}", expiry.replace(':', "%3A"))
}

/// Returns the headers of a GET of `/demo/k` with this range, signed with the account's key.
fn signed_get(range: &str) -> [(&'static str, String); 4] {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let own = format!("x-ms-date:{date}\nx-ms-version:{VERSION}");
    let text = format!("GET\n\n\n\n\n\n\n\n\n\n\n{range}\n{own}\n/devstoreaccount1/devstoreaccount1/demo/k");
    let authorization = format!("SharedKey devstoreaccount1:{}", mac(&text));
    [
        ("authorization", authorization),
        ("x-ms-date", date),
        ("x-ms-version", VERSION.to_owned()),
        ("range", range.to_owned()),
    ]
}

#[test]
fn a_fault_of_a_range_leaves_its_signature_valid() {
    for (rule, is_whole, content) in
        [("get:1 range ignored", true, "0123456789"), ("get:1 range shifted", false, "345")]
    {
        let rig = azure(|config| config.faults.rules = vec![parse_fault(rule).unwrap()]);
        ask(&rig, "PUT", "/demo?restype=container", &[], "");
        put(&rig, "/demo/k", "0123456789");
        let headers = signed_get("bytes=2-4");
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = rig.send("GET", &format!("{ACCOUNT}/demo/k"), &headers, String::new()).unwrap();
        assert_eq!((answer.status, answer.text()), (if is_whole { 200 } else { 206 }, content), "{rule}");
    }
}

#[test]
fn a_shared_key_signature_is_verified() {
    let rig = azure(|_| {});
    let date = httpdate::fmt_http_date(SystemTime::now());
    let resource = "/devstoreaccount1/devstoreaccount1/demo/a%20b\ncomp:metadata\ntimeout:5";
    let full = format!(
        "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-meta-x:1\nx-ms-version:{VERSION}\n{resource}"
    );
    let lite = format!(
        "PUT\n\n\n\nx-ms-date:{date}\nx-ms-meta-x:1\nx-ms-version:{VERSION}\n\
         /devstoreaccount1/devstoreaccount1/demo/a%20b?comp=metadata"
    );
    put(&rig, "/demo/a%20b", "hello");
    let send = |authorization: String, metadata: &str, date: &str| {
        let headers = [
            ("authorization", authorization.as_str()),
            ("x-ms-version", VERSION),
            ("x-ms-date", date),
            ("x-ms-meta-x", metadata),
        ];
        let path = format!("{ACCOUNT}/demo/a%20b?timeout=5&comp=metadata");
        code(&rig.send("PUT", &path, &headers, "").unwrap())
    };
    for (scheme, signed) in [("SharedKey", &full), ("SharedKeyLite", &lite)] {
        let authorization = format!("{scheme} devstoreaccount1:{}", mac(signed));
        let failed = refused(403, "AuthenticationFailed");
        assert_eq!(send(authorization.clone(), "1", &date), refused(200, ""), "{scheme}");
        assert_eq!(send(authorization.clone(), "2", &date), failed, "{scheme}");
        assert_eq!(send(authorization.replace("account1:", "account2:"), "1", &date), failed, "{scheme}");
        assert_eq!(send(authorization, "1", "Thu, 01 Jan 2026 00:00:00 GMT"), failed, "{scheme}");
    }
}

#[test]
fn a_sas_token_permits_only_what_it_names() {
    let rig = azure(|_| {});
    put(&rig, "/demo/k", "hello");
    let send = |method: &str, query: &str| {
        code(&rig.send(method, &format!("{ACCOUNT}/demo/k?{query}"), &[BLOCK], "x").unwrap())
    };
    let read = sas("r", "2127-01-31T00:00:00Z");
    assert_eq!(send("GET", &read), refused(200, ""));
    assert_eq!(send("PUT", &read), refused(403, "AuthorizationPermissionMismatch"));
    assert_eq!(send("PUT", &sas("c", "2127-01-31T00:00:00Z")), refused(403, "UnauthorizedBlobOverwrite"));
    assert_eq!(send("GET", &read.replace("sp=r", "sp=rw")), refused(403, "AuthenticationFailed"));
    assert_eq!(send("GET", &sas("r", "2026-01-31T00:00:00Z")), refused(403, "AuthenticationFailed"));
    let list = rig.send("GET", &format!("{ACCOUNT}/demo?restype=container&comp=list&{read}"), &[], "");
    assert_eq!(code(&list.unwrap()), refused(403, "AuthorizationPermissionMismatch"));
}

#[test]
fn only_public_containers_can_be_read_without_a_signature() {
    let rig = azure(|_| {});
    put(&rig, "/demo/k", "hello");
    let read = || code(&rig.get(&format!("{ACCOUNT}/demo/k")));
    let list = || code(&rig.get(&format!("{ACCOUNT}/demo?restype=container&comp=list")));
    assert_eq!((read(), list()), (refused(404, "ResourceNotFound"), refused(404, "ResourceNotFound")));
    for (access, listed) in
        [("blob", refused(401, "NoAuthenticationInformation")), ("container", refused(200, ""))]
    {
        let set = [("x-ms-blob-public-access", access)];
        assert_eq!(ask(&rig, "PUT", "/demo?restype=container&comp=acl", &set, "").status, 200);
        assert_eq!((read(), list()), (refused(200, ""), listed), "{access}");
    }
    let write = rig.send("PUT", &format!("{ACCOUNT}/demo/k"), &[BLOCK], "x").unwrap();
    assert_eq!(code(&write), refused(401, "NoAuthenticationInformation"));
}

#[test]
fn failed_conditions_have_the_statuses_of_the_service() {
    let rig = azure(|_| {});
    let etag = put(&rig, "/demo/k", "hello").header("etag").to_owned();
    let other = "\"0x8D0000000000001\"";
    let with = |method: &str, path: &str, header: (&str, &str)| {
        code(&ask(&rig, method, path, &[BLOCK, header], if method == "PUT" { "x" } else { "" }))
    };
    assert_eq!(with("PUT", "/demo/k", ("if-none-match", "*")), refused(409, "BlobAlreadyExists"));
    assert_eq!(with("PUT", "/demo/k", ("if-match", other)), refused(412, "ConditionNotMet"));
    assert_eq!(with("PUT", "/demo/new", ("if-match", &etag)), refused(412, "ConditionNotMet"));
    assert_eq!(with("GET", "/demo/k", ("if-none-match", &etag)), refused(304, "ConditionNotMet"));
    assert_eq!(with("DELETE", "/demo/k", ("if-match", other)), refused(412, "ConditionNotMet"));
    for method in ["GET", "HEAD"] {
        assert_eq!(with(method, "/demo/new", ("if-match", &etag)), refused(404, "BlobNotFound"));
    }
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
    assert_eq!(with("DELETE", "/demo/k", ("if-match", &etag)), refused(202, ""));
}

#[test]
fn a_body_is_compared_with_its_checksum() {
    let rig = azure(|_| {});
    let crc64 = put(&rig, "/demo/k", "hello").header("x-ms-content-crc64").to_owned();
    let mut reversed = STANDARD.decode(&crc64).unwrap();
    reversed.reverse();
    let reversed = STANDARD.encode(reversed);
    for path in ["/demo/k", "/demo/k?comp=block&blockid=YQ=="] {
        let send =
            |headers: &[(&str, &str)]| code(&ask(&rig, "PUT", path, &[&[BLOCK], headers].concat(), "hello"));
        assert_eq!(send(&[("content-md5", HELLO_MD5)]), refused(201, ""));
        assert_eq!(send(&[("x-ms-content-crc64", &crc64)]), refused(201, ""));
        assert_eq!(send(&[("x-ms-content-crc64", &reversed)]), refused(400, "Crc64Mismatch"));
        assert_eq!(send(&[("content-md5", "AUFAKrxLKna5cZ2REBfFkg==")]), refused(400, "Md5Mismatch"));
        assert_eq!(send(&[("content-md5", "AUFA")]), refused(400, "InvalidMd5"));
        let both = [("content-md5", HELLO_MD5), ("x-ms-content-crc64", &crc64)];
        assert_eq!(send(&both), refused(400, "BothCrc64AndMd5HeaderPresent"));
    }
}

#[test]
fn ranges_begin_at_an_offset_and_may_have_a_checksum() {
    let rig = azure(|_| {});
    put(&rig, "/demo/k", "hello");
    let get = |headers: &[(&str, &str)]| ask(&rig, "GET", "/demo/k", headers, "");
    let part =
        get(&[("x-ms-range", "bytes=1-2"), ("range", "bytes=0-0"), ("x-ms-range-get-content-md5", "true")]);
    assert_eq!((part.status, part.text(), part.header("content-range")), (206, "el", "bytes 1-2/5"));
    assert_eq!(part.header("content-md5"), "ZcEJEdi4WRIZoh66z0baAQ==");
    assert_eq!(part.header("x-ms-blob-content-md5"), HELLO_MD5);
    // The service has no ranges from the end.
    let suffix = get(&[("range", "bytes=-2")]);
    assert_eq!((suffix.status, suffix.text(), suffix.header("content-md5")), (200, "hello", HELLO_MD5));
    assert_eq!(code(&get(&[("x-ms-range", "bytes=-2")])), refused(400, "InvalidHeaderValue"));
    let beyond = get(&[("range", "bytes=5-9")]);
    assert_eq!((code(&beyond), beyond.header("content-range")), (refused(416, "InvalidRange"), "bytes */5"));
    assert_eq!(code(&get(&[("x-ms-range-get-content-md5", "true")])), refused(400, "InvalidHeaderValue"));
    let large = vec![0; (4 << 20) + 1];
    rig.server.store().put("demo", "k", &large).unwrap();
    let checked = [("range", "bytes=0-4194304"), ("x-ms-range-get-content-md5", "true")];
    assert_eq!(code(&get(&checked)), refused(400, "InvalidHeaderValue"));
}

/// Returns the content of a structured body, and the lengths of its segments.
fn unframed(body: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let crc = |bytes: &[u8]| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes).to_le_bytes();
    let number = |at: usize, len: usize| {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&body[at..at + len]);
        u64::from_le_bytes(bytes) as usize
    };
    assert_eq!((body[0], number(1, 8), number(9, 2)), (1, body.len(), 1));
    let (mut content, mut lens, mut at) = (Vec::new(), Vec::new(), 13);
    for expected in 1..=number(11, 2) {
        assert_eq!(number(at, 2), expected);
        let len = number(at + 2, 8);
        let segment = &body[at + 10..at + 10 + len];
        assert_eq!(body[at + 10 + len..at + 18 + len], crc(segment));
        content.extend_from_slice(segment);
        lens.push(len);
        at += 18 + len;
    }
    assert_eq!(body[at..], crc(&content));
    (content, lens)
}

#[test]
fn a_structured_body_has_a_checksum_of_each_segment() {
    const MIB: usize = 1 << 20;
    let rig = azure(|_| {});
    let format = "XSM/1.0; properties=crc64";
    let get = |headers: &[(&str, &str)]| {
        ask(&rig, "GET", "/demo/k", &[&[("x-ms-structured-body", format)], headers].concat(), "")
    };
    let bytes: Vec<u8> = (0..9 * MIB).map(|i| (i / 7) as u8).collect();
    for (len, lens) in
        [(0, vec![0]), (5, vec![5]), (4 * MIB, vec![4 * MIB]), (9 * MIB, vec![4 * MIB, 4 * MIB, MIB])]
    {
        rig.server.store().put("demo", "k", &bytes[..len]).unwrap();
        let whole = get(&[]);
        assert_eq!((whole.status, whole.header("x-ms-structured-body")), (200, format));
        assert_eq!(whole.header("x-ms-structured-content-length"), len.to_string());
        assert_eq!(whole.header("content-length"), whole.body.len().to_string());
        assert!(unframed(&whole.body) == (bytes[..len].to_vec(), lens));
    }
    let part = get(&[("range", "bytes=1048576-6291456")]);
    assert_eq!((part.status, part.header("content-range")), (206, "bytes 1048576-6291456/9437184"));
    assert!(unframed(&part.body) == (bytes[MIB..6 * MIB + 1].to_vec(), vec![4 * MIB, MIB + 1]));
    let headers = [
        ("authorization", "Bearer token"),
        ("x-ms-version", "2024-11-04"),
        ("x-ms-structured-body", format),
        ("range", "bytes=0-4"),
    ];
    let older = rig.send("GET", &format!("{ACCOUNT}/demo/k"), &headers, "").unwrap();
    assert_eq!((older.body.len(), older.header("x-ms-structured-body")), (5, ""));
    let other = ask(&rig, "GET", "/demo/k", &[("x-ms-structured-body", "XSM/2.0; properties=crc64")], "");
    assert_eq!(code(&other), refused(400, "InvalidHeaderValue"));
    let sent = ask(&rig, "PUT", "/demo/m", &[BLOCK, ("x-ms-structured-body", format)], "x");
    assert_eq!(code(&sent), refused(400, "UnsupportedHeader"));
}

#[test]
fn deleted_blobs_are_listed_on_request_and_can_be_undeleted() {
    let rig = azure(|_| {});
    rig.server.store().keep_deleted("demo").unwrap();
    for (key, body) in [("a", "first"), ("a", "second"), ("b", "live")] {
        put(&rig, &format!("/demo/{key}"), body);
    }
    assert_eq!(ask(&rig, "DELETE", "/demo/a", &[], "").header("x-ms-delete-type-permanent"), "false");
    let list = |include: &str| {
        ask(&rig, "GET", &format!("/demo?restype=container&comp=list{include}"), &[], "").text().to_owned()
    };
    assert_eq!(list("").matches("<Blob>").count(), 1);
    let listed = list("&include=deleted");
    assert_eq!(listed.matches("<Blob>").count(), 2, "{listed}");
    assert!(listed.contains("<Name>a</Name><Deleted>true</Deleted><Properties><DeletedTime>"), "{listed}");
    assert!(listed.contains("<RemainingRetentionDays>6</RemainingRetentionDays>"), "{listed}");
    let undelete = |key: &str| code(&ask(&rig, "PUT", &format!("/demo/{key}?comp=undelete"), &[], ""));
    assert_eq!((undelete("a"), undelete("b")), (refused(200, ""), refused(200, "")));
    assert_eq!(undelete("none"), refused(404, "BlobNotFound"));
    let back = ask(&rig, "GET", "/demo/a", &[], "");
    assert_eq!((back.text(), back.header("content-md5").is_empty()), ("second", false));
    assert_eq!(list("&include=deleted").matches("<Deleted>").count(), 0);
}

#[test]
fn azurite_has_no_structured_bodies() {
    let rig = azure(|config| config.habits = Habits::named("azurite").unwrap_or_default());
    put(&rig, "/demo/k", "hello");
    let headers = [("x-ms-structured-body", "XSM/1.0; properties=crc64")];
    let whole = ask(&rig, "GET", "/demo/k", &headers, "");
    assert_eq!((whole.text(), whole.header("x-ms-structured-body")), ("hello", ""));
}

#[test]
fn a_block_list_joins_blocks_in_its_order() {
    let rig = azure(|_| {});
    let block = |id: &str, body: &str| {
        code(&ask(&rig, "PUT", &format!("/demo/k?comp=block&blockid={id}"), &[], body))
    };
    let commit = |list: &str| {
        let document = format!("<?xml version=\"1.0\"?><BlockList>{list}</BlockList>");
        code(&ask(&rig, "PUT", "/demo/k?comp=blocklist", &[("x-ms-blob-content-type", "a/b")], &document))
    };
    for (id, body) in [("Yg==", "lo"), ("YQ==", "hel"), ("Yw==", "gone")] {
        assert_eq!(block(id, body), refused(201, ""));
    }
    assert_eq!(block("YWJj", "x"), refused(400, "InvalidBlobOrBlock"), "another length");
    assert_eq!(block("!", "x"), refused(400, "InvalidQueryParameterValue"));
    assert_eq!(code(&ask(&rig, "GET", "/demo/k", &[], "")), refused(404, "BlobNotFound"));
    let uncommitted = ask(&rig, "GET", "/demo?restype=container&comp=list&include=uncommittedblobs", &[], "");
    assert_eq!(uncommitted.element("Name"), "k");
    assert_eq!(commit("<Latest>YQ==</Latest><Committed>Yg==</Committed>"), refused(400, "InvalidBlockList"));
    assert_eq!(commit("<Latest>YQ==</Latest><Uncommitted>Yg==</Uncommitted>"), refused(201, ""));
    let got = ask(&rig, "GET", "/demo/k", &[], "");
    assert_eq!((got.text(), got.header("content-type"), got.header("content-md5")), ("hello", "a/b", ""));
    // The list has discarded the block that it doesn't name. Committed blocks can be used again.
    assert_eq!(commit("<Latest>Yw==</Latest>"), refused(400, "InvalidBlockList"));
    assert_eq!(block("ZA==", "!"), refused(201, ""));
    assert_eq!(commit("<Committed>Yg==</Committed><Latest>ZA==</Latest>"), refused(201, ""));
    assert_eq!(ask(&rig, "GET", "/demo/k", &[], "").text(), "lo!");
    let list = ask(&rig, "GET", "/demo/k?comp=blocklist&blocklisttype=all", &[], "");
    assert!(list.text().contains("<Name>Yg==</Name><Size>2</Size>"), "{}", list.text());
}

#[test]
fn uncommitted_blocks_and_properties_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || azure(|config| config.storage = Storage::Disk(folder.path().to_owned()));
    let rig = start();
    assert_eq!(ask(&rig, "PUT", "/demo/k?comp=block&blockid=YQ==", &[], "hello").status, 201);
    let headers = [BLOCK, ("x-ms-tags", "a=1"), ("x-ms-meta-m", "v"), ("x-ms-access-tier", "Cool")];
    assert_eq!(ask(&rig, "PUT", "/demo/t", &headers, "x").status, 201);
    let snapshot = ask(&rig, "PUT", "/demo/t?comp=snapshot", &[], "").header("x-ms-snapshot").to_owned();
    drop(rig);
    let rig = start();
    let list = "<BlockList><Latest>YQ==</Latest></BlockList>";
    assert_eq!(ask(&rig, "PUT", "/demo/k?comp=blocklist", &[], list).status, 201);
    assert_eq!(ask(&rig, "GET", "/demo/k", &[], "").text(), "hello");
    let head = ask(&rig, "HEAD", &format!("/demo/t?snapshot={snapshot}"), &[], "");
    assert_eq!((head.header("x-ms-meta-m"), head.header("x-ms-access-tier")), ("v", "Cool"));
    assert_eq!(ask(&rig, "GET", "/demo/t?comp=tags", &[], "").element("Value"), "1");
}

#[test]
fn a_leased_blob_refuses_writes_without_its_lease() {
    let rig = azure(|_| {});
    put(&rig, "/demo/k", "hello");
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let acquired = ask(&rig, "PUT", "/demo/k?comp=lease", &acquire, "");
    let id = acquired.header("x-ms-lease-id").to_owned();
    assert_eq!(
        code(&ask(&rig, "PUT", "/demo/k?comp=lease", &acquire, "")),
        refused(409, "LeaseAlreadyPresent")
    );
    let missing = refused(412, "LeaseIdMissing");
    assert_eq!(code(&ask(&rig, "PUT", "/demo/k", &[BLOCK], "x")), missing);
    assert_eq!(code(&ask(&rig, "DELETE", "/demo/k", &[], "")), missing);
    assert_eq!(code(&ask(&rig, "PUT", "/demo/k?comp=block&blockid=YQ==", &[], "x")), missing);
    let wrong = [BLOCK, ("x-ms-lease-id", "00000000-0000-4000-8000-000000000000")];
    let mismatch = refused(412, "LeaseIdMismatchWithBlobOperation");
    assert_eq!(code(&ask(&rig, "PUT", "/demo/k", &wrong, "x")), mismatch);
    assert_eq!(ask(&rig, "HEAD", "/demo/k", &[], "").header("x-ms-lease-state"), "leased");
    let own = [BLOCK, ("x-ms-lease-id", &id)];
    assert_eq!(ask(&rig, "PUT", "/demo/k", &own, "x").status, 201);
    let broken = ask(&rig, "PUT", "/demo/k?comp=lease", &[("x-ms-lease-action", "break")], "");
    assert_eq!((broken.status, broken.header("x-ms-lease-time")), (202, "0"));
    assert_eq!(code(&ask(&rig, "PUT", "/demo/k", &own, "x")), refused(412, "LeaseLost"));
    assert_eq!(ask(&rig, "PUT", "/demo/k", &[BLOCK], "x").status, 201);
}

#[test]
fn a_copy_can_be_pending_until_it_is_aborted_or_ends() {
    let rig = azure(|config| config.azure.copies_take = Duration::from_secs(3600));
    put(&rig, "/demo/k", "hello");
    let source = format!("{}{ACCOUNT}/demo/k", rig.server.url());
    let begun = ask(&rig, "PUT", "/demo/c", &[("x-ms-copy-source", &source)], "");
    assert_eq!((begun.status, begun.header("x-ms-copy-status")), (202, "pending"));
    let head = || ask(&rig, "HEAD", "/demo/c", &[], "");
    assert_eq!((head().header("content-length"), head().header("x-ms-copy-progress")), ("0", "0/5"));
    assert_eq!(code(&ask(&rig, "PUT", "/demo/c", &[BLOCK], "x")), refused(409, "PendingCopyOperation"));
    let abort = |id: &str| {
        let action = [("x-ms-copy-action", "abort")];
        code(&ask(&rig, "PUT", &format!("/demo/c?comp=copy&copyid={id}"), &action, ""))
    };
    assert_eq!(abort("other"), refused(409, "CopyIdMismatch"));
    assert_eq!(abort(begun.header("x-ms-copy-id")), refused(204, ""));
    assert_eq!(abort(begun.header("x-ms-copy-id")), refused(409, "NoPendingCopyOperation"));
    assert_eq!(head().header("x-ms-copy-status"), "aborted");
    let rig = azure(|_| {});
    put(&rig, "/demo/k", "hello");
    let source = format!("{}{ACCOUNT}/demo/k", rig.server.url());
    let done = ask(&rig, "PUT", "/demo/c", &[("x-ms-copy-source", &source)], "");
    assert_eq!(done.header("x-ms-copy-status"), "success");
    assert_eq!(ask(&rig, "GET", "/demo/c", &[], "").text(), "hello");
}

#[test]
fn the_source_of_a_put_from_a_url_needs_its_own_permission() {
    let rig = azure(|_| {});
    put(&rig, "/demo/k", "hello");
    let source = format!("{}{ACCOUNT}/demo/k", rig.server.url());
    let signed = format!("{source}?{}", sas("r", "2127-01-31T00:00:00Z"));
    let block = "/demo/c?comp=block&blockid=YQ==";
    for path in ["/demo/c", block] {
        let send = |source: &str, own: (&str, &str)| {
            code(&ask(&rig, "PUT", path, &[BLOCK, ("x-ms-copy-source", source), own], ""))
        };
        let plain = ("x-ms-source-if-match", "*");
        assert_eq!(send(&source, plain), refused(404, "CannotVerifyCopySource"));
        assert_eq!(send(&signed, plain), refused(201, ""));
        assert_eq!(send(&source, ("x-ms-copy-source-authorization", "Bearer t")), refused(201, ""));
        let wrong = ("x-ms-source-if-match", "\"0x1\"");
        assert_eq!(send(&signed, wrong), refused(412, "SourceConditionNotMet"));
    }
    assert_eq!(ask(&rig, "GET", "/demo/c", &[], "").text(), "hello");
}

#[test]
fn a_blob_with_snapshots_is_deleted_only_together_with_them() {
    let rig = azure(|_| {});
    let etag = put(&rig, "/demo/k", "old").header("etag").to_owned();
    let made = ask(&rig, "PUT", "/demo/k?comp=snapshot", &[], "");
    let snapshot = format!("/demo/k?snapshot={}", made.header("x-ms-snapshot"));
    assert_eq!((made.status, made.header("etag")), (201, etag.as_str()));
    put(&rig, "/demo/k", "new");
    assert_eq!(ask(&rig, "GET", &snapshot, &[], "").text(), "old");
    let listed = ask(&rig, "GET", "/demo?restype=container&comp=list&include=snapshots", &[], "");
    assert_eq!(listed.text().matches("<Blob>").count(), 2);
    assert_eq!(code(&ask(&rig, "DELETE", "/demo/k", &[], "")), refused(409, "SnapshotsPresent"));
    assert_eq!(ask(&rig, "DELETE", "/demo/k", &[("x-ms-delete-snapshots", "include")], "").status, 202);
    assert_eq!(code(&ask(&rig, "GET", &snapshot, &[], "")), refused(404, "BlobNotFound"));
}

#[test]
fn a_replaced_blob_stays_a_version_where_versions_are_kept() {
    let rig = azure(|_| {});
    rig.server.store().keep_versions("demo", Versioning::Enabled).unwrap();
    let first = put(&rig, "/demo/k", "old").header("x-ms-version-id").to_owned();
    let live = put(&rig, "/demo/k", "new").header("x-ms-version-id").to_owned();
    assert_eq!(ask(&rig, "GET", &format!("/demo/k?versionid={first}"), &[], "").text(), "old");
    let root = code(&ask(&rig, "DELETE", &format!("/demo/k?versionid={live}"), &[], ""));
    assert_eq!(root, refused(403, "OperationNotAllowedOnRootBlob"));
    assert_eq!(ask(&rig, "DELETE", "/demo/k", &[], "").status, 202);
    assert_eq!(code(&ask(&rig, "GET", "/demo/k", &[], "")), refused(404, "BlobNotFound"));
    let listed = ask(&rig, "GET", "/demo?restype=container&comp=list&include=versions", &[], "");
    assert_eq!(listed.text().matches("<VersionId>").count(), 2);
    assert!(!listed.text().contains("IsCurrentVersion"));
    let missing = refused(404, "BlobNotFound");
    assert_eq!(
        code(&ask(&rig, "DELETE", "/demo/k?versionid=2026-01-01T00:00:00.0000000Z", &[], "")),
        missing
    );
    assert_eq!(ask(&rig, "DELETE", &format!("/demo/k?versionid={first}"), &[], "").status, 202);
}

#[test]
fn a_listing_starts_at_its_first_key_and_continues_by_marker() {
    let rig = azure(|_| {});
    for key in ["a", "b/1", "b/2", "c", "d\u{1}"] {
        rig.server.store().put("demo", key, b"").unwrap();
    }
    let list = |query: &str| ask(&rig, "GET", &format!("/demo?restype=container&comp=list{query}"), &[], "");
    let names = |answer: &Answer| {
        let names =
            answer.text().split("<Name").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&list("&startFrom=b%2F2&endBefore=d")), [">b/2", ">c"]);
    assert_eq!(names(&list("&prefix=d")), [" Encoded=\"true\">d%01"]);
    let (mut seen, mut marker) = (Vec::new(), String::new());
    loop {
        let page = list(&format!("&delimiter=%2F&maxresults=1&marker={marker}"));
        seen.extend(names(&page));
        marker = page.element("NextMarker").replace('=', "%3D");
        if marker.is_empty() {
            break;
        }
    }
    assert_eq!(seen, [">a", ">b/", ">c", " Encoded=\"true\">d%01"]);
    assert_eq!(code(&list("&maxresults=0")), refused(400, "OutOfRangeQueryParameterValue"));
    assert_eq!(code(&list("&include=everything")), refused(400, "InvalidQueryParameterValue"));
}

#[test]
fn a_batch_answers_each_request_and_a_malformed_one_as_a_whole() {
    let rig = azure(|_| {});
    put(&rig, "/demo/k", "hello");
    let part = |id: u32, path: &str| {
        format!(
            "--b\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\nDELETE {ACCOUNT}{path} HTTP/1.1\r\n\
             Authorization: Bearer token\r\nContent-Length: 0\r\n\r\n\r\n"
        )
    };
    let send = |body: &str| {
        let own = [("content-type", "multipart/mixed; boundary=b")];
        ask(&rig, "POST", "/demo?restype=container&comp=batch", &own, body)
    };
    let body = format!("{}{}--b--\r\n", part(0, "/demo/k"), part(1, "/demo/gone"));
    let malformed = send(&format!("\r\n{body}"));
    assert_eq!((malformed.status, rig.server.store().keys("demo").len()), (202, 1));
    assert!(malformed.text().contains("HTTP/1.1 400 ") && !malformed.text().contains("Content-ID"));
    let answer = send(&body);
    assert_eq!(answer.status, 202);
    let parts: Vec<&str> = answer.text().split("Content-ID: ").collect();
    assert!(parts[1].starts_with("0\r\n\r\nHTTP/1.1 202 Accepted\r\n"), "{}", answer.text());
    assert!(
        parts[2].starts_with("1\r\n\r\nHTTP/1.1 404 ") && parts[2].contains("x-ms-error-code: BlobNotFound")
    );
    assert!(rig.server.store().keys("demo").is_empty());
}

#[test]
fn an_archived_blob_is_read_only_after_its_rehydration() {
    for (takes, status) in [(Duration::from_secs(3600), 409), (Duration::ZERO, 200)] {
        let rig = azure(|config| config.azure.rehydration_takes = takes);
        put(&rig, "/demo/k", "hello");
        let tier =
            |tier: &str| ask(&rig, "PUT", "/demo/k?comp=tier", &[("x-ms-access-tier", tier)], "").status;
        assert_eq!(tier("Archive"), 200);
        assert_eq!(code(&ask(&rig, "GET", "/demo/k", &[], "")), refused(409, "BlobArchived"));
        assert_eq!(tier("Hot"), 202);
        assert_eq!(ask(&rig, "GET", "/demo/k", &[], "").status, status);
        let state = ask(&rig, "HEAD", "/demo/k", &[], "").header("x-ms-archive-status").to_owned();
        assert_eq!(state.is_empty(), takes.is_zero());
    }
}

#[test]
fn faults_answer_in_the_format_of_the_service() {
    let rule = |rule: &str| laneway_server::parse_fault(rule).unwrap();
    let rig = azure(|config| {
        config.faults.rules = vec![rule("put:1 status 503"), rule("get status 500 OperationTimedOut")];
    });
    let busy = ask(&rig, "PUT", "/demo/k", &[BLOCK], "x");
    assert_eq!((code(&busy), busy.element("Code")), (refused(503, "ServerBusy"), "ServerBusy"));
    put(&rig, "/demo/k", "hello");
    assert_eq!(code(&ask(&rig, "GET", "/demo/k", &[], "")), refused(500, "OperationTimedOut"));
    let counted = rig.server.counters().requests_by_verb;
    assert_eq!((counted["put"], counted["get"]), (2, 1));
}

#[test]
fn containers_have_the_names_and_settings_of_the_service() {
    let rig = azure(|_| {});
    let create = |name: &str| {
        let own = [("x-ms-meta-a", "1")];
        code(&ask(&rig, "PUT", &format!("/{name}?restype=container"), &own, ""))
    };
    assert_eq!(create("new"), refused(201, ""));
    assert_eq!(create("new"), refused(409, "ContainerAlreadyExists"));
    assert_eq!(create("a_b"), refused(400, "InvalidResourceName"));
    let listed = ask(&rig, "GET", "?comp=list&include=metadata&prefix=n", &[], "");
    assert_eq!((listed.element("Name"), listed.element("a")), ("new", "1"));
    put(&rig, "/new/k", "x");
    // A container is deleted with its blobs.
    assert_eq!(ask(&rig, "DELETE", "/new?restype=container", &[], "").status, 202);
    assert_eq!(code(&ask(&rig, "PUT", "/new/k", &[BLOCK], "x")), refused(404, "ContainerNotFound"));
}

#[test]
fn an_object_of_one_dialect_is_a_blob_and_back() {
    let rig = azure(|_| {});
    rig.send("PUT", "/demo/s3", &[("content-type", "a/b"), ("x-amz-meta-m", "v")], "hello").unwrap();
    let blob = ask(&rig, "GET", "/demo/s3", &[], "");
    assert_eq!((blob.text(), blob.header("content-type"), blob.header("x-ms-meta-m")), ("hello", "a/b", "v"));
    assert_eq!(blob.header("content-md5"), HELLO_MD5);
    put(&rig, "/demo/azure", "hello");
    assert_eq!(rig.get("/demo/azure").text(), "hello");
    assert_eq!(rig.get("/storage/v1/b/demo/o/azure?alt=media").text(), "hello");
}

#[test]
fn azurites_habits_are_imitated_by_name() {
    // The CRC-64/NVME of `x` is another one.
    let wrong = [BLOCK, ("x-ms-content-crc64", "AAAAAAAAAAA=")];
    for (name, missing, from_url, of_range, with_crc64, listed) in [
        ("strict", (404, "BlobNotFound"), 201, 206, (400, "Crc64Mismatch"), 1),
        ("azurite", (412, "ConditionNotMet"), 501, 500, (400, "Crc64Mismatch"), 1),
        ("azurite-3.35", (412, "ConditionNotMet"), 501, 500, (500, "FeatureNotSupported"), 2),
    ] {
        let rig = azure(|config| {
            config.habits = Habits::named(name).unwrap_or_default();
        });
        ask(&rig, "PUT", "/demo?restype=container", &[], "");
        put(&rig, "/demo/a", "x");
        put(&rig, "/demo/k", "hello world");
        let absent = ask(&rig, "HEAD", "/demo/missing", &[("if-match", "\"0x1\"")], "");
        assert_eq!(code(&absent), refused(missing.0, missing.1), "{name}");
        let source =
            format!("http://{}{ACCOUNT}/demo/k?{}", rig.server.addr(), sas("r", "2099-01-01T00:00:00Z"));
        let copied = ask(&rig, "PUT", "/demo/copied", &[BLOCK, ("x-ms-copy-source", &source)], "");
        assert_eq!(copied.status, from_url, "{name}: {}", copied.text());
        let ranged = [("range", "bytes=0-3"), ("x-ms-range-get-content-crc64", "true")];
        assert_eq!(ask(&rig, "GET", "/demo/k", &ranged, "").status, of_range, "{name}");
        let suffix = ask(&rig, "GET", "/demo/k", &[("range", "bytes=-5")], "");
        let range = if name == "strict" { "" } else { "bytes NaN-5/11" };
        assert_eq!((suffix.header("content-range"), suffix.text()), (range, "hello world"), "{name}");
        let put = ask(&rig, "PUT", "/demo/m", &wrong, "x");
        assert_eq!(code(&put), refused(with_crc64.0, with_crc64.1), "{name}");
        ask(&rig, "DELETE", "/demo/copied", &[], "");
        let list = ask(&rig, "GET", "/demo?restype=container&comp=list&startFrom=b", &[], "");
        assert_eq!(list.text().matches("<Blob>").count(), listed, "{name}: {}", list.text());
    }
}
