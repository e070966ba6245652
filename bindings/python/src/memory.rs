//! Returns the memory of a burst of calls to the system.
//!
//! glibc keeps free memory between blocks that are still in use: 90 MB after 5,000 puts that were awaited
//! together. On request it returns all but 6 MB, in 10 ms.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use laneway::{Client, Spawned};

/// A burst has at least this many calls at once. Fewer calls leave a few MB, which the next ones use.
const BURST_MIN: usize = 500;
/// The time without calls before memory is returned. Another burst would allocate it again.
const REST: Duration = Duration::from_secs(1);

static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// The most calls that were under way at once since the last moment without any.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// The task that returns memory after the last burst.
static AFTERWARDS: Mutex<Option<Spawned>> = Mutex::new(None);

/// A call that an event loop waits for. Memory is given back when the last of many is dropped.
pub(crate) struct UnderWay(Client);

impl UnderWay {
    pub(crate) fn new(client: &Client) -> Self {
        MOST.fetch_max(UNDER_WAY.fetch_add(1, Relaxed) + 1, Relaxed);
        Self(client.clone())
    }
}

impl Drop for UnderWay {
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
        // If another thread is here, or the engine has ended, only memory stays allocated.
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
        // SAFETY: any thread may call it at any time, and it frees nothing that is in use.
        let _ = unsafe { malloc_trim(0) };
    }
}

/// Other allocators return free memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) fn take_back() {}
}
