//! Inventories with Parquet data files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway::{CopyRequest, Entry, ListRequest, Location, Op, Provider, RemoveRequest};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::inventories::version;
use crate::stage::{BUCKET, DIALECTS, Kind, Report, Stage};

/// The schema of S3's files, from AWS's page on the inventory manifest.
const S3_SCHEMA: &str = "message s3.inventory { required binary bucket (STRING); required binary key (STRING); optional binary version_id (STRING); \
     optional boolean is_latest; optional boolean is_delete_marker; optional int64 size; optional int64 last_modified_date (TIMESTAMP(MILLIS,true)); \
     optional binary e_tag (STRING); optional binary storage_class (STRING); }";
const GCS_SCHEMA: &str = "message schema { optional binary project (STRING); optional binary bucket (STRING); optional binary name (STRING); \
     optional int64 size; optional int64 timeDeleted (TIMESTAMP(MICROS,true)); optional int64 generation; }";

/// A column of a row group.
enum Column<'a> {
    Text(Vec<Option<&'a str>>),
    Long(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
}

/// Returns a column's present values, and a level for each row that marks the missing ones.
fn present<T: Clone>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (values.iter().flatten().cloned().collect(), values.iter().map(|value| value.is_some().into()).collect())
}

/// Writes a file with these row groups.
fn write(path: &Path, schema: &str, groups: &[Vec<Column<'_>>]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let settings = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(settings)).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for column in columns {
            let mut out = group.next_column().unwrap().unwrap();
            match column {
                Column::Text(texts) => {
                    let (texts, there) = present(texts);
                    let texts: Vec<ByteArray> = texts.into_iter().map(ByteArray::from).collect();
                    out.typed::<ByteArrayType>().write_batch(&texts, Some(&there), None).unwrap();
                }
                Column::Long(numbers) => {
                    let (numbers, there) = present(numbers);
                    out.typed::<Int64Type>().write_batch(&numbers, Some(&there), None).unwrap();
                }
                Column::Bool(facts) => {
                    let (facts, there) = present(facts);
                    out.typed::<BoolType>().write_batch(&facts, Some(&there), None).unwrap();
                }
            }
            out.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Returns a row group as S3 writes it: key, is latest, is delete marker, size, ETag.
fn group_of_s3<'a>(rows: &[(&'a str, bool, bool, Option<i64>, &'a str)]) -> Vec<Column<'a>> {
    vec![
        Column::Text(rows.iter().map(|_| Some(BUCKET)).collect()),
        Column::Text(rows.iter().map(|row| Some(row.0)).collect()),
        Column::Text(rows.iter().map(|_| None).collect()),
        Column::Bool(rows.iter().map(|row| Some(row.1)).collect()),
        Column::Bool(rows.iter().map(|row| Some(row.2)).collect()),
        Column::Long(rows.iter().map(|row| row.3).collect()),
        Column::Long(rows.iter().map(|_| Some(1_000)).collect()),
        Column::Text(rows.iter().map(|row| Some(row.4)).collect()),
        Column::Text(rows.iter().map(|_| Some("STANDARD")).collect()),
    ]
}

/// Returns a row group of a Storage Insights report: name, time of deletion, generation.
fn group_of_gcs<'a>(rows: &[(&'a str, Option<i64>, i64)]) -> Vec<Column<'a>> {
    vec![
        Column::Text(rows.iter().map(|_| Some("1")).collect()),
        Column::Text(rows.iter().map(|_| Some(BUCKET)).collect()),
        Column::Text(rows.iter().map(|row| Some(row.0)).collect()),
        Column::Long(rows.iter().map(|_| Some(5)).collect()),
        Column::Long(rows.iter().map(|row| row.1).collect()),
        Column::Long(rows.iter().map(|row| Some(row.2)).collect()),
    ]
}

/// Writes the manifest for `data.parquet` beside it.
fn manifest(stage: &Stage) -> PathBuf {
    let manifest = match stage.kind.provider {
        Provider::S3 => serde_json::json!({
            "sourceBucket": BUCKET, "destinationBucket": "arn:aws:s3:::inventories", "fileFormat": "Parquet",
            "fileSchema": S3_SCHEMA, "files": [{"key": "x/data/data.parquet", "size": 1}],
        }),
        _ => serde_json::json!({"report_shards_file_names": ["data.parquet"]}),
    };
    stage.file("manifest.json", serde_json::to_vec(&manifest).unwrap())
}

fn of(provider: Provider) -> Kind {
    DIALECTS.into_iter().find(|kind| kind.provider == provider).unwrap()
}

#[test]
fn parquet_inventories_list_current_objects_of_all_row_groups() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        // In CSV this key would stand for `p/a b/`. In Parquet it is literal.
        let first = "p/a+b%2F";
        [first, "p/c", "p/late"].iter().for_each(|key| stage.object(key, b"12345"));
        let (a, c) = (version(&stage, first), version(&stage, "p/c"));
        let manifest = manifest(&stage);
        let path = stage.path("data.parquet");
        match kind.provider {
            Provider::S3 => {
                let one = [(first, true, false, Some(5), a.as_str()), ("p/c", false, false, Some(5), "old")];
                let two = [("p/gone", true, true, None, ""), ("p/c", true, false, Some(5), c.as_str())];
                write(&path, S3_SCHEMA, &[group_of_s3(&one), group_of_s3(&two)]);
            }
            _ => {
                let one = [(first, None, a.parse().unwrap()), ("p/c", Some(7), 7)];
                let two = [("p/c", None, c.parse().unwrap())];
                write(&path, GCS_SCHEMA, &[group_of_gcs(&one), group_of_gcs(&two)]);
            }
        }
        let copy = CopyRequest::new(vec![stage.url("p/")], Location::Local(stage.path("d"))).recursive(true);
        let report = stage.copy(copy.inventory(manifest.as_path()));
        assert_eq!(report.all_done().ops(Op::Download), 2, "{kind:?}");
        assert_eq!(std::fs::read(stage.path("d/a+b%2F")).unwrap(), b"12345");
        let request = RemoveRequest::new(vec![stage.url("p")]).recursive(true).inventory(manifest);
        assert_eq!(Report::of(stage.client.remove(request)).all_done().ops(Op::Remove), 2);
        assert_eq!(stage.keys(), ["p/late"], "{kind:?}");
    }
}

#[test]
fn times_of_parquet_are_those_of_a_listing() {
    let stage = Stage::new(of(Provider::S3));
    let manifest = manifest(&stage);
    write(&stage.path("data.parquet"), S3_SCHEMA, &[group_of_s3(&[("k", true, false, Some(5), "\"e\"")])]);
    let mut listing = stage.client.list(ListRequest::new(stage.url("")).recursive(true).inventory(manifest));
    let Some(Ok(Entry::Object(meta))) = listing.next_blocking() else { panic!("no object") };
    assert_eq!(meta.updated, Some(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)));
    assert_eq!((meta.size, meta.etag.as_deref()), (5, Some("e")));
}

#[test]
fn parquet_that_is_none_or_holds_a_broken_row_is_refused_by_file_and_row() {
    let stage = Stage::new(of(Provider::S3));
    let manifest = manifest(&stage);
    let path = stage.path("data.parquet");
    let refusal = || {
        let request = RemoveRequest::new(vec![stage.url("")]).recursive(true).inventory(manifest.as_path());
        Report::of(stage.client.remove(request)).failure().1
    };
    write(
        &path,
        S3_SCHEMA,
        &[group_of_s3(&[("k", true, false, Some(5), "e"), ("l", true, false, None, "e")])],
    );
    let why = refusal();
    assert!(why.contains("data.parquet:2: ") && why.contains("size isn't a number"), "{why}");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let why = refusal();
    assert!(why.contains("data.parquet") && why.contains("can't be read as Parquet"), "{why}");
    write(&path, "message m { required binary bucket (STRING); }", &[vec![Column::Text(vec![Some(BUCKET)])]]);
    let why = refusal();
    assert!(why.contains("data.parquet:1: ") && why.contains("no column Key"), "{why}");
}
