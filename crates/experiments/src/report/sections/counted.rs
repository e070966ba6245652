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
        text: format!("Each method has to {} over {path}. {text}", found.what),
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
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), and the round trips \
             that TCP needs for the largest file. It assumes that all files are uploaded at the same time.",
        ],
        Bench::Commit => [
            "Changing many objects",
            "Each method reads each object, changes it, and writes it back if no other client has changed it. Commits to lakehouse \
             tables do this.",
            "Seconds until the last write is acknowledged",
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), one for all reads \
             together, and one for all writes together.",
        ],
        Bench::Clean => [
            "Deleting thousands of objects",
            "Some methods know the keys. Others know a prefix and list it first, which takes more round trips. The two groups are \
             compared separately.",
            "Seconds until the last object is gone",
            "The line shows the shortest possible time for a client that knows the keys. It includes one round trip for each handshake \
             (TCP and TLS), and one for all deletes together.",
        ],
        Bench::List => [
            "Listing many keys",
            "Half of the keys lie in one folder, a quarter in folders named after days, and the rest in many small folders. Laneway is \
             given only the prefix. The methods that list all folders at once are given the names of the folders.",
            "Seconds until the last key has arrived",
            "The line shows the shortest possible time for a single page of keys. It includes one round trip for each handshake (TCP and \
             TLS), and one for the request.",
        ],
        Bench::Ranges => [
            "Reading scattered ranges of one object",
            "The ranges are 4 to 64 KiB long and lie anywhere in the object. Readers of an index make such requests.",
            "Seconds until the last range has arrived",
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), one for all ranges \
             together, and the time to move their bytes if the link's rate is known.",
        ],
        Bench::Columns => [
            "Reading columns of a table",
            "Each method reads a footer, and then three of fifty columns in each of 64 row groups. Queries of Parquet files make such \
             requests.",
            "Seconds until the last column has arrived",
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), one for the footer, \
             one for all columns together, and the time to move the bytes if the link's rate is known.",
        ],
    }
}
