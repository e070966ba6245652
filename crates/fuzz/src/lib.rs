//! Fuzzers of all that a peer or a file feeds.
//!
//! A target is a function of any bytes that panics where something doesn't hold. It stands beside the parser that it feeds, in a module
//! `fuzzing` which only this crate's feature of that name builds. Here are their list, the inputs that they begin with (`seeds`, one folder
//! a target), and who draws others from those: libFuzzer, which goes by what the code has done with each (`make fuzz`), and for `make test`
//! a plain one that draws the same inputs each time.

mod mutation;
mod seeds;

pub use mutation::Mutation;
pub use seeds::{found_folder, of, seeds_folder};

use laneway::fuzzing as library;
use laneway_lanes::fuzzing as lanes;
use laneway_server::fuzzing as server;
use laneway_store::fuzzing as store;

/// Something to feed.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder of seeds.
    pub name: &'static str,
    /// Panics where something doesn't hold.
    pub feed: fn(&[u8]),
}

const fn target(name: &'static str, feed: fn(&[u8])) -> Target {
    Target { name, feed }
}

/// All of them.
pub const TARGETS: [Target; 28] = [
    // What a server answers.
    target("h1_answer", lanes::h1_answer),
    target("events", lanes::events),
    target("origin", lanes::origin),
    target("xml_cutter", store::xml_cutter),
    target("json_cutter", store::json_cutter),
    target("s3_listing", store::s3_listing),
    target("gcs_listing", store::gcs_listing),
    target("s3_error", store::s3_error),
    target("gcs_error", store::gcs_error),
    target("s3_headers", store::s3_headers),
    target("gcs_headers", store::gcs_headers),
    target("gcs_batch", store::gcs_batch),
    target("range", store::range),
    target("timestamp", store::timestamp),
    target("checksum", store::checksum),
    target("parquet_footer", library::parquet_footer),
    // What lies in files, and what a user writes.
    target("ini", store::ini),
    target("location", library::location),
    target("pattern", library::pattern),
    target("filter", library::filter),
    target("names_from", library::names_from),
    target("download_journal", library::download_journal),
    target("upload_journal", library::upload_journal),
    target("manifest", library::manifest),
    target("inventory", library::inventory),
    // What a client sends to the embedded store.
    target("fault", server::fault),
    target("route", server::route),
    target("request_bodies", request_bodies),
];

/// The first byte draws which kind of body it is.
fn request_bodies(input: &[u8]) {
    let Some((drawn, body)) = input.split_first() else { return };
    match drawn % 3 {
        0 => server::aws_chunked(body),
        1 => server::batch(body),
        _ => server::related(body),
    }
}
