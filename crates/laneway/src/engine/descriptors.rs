//! Limits of open files, directories and connections. If the process's limit is lower than their sum, they
//! share it.

use std::sync::OnceLock;

/// With this many descriptors, everything has its usual number. They are 256 connections, 128 directories of a
/// destination, and 64 for each of four threads that walk. Another 32 are for 16 large files with their
/// journals, and the rest for the host program.
const USUAL: u64 = 1024;
/// The engine's own limit of connections.
const CONNECTIONS_USUAL: usize = 256;

/// Returns how many descriptors of a kind this process's limit allows, where `usual` is the usual number. It
/// is at least one.
pub(crate) fn allowed(usual: usize) -> usize {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    let limit = *LIMIT.get_or_init(|| rustix::process::getrlimit(rustix::process::Resource::Nofile).current);
    share(usual, limit)
}

/// Returns the most connections, if the limit allows fewer than usual.
pub(crate) fn connections_max() -> Option<usize> {
    Some(allowed(CONNECTIONS_USUAL)).filter(|allowed| *allowed < CONNECTIONS_USUAL)
}

/// Returns the share of a limit, if there is one.
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
