//! The progress bar: drawn on stderr by a thread of its own that looks at a job's counters ten times a second, so that
//! the job itself never waits for a terminal.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use laneway::{Client, Progress};
use laneway_quantity as quantity;

use crate::output::Output;

use crate::{retrying, stderr};

const TICK: Duration = Duration::from_millis(100);
/// A job that is over by then needs no bar.
const QUIET_START: Duration = Duration::from_millis(300);
const STEPS: u64 = 1000;
/// A job that has no connection by then says so: a host that swallows every packet gives no error for half a minute.
const UNCONNECTED: Duration = Duration::from_secs(2);

/// What a job looks like at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Snapshot {
    items_done: u64,
    items_found: u64,
    bytes_done: u64,
    bytes_found: u64,
    /// Of those done, what an earlier run had moved.
    bytes_there: u64,
    scan_complete: bool,
}

/// Draws and flushes while a job runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    bar: Option<ProgressBar>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread if there is something to do for it: a bar to draw, lines of `output` to hand on while the job is
    /// busy elsewhere, or to say of a `client` that it gets no connection.
    pub(crate) fn start(
        progress: Arc<Progress>,
        draws: bool,
        output: Option<Arc<Output>>,
        mut client: Option<Client>,
    ) -> Self {
        if !draws && output.is_none() && client.is_none() {
            return Self { bar: None, stop: None, thread: None };
        }
        let bar = draws.then(hidden_bar);
        stderr::share_with(bar.clone());
        let (stop, stopped) = mpsc::channel::<()>();
        let shown = bar.clone();
        let thread = thread::Builder::new().name("progress".into()).spawn(move || {
            let started = Instant::now();
            let mut speed = Speed::default();
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some(output) = &output {
                    // A reader that has gone is noticed by whoever prints the next line.
                    let _ = output.flush();
                }
                if started.elapsed() >= UNCONNECTED
                    && let Some(client) = client.take()
                    && client.counters().connections == 0
                    && !retrying::has_reported()
                    && progress.items_found() > progress.items_done()
                {
                    let waited = quantity::duration(started.elapsed());
                    stderr::line(&format!("no connection after {waited}; still trying"));
                }
                if let Some(bar) = &shown {
                    let now = Snapshot::of(&progress);
                    let rate = speed.update(now.moved(), started.elapsed());
                    if started.elapsed() >= QUIET_START {
                        draw(bar, &now, rate);
                    }
                }
            }
        });
        // Without the thread the job runs all the same, unseen.
        Self { bar, stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(bar) = &self.bar {
            stderr::share_with(None);
            bar.finish_and_clear();
        }
    }
}

/// Bytes a second, smoothed over about a second and a half so that the number can be read.
#[derive(Default, Debug)]
struct Speed {
    bytes: u64,
    at: Duration,
    rate: Option<f64>,
}

impl Speed {
    fn update(&mut self, bytes: u64, at: Duration) -> u64 {
        let time = (at - self.at).as_secs_f64();
        if time > 0.0 {
            let now = bytes.saturating_sub(self.bytes) as f64 / time;
            let weight = 1.0 - (-time / 1.5).exp();
            self.rate = Some(self.rate.map_or(now, |rate| rate + weight * (now - rate)));
            (self.bytes, self.at) = (bytes, at);
        }
        self.rate.unwrap_or_default() as u64
    }
}

impl Snapshot {
    fn of(progress: &Progress) -> Self {
        Self {
            items_done: progress.items_done(),
            items_found: progress.items_found(),
            bytes_done: progress.bytes_done(),
            bytes_found: progress.bytes_found(),
            bytes_there: progress.bytes_there(),
            scan_complete: progress.scan_complete(),
        }
    }

    /// What this run has moved.
    fn moved(&self) -> u64 {
        self.bytes_done.saturating_sub(self.bytes_there)
    }

    /// How far the job is, in thousandths. Bytes tell it better than items, where there are any.
    fn thousandths(&self) -> u64 {
        let (done, found) = match self.bytes_found {
            0 => (self.items_done, self.items_found),
            found => (self.bytes_done, found),
        };
        if found == 0 {
            0
        } else {
            (u128::from(done.min(found)) * u128::from(STEPS) / u128::from(found)) as u64
        }
    }

    /// The text after the bar: `412 of 1000+  1.81 MiB of 4.5 MiB  977 KiB/s  3 s left`.
    fn text(&self, rate: u64) -> String {
        let more = if self.scan_complete { "" } else { "+" };
        let mut text = format!("{} of {}{more}", self.items_done, self.items_found);
        if self.bytes_found > 0 {
            let (done, found) = (quantity::size(self.bytes_done), quantity::size(self.bytes_found));
            text += &format!("  {done} of {found}{more}");
            if let Some(rate) = quantity::rate(rate, Duration::from_secs(1)).filter(|_| rate > 0) {
                text += &format!("  {rate}");
            }
            if self.scan_complete && rate > 0 {
                let left = self.bytes_found.saturating_sub(self.bytes_done).div_ceil(rate);
                text += &format!("  {} left", time_left(left));
            }
        }
        text
    }
}

fn time_left(seconds: u64) -> String {
    if seconds < 120 { format!("{seconds} s") } else { quantity::duration(Duration::from_secs(seconds)) }
}

fn hidden_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("[{bar:20}] {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn draw(bar: &ProgressBar, now: &Snapshot, rate: u64) {
    if bar.is_hidden() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }
    bar.set_position(now.thousandths());
    bar.set_message(now.text(rate));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Snapshot = Snapshot {
        items_done: 412,
        items_found: 1000,
        bytes_done: 1_900_000,
        bytes_found: 4_700_000,
        bytes_there: 0,
        scan_complete: true,
    };

    #[test]
    fn the_text_says_how_far_how_fast_and_how_long() {
        assert_eq!(HALF.text(1_000_000), "412 of 1000  1.81 MiB of 4.5 MiB  977 KiB/s  3 s left");
    }

    #[test]
    fn what_an_earlier_run_has_moved_counts_as_done_and_not_as_speed() {
        let resumed = Snapshot { bytes_there: 1_500_000, ..HALF };
        assert_eq!((resumed.moved(), resumed.thousandths()), (400_000, HALF.thousandths()));
    }

    #[test]
    fn while_the_walk_goes_on_totals_may_grow_and_no_end_is_foretold() {
        let walking = Snapshot { scan_complete: false, ..HALF };
        assert_eq!(walking.text(1_000_000), "412 of 1000+  1.81 MiB of 4.5 MiB+  977 KiB/s");
    }

    #[test]
    fn objects_without_bytes_are_counted_by_number() {
        let empty = Snapshot { items_done: 5, items_found: 10, scan_complete: true, ..Snapshot::default() };
        assert_eq!((empty.thousandths(), empty.text(0).as_str()), (500, "5 of 10"));
        assert_eq!(Snapshot::default().thousandths(), 0);
    }

    #[test]
    fn more_bytes_than_were_found_do_not_overflow_the_bar() {
        let grown = Snapshot { bytes_done: 9_000_000, ..HALF };
        assert_eq!(grown.thousandths(), STEPS);
    }

    #[test]
    fn speed_settles_on_the_rate_of_the_last_seconds() {
        let mut speed = Speed::default();
        for tick in 1..=100u64 {
            speed.update(tick * 100, Duration::from_millis(tick * 100));
        }
        let steady = speed.update(10_100, Duration::from_millis(10_100));
        assert!((990..=1010).contains(&steady), "{steady}");
    }
}
