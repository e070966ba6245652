//! Makes new inputs from existing ones, which are in the targets' folders. The same seed gives the same inputs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

/// The maximum number of changes to one input.
const CHANGES_MAX: u32 = 6;
/// The maximum length of an input in bytes.
const LEN_MAX: usize = 4096;
/// Delimiters of the parsed formats, and numbers that may overflow.
const TOKENS: [&[u8]; 24] = [
    b"\r\n",
    b"\n",
    b"\0",
    b"\r\n\r\n",
    b"/",
    b"..",
    b"%",
    b"%2F",
    b"<",
    b">",
    b"</",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"-",
    b":",
    b"#",
    b"18446744073709551615",
    b"-1",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xf0\x9f\x98\x80",
];

/// Makes inputs from existing ones by random changes.
#[derive(Debug)]
pub struct Mutation {
    random: StdRng,
}

impl Mutation {
    /// Returns a generator with this seed.
    pub fn new(number: u64) -> Self {
        Self { random: StdRng::seed_from_u64(number) }
    }

    /// Returns a copy of one of these inputs, changed in a few places.
    pub fn draw(&mut self, among: &[Vec<u8>]) -> Vec<u8> {
        let mut input = among.choose(&mut self.random).cloned().unwrap_or_default();
        for _ in 0..self.random.random_range(1..=CHANGES_MAX) {
            self.change(&mut input, among);
        }
        input.truncate(LEN_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, among: &[Vec<u8>]) {
        let at = self.random.random_range(0..=input.len());
        let end = at + self.random.random_range(0..=(input.len() - at).min(64));
        match self.random.random_range(0..8) {
            0 => drop(input.drain(at..end)),
            1 => {
                let copied = input[at..end].to_vec();
                let to = self.random.random_range(0..=input.len());
                drop(input.splice(to..to, copied));
            }
            2 => {
                let token = TOKENS.choose(&mut self.random).copied().unwrap_or_default();
                drop(input.splice(at..at, token.iter().copied()));
            }
            3 => {
                let other = among.choose(&mut self.random).map(Vec::as_slice).unwrap_or_default();
                let from = self.random.random_range(0..=other.len());
                drop(input.splice(at.., other[from..].iter().copied()));
            }
            4 => input.truncate(at),
            5 => input.insert(at, self.random.random()),
            _ if at < input.len() => input[at] ^= 1 << self.random.random_range(0..8),
            _ => input.push(self.random.random()),
        }
    }
}

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
