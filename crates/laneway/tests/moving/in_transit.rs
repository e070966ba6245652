//! Downloads of blobs without a checksum of the whole. Azure keeps no MD5 of a blob that was uploaded in blocks, but sends
//! checksums with the bytes.

use std::io::{Read, Write};
use std::net::TcpStream;

use laneway::{ClientBuilder, CopyRequest, Item, Location, Outcome, Provider, ReadRequest, Verified};
use laneway_server::{AzureConfig, Config, Faults, Habits, S3Config};

use crate::resuming::begun;
use crate::stage::{BUCKET, Kind, MIB, Report, Stage, names, noise};

const AZURE: Kind = Kind { provider: Provider::Azure, tls: false };
const SIZE: usize = 33 * MIB + 5;

/// Returns a stage with a blob that was uploaded in blocks.
fn stage_with(config: Config, set: impl FnOnce(ClientBuilder) -> ClientBuilder) -> (Stage, Vec<u8>) {
    let stage = Stage::set_up(AZURE, config, set);
    let bytes = noise(SIZE, 1);
    let file = stage.file("from", &bytes);
    stage.cp(file, stage.url("k")).all_done();
    (stage, bytes)
}

fn stage() -> (Stage, Vec<u8>) {
    stage_with(Config::default(), |settings| settings)
}

fn verified(item: &Item) -> Verified {
    match &item.outcome {
        Outcome::Done { verified } => *verified,
        other => panic!("{other:?}"),
    }
}

/// Downloads the blob under these faults, and returns its verification.
fn downloaded(stage: &Stage, bytes: &[u8], faults: &[&str]) -> Verified {
    stage.server.set_faults(Faults::parse(faults.iter().copied()).unwrap());
    let report = stage.cp(stage.url("k"), stage.path("out/k"));
    stage.server.set_faults(Faults::default());
    report.all_done();
    assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes, "{faults:?}");
    assert_eq!(names(&stage.path("out")), ["k"], "{faults:?}");
    verified(&report.items[0])
}

#[test]
fn a_blob_of_blocks_is_verified_in_transit() {
    let (stage, bytes) = stage();
    assert_eq!(downloaded(&stage, &bytes, &[]), Verified::InTransit);
    let mut read = Vec::new();
    let item = stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
    assert_eq!(verified(&item), Verified::InTransit);
    assert!(read == bytes);
    let bucket = stage.client.bucket("az://bucket/").unwrap();
    let mut download = bucket.get("k").call().unwrap();
    let mut chunks = Vec::new();
    while let Some(chunk) = download.chunk_blocking().unwrap() {
        chunks.extend_from_slice(&chunk);
    }
    assert_eq!(download.verified(), Some(Verified::InTransit));
    assert!(chunks == bytes);
    assert!(bucket.get("k").call().unwrap().bytes_blocking().unwrap() == bytes);
}

#[test]
fn a_blob_with_an_md5_is_verified_by_it() {
    let (stage, _) = stage();
    let small = noise(MIB, 2);
    stage.cp(stage.file("small", &small), stage.url("k")).all_done();
    assert_eq!(downloaded(&stage, &small, &[]), Verified::Md5);
}

/// Sends a write of the blob `key` as another program would.
fn put(stage: &Stage, key: &str, query: &str, body: &[u8]) {
    let mut stream = TcpStream::connect(stage.server.addr()).unwrap();
    let head = format!(
        "PUT /devstoreaccount1/bucket/{key}?{query} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\
         authorization: Bearer t\r\nx-ms-version: 2025-01-05\r\n\r\n",
        stage.server.addr(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[test]
fn small_blobs_of_blocks_are_verified_in_transit() {
    let stage = Stage::new(AZURE);
    let bytes = noise(5 * MIB, 1);
    let blobs = [("a", 5), ("b", 100_000), ("c", 4 * MIB), ("d", 4 * MIB + 1)];
    for (key, len) in blobs {
        put(&stage, key, "comp=block&blockid=YQ==", &bytes[..len]);
        put(&stage, key, "comp=blocklist", b"<BlockList><Latest>YQ==</Latest></BlockList>");
    }
    for faults in [&[][..], &["get:2-3 corrupt"], &["get:2 cut@100", "get:3 truncate@50"]] {
        stage.server.set_faults(Faults::parse(faults.iter().copied()).unwrap());
        let report = stage.cp_r(stage.url(""), stage.path("out"));
        stage.server.set_faults(Faults::default());
        report.all_done();
        for item in &report.items {
            assert_eq!(verified(item), Verified::InTransit, "{faults:?}: {item:?}");
        }
        for (key, len) in blobs {
            assert!(std::fs::read(stage.path("out").join(key)).unwrap() == bytes[..len], "{faults:?}: {key}");
            let got = stage.client.bucket("az://bucket/").unwrap().get(key).call().unwrap();
            assert!(got.bytes_blocking().unwrap() == bytes[..len]);
        }
    }
}

#[test]
fn a_flipped_bit_is_fetched_again() {
    let (stage, bytes) = stage();
    for at in ["3", "20", "1MiB", "5MiB", "15MiB"] {
        let rule = format!("get:1 corrupt@{at}");
        assert_eq!(downloaded(&stage, &bytes, &[&rule]), Verified::InTransit, "{rule}");
    }
}

#[test]
fn a_bit_that_flips_each_time_is_an_error_and_leaves_no_file() {
    let (stage, _) = stage();
    stage.server.set_faults(Faults::parse(["get corrupt@1MiB"]).unwrap());
    let (class, text) = stage.cp(stage.url("k"), stage.path("out/k")).failure();
    assert!(class == "integrity" && text.contains("CRC64"), "{class}: {text}");
    assert!(names(&stage.path("out")).is_empty());
    let bucket = stage.client.bucket("az://bucket/").unwrap();
    let range = bucket.get("k").range(7..3 * MIB as u64).call().and_then(|range| range.bytes_blocking());
    assert_eq!(range.unwrap_err().kind().name(), "integrity");
    let ranges = bucket.get_ranges("k", std::iter::once(9..2 * MIB as u64)).call();
    assert_eq!(ranges.unwrap_err().kind().name(), "integrity");
}

#[test]
fn a_stream_that_breaks_within_a_segment_is_verified_to_its_end() {
    let (stage, bytes) = stage();
    let breaks = ["get:1 cut@5MiB", "get:2 reset@1MiB", "get:4 drop@100", "get:5 cut@9MiB"];
    assert_eq!(downloaded(&stage, &bytes, &breaks), Verified::InTransit);
    stage.server.set_faults(Faults::parse(breaks).unwrap());
    let mut read = Vec::new();
    let item = stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
    assert!(verified(&item) == Verified::InTransit && read == bytes);
}

#[test]
fn a_blob_whose_answers_all_break_within_a_segment_is_unverified() {
    let stage = Stage::new(AZURE);
    let bytes = noise(4 * MIB, 1);
    put(&stage, "k", "comp=block&blockid=YQ==", &bytes);
    put(&stage, "k", "comp=blocklist", b"<BlockList><Latest>YQ==</Latest></BlockList>");
    stage.server.set_faults(Faults::parse(["get cut@3MiB"]).unwrap());
    let mut read = Vec::new();
    let item = stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
    assert!(verified(&item) == Verified::Unverified && read == bytes);
    assert_eq!(downloaded(&stage, &bytes, &["get cut@3MiB"]), Verified::Unverified);
}

#[test]
fn a_resumed_download_is_verified_in_transit() {
    let (stage, bytes) = stage();
    std::fs::create_dir_all(stage.path("out")).unwrap();
    stage.server.set_faults(Faults::parse(["get stall@15MiB"]).unwrap());
    let request = CopyRequest::new(vec![stage.url("k")], stage.path("out/k").as_path().into());
    let job = begun(&stage, request, &stage.path("out"));
    stage.server.set_faults(Faults::parse(["get status 403"]).unwrap());
    let report = Report::of(job);
    assert!(report.summary.kept_bytes > 0, "{report:?}");
    assert_eq!(downloaded(&stage, &bytes, &[]), Verified::InTransit);
}

/// Reads two ranges of one segment into memory, and returns the ranges that arrived or the class of the error.
fn scattered(stage: &Stage, faults: &[&str]) -> Result<Vec<(usize, Vec<u8>)>, &'static str> {
    let reader = stage.client.bucket("az://bucket/").unwrap().open("k").call().unwrap();
    stage.server.set_faults(Faults::parse(faults.iter().copied()).unwrap());
    let ranges = SCATTERED.map(|range| (range.start as u64..range.end as u64, vec![0; range.len()]));
    let mut coming = reader.stream_ranges_into(ranges);
    let mut arrived = Vec::new();
    while let Some(range) = coming.next_blocking() {
        let range = range.map_err(|error| {
            assert!(arrived.is_empty(), "a range came before its checksum");
            error.kind().name()
        })?;
        arrived.push((range.place, range.buffer));
    }
    stage.server.set_faults(Faults::default());
    arrived.sort();
    Ok(arrived)
}

/// Both ranges lie in one segment of one request, and the second one ends within the segment that follows.
const SCATTERED: [std::ops::Range<usize>; 2] = [9 * MIB..9 * MIB + 10, 9 * MIB + 100..10 * MIB];

#[test]
fn a_range_in_the_callers_memory_arrives_after_its_checksum() {
    let (stage, bytes) = stage();
    let all: Vec<_> = SCATTERED.map(|range| bytes[range].to_vec()).into_iter().enumerate().collect();
    for faults in [&[][..], &["get:1 corrupt@900000"], &["get:1 cut@900000"], &["get:1 truncate@900000"]] {
        assert!(scattered(&stage, faults).as_ref() == Ok(&all), "{faults:?}");
    }
    assert_eq!(scattered(&stage, &["get corrupt@900000"]), Err("integrity"));
}

#[test]
fn without_structured_bodies_such_a_blob_is_unverified() {
    let habits = Habits::named("azurite").unwrap();
    let (stage, bytes) = stage_with(Config { habits, ..Config::default() }, |settings| settings);
    assert_eq!(downloaded(&stage, &bytes, &[]), Verified::Unverified);
}

#[test]
fn a_move_removes_a_blob_that_was_verified_in_transit() {
    let (stage, bytes) = stage();
    let request = CopyRequest::new(vec![stage.url("k")], stage.path("out/k").as_path().into());
    stage.copy(request.remove_source(true)).all_verified();
    assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes && stage.keys().is_empty());
}

#[test]
fn a_copy_to_another_store_is_verified_where_it_was_read() {
    let (mut stage, bytes) = stage();
    let (url, azure, s3) = (stage.server.url(), AzureConfig::default(), S3Config::default());
    let keys = [
        ("AZURE_STORAGE_KEY", azure.key.as_str()),
        ("AWS_ACCESS_KEY_ID", s3.access_key.as_str()),
        ("AWS_SECRET_ACCESS_KEY", s3.secret_key.as_str()),
    ];
    let client = ClientBuilder::from_variables(keys);
    stage.renew_with(|_| client.s3_endpoint(&url).azure_endpoint(format!("{url}/{}", azure.account)));
    let to = Location::object(Provider::S3, BUCKET, "copied");
    stage.server.set_faults(Faults::parse(["get:2 corrupt@1MiB"]).unwrap());
    stage.cp(stage.url("k"), to).all_verified();
    assert!(stage.stored("copied") == bytes);
}
