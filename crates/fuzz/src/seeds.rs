//! Where inputs lie.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The inputs that a target begins with.
pub fn seeds_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

/// Where inputs go that libFuzzer finds worth keeping, and those that have made a target panic.
pub fn found_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz").join(target)
}

/// The seeds of a target, with their names, in order.
///
/// # Errors
/// Where they can't be read.
pub fn of(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for entry in fs::read_dir(seeds_folder(target))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        seeds.push((name, fs::read(path)?));
    }
    seeds.sort();
    Ok(seeds)
}
