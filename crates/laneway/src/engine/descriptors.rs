//! Limits of open files, directories and connections. If the process may open fewer descriptors than these
//! need together, each gets a share.

use std::sync::OnceLock;

/// With this many descriptors, each limit has its usual value. 256 are for connections, 128 for directories
/// of a destination, and 64 for each of four threads that walk a folder. 32 are for 16 large files with their
/// journals, and the rest is for the host program.
const USUAL: u64 = 1024;
/// The engine's own limit of connections.
const CONNECTIONS_USUAL: usize = 256;

/// Returns how many descriptors of a kind this process may open, at least one. `usual` is the usual number.
pub(crate) fn allowed(usual: usize) -> usize {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    let limit = *LIMIT.get_or_init(|| rustix::process::getrlimit(rustix::process::Resource::Nofile).current);
    share(usual, limit)
}

/// Returns the limit of connections, if the process may open fewer than usual.
pub(crate) fn connections_max() -> Option<usize> {
    Some(allowed(CONNECTIONS_USUAL)).filter(|allowed| *allowed < CONNECTIONS_USUAL)
}

/// Returns the share of a limit. Without a limit, returns `usual`.
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
        // One walk with its files and connections must stay below the process's limit.
        for limit in [64, 100, 256, 1000] {
            let all = [256, 128, 64, 64, 64, 64, 32].map(|usual| share(usual, Some(limit)));
            assert!(all.iter().sum::<usize>() as u64 <= limit * 3 / 4, "{limit}: {all:?}");
        }
        assert_eq!(share(16, Some(3)), 1);
    }
}
