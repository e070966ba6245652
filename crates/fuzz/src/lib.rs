//! Fuzzes the parsers of data from servers, clients, files and users.
//!
//! A target is a function that takes any bytes, feeds them to a parser, and panics if a property doesn't hold. It stands next to its
//! parser, in a module `fuzzing` that only the feature `fuzzing` builds. This crate has the list of targets and their first inputs
//! (`seeds`, with one folder for each target). New inputs are mutations of these. For `make fuzz`, libFuzzer makes them, guided by the
//! coverage of the code. For `make test`, [`Mutation`] makes the same inputs in each run.

mod mutation;

pub use mutation::{Mutation, found_folder, of, seeds_folder};

use laneway::fuzzing as library;
use laneway_lanes::fuzzing as lanes;
use laneway_server::fuzzing as server;
use laneway_store::fuzzing as store;

/// A function to fuzz.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the target and of its folder of seeds.
    pub name: &'static str,
    /// Feeds an input to the parser, and panics if a property doesn't hold.
    pub feed: fn(&[u8]),
}

const fn target(name: &'static str, feed: fn(&[u8])) -> Target {
    Target { name, feed }
}

/// All targets.
pub const TARGETS: [Target; 29] = [
    // These read data from a server.
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
    target("structured_body", store::structured_body),
    target("timestamp", store::timestamp),
    target("checksum", store::checksum),
    target("parquet_footer", library::parquet_footer),
    // These read files, and texts that a user writes.
    target("ini", store::ini),
    target("location", library::location),
    target("pattern", library::pattern),
    target("filter", library::filter),
    target("names_from", library::names_from),
    target("download_journal", library::download_journal),
    target("upload_journal", library::upload_journal),
    target("manifest", library::manifest),
    target("inventory", library::inventory),
    // These read requests to the embedded server.
    target("fault", server::fault),
    target("route", server::route),
    target("request_bodies", request_bodies),
];

/// The first byte of the input chooses the kind of body.
fn request_bodies(input: &[u8]) {
    let Some((drawn, body)) = input.split_first() else { return };
    match drawn % 3 {
        0 => server::aws_chunked(body),
        1 => server::batch(body),
        _ => server::related(body),
    }
}
