//! How many files, directories and connections may be open at once: the process's limit is shared out, where it is lower than what they come to.

use std::sync::OnceLock;

/// With so many descriptors everything has what is usual: 256 connections, 128 directories of a destination, 64 of each of four threads that walk, 16
/// large files with their journals, and the host program's own.
const USUAL: u64 = 1024;
/// The engine's own bound.
const CONNECTIONS_USUAL: usize = 256;

/// How many of something that is `usual` this process's limit allows, one at least.
pub(crate) fn allowed(usual: usize) -> usize {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    let limit = *LIMIT.get_or_init(|| rustix::process::getrlimit(rustix::process::Resource::Nofile).current);
    share(usual, limit)
}

/// The most connections of all, where the limit allows fewer than the usual ones.
pub(crate) fn connections_max() -> Option<usize> {
    Some(allowed(CONNECTIONS_USUAL)).filter(|allowed| *allowed < CONNECTIONS_USUAL)
}

/// The share of a limit, where there is one.
fn share(usual: usize, limit: Option<u64>) -> usize {
    match limit {
        Some(limit) if limit < USUAL => (usual as u64 * limit / USUAL).max(1) as usize,
        _ => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_shared_out_and_a_high_one_changes_nothing() {
        assert_eq!([None, Some(1024), Some(1 << 20)].map(|limit| share(256, limit)), [256; 3]);
        assert_eq!(share(256, Some(256)), 64);
        // What one walk, its files and its connections come to stays below it.
        for limit in [64, 100, 256, 1000] {
            let all = [256, 128, 64, 64, 64, 64, 32].map(|usual| share(usual, Some(limit)));
            assert!(all.iter().sum::<usize>() as u64 <= limit * 3 / 4, "{limit}: {all:?}");
        }
        assert_eq!(share(16, Some(3)), 1);
    }
}
