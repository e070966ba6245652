//! Writes the files and folders of downloads, and reads and sets their times, modes and owners.

pub(crate) mod folder;
pub(crate) mod platform;
pub(crate) mod preserve;
