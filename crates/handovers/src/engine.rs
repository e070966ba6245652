//! The engine's threads for file operations.

#[path = "../../laneway/src/engine/files.rs"]
pub(crate) mod files;

pub(crate) use crate::threads;
