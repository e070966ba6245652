//! Inventories with arbitrary content, for fuzzers.

use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use laneway_store::Provider;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use super::origin::{InventoryOpener, InventorySource};
use super::{BATCH_MAX, BatchCollector, InventoryBatch, InventoryScope, read};
use crate::Error;

/// A runtime, without which no inventory can be read. Local inventories send no requests on it.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));

const S3_CSV: &str = r#"{"sourceBucket":"b","fileFormat":"CSV","fileSchema":"Bucket, Key, Size, LastModifiedDate, ETag, IsLatest, IsDeleteMarker","files":[{"key":"data"}]}"#;
const S3_GZIP: &str =
    r#"{"sourceBucket":"b","fileFormat":"CSV","fileSchema":"Bucket, Key, Size","files":[{"key":"data.gz"}]}"#;
const S3_PARQUET: &str =
    r#"{"sourceBucket":"b","fileFormat":"Parquet","fileSchema":"","files":[{"key":"data.parquet"}]}"#;
const GCS_CSV: &str = r#"{"report_shards_file_names":["data"]}"#;

/// Reads an inventory. The first byte decides whether the other bytes are a manifest, a listing, or a data
/// file of a valid manifest.
pub fn inventory(input: &[u8]) {
    let Some((drawn, data)) = input.split_first() else { return };
    let (provider, manifest, name) = match drawn % 7 {
        0 => (Provider::S3, None, "data"),
        1 => (Provider::Gcs, None, "data"),
        2 => (Provider::S3, Some(S3_CSV), "data"),
        3 => (Provider::Gcs, Some(GCS_CSV), "data"),
        4 => (Provider::S3, Some(S3_GZIP), "data.gz"),
        5 => (Provider::S3, Some(S3_PARQUET), "data.parquet"),
        _ => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            let _ = gzip.write_all(data);
            let data = gzip.finish().unwrap_or_default();
            return check(Provider::S3, Some(S3_GZIP), "data.gz", &data);
        }
    };
    check(provider, manifest, name, data);
}

fn check(provider: Provider, manifest: Option<&str>, name: &str, data: &[u8]) {
    let held = tempfile::tempdir().expect("a folder");
    let folder = held.path();
    let at = folder.join("manifest.json");
    let written = match manifest {
        Some(manifest) => {
            std::fs::write(&at, manifest).and_then(|()| std::fs::write(folder.join(name), data))
        }
        None => std::fs::write(&at, data),
    };
    written.expect("a file can be written");
    let Ok(batches) = batches(InventorySource::File(at), provider) else { return };
    let mut objects = 0;
    for batch in batches {
        assert!(!batch.objects.is_empty() && batch.objects.len() <= BATCH_MAX);
        for (line, meta) in &batch.objects {
            assert!(*line > 0 && meta.id.bucket == "b" && meta.id.key.starts_with('p'));
        }
        objects += batch.objects.len();
    }
    assert!(manifest.is_some() || objects <= data.len());
}

fn batches(origin: InventorySource, provider: Provider) -> Result<Vec<InventoryBatch>, Error> {
    let _entered = RUNTIME.enter();
    // The channel must hold all batches of any input, because they are received only after all input was
    // read.
    let (out, mut batches) = mpsc::channel(1 << 16);
    let opener = InventoryOpener::new(origin, out.clone());
    let place = InventoryScope { provider, bucket: "b".to_owned(), prefix: "p".to_owned() };
    let batch = InventoryBatch { file: String::new(), objects: Vec::new() };
    let mut taker = BatchCollector { place, out, batch };
    let read = read(&opener, &mut taker).map(drop);
    let taken = std::iter::from_fn(|| batches.try_recv().ok()).filter_map(|batch| batch.ok().flatten());
    let taken = taken.collect();
    read.map(|()| taken)
}
