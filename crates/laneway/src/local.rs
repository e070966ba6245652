//! Local files and folders: writing them in downloads, and their times, modes and owners.

pub(crate) mod folder;
pub(crate) mod platform;
pub(crate) mod preserve;
