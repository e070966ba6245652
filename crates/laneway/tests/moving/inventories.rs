//! Inventories instead of listings.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use laneway::{
    CopyRequest, Entry, ListRequest, Location, Op, Provider, RemoveRequest, SyncRequest, VerifyRequest,
    Version,
};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use md5::{Digest as _, Md5};

use crate::stage::{BUCKET, DIALECTS, KINDS, Report, Stage};

/// Writes an S3 inventory with these rows. Its data file lies where S3 puts it.
fn of_s3(stage: &Stage, bucket: &str, rows: &str) -> PathBuf {
    let data = stage.file("inventory/data/part-1.csv.gz", "");
    let mut gzip =
        flate2::write::GzEncoder::new(std::fs::File::create(data).unwrap(), flate2::Compression::fast());
    gzip.write_all(rows.as_bytes()).unwrap();
    gzip.finish().unwrap();
    let written = std::fs::read(stage.path("inventory/data/part-1.csv.gz")).unwrap();
    let md5: String = Md5::digest(&written).iter().map(|byte| format!("{byte:02X}")).collect();
    let manifest = serde_json::json!({
        "sourceBucket": bucket,
        "destinationBucket": "arn:aws:s3:::inventories",
        "version": "2016-11-30",
        "creationTimestamp": "1514944800000",
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag",
        "files": [{"key": "x/bucket/config/data/part-1.csv.gz", "size": 1, "MD5checksum": md5}],
    });
    stage.file("inventory/2026-11-06T21-32Z/manifest.json", serde_json::to_vec_pretty(&manifest).unwrap())
}

/// Writes a Storage Insights report with these rows.
fn of_gcs(stage: &Stage, rows: &str) -> PathBuf {
    stage.file("report/shard_0.csv", format!("project,bucket,name,size,timeDeleted,generation\n{rows}"));
    let manifest = serde_json::json!({
        "report_config": {"display_name": "all"},
        "records_processed": rows.lines().count(),
        "snapshot_time": "2026-01-20T00:00:00Z",
        "shard_count": 1,
        "report_shards_file_names": ["shard_0.csv"],
    });
    stage.file("report/manifest.json", serde_json::to_vec(&manifest).unwrap())
}

/// Returns an object's version as an inventory states it: its generation or its ETag.
pub(crate) fn version(stage: &Stage, key: &str) -> String {
    let mut listing = stage.client.list(ListRequest::new(stage.url(key)).recursive(true));
    let Some(Ok(Entry::Object(meta))) = listing.next_blocking() else { panic!("{key} is not there") };
    match meta.version {
        Some(Version::Generation(generation)) => generation.to_string(),
        Some(Version::ETag(etag)) => etag,
        _ => panic!("{key} has no version"),
    }
}

/// Returns a line of `ls -r --json`.
fn record(stage: &Stage, key: &str) -> String {
    let (url, version) = (stage.url(key).to_string(), version(stage, key));
    let named = match stage.kind.provider {
        Provider::Gcs => ("generation", version.parse::<u64>().unwrap().into()),
        _ => ("etag", serde_json::Value::from(version)),
    };
    serde_json::json!({"kind": "object", "url": url, "size": 1, named.0: named.1}).to_string() + "\n"
}

#[test]
fn an_inventory_stands_for_a_listing_of_what_is_copied_and_removed() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for key in ["p/a b+ü", "p/c", "p/late", "q"] {
            stage.object(key, b"12345");
        }
        let (first, second) = (version(&stage, "p/a b+ü"), version(&stage, "p/c"));
        let inventory = match kind.provider {
            Provider::S3 => {
                let key = "p/a+b%2B%C3%BC";
                let rows = format!(
                    "\"bucket\",\"{key}\",\"\",\"true\",\"false\",\"5\",\"2026-11-06T21:32:00.000Z\",\"{first}\"\n\
                     \"bucket\",\"p/old\",\"v\",\"false\",\"false\",\"5\",\"2026-11-06T21:32:00.000Z\",\"e\"\n\
                     \"bucket\",\"p/gone\",\"v\",\"true\",\"true\",\"\",\"2026-11-06T21:32:00.000Z\",\"\"\n\
                     \"bucket\",\"p/c\",\"\",\"true\",\"false\",\"5\",\"2026-11-06T21:32:00.000Z\",\"{second}\"\n\
                     \"bucket\",\"q\",\"\",\"true\",\"false\",\"5\",\"2026-11-06T21:32:00.000Z\",\"e\"\n"
                );
                of_s3(&stage, BUCKET, &rows)
            }
            _ => of_gcs(
                &stage,
                &format!(
                    "1,bucket,p/a b+ü,5,,{first}\n1,bucket,p/old,5,2026-01-01T00:00:00Z,3\n\
                     1,bucket,p/c,5,,{second}\n1,bucket,q,5,,\n"
                ),
            ),
        };
        let request =
            CopyRequest::new(vec![stage.url("p/")], Location::Local(stage.path("d"))).recursive(true);
        let report = stage.copy(request.inventory(inventory.as_path()));
        assert_eq!(report.all_done().ops(Op::Download), 2, "{kind:?}");
        assert_eq!(std::fs::read(stage.path("d/a b+ü")).unwrap(), b"12345");
        let listed = stage.requests("list");
        let request = RemoveRequest::new(vec![stage.url("p")]).recursive(true).inventory(inventory.as_path());
        assert_eq!(Report::of(stage.client.remove(request)).all_done().ops(Op::Remove), 2);
        assert_eq!((stage.keys(), stage.requests("list")), (vec!["p/late".into(), "q".into()], listed));
    }
}

/// An inventory contains neither an object's encoding nor the attributes of the file from which it was
/// uploaded.
#[test]
fn objects_of_an_inventory_are_decompressed_and_keep_their_attributes() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        // The bytes can hardly be compressed, so one object is small and the other is large.
        let content =
            |size: u32| (0..size).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>();
        let sizes = [100, 10 << 20];
        for size in sizes {
            let file = stage.file(&format!("site/{size}.txt"), content(size));
            std::fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
        }
        let up = CopyRequest::new(vec![Location::Local(stage.path("site"))], stage.url("p/"));
        stage.copy(up.recursive(true).contents(true).preserve(true).gzip("txt".parse().unwrap())).all_done();
        let mut lines = String::new();
        let mut listing = stage.client.list(ListRequest::new(stage.url("p/")).recursive(true));
        while let Some(entry) = listing.next_blocking() {
            let Ok(Entry::Object(meta)) = entry else { panic!("{entry:?}") };
            let crc = meta.checksums.crc32c.map(|crc| BASE64.encode(crc.to_be_bytes()));
            let line = serde_json::json!({
                "kind": "object", "url": stage.url(&meta.id.key).to_string(), "size": meta.size, "crc32c": crc,
                "generation": version(&stage, &meta.id.key).parse::<u64>().ok(),
            });
            writeln!(lines, "{line}").unwrap();
        }
        let inventory = stage.file("listed", &lines);
        let down = CopyRequest::new(vec![stage.url("p/")], Location::Local(stage.path("d")));
        let down = down.recursive(true).preserve(true).inventory(inventory.as_path()).decompress(true);
        assert_eq!(stage.copy(down).all_done().ops(Op::Download), 2, "{kind:?}");
        for size in sizes {
            let file = stage.path(&format!("d/{size}.txt"));
            assert!(std::fs::read(&file).unwrap() == content(size), "{kind:?}: {size}");
            assert_eq!(file.metadata().unwrap().modified().unwrap(), long_ago, "{kind:?}: {size}");
        }
    }
}

#[test]
fn the_json_output_of_ls_is_an_inventory_for_sync_and_verify() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let (mut lines, mut names) = (String::new(), Vec::new());
        for i in 0..1200 {
            let key = format!("p/{i:04}");
            stage.object(&key, b"x");
            writeln!(
                lines,
                r#"{{"kind":"object","url":"{}","size":1,"updated":"2026-01-20T00:00:00Z"}}"#,
                stage.url(&key)
            )
            .unwrap();
            names.push(key);
        }
        lines += "{\"kind\":\"usage\",\"objects\":1200,\"bytes\":1200}\n";
        let inventory = stage.file("listed", &lines);
        let sync = |inventory: &PathBuf| {
            let request = SyncRequest::new(stage.url("p"), Location::Local(stage.path("d")));
            Report::of(stage.client.sync(request.inventory(inventory.as_path())))
        };
        let report = sync(&inventory);
        assert_eq!(
            (report.summary.files, report.summary.failed, stage.requests("list")),
            (1200, 0, 0),
            "{kind:?}"
        );
        let verify = VerifyRequest::new(stage.url("p"), Location::Local(stage.path("d")))
            .source_inventory(inventory.as_path());
        assert_eq!(Report::of(stage.client.verify(verify)).summary.files, 1200);
        let mut turned: Vec<&str> = lines.lines().take(3).collect();
        turned.reverse();
        let (_, why) = sync(&stage.file("turned", turned.join("\n") + "\n")).failure();
        assert!(why.contains("turned:2: ") && why.contains("unsorted"), "{why}");
    }
}

#[test]
fn a_broken_line_or_another_buckets_inventory_is_refused_by_its_line() {
    let stage = Stage::new(DIALECTS[1]);
    let refusal = |inventory: PathBuf| {
        let request = RemoveRequest::new(vec![stage.url("")]).recursive(true).inventory(inventory);
        Report::of(stage.client.remove(request)).failure().1
    };
    let row = |bucket: &str, size: &str| {
        format!("\"{bucket}\",\"k\",\"\",\"true\",\"false\",\"{size}\",\"\",\"e\"\n")
    };
    for (bucket, rows, parts) in [
        ("other", row("other", "1"), ["manifest.json:1: ", "describes bucket other"]),
        (BUCKET, row("other", "1"), ["part-1.csv.gz:1: ", "describes bucket other"]),
        (BUCKET, "\"bucket\",\"k\"\n".to_owned(), ["part-1.csv.gz:1: ", "broken"]),
        (BUCKET, row(BUCKET, "many"), ["part-1.csv.gz:1: ", "size isn't a number"]),
    ] {
        let why = refusal(of_s3(&stage, bucket, &rows));
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    }
    let listed = "{\"kind\":\"object\",\"url\":\"s3://bucket/k\",\"size\":1}\n{\"kind\":\"obj";
    let why = refusal(stage.file("listed", listed));
    assert!(why.contains("listed:2: ") && why.contains("broken"), "{why}");
    let why = refusal(stage.file("notes", "what I care about\n"));
    assert!(why.contains("neither"), "{why}");
    std::fs::remove_file(stage.path("inventory/data/part-1.csv.gz")).unwrap();
    let why = refusal(stage.path("inventory/2026-11-06T21-32Z/manifest.json"));
    assert!(why.contains("data file") && why.contains("not found"), "{why}");
}

#[test]
fn what_was_replaced_since_the_inventory_was_made_is_not_removed() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        ["p/a", "p/b", "p/c"].iter().for_each(|key| stage.object(key, b"x"));
        let lines: String = ["p/a", "p/b", "p/c"].iter().map(|key| record(&stage, key)).collect();
        stage.object("p/b", b"y");
        let request =
            RemoveRequest::new(vec![stage.url("p")]).recursive(true).inventory(stage.file("i", lines));
        let report = Report::of(stage.client.remove(request));
        assert_eq!((report.summary.files, report.summary.failed), (2, 1), "{kind:?}");
        let (_, why) = report.failure();
        assert!(why.contains("p/b") && why.contains("replaced since the inventory was made"), "{why}");
        assert_eq!((stage.keys(), stage.stored("p/b")), (vec!["p/b".to_owned()], b"y".to_vec()));
    }
}

#[test]
fn an_inventory_without_versions_is_none_to_remove_by() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("p/a", b"x");
        let url = stage.url("p/a").to_string();
        let wanted = if kind.provider == Provider::Gcs { "generation" } else { "ETag" };
        let line = serde_json::json!({"kind": "object", "url": url, "size": 1}).to_string();
        let request =
            RemoveRequest::new(vec![stage.url("p")]).recursive(true).inventory(stage.file("i", line));
        let (_, why) = Report::of(stage.client.remove(request)).failure();
        assert!(why.contains(&url) && why.contains(wanted), "{why}");
        assert_eq!(stage.keys(), ["p/a"]);
    }
}

#[test]
fn listings_that_lack_objects_or_hold_old_versions_are_no_inventories() {
    let stage = Stage::new(DIALECTS[1]);
    stage.object("a#0123456789abcdef", b"x");
    let url = stage.url("");
    let key = stage.url("a#0123456789abcdef").to_string();
    let object = record(&stage, "").replace(&format!("\"{url}\""), &format!("\"{key}\""));
    let refusal = |text: String| {
        let copy = CopyRequest::new(vec![stage.url("")], Location::Local(stage.path("d"))).recursive(true);
        stage.copy(copy.inventory(stage.file("listed", text))).failure().1
    };
    for (line, why) in [
        (format!("{{\"kind\":\"prefix\",\"url\":\"{url}p/\"}}"), "not made with -r"),
        (format!("{{\"kind\":\"bucket\",\"url\":\"{url}\"}}"), "not made with -r"),
        (object.replace("\"size\"", "\"is_latest\":true,\"size\""), "made with -a"),
        (object.replace("\"size\"", "\"delete_marker\":true,\"size\""), "made with -a"),
        ("{\"kind\":\"item\"}".to_owned(), "its kind \"item\""),
    ] {
        let text = refusal(format!("{object}{line}\n"));
        assert!(text.contains("listed:2: ") && text.contains(why), "{text}");
    }
    let request = RemoveRequest::new(vec![stage.url("")]).recursive(true);
    let request = request.inventory(stage.file("listed", &object));
    Report::of(stage.client.remove(request)).all_done();
    assert_eq!(stage.keys(), Vec::<String>::new(), "a key that looks like a version's URL");
}

#[test]
fn a_damaged_data_file_is_refused_before_its_use() {
    let stage = Stage::new(DIALECTS.into_iter().find(|kind| kind.provider == Provider::S3).unwrap());
    stage.object("k", b"x");
    let row = format!("\"bucket\",\"k\",\"\",\"true\",\"false\",\"1\",\"\",\"{}\"\n", version(&stage, "k"));
    let inventory = of_s3(&stage, BUCKET, &(row.clone() + &row));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(row.as_bytes()).unwrap();
    stage.file("inventory/data/part-1.csv.gz", gzip.finish().unwrap());
    let request = RemoveRequest::new(vec![stage.url("")]).recursive(true).inventory(inventory);
    let (cause, why) = Report::of(stage.client.remove(request)).failure();
    assert!(cause == "integrity" && why.contains("part-1.csv.gz") && why.contains("incomplete"), "{why}");
    assert_eq!(stage.keys(), ["k"]);
}

#[test]
fn a_report_that_lacks_rows_or_columns_to_tell_objects_by_is_refused() {
    let stage = Stage::new(DIALECTS.into_iter().find(|kind| kind.provider == Provider::Gcs).unwrap());
    let refusal = |shard: &str, records: serde_json::Value| {
        stage.file("report/shard_0.csv", shard);
        let manifest = serde_json::json!({
            "records_processed": records, "report_shards_file_names": ["shard_0.csv"],
        });
        let manifest = stage.file("report/manifest.json", serde_json::to_vec(&manifest).unwrap());
        let request = CopyRequest::new(vec![stage.url("")], Location::Local(stage.path("d"))).recursive(true);
        let report = stage.copy(request.inventory(manifest));
        report.failures().join("\n")
    };
    for (shard, why) in [
        ("name,size,generation\nk,1,7\n", r#"has no column "bucket""#),
        ("bucket,name,size\nbucket,k,1\n", r#"neither a column "timeDeleted" nor "generation""#),
        ("bucket,name,size,generation\n,k,1,7\n", "it has no bucket"),
        ("bucket,name,size,generation\nother,k,1,7\n", "describes bucket"),
    ] {
        let text = refusal(shard, 1.into());
        assert!(text.contains("shard_0.csv:") && text.contains(why), "{text}");
    }
    let whole = "bucket,name,size,timeDeleted\nbucket,k,1,\n";
    for (records, why) in [
        (2.into(), "reports 2 objects"),
        ("2".into(), "reports 2 objects"),
        ("many".into(), "isn't a number"),
        (1.5.into(), "isn't a number"),
        ((-1).into(), "isn't a number"),
        (serde_json::json!({}), "isn't a number"),
    ] {
        let text = refusal(whole, records);
        assert!(text.contains("manifest.json") && text.contains(why), "{text}");
    }
}

/// Uploads an inventory of `p/a`. On S3 its data file lies in another bucket. Returns the URLs of both.
fn stored(stage: &Stage, md5: Option<&str>) -> [Location; 2] {
    let provider = stage.kind.provider;
    stage.server.create_bucket("reports").unwrap();
    let version = version(stage, "p/a");
    let (bucket, key, bytes) = match provider {
        Provider::S3 => {
            let row = format!("\"bucket\",\"p/a\",\"\",\"true\",\"false\",\"1\",\"\",\"{version}\"\n");
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(row.as_bytes()).unwrap();
            ("reports", "x/bucket/all/data/1.csv.gz", gzip.finish().unwrap())
        }
        _ => {
            let shard = format!("bucket,name,size,generation\nbucket,p/a,1,{version}\n");
            (BUCKET, "r/shard_0.csv", shard.into_bytes())
        }
    };
    let found: String = Md5::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    stage.server.store().put(bucket, key, &bytes).unwrap();
    let manifest = match provider {
        Provider::S3 => serde_json::json!({
            "sourceBucket": BUCKET,
            "destinationBucket": "arn:aws:s3:::reports",
            "fileFormat": "CSV",
            "fileSchema": "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag",
            "files": [{"key": key, "size": bytes.len(), "MD5checksum": md5.unwrap_or(&found)}],
        }),
        _ => serde_json::json!({"records_processed": "1", "report_shards_file_names": ["shard_0.csv"]}),
    };
    stage.object("r/manifest.json", &serde_json::to_vec_pretty(&manifest).unwrap());
    [stage.url("r/manifest.json"), Location::object(provider, bucket, key)]
}

#[test]
fn an_inventory_in_a_store_is_read_from_where_its_manifest_says() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        stage.object("p/a", b"x");
        let [manifest, data] = stored(&stage, None);
        let listed = stage.requests("list");
        let Location::Object { bucket, key, .. } = &data else { panic!("{data}") };
        let remove = || {
            let request = RemoveRequest::new(vec![stage.url("p")]).recursive(true);
            Report::of(stage.client.remove(request.inventory(manifest.clone())))
        };
        let bytes = stage.server.store().read(bucket, key).unwrap();
        assert!(stage.server.store().remove(bucket, key));
        let (cause, why) = remove().failure();
        assert!(cause == "not_found" && why.contains(&data.to_string()), "{kind:?}: {cause}: {why}");
        stage.server.store().put(bucket, key, &bytes).unwrap();
        assert_eq!(remove().all_done().ops(Op::Remove), 1, "{kind:?}");
        assert_eq!(stage.requests("list"), listed);
        assert!(!stage.keys().contains(&"p/a".to_owned()));
    }
}

#[test]
fn a_stored_data_file_with_a_wrong_md5_is_refused_before_its_use() {
    let stage = Stage::new(DIALECTS.into_iter().find(|kind| kind.provider == Provider::S3).unwrap());
    stage.object("p/a", b"x");
    let [manifest, data] = stored(&stage, Some("0123456789abcdef0123456789abcdef"));
    let request = RemoveRequest::new(vec![stage.url("p")]).recursive(true).inventory(manifest);
    let (cause, why) = Report::of(stage.client.remove(request)).failure();
    assert!(cause == "integrity" && why.contains(&data.to_string()) && why.contains("incomplete"), "{why}");
    assert!(stage.keys().contains(&"p/a".to_owned()));
}

#[test]
fn a_large_inventory_in_a_store_is_read_by_slices_whole_and_in_order() {
    for kind in DIALECTS {
        let stage = Stage::with_memory(kind, 16 << 20);
        let pad = "x".repeat(900_000);
        let mut lines = String::new();
        for i in 0..40 {
            let url = stage.url(&format!("p/{i:02}"));
            writeln!(lines, r#"{{"kind":"object","url":"{url}","size":1,"pad":"{pad}"}}"#).unwrap();
        }
        stage.object("listed", lines.as_bytes());
        let mut listing = stage
            .client
            .list(ListRequest::new(stage.url("p")).recursive(true).inventory(stage.url("listed")));
        let mut names = Vec::new();
        while let Some(entry) = listing.next_blocking() {
            let Entry::Object(meta) = entry.unwrap() else { panic!("no object") };
            names.push(meta.id.key);
        }
        assert_eq!(names, (0..40).map(|i| format!("p/{i:02}")).collect::<Vec<_>>(), "{kind:?}");
        assert!(stage.requests("get") >= 5, "{:?}", stage.server.counters().requests_by_verb);
    }
}
