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
mod faults;
mod hedging;
mod hostile;
mod in_transit;
mod incidents;
mod integrity;
mod inventories;
mod listings;
mod manifests;
mod memory;
mod names_from;
mod objects;
mod panics;
#[cfg(feature = "parquet-inventory")]
mod parquet_inventories;
mod protected;
mod ranges;
mod removals;
mod renames;
mod resuming;
mod resuming_uploads;
mod stage;
mod sync;
mod sync_model;
mod trees;
mod uploads;
mod verify;
