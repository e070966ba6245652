//! Stores that refuse Amazon's checksum headers, and users who switch them off.

use laneway::{ChecksumAlgorithm, Outcome, RequestChecksums, Verified};
use laneway_server::{Config, Habits, S3Config};

use crate::stage::{DIALECTS, Kind, MIB, Report, Stage, noise};

const S3: Kind = DIALECTS[1];

fn verified(report: &Report) -> Vec<Verified> {
    let outcomes = report.items.iter().map(|item| match &item.outcome {
        Outcome::Done { verified } => *verified,
        other => panic!("{other:?}"),
    });
    outcomes.collect()
}

#[test]
fn a_store_that_refuses_a_checksum_header_is_told_the_md5() {
    for refusal in ["put:1 status 501 NotImplemented", "put:1 status 400 InvalidArgument"] {
        let stage = Stage::with_faults(S3, &[refusal]);
        for (name, puts) in [("first", 2), ("second", 3)] {
            let path = stage.file(name, noise(9 * MIB, 1));
            let report = stage.cp(&path, stage.url(name));
            // If a body comes without a checksum, S3 computes this one.
            assert_eq!(verified(&report), [Verified::Crc64nvme], "{refusal}");
            assert_eq!(stage.requests("put"), puts, "{refusal}");
        }
    }
}

#[test]
fn without_request_checksums_what_the_store_computes_is_compared() {
    let stage = Stage::set_up(S3, Config::default(), |settings| {
        settings.request_checksums(RequestChecksums::WhenRequired)
    });
    for len in [1000, 40 * MIB + 1] {
        let path = stage.file("file", noise(len, 2));
        assert_eq!(verified(&stage.cp(&path, stage.url("file"))), [Verified::Crc64nvme], "{len}");
        let back = stage.path("back");
        assert_eq!(verified(&stage.cp(stage.url("file"), &back)), [Verified::Crc64nvme], "{len}");
    }
}

#[test]
fn s3_compares_and_keeps_the_checksum_that_is_chosen() {
    // For an object that was uploaded in one request, S3 keeps a SHA-256 of all its bytes. The download is verified by
    // the MD5 in the ETag instead.
    for (algorithm, sent, small, large) in [
        (ChecksumAlgorithm::Crc64nvme, Verified::Crc64nvme, Verified::Crc64nvme, Verified::Crc64nvme),
        (ChecksumAlgorithm::Sha256, Verified::Crc32c, Verified::Md5, Verified::CompositeSha256),
    ] {
        let config =
            || Config { s3: S3Config { md5_etags: true, ..S3Config::default() }, ..Config::default() };
        let chosen = |config| Stage::set_up(S3, config, |settings| settings.checksum_algorithm(algorithm));
        let stage = chosen(config());
        for (len, kept) in [(1000, small), (40 * MIB + 1, large)] {
            let path = stage.file("file", noise(len, 2));
            assert_eq!(verified(&stage.cp(&path, stage.url("file"))), [sent], "{algorithm:?} {len}");
            assert!(stage.stored("file") == noise(len, 2), "{algorithm:?} {len}");
            let back = stage.path("back");
            assert_eq!(verified(&stage.cp(stage.url("file"), &back)), [kept], "{algorithm:?} {len}");
        }
        let faults = laneway_server::Faults::parse(["put corrupt", "part:1-99 corrupt"]).unwrap();
        let stage = chosen(Config { faults, ..config() });
        for len in [1000, 40 * MIB] {
            let path = stage.file("file", noise(len, 3));
            let (class, text) = stage.cp(&path, stage.url("file")).failure();
            assert_eq!(class, "integrity", "{algorithm:?} {len}: {text}");
        }
    }
}

#[test]
fn bytes_that_are_damaged_on_their_way_without_a_checksum_are_told() {
    let config = || Config {
        faults: laneway_server::Faults::parse(["put corrupt", "part:1-99 corrupt"]).unwrap(),
        ..Config::default()
    };
    for len in [1000, 40 * MIB] {
        let stage = Stage::set_up(S3, config(), |settings| {
            settings.request_checksums(RequestChecksums::WhenRequired)
        });
        let path = stage.file("file", noise(len, 3));
        let (class, text) = stage.cp(&path, stage.url("file")).failure();
        assert!(class == "integrity" && text.contains("crc64nvme"), "{len}: {text}");
    }
}

#[test]
fn a_bucket_without_amazons_checksums_is_written_read_and_emptied() {
    // The ETag of a multipart upload can't be verified without the lengths of its parts.
    for (habits, parts) in
        [(Habits::b2(), Verified::CompositeMd5), (Habits::gcs_interop(), Verified::Unverified)]
    {
        let stage = Stage::with(S3, Config { habits, ..Config::default() });
        for (name, len, read_by) in
            [("small", 1000, Verified::Md5), ("one", 9 * MIB, Verified::Md5), ("parts", 40 * MIB, parts)]
        {
            let bytes = noise(len, 4);
            let path = stage.file(name, &bytes);
            assert_eq!(verified(&stage.cp(&path, stage.url(name))), [Verified::Md5], "{name}");
            let back = stage.path("back");
            assert_eq!(verified(&stage.cp(stage.url(name), &back)), [read_by], "{name}");
            assert!(std::fs::read(&back).unwrap() == bytes);
        }
        stage.rm(vec![stage.url("")], true).all_done();
        assert!(stage.keys().is_empty());
    }
}

#[test]
fn without_checksum_headers_a_part_is_verified_by_md5_and_resent() {
    let habits = [Habits::b2(), Habits::gcs_interop()];
    for (habits, damage, again) in habits
        .into_iter()
        .flat_map(|habits| [(habits.clone(), "part:2 corrupt", true), (habits, "part:1-99 corrupt", false)])
    {
        let name = habits.name;
        let faults = laneway_server::Faults::parse([damage]).unwrap();
        let stage = Stage::with(S3, Config { habits, faults, ..Config::default() });
        let path = stage.file("file", noise(40 * MIB, 5));
        let report = stage.cp(&path, stage.url("file"));
        if again {
            assert_eq!(verified(&report), [Verified::Md5], "{name}");
            assert!(stage.stored("file") == noise(40 * MIB, 5), "{name}");
            assert_eq!(stage.requests("part"), 4, "{name}: one of three parts was fetched twice");
        } else {
            let (class, text) = report.failure();
            assert!(class == "integrity" && text.contains("md5 of part"), "{name}: {text}");
            assert!(stage.keys().is_empty(), "{name}");
        }
    }
}
