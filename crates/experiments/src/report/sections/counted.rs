//! The sections on uploads of small files, read-modify-writes, deletes, listings, and ranges.

use super::{against_floor, path};
use crate::Compared as _;
use crate::counted::{Bench, Counted, Figures};
use crate::report::{Part, Score, Section};

pub(in crate::report) fn counted(found: &Counted) -> Section {
    let [title, text, bars, floor] = words(found.bench);
    let measure = &Figures::MEASURES[0];
    let path = path(found.link, &found.store, found.rtt_s);
    Section {
        id: found.bench.name(),
        title: title.to_owned(),
        programs: found.programs.clone(),
        text: format!("{} over {path}. {text}", found.what),
        parts: vec![
            against_floor(&found.rows, measure, found.floor_s, bars, floor),
            Part::Table(found.table()),
        ],
        scores: Score::of(title, &found.rows, measure),
    }
}

/// Returns the section's title, a paragraph, the title of the bar plot, and a sentence about the line in it.
fn words(bench: Bench) -> [&'static str; 4] {
    match bench {
        Bench::Ladder => [
            "Uploading many small files",
            "Every method starts without an open connection.",
            "Seconds until the last file is stored",
            "The line is the shortest possible time: TCP, TLS and all uploads in one round trip.",
        ],
        Bench::Commit => [
            "Changing many objects",
            "Each object is read, changed, and written back if no other client has changed it. Commits of lakehouse tables do this.",
            "Seconds until the last write is acknowledged",
            "The line is the shortest possible time: TCP, TLS, all reads in one round trip, all writes in another.",
        ],
        Bench::Clean => [
            "Deleting thousands of objects",
            "Some methods know the keys. Others know a prefix and list it first, which takes more round trips. The two groups are \
             compared separately.",
            "Seconds until the last object is gone",
            "The line is the shortest possible time if the keys are known: TCP, TLS and one request.",
        ],
        Bench::List => [
            "Listing many keys",
            "Half of the keys lie in one folder, a quarter in folders of days, and the rest in many small ones. Laneway knows only \
             the prefix. The method with a chain for each folder knows all folders.",
            "Seconds until the last key has arrived",
            "The line is the shortest possible time for one page: TCP, TLS and one request.",
        ],
        Bench::Ranges => [
            "Reading scattered ranges of one object",
            "The ranges have 4 to 64 KiB and lie anywhere in the object. Readers of an index make such requests.",
            "Seconds until the last range has arrived",
            "The line is the shortest possible time: TCP, TLS, all ranges in one round trip, and their bytes.",
        ],
        Bench::Columns => [
            "Reading columns of a table",
            "First comes a footer, then three of fifty columns in each of 64 row groups. Queries of Parquet files make such requests.",
            "Seconds until the last column has arrived",
            "The line is the shortest possible time: TCP, TLS, the footer in one round trip, all columns in another, and their bytes.",
        ],
    }
}
