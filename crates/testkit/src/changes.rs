//! Waits for changes that another process or thread makes to a folder's files.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Running;

/// Longer than any such wait on a slow machine.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A folder that is watched for changes from now on.
#[derive(Debug)]
pub struct Changes(OwnedFd);

impl Changes {
    /// Begins to watch a folder, but not the folders in it.
    pub fn of(folder: &Path) -> Self {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify is there");
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVE | WatchFlags::DELETE;
        inotify::add_watch(&inotify, folder, changes).expect("the folder is watched");
        Self(inotify)
    }

    /// Waits until `is_so` returns true. It is called whenever a file in the folder has changed.
    #[track_caller]
    pub fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        assert!(self.wait(None, &mut is_so));
    }

    /// Waits until `is_so` returns true while a program runs. Returns false if the program ended first.
    #[track_caller]
    pub fn wait_while_runs(&self, running: &Running, mut is_so: impl FnMut() -> bool) -> bool {
        let pid = Pid::from_raw(running.id() as i32).expect("a process's number");
        let end = pidfd_open(pid, PidfdFlags::empty()).expect("the program is there to be waited for");
        self.wait(Some(end.as_fd()), &mut is_so)
    }

    #[track_caller]
    fn wait(&self, end: Option<BorrowedFd<'_>>, is_so: &mut dyn FnMut() -> bool) -> bool {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            // Clear first, then check. The next wait notices a change in between.
            self.forget();
            if is_so() {
                return true;
            }
            let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
            fds.extend(end.iter().map(|end| PollFd::new(end, PollFlags::IN)));
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut fds, Some(&left)) {
                Ok(0) => panic!("what was waited for never happened"),
                Ok(_) if fds.get(1).is_some_and(|end| !end.revents().is_empty()) => return false,
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => panic!("waiting for changes: {e}"),
            }
        }
    }

    fn forget(&self) {
        let mut events = [0; 16 << 10];
        while rustix::io::read(&self.0, &mut events).is_ok_and(|read| read > 0) {}
    }
}
