//! The work of jobs: downloads, uploads, copies, removals, syncs, restorations and changes of metadata.

pub(crate) mod compose;
mod composite;
pub(crate) mod copy;
pub(crate) mod download;
mod moved;
pub(crate) mod remove;
pub(crate) mod restore;
pub(crate) mod second_try;
pub(crate) mod set_meta;
pub(crate) mod sync;
pub(crate) mod upload;
