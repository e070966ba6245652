//! After a burst of calls, returns free memory to the operating system.
//!
//! glibc keeps free memory that lies between blocks in use. After 5,000 puts that were awaited together, glibc kept 90
//! MB. A call of `malloc_trim` made it return all but 6 MB, in 10 ms.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use laneway::{Client, Spawned};

/// A burst has at least this many concurrent calls. Fewer calls leave only a few MB of free memory, which later calls
/// use again.
const BURST_MIN: usize = 500;
/// Memory is returned after this time without calls. If it were returned earlier, the next burst might allocate it
/// again at once.
const REST: Duration = Duration::from_secs(1);

static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// The peak number of concurrent calls since there were last no calls.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// The task that returns memory after the last burst.
static AFTERWARDS: Mutex<Option<Spawned>> = Mutex::new(None);

/// Counts a call that an event loop waits for, until it is dropped. When the last call of a burst is dropped, memory is
/// returned.
pub(crate) struct CallCounter(Client);

impl CallCounter {
    pub(crate) fn new(client: &Client) -> Self {
        MOST.fetch_max(UNDER_WAY.fetch_add(1, Relaxed) + 1, Relaxed);
        Self(client.clone())
    }
}

impl Drop for CallCounter {
    fn drop(&mut self) {
        if UNDER_WAY.fetch_sub(1, Relaxed) > 1 || MOST.swap(0, Relaxed) < BURST_MIN {
            return;
        }
        let client = self.0.clone();
        let rest = async move {
            tokio::time::sleep(REST).await;
            if UNDER_WAY.load(Relaxed) == 0 {
                system::take_back();
            }
            drop(client);
        };
        // This fails if another thread starts the task at the same time, or if the engine has ended. In both
        // cases the memory stays allocated, which does no harm.
        if let (Ok(mut afterwards), Ok(spawned)) = (AFTERWARDS.try_lock(), self.0.spawn(rest)) {
            *afterwards = Some(spawned);
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    #![expect(unsafe_code, reason = "glibc's own function")]

    use std::ffi::c_int;

    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> c_int;
    }

    pub(super) fn take_back() {
        // SAFETY: the function is thread-safe, and it doesn't touch memory that is in use.
        let _ = unsafe { malloc_trim(0) };
    }
}

/// Other allocators return free memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) fn take_back() {}
}
