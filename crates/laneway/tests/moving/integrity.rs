//! Verification of transfers. Each line of the table in SEMANTICS.md has a test, in which plain HTTP requests
//! write the objects, as other programs would. Other tests flip single bits: a checksum detects each of them, and
//! Laneway transfers the affected bytes again.

use std::io::{Read, Write};
use std::net::TcpStream;

use laneway::{CopyRequest, Location, Outcome, Provider, ReadRequest, Verified};
use laneway_server::{Config, Faults, GcsConfig, Habits, S3Config};

use crate::resuming::begun;
use crate::stage::{DIALECTS, KINDS, Kind, MIB, Report, Stage, at_once, names, noise};

const S3: Kind = Kind { provider: Provider::S3, tls: false };
const GCS: Kind = Kind { provider: Provider::Gcs, tls: false };
/// The size of an object that several streams fetch, so that Laneway combines the checksums of slices.
const LARGE: usize = 17 * MIB + 5;

fn s3(s3: S3Config) -> Stage {
    s3_with(s3, |_| ())
}

/// Returns a stage with a store whose habits `change` has edited.
fn s3_with(s3: S3Config, change: impl FnOnce(&mut Habits)) -> Stage {
    let mut config = Config { s3: S3Config { part_size_min: 0, ..s3 }, ..Config::default() };
    change(&mut config.habits);
    Stage::with(S3, config)
}

/// Sends a request as another program would, and returns the answer's head and body.
fn send(stage: &Stage, request: &str, headers: &[(&str, &str)], body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(stage.server.addr()).unwrap();
    let mut head = format!("{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", stage.server.addr());
    head += &format!("content-length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{request}: {}", String::from_utf8_lossy(&answer));
    (head, answer[end + 4..].to_vec())
}

/// Puts an object in one request with these headers.
fn put(stage: &Stage, headers: &[(&str, &str)], bytes: &[u8]) {
    send(stage, "PUT /bucket/k", headers, bytes);
}

/// Uploads an object in parts of these lengths; the last takes the rest.
fn put_in_parts(stage: &Stage, algorithm: Option<&str>, bytes: &[u8], lens: &[usize]) {
    let headers: Vec<_> = algorithm.iter().map(|name| ("x-amz-checksum-algorithm", *name)).collect();
    let (_, answer) = send(stage, "POST /bucket/k?uploads", &headers, b"");
    let answer = String::from_utf8(answer).unwrap();
    let id = answer.split("<UploadId>").nth(1).unwrap().split('<').next().unwrap();
    let mut document = "<CompleteMultipartUpload>".to_owned();
    let mut at = 0;
    for number in 1.. {
        let end = lens.get(number - 1).map_or(bytes.len(), |len| bytes.len().min(at + len));
        let request = format!("PUT /bucket/k?partNumber={number}&uploadId={id}");
        let (head, _) = send(stage, &request, &[], &bytes[at..end]);
        let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        document += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        at = end;
        if at == bytes.len() {
            break;
        }
    }
    document += "</CompleteMultipartUpload>";
    send(stage, &format!("POST /bucket/k?uploadId={id}"), &[], document.as_bytes());
}

/// Downloads the object and returns its verification.
fn verified(stage: &Stage, bytes: &[u8]) -> Verified {
    let report = stage.cp(stage.url("k"), stage.path("out/k"));
    report.all_done();
    assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes);
    assert_eq!(names(&stage.path("out")), ["k"]);
    verified_by(&report)
}

fn verified_by(report: &Report) -> Verified {
    match &report.items[0].outcome {
        Outcome::Done { verified } => *verified,
        other => panic!("{other:?}"),
    }
}

/// Returns the error's class for a download with one flipped bit.
fn damaged(stage: &Stage) -> &'static str {
    stage.server.set_faults(Faults::parse(["get:2-99 corrupt", "get:1 corrupt@100"]).unwrap());
    let class = stage.cp(stage.url("k"), stage.path("damaged/k")).failure().0;
    assert!(names(&stage.path("damaged")).is_empty());
    stage.server.set_faults(Faults::default());
    class
}

/// Returns the same class for a small object, whose bytes arrive with the first answer.
fn damaged_early(stage: &Stage) -> &'static str {
    stage.server.set_faults(Faults::parse(["get:1-99 corrupt@1"]).unwrap());
    let class = stage.cp(stage.url("k"), stage.path("damaged/k")).failure().0;
    stage.server.set_faults(Faults::default());
    class
}

/// Lengths of parts that end inside a mebibyte, equal and unequal.
const EVEN: [usize; 4] = [5_000_000; 4];
const UNEVEN: [usize; 3] = [5_000_000, 7_654_321, 3];

#[test]
fn gcs_objects_are_compared_by_crc32c_composed_ones_too() {
    let stage = Stage::new(GCS);
    let (a, b) = (noise(12 * MIB, 1), noise(9 * MIB, 2));
    stage.object("a", &a);
    stage.object("b", &b);
    let body = br#"{"sourceObjects":[{"name":"a"},{"name":"b"}]}"#;
    let headers = [("content-type", "application/json")];
    send(&stage, "POST /storage/v1/b/bucket/o/k/compose", &headers, body);
    assert_eq!(verified(&stage, &[a, b].concat()), Verified::Crc32c);
    assert_eq!(damaged(&stage), "integrity");
}

#[test]
fn s3_objects_are_verified_by_their_full_object_crc() {
    for (name, by) in
        [("CRC32C", Verified::Crc32c), ("CRC64NVME", Verified::Crc64nvme), ("CRC32", Verified::Crc32)]
    {
        for size in [1000, LARGE] {
            let stage = s3(S3Config::default());
            let bytes = noise(size, 1);
            let trailer = format!("x-amz-checksum-{}", name.to_ascii_lowercase());
            let crc = match name {
                "CRC32C" => crc(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes)[4..].to_vec(),
                "CRC32" => crc(crc_fast::CrcAlgorithm::Crc32IsoHdlc, &bytes)[4..].to_vec(),
                _ => crc(crc_fast::CrcAlgorithm::Crc64Nvme, &bytes).to_vec(),
            };
            put(&stage, &[(&trailer, &base64(&crc))], &bytes);
            assert_eq!(verified(&stage, &bytes), by, "{name} {size}");
            assert_eq!(damaged(&stage), "integrity", "{name} {size}");
        }
    }
}

fn crc(algorithm: crc_fast::CrcAlgorithm, bytes: &[u8]) -> [u8; 8] {
    crc_fast::checksum(algorithm, bytes).to_be_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63] as char;
            text.push(if i <= three.len() { digit } else { '=' });
        }
    }
    text
}

#[test]
fn an_s3_composite_crc32c_is_compared_part_by_part_wherever_parts_end() {
    for lens in [&EVEN[..], &UNEVEN[..], &[4 * MIB; 4][..]] {
        let stage = s3(S3Config::default());
        let bytes = noise(LARGE, 1);
        put_in_parts(&stage, Some("CRC32C"), &bytes, lens);
        assert_eq!(verified(&stage, &bytes), Verified::Composite, "{lens:?}");
        assert_eq!(damaged(&stage), "integrity", "{lens:?}");
    }
    // A single part needs no further request, even if the object is collected in memory.
    for size in [1000, 3 * MIB] {
        let stage = s3(S3Config::default());
        let bytes = noise(size, 1);
        put_in_parts(&stage, Some("CRC32C"), &bytes, &[]);
        assert_eq!(verified(&stage, &bytes), Verified::Composite, "{size}");
        assert_eq!(damaged(&stage), "integrity", "{size}");
    }
}

/// The verification covers the bytes from an earlier run.
#[test]
fn a_resumed_download_is_compared_by_a_composite_too() {
    let stage = s3(S3Config::default());
    let bytes = noise(64 * MIB, 1);
    put_in_parts(&stage, Some("CRC32C"), &bytes, &[9_999_999; 6]);
    stage.server.set_faults(Faults::parse(["get stall@12MiB"]).unwrap());
    let request =
        laneway::CopyRequest::new(vec![stage.url("k")], laneway::Location::Local(stage.path("out/k")));
    std::fs::create_dir_all(stage.path("out")).unwrap();
    let request = request.keep_partial(true);
    let job = begun(&stage, request, &stage.path("out"));
    job.canceller().cancel();
    assert!(Report::of(job).summary.kept_bytes > 0);
    stage.server.set_faults(Faults::default());
    assert_eq!(verified(&stage, &bytes), Verified::Composite);
}

/// Digests that other programs upload by part: CRC32 by the AWS CLI and boto3, SHA by others.
const OF_PARTS: [(&str, Verified); 3] = [
    ("CRC32", Verified::CompositeCrc32),
    ("SHA256", Verified::CompositeSha256),
    ("SHA1", Verified::CompositeSha1),
];

#[test]
fn an_s3_composite_of_any_algorithm_is_compared_part_by_part() {
    for (algorithm, by) in OF_PARTS {
        for lens in [&EVEN[..], &UNEVEN[..]] {
            // Some services don't list parts, so Laneway requests the metadata of each part.
            for object_attributes in [true, false] {
                let stage =
                    s3_with(S3Config::default(), |habits| habits.object_attributes = object_attributes);
                let bytes = noise(LARGE, 1);
                put_in_parts(&stage, Some(algorithm), &bytes, lens);
                assert_eq!(verified(&stage, &bytes), by, "{algorithm} {lens:?} {object_attributes}");
                assert_eq!(damaged(&stage), "integrity", "{algorithm} {lens:?} {object_attributes}");
            }
        }
        let stage = s3(S3Config::default());
        put_in_parts(&stage, Some(algorithm), b"one part", &[]);
        assert_eq!(verified(&stage, b"one part"), by, "{algorithm}");
        assert_eq!(damaged_early(&stage), "integrity", "{algorithm}");
    }
}

#[test]
fn an_etag_of_parts_is_the_md5_of_their_md5s() {
    for lens in [&EVEN[..], &UNEVEN[..]] {
        let stage = s3(S3Config { checksums: false, ..S3Config::default() });
        let bytes = noise(LARGE, 1);
        put_in_parts(&stage, None, &bytes, lens);
        // Not every store builds its ETags from MD5s. So a mismatch proves nothing until an ETag of this
        // store has matched once.
        stage.server.set_faults(Faults::parse(["get:1-99 corrupt@100"]).unwrap());
        let report = stage.cp(stage.url("k"), stage.path("wrong/k"));
        assert_eq!(verified_by(&report), Verified::Unverified, "{lens:?}");
        stage.server.set_faults(Faults::default());
        assert_eq!(verified(&stage, &bytes), Verified::CompositeMd5, "{lens:?}");
        assert_eq!(damaged(&stage), "integrity", "{lens:?}");
    }
}

#[test]
fn the_lengths_of_parts_take_one_request_or_two() {
    for (algorithm, lens, heads) in [(Some("CRC32"), &UNEVEN[..], 0), (None, &EVEN[..], 2)] {
        let stage = s3(S3Config { checksums: algorithm.is_some(), ..S3Config::default() });
        let bytes = noise(LARGE, 1);
        put_in_parts(&stage, algorithm, &bytes, lens);
        assert_ne!(verified(&stage, &bytes), Verified::Unverified);
        let asked = |verb| stage.server.counters().requests_by_verb.get(verb).copied().unwrap_or_default();
        assert_eq!(asked("head"), heads, "{algorithm:?}");
    }
}

#[test]
fn a_move_from_s3_takes_objects_in_parts_and_keeps_what_is_unverified() {
    for algorithm in [Some("CRC32"), None] {
        let stage = s3(S3Config { checksums: algorithm.is_some(), ..S3Config::default() });
        let bytes = noise(LARGE, 1);
        put_in_parts(&stage, algorithm, &bytes, &EVEN);
        let request = |to: &str| {
            laneway::CopyRequest::new(vec![stage.url("k")], laneway::Location::Local(stage.path(to)))
                .remove_source(true)
        };
        // The store refuses the HEAD, so Laneway doesn't know the parts' lengths.
        if algorithm.is_none() {
            stage.server.set_faults(Faults::parse(["head status 403"]).unwrap());
            let report = Report::of(stage.client.copy(request("kept")));
            let (class, message) = report.failure();
            assert!(class == "integrity" && message.contains("--allow-unverified"), "{message}");
            assert_eq!(stage.keys(), ["k"]);
            Report::of(stage.client.copy(request("kept").allow_unverified(true))).all_done();
            assert_eq!(stage.keys(), [""; 0]);
            put_in_parts(&stage, algorithm, &bytes, &EVEN);
        }
        stage.server.set_faults(Faults::default());
        Report::of(stage.client.copy(request("moved"))).all_done();
        assert!(std::fs::read(stage.path("moved")).unwrap() == bytes && stage.keys().is_empty());
    }
}

#[test]
fn a_composite_is_compared_on_its_way_to_another_store() {
    for (algorithm, lens, is_moved) in [
        (Some("CRC32"), [5 * MIB; 4], true),
        (Some("SHA256"), [5 * MIB; 4], true),
        (None, [5 * MIB; 4], true),
        // A resumable GCS session doesn't accept parts of this size.
        (Some("CRC32"), EVEN, false),
    ] {
        for size in [11 * MIB, LARGE] {
            let stage = s3(S3Config { checksums: algorithm.is_some(), ..S3Config::default() });
            let bytes = noise(size, 1);
            put_in_parts(&stage, algorithm, &bytes, &lens);
            let copy = || {
                let to = laneway::Location::object(Provider::Gcs, crate::stage::BUCKET, "copy");
                let request = laneway::CopyRequest::new(vec![stage.url("k")], to).remove_source(true);
                Report::of(stage.client.copy(request))
            };
            // If Laneway reads the object as a whole, it can compute digests of parts that end at any offset.
            if !is_moved && size == LARGE {
                assert_eq!(copy().failure().0, "integrity", "{algorithm:?} {size}");
                assert_eq!(stage.keys(), ["copy", "k"], "{algorithm:?} {size}");
                continue;
            }
            copy().all_done();
            assert!(stage.keys() == ["copy"] && stage.stored("copy") == bytes, "{algorithm:?} {size}");
            stage.server.store().put(crate::stage::BUCKET, "copy", b"old").unwrap();
            put_in_parts(&stage, algorithm, &bytes, &lens);
            stage.server.set_faults(Faults::parse(["get:1-99 corrupt@100"]).unwrap());
            assert_eq!(copy().failure().0, "integrity", "{algorithm:?} {size}");
            assert_eq!(stage.stored("copy"), b"old", "{algorithm:?} {size}");
        }
    }
}

#[test]
fn files_are_compared_with_objects_in_parts() {
    for (algorithm, by) in [(Some("CRC32"), "crc32-parts"), (None, "md5-parts")] {
        let stage = s3(S3Config { checksums: algorithm.is_some(), ..S3Config::default() });
        let mut bytes = noise(LARGE, 1);
        put_in_parts(&stage, algorithm, &bytes, &UNEVEN);
        let report = |bytes: &[u8]| {
            stage.file("tree/k", bytes);
            let (from, to) = (laneway::Location::Local(stage.path("tree")), stage.url(""));
            Report::of(stage.client.verify(laneway::VerifyRequest::new(from, to)))
        };
        assert_eq!(verified_by(&report(&bytes)).to_string(), by);
        bytes[7] ^= 1;
        let (class, message) = report(&bytes).failure();
        assert!(class == "integrity" && message.contains("digest of the parts"), "{class} {message}");
        let sync = laneway::SyncRequest::new(laneway::Location::Local(stage.path("tree")), stage.url(""));
        let sync = || Report::of(stage.client.sync(sync.clone().checksum(true))).summary;
        assert_eq!(sync().files, 1, "{algorithm:?}");
        bytes[7] ^= 1;
        stage.file("tree/k", &bytes);
        put_in_parts(&stage, algorithm, &bytes, &UNEVEN);
        let same = sync();
        assert_eq!((same.files, same.unchanged), (0, 1), "{algorithm:?}");
    }
}

#[test]
fn a_composite_that_is_read_in_order_is_unverified() {
    let stage = s3(S3Config::default());
    let bytes = noise(LARGE, 1);
    put_in_parts(&stage, Some("CRC32C"), &bytes, &EVEN);
    let mut read = Vec::new();
    let item = stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
    assert!(matches!(item.outcome, Outcome::Done { verified: Verified::Unverified }) && read == bytes);
    // An object that arrives with the first request is verified before its bytes are passed on.
    let small = &bytes[..7 * MIB];
    put_in_parts(&stage, Some("CRC32"), small, &[5 * MIB]);
    let mut read = Vec::new();
    let item = stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
    assert!(matches!(item.outcome, Outcome::Done { verified: Verified::CompositeCrc32 }) && read == small);
    // Without the parts' lengths the download is unverified.
    let stage = s3_with(S3Config::default(), |habits| {
        (habits.object_attributes, habits.part_numbers) = (false, false);
    });
    put_in_parts(&stage, Some("CRC32C"), &bytes, &EVEN);
    assert_eq!(verified(&stage, &bytes), Verified::Unverified);
}

#[test]
fn an_etag_verifies_an_s3_object_of_one_part_up_to_64_mib() {
    let silent = || s3(S3Config { checksums: false, ..S3Config::default() });
    for (size, by) in [(1000, Verified::Md5), (LARGE, Verified::Md5), (64 * MIB + 1, Verified::Unverified)] {
        let stage = silent();
        let bytes = noise(size, 1);
        put(&stage, &[], &bytes);
        assert_eq!(verified(&stage, &bytes), by, "{size}");
        if by == Verified::Md5 {
            stage.server.set_faults(Faults::parse(["get:1-99 corrupt@100"]).unwrap());
            assert_eq!(stage.cp(stage.url("k"), stage.path("damaged/k")).failure().0, "integrity", "{size}");
        }
    }
    // A broken stream leaves no MD5, so Laneway computes it from the file.
    for size in [1000, LARGE] {
        let stage = silent();
        let bytes = noise(size, 1);
        put(&stage, &[], &bytes);
        stage.server.set_faults(Faults::parse(["get:1 truncate"]).unwrap());
        assert_eq!(verified(&stage, &bytes), Verified::Md5, "{size}");
        stage.server.set_faults(Faults::parse(["get:1 truncate", "get:2-99 corrupt"]).unwrap());
        assert_eq!(stage.cp(stage.url("k"), stage.path("damaged/k")).failure().0, "integrity", "{size}");
    }
    // Laneway doesn't compute SHA-256, but the object also has an MD5.
    let stage = s3(S3Config::default());
    let sha256 = "LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=";
    put(&stage, &[("x-amz-checksum-sha256", sha256)], b"x");
    assert_eq!(verified(&stage, b"x"), Verified::Md5);
}

#[test]
fn where_a_store_tells_no_checksum_the_report_says_unverified() {
    let quiet = S3Config { checksums: false, md5_etags: false, ..S3Config::default() };
    for size in [1000, LARGE] {
        let stage = s3(quiet.clone());
        let bytes = noise(size, 1);
        put(&stage, &[], &bytes);
        let report = stage.cp(stage.url("k"), stage.path("k"));
        assert_eq!((verified_by(&report), report.summary.unverified), (Verified::Unverified, 1), "{size}");
        // The ETag of a multipart upload isn't the MD5 of the whole.
        let stage = s3(S3Config { checksums: false, ..S3Config::default() });
        put_in_parts(&stage, None, &bytes, &EVEN);
        stage.server.set_faults(Faults::parse(["head status 403"]).unwrap());
        let by = if size == 1000 { Verified::CompositeMd5 } else { Verified::Unverified };
        assert_eq!(verified(&stage, &bytes), by, "{size}");
    }
}

#[test]
fn small_objects_are_fetched_once_more() {
    for kind in KINDS {
        let stage = Stage::with_faults(kind, &["get:1 corrupt", "get key=t/3 corrupt"]);
        stage.object("k", &noise(5000, 1));
        let report = stage.cp(stage.url("k"), stage.path("k"));
        report.all_verified();
        assert_eq!((report.items[0].attempts, stage.requests("get")), (2, 2), "{kind:?}");
        assert!(std::fs::read(stage.path("k")).unwrap() == noise(5000, 1));

        stage.server.set_faults(Faults::parse(["get:3 corrupt"]).unwrap());
        for i in 0..8 {
            stage.object(&format!("t/{i}"), &noise(1000, i));
        }
        stage.cp_r(stage.url("t"), stage.path("t")).all_verified();
        assert_eq!(stage.requests("get"), 2 + 9, "{kind:?}");
    }
}

/// No store tells which slice is corrupted, so Laneway fetches all slices again.
#[test]
fn a_large_object_is_fetched_once_more() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 reset@3MiB", "get:2 corrupt"]);
        stage.object("k", &noise(40 * MIB, 1));
        let report = stage.cp(stage.url("k"), stage.path("k"));
        report.all_verified();
        assert!(std::fs::read(stage.path("k")).unwrap() == noise(40 * MIB, 1), "{kind:?}");
        assert!(report.items[0].attempts >= 2, "{kind:?}");
    });
}

#[test]
fn what_is_read_to_a_stream_is_compared_before_it_is_handed_on() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["get:1 corrupt"]);
        stage.object("k", &noise(MIB, 1));
        let mut read = Vec::new();
        stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
        assert!(read == noise(MIB, 1), "{kind:?}");

        stage.server.set_faults(Faults::parse(["get:1 corrupt"]).unwrap());
        let fifo = stage.fifo("fifo");
        let mut job =
            stage.client.copy(CopyRequest::new(vec![stage.url("k")], Location::Local(fifo.clone())));
        assert!(std::fs::read(fifo).unwrap() == noise(MIB, 1), "{kind:?}");
        while job.next_blocking().is_some() {}
        let progress = job.progress();
        let counted = (progress.bytes_found(), progress.bytes_done());
        assert_eq!(counted, (MIB as u64, MIB as u64), "{kind:?}");
    }
}

#[test]
fn a_small_file_is_sent_once_more() {
    for kind in KINDS {
        let stage = Stage::with_faults(kind, &["put:1 corrupt"]);
        let path = stage.file("f", noise(5000, 1));
        stage.cp(&path, stage.url("f")).all_verified();
        assert!(stage.stored("f") == noise(5000, 1) && stage.requests("put") == 2, "{kind:?}");
    }
}

#[test]
fn a_bad_part_costs_that_part_only() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["part:2 corrupt"]);
        let path = stage.file("big", noise(50 * MIB, 1));
        stage.cp(&path, stage.url("big")).all_verified();
        assert!(stage.stored("big") == noise(50 * MIB, 1));
        assert_eq!((stage.requests("part"), stage.requests("begin")), (5, 1), "{kind:?}");
    });
}

/// A session's chunks have no checksums of their own. Laneway compares the whole object, removes it and
/// sends it again.
#[test]
fn a_session_with_a_bad_chunk_is_sent_once_more() {
    let gcs = GcsConfig { xml: false, ..GcsConfig::default() };
    let faults = Faults::parse(["part:2 corrupt"]).unwrap();
    let stage = Stage::with(KINDS[0], Config { gcs, faults, ..Config::default() });
    let path = stage.file("big", noise(40 * MIB, 1));
    stage.cp(&path, stage.url("big")).all_verified();
    assert!(stage.stored("big") == noise(40 * MIB, 1));
    assert_eq!(stage.requests("delete"), 1, "the wrong object was removed");
}

/// Otherwise a later run would mistake the wrong object for an existing one.
#[test]
fn a_wrong_object_that_cannot_be_taken_back_is_an_error_and_not_skipped() {
    let faults = Faults::parse(["part:2 corrupt", "delete status 403"]).unwrap();
    let stage = Stage::with(KINDS[0], Config { faults, ..Config::default() });
    let source = Location::Local(stage.file("big", noise(40 * MIB, 1)));
    let request = CopyRequest::new(vec![source], stage.url("big"));
    let report = stage.copy(request.no_clobber(true));
    assert_eq!(report.failure().0, "integrity");
    assert_eq!((report.summary.skipped, stage.requests("begin")), (0, 1));
}

#[test]
fn a_copy_between_stores_reads_once_more() {
    for size in [5000, 40 * MIB] {
        let stage = Stage::with_faults(KINDS[0], &["get:1 corrupt"]);
        stage.object("k", &noise(size, 1));
        stage.server.create_bucket("other").unwrap();
        stage.cp(stage.url("k"), Location::object(Provider::S3, "other", "k")).all_verified();
        assert!(stage.server.store().read("other", "k").unwrap() == noise(size, 1), "{size}");
    }
}
