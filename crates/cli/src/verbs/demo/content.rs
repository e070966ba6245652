//! The bytes that the demo moves: random enough not to compress, and made again to be compared with what came back.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

const BLOCK: usize = 1 << 20;

/// Writes `len` bytes that `seed` determines to a new file. `go_on` is asked between blocks.
///
/// # Errors
/// As writing a file, and `Interrupted` when `go_on` says no.
pub(super) fn write(path: &Path, seed: u64, len: u64, go_on: impl Fn() -> bool) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    each_block(seed, len, |block| {
        check(&go_on)?;
        file.write_all(block)
    })
}

/// Whether a file holds exactly what [`write()`] would have written.
///
/// # Errors
/// As reading a file, and `Interrupted` when `go_on` says no.
pub(super) fn matches(path: &Path, seed: u64, len: u64, go_on: impl Fn() -> bool) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != len {
        return Ok(false);
    }
    let mut found = vec![0; BLOCK];
    let mut equal = true;
    each_block(seed, len, |block| {
        check(&go_on)?;
        let found = &mut found[..block.len()];
        file.read_exact(found)?;
        equal &= found == block;
        Ok(())
    })?;
    Ok(equal)
}

fn check(go_on: &impl Fn() -> bool) -> io::Result<()> {
    if go_on() { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
}

fn each_block(seed: u64, len: u64, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut state = seed;
    let mut block = vec![0; BLOCK];
    let mut left = len;
    while left > 0 {
        // splitmix64: a gigabyte in about half a second, so that the demo is about moving bytes and not about making them.
        for word in block.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        let n = left.min(BLOCK as u64) as usize;
        take(&block[..n])?;
        left -= n as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_byte_anywhere_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let len = BLOCK as u64 + 17;
        write(&path, 7, len, || true).expect("written");
        assert!(matches(&path, 7, len, || true).expect("read"));
        assert!(!matches(&path, 8, len, || true).expect("read"));
        assert!(!matches(&path, 7, len - 1, || true).expect("read"));

        let mut bytes = std::fs::read(&path).expect("read");
        bytes[BLOCK + 3] ^= 1;
        std::fs::write(&path, bytes).expect("written");
        assert!(!matches(&path, 7, len, || true).expect("read"));
    }

    #[test]
    fn an_interrupted_file_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = write(&folder.path().join("f"), 7, 1, || false).expect_err("it stops");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
