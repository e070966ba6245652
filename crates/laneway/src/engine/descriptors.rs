//! Limits on open files, directories and connections. If the process may open fewer file descriptors than
//! usual, each of these limits is lowered in proportion.

use std::sync::OnceLock;

/// If the process may open this many descriptors or more, each limit has its usual value. Laneway uses 256 of
/// them for connections, 128 for directories of a destination, and 64 for each of four threads that walk a
/// folder. It uses another 32 for 16 large files with their journals. The remaining descriptors are for the
/// host program.
const USUAL: u64 = 1024;
/// The usual limit of connections.
const CONNECTIONS_USUAL: usize = 256;

/// Returns how many descriptors this process may open for one purpose, at least one. `usual` is their number
/// if the process may open 1024 descriptors or more.
pub(crate) fn allowed(usual: usize) -> usize {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    let limit = *LIMIT.get_or_init(|| rustix::process::getrlimit(rustix::process::Resource::Nofile).current);
    share(usual, limit)
}

/// Returns the limit of connections, or `None` if the usual limit needn't be lowered.
pub(crate) fn connections_max() -> Option<usize> {
    Some(allowed(CONNECTIONS_USUAL)).filter(|allowed| *allowed < CONNECTIONS_USUAL)
}

/// Returns `usual`, lowered in proportion if `limit`, the process's limit of descriptors, is low.
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
