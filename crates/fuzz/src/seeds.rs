//! The folders that hold the inputs of targets.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns the folder of a target's first inputs.
pub fn seeds_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

/// Returns the folder for inputs that libFuzzer keeps because they reach new code, and for those that made a target
/// panic.
pub fn found_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz").join(target)
}

/// Returns the seeds of a target with their names, sorted by name.
///
/// # Errors
/// Fails if the folder or a file in it can't be read.
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
