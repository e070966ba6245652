//! Transfers of whole objects and trees between a machine and the embedded store, in both dialects and
//! over every protocol.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod cancelling;
mod checksum_headers;
mod compressing;
mod conditions;
mod copies;
mod counters;
mod downloads;
mod errors;
mod faults;
mod flipped_bits;
mod hedging;
mod hostile;
mod incidents;
mod integrity;
mod inventories;
mod listings;
mod long_jobs;
mod manifests;
mod memory;
mod names_from;
mod no_clobber;
mod objects;
mod panics;
#[cfg(feature = "parquet-inventory")]
mod parquet_inventories;
mod protected;
mod ranges;
mod removals;
mod renamed_folders;
mod renames;
mod resuming;
mod resuming_uploads;
mod set_meta;
mod stage;
mod sync;
mod sync_model;
mod trees;
mod uploads;
mod verify;
