//! Local files and folders: how downloads write them, and what the system keeps beside their bytes.

pub(crate) mod folder;
pub(crate) mod platform;
pub(crate) mod preserve;
