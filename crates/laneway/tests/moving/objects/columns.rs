//! Columns of Parquet files, read by row group.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use futures_util::StreamExt as _;
use laneway::{FilledRange, Reader};
use parquet::data_type::DoubleType;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::{bucket, wait};
use crate::stage::{DIALECTS, Stage, at_once};

const GROUPS: usize = 24;
const ROWS: i32 = 4000;

/// Maximum number of hedges. A busy machine may delay requests so long that Laneway sends them again.
const HEDGES: u64 = 2;

/// Returns a file with four columns, and their positions.
fn file() -> (Vec<u8>, Vec<Vec<Range<u64>>>) {
    let schema =
        "message row { required double a; required double b; required double c; required double d; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::default()).unwrap();
    for group in 0..GROUPS {
        let mut row_group = writer.next_row_group().unwrap();
        while let Some(mut column) = row_group.next_column().unwrap() {
            let numbers: Vec<_> = (0..ROWS).map(|row| f64::from(row).sin() * group as f64).collect();
            column.typed::<DoubleType>().write_batch(&numbers, None, None).unwrap();
            column.close().unwrap();
        }
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(file.clone())).unwrap();
    let places = metadata.row_groups().iter().map(|group| {
        group
            .columns()
            .iter()
            .map(|column| column.byte_range())
            .map(|(start, len)| start..start + len)
            .collect()
    });
    let places = places.collect();
    (file, places)
}

/// Reads the first and the third column of a row group.
fn read(reader: &Reader, file: &[u8], columns: &[Range<u64>]) {
    let asked = [columns[0].clone(), columns[2].clone()];
    let come: BTreeMap<_, _> = wait(reader.stream_ranges(asked.clone()).map(Result::unwrap).collect());
    assert_eq!(come.len(), 2);
    for (at, range) in asked.into_iter().enumerate() {
        assert!(come[&at] == file[range.start as usize..range.end as usize], "{at}");
    }
}

/// Opens the file and reads two row groups, so that the third is being prefetched. Also returns the number of requests before the first row
/// group, and the number for each row group.
fn two_read(stage: &Stage, file: &[u8], groups: &[Vec<Range<u64>>]) -> (Reader, u64, u64) {
    let reader = wait(bucket(stage, "").open("t.parquet").footer(64 << 10).into_future()).unwrap();
    let before = stage.requests("get");
    read(&reader, file, &groups[0]);
    let each = stage.requests("get") - before;
    read(&reader, file, &groups[1]);
    stage.wait_for("get", before + 3 * each);
    (reader, before, each)
}

#[test]
fn columns_of_the_next_row_groups_are_fetched_ahead() {
    let (file, groups) = file();
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        stage.object("t.parquet", &file);
        let (reader, before, each) = two_read(&stage, &file, &groups);
        for (group, columns) in groups.iter().enumerate().skip(2) {
            read(&reader, &file, columns);
            // Prefetched row groups, which the reader has not requested yet.
            let ahead = (group + 1).div_ceil(4).min(GROUPS - 1 - group);
            stage.wait_for("get", before + (group + 1 + ahead) as u64 * each);
        }
        let (asked, all) = (stage.requests("get") - before, GROUPS as u64 * each);
        assert!(
            (all..=all + HEDGES).contains(&asked),
            "each once, and nothing else: {asked} requests, not {all}"
        );
    });
}

#[test]
fn columns_that_were_read_ahead_land_in_the_callers_memory_too() {
    let (file, groups) = file();
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        stage.object("t.parquet", &file);
        let (reader, before, each) = two_read(&stage, &file, &groups);
        for columns in &groups[2..] {
            let asked = [columns[0].clone(), columns[2].clone()];
            let memory = asked.clone().map(|range| vec![0; (range.end - range.start) as usize]);
            let coming = reader.stream_ranges_into(asked.clone().into_iter().zip(memory));
            let come: Vec<_> = wait(coming.map(Result::unwrap).collect());
            assert_eq!(come.len(), 2);
            for FilledRange { place, buffer, .. } in come {
                assert!(buffer == file[asked[place].start as usize..asked[place].end as usize], "{place}");
            }
        }
        let (asked, all) = (stage.requests("get") - before, GROUPS as u64 * each);
        assert!((all..=all + HEDGES).contains(&asked), "each once: {asked} requests, not {all}");
    });
}

#[test]
fn a_wrong_prediction_fetches_at_most_a_quarter_more() {
    let (file, groups) = file();
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        stage.object("t.parquet", &file);
        let open = || wait(bucket(&stage, "").open("t.parquet").footer(64 << 10).into_future()).unwrap();
        let before = stage.requests("get");
        let reader = open();
        read(&reader, &file, &groups[0]);
        let each = stage.requests("get") - before - 1;
        for columns in &groups[1..8] {
            read(&reader, &file, columns);
        }
        // Wait for all prefetch requests, so that the next count includes none of them.
        stage.wait_for("get", before + 1 + 10 * each);
        drop(reader);
        let asked = stage.requests("get") - before - 1;
        assert!(asked <= 10 * each + HEDGES, "{asked} requests for 8 row groups");
        let (before, reader) = (stage.requests("get"), open());
        for columns in groups.iter().step_by(2) {
            read(&reader, &file, columns);
        }
        let (asked, all) = (stage.requests("get") - before - 1, GROUPS as u64 / 2 * each);
        assert!((all..=all + HEDGES).contains(&asked), "every other row group: {asked} requests, not {all}");
    });
}

#[test]
fn columns_ahead_are_of_the_version_that_was_opened() {
    let (file, groups) = file();
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        stage.object("t.parquet", &file);
        let (reader, ..) = two_read(&stage, &file, &groups);
        stage.object("t.parquet", b"another");
        // Prefetched bytes that arrived in time belong to the version that was opened.
        let ahead = [groups[2][0].clone(), groups[2][2].clone()];
        for come in wait(reader.stream_ranges(ahead.clone()).collect::<Vec<_>>()) {
            match come {
                Ok((at, bytes)) => assert!(bytes == file[ahead[at].start as usize..ahead[at].end as usize]),
                Err(e) => assert!(e.is_precondition() || e.is_not_found(), "{e}"),
            }
        }
        let asked = [groups[3][0].clone(), groups[3][2].clone()];
        let replaced = wait(reader.stream_ranges(asked).collect::<Vec<_>>()).pop().unwrap().unwrap_err();
        assert!(replaced.is_precondition() || replaced.is_not_found(), "{replaced}");
    });
}
