//! The progress bar. A thread of its own draws it on stderr and reads a job's counters ten times a second, so
//! the job never waits for a terminal.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use laneway::{Client, Progress};
use laneway_quantity as quantity;

use crate::output::StandardOutput;

use crate::{logging, output};

const TICK: Duration = Duration::from_millis(100);
/// A job that ends within this time needs no bar.
const QUIET_START: Duration = Duration::from_millis(300);
const STEPS: u64 = 1000;
/// If a job has no connection after this time, a message says so. If a host drops every packet, the first error comes only after half a
/// minute.
const UNCONNECTED: Duration = Duration::from_secs(2);
/// If nothing moves for this long, the job counts as stalled. The first pauses between retries are shorter, so they aren't reported.
const STALLED: Duration = Duration::from_secs(5);
/// The estimate of the time left is hidden once no byte has moved for this long. By then the smoothed rate has fallen to a quarter, so the
/// estimate would be wrong.
const FORETOLD: Duration = Duration::from_secs(2);
/// Throttling for at least this long is reported. Shorter throttling is over before the user has read the
/// message.
const THROTTLED_FOR: Duration = Duration::from_secs(3);
/// After this long without a throttled request, the progress line no longer shows `throttled`.
const THROTTLED_SHOWN: Duration = Duration::from_secs(20);
/// Throttled responses further apart than this belong to separate series. By default, Laneway doesn't wait for a `Retry-After` that is
/// longer.
const THROTTLED_UNTIL: Duration = Duration::from_secs(120);
/// The maximum number of bytes that a bandwidth limit lets pass at once. A connection pauses before each read or send of up to this size.
const PACED_MAX: u64 = 256 << 10;

/// The state of a job at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct ProgressSnapshot {
    items_done: u64,
    items_found: u64,
    bytes_done: u64,
    bytes_found: u64,
    /// The part of `bytes_done` that an earlier run moved.
    bytes_there: u64,
    scan_complete: bool,
}

/// The reasons why a job is held up at a moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct DelayReasons {
    /// The time since the job last made progress.
    still: Duration,
    /// True if `still` is long enough to count as a stall.
    stalls: bool,
    /// The host that a stalled job waits for, if it is known.
    host: Option<String>,
    is_throttled: bool,
}

/// The thread that draws the progress bar and flushes standard output while a job runs. The thread ends when this value
/// is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    bar: Option<ProgressBar>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Duration>>,
}

impl Ticker {
    /// Starts the thread if there is work for it: drawing a bar, flushing the lines of `output`, or reporting that `client` has no
    /// connection or stalls.
    pub(crate) fn start(
        progress: Arc<Progress>,
        draws: bool,
        output: Option<Arc<StandardOutput>>,
        client: Option<Client>,
        limit: Option<u64>,
    ) -> Self {
        if !draws && output.is_none() && client.is_none() {
            return Self { bar: None, stop: None, thread: None };
        }
        let bar = draws.then(hidden_bar);
        output::share_with(bar.clone());
        let (stop, stopped) = mpsc::channel::<()>();
        let shown = bar.clone();
        let thread = thread::Builder::new().name("progress".into()).spawn(move || {
            let started = Instant::now();
            let mut speed = Speed::default();
            let (mut stillness, mut throttling) = (StallClock::default(), ThrottleClock::default());
            let (stalled, mut has_warned, mut has_stalled) = (stalled_after(limit), false, false);
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some(output) = &output {
                    // Ignore errors here. If the reader has closed standard output, the next call that prints a line returns the error.
                    let _ = output.flush();
                }
                let (elapsed, now) = (started.elapsed(), ProgressSnapshot::of(&progress));
                let is_busy = now.items_found > now.items_done;
                if elapsed >= UNCONNECTED
                    && !std::mem::replace(&mut has_warned, true)
                    && client.as_ref().is_some_and(|client| client.counters().connections == 0)
                    && !logging::has_reported()
                    && is_busy
                {
                    let waited = quantity::duration(elapsed);
                    output::line(&format!("no connection after {waited}; still trying"));
                }
                let is_throttled = throttling.update(progress.tally().throttles(), elapsed);
                let still = stillness.update(&progress, elapsed);
                let stalls = still >= stalled;
                let host = client.as_ref().filter(|_| stalls).and_then(Client::waits_for);
                let held = DelayReasons { still, stalls, host, is_throttled };
                let stalls_anew = stalls && !std::mem::replace(&mut has_stalled, stalls);
                if let Some(bar) = &shown {
                    let rate = speed.update(now.moved(), elapsed);
                    if elapsed >= QUIET_START {
                        draw(bar, &now, rate, &held);
                    }
                } else if stalls_anew && is_busy && client.is_some() && !logging::has_reported() {
                    output::line(&format!("stalled: {}", held.wait()));
                }
            }
            throttling.lasted()
        });
        // If the thread can't start, the job still runs, without a bar.
        Self { bar, stop: Some(stop), thread: thread.ok() }
    }

    /// Stops the thread. Returns how long the job was throttled, if that is worth reporting.
    pub(crate) fn end(mut self) -> Duration {
        self.stop()
    }

    fn stop(&mut self) -> Duration {
        drop(self.stop.take());
        let throttled = self.thread.take().and_then(|thread| thread.join().ok());
        if let Some(bar) = self.bar.take() {
            output::share_with(None);
            bar.finish_and_clear();
        }
        throttled.unwrap_or_default()
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the time without progress that counts as a stall. With a bandwidth `limit` in bytes a second, the longest pause that the limit
/// causes is added.
fn stalled_after(limit: Option<u64>) -> Duration {
    let pause = limit.map_or(0, |limit| PACED_MAX / limit.max(1));
    STALLED + Duration::from_secs(pause)
}

/// The time since the last progress.
#[derive(Default, Debug)]
struct StallClock {
    seen: [u64; 5],
    since: Duration,
}

impl StallClock {
    /// Returns the time without progress. `at` is the time since the job began.
    fn update(&mut self, progress: &Progress, at: Duration) -> Duration {
        let tally = progress.tally();
        let (found, done) = (progress.items_found(), progress.items_done());
        // Count `bytes_done` too, because a job that only reads local files makes progress without requests.
        let now = [tally.bytes_sent(), tally.bytes_received(), found, done, progress.bytes_done()];
        if std::mem::replace(&mut self.seen, now) != now {
            self.since = at;
        }
        at - self.since
    }
}

/// The time for which a job has been throttled.
#[derive(Default, Debug)]
struct ThrottleClock {
    seen: u64,
    /// The first and the last throttle of the current series.
    spell: Option<(Duration, Duration)>,
    /// The total time of earlier series.
    before: Duration,
}

impl ThrottleClock {
    /// Takes the number of throttled requests so far. Returns whether to show that the job is being throttled.
    fn update(&mut self, throttles: u64, at: Duration) -> bool {
        if let Some((_, last)) = self.spell
            && at - last > THROTTLED_UNTIL
        {
            self.before = self.lasted();
            self.spell = None;
        }
        if std::mem::replace(&mut self.seen, throttles) != throttles {
            let first = self.spell.map_or(at, |(first, _)| first);
            self.spell = Some((first, at));
        }
        self.spell.is_some_and(|spell| is_long(spell) && at - spell.1 <= THROTTLED_SHOWN)
    }

    /// Returns the total time of all series that are worth reporting.
    fn lasted(&self) -> Duration {
        let spell = self.spell.filter(|spell| is_long(*spell));
        self.before + spell.map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

fn is_long((first, last): (Duration, Duration)) -> bool {
    last - first >= THROTTLED_FOR
}

impl DelayReasons {
    /// Returns the text that a stalled job shows in place of its rate.
    fn wait(&self) -> String {
        let waited = time_shown(self.still.as_secs());
        match &self.host {
            Some(host) => format!("waiting for {host}, {waited}"),
            None => format!("nothing has moved for {waited}"),
        }
    }
}

/// Bytes a second, smoothed over about 1.5 seconds so that the number is readable.
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

impl ProgressSnapshot {
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

    /// Returns the bytes that this run has moved.
    fn moved(&self) -> u64 {
        self.bytes_done.saturating_sub(self.bytes_there)
    }

    /// Returns the progress in thousandths, by bytes if there are any, and otherwise by items.
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

    /// Returns the text after the bar: `412 of 1000+  1.81 MiB of 4.5 MiB  977 KiB/s  3 s left`.
    fn text(&self, rate: u64, held: &DelayReasons) -> String {
        let more = if self.scan_complete { "" } else { "+" };
        let mut text = format!("{} of {}{more}", self.items_done, self.items_found);
        if self.bytes_found > 0 {
            let (done, found) = (quantity::size(self.bytes_done), quantity::size(self.bytes_found));
            text += &format!("  {done} of {found}{more}");
        }
        if held.is_throttled {
            text += "  throttled";
        }
        if held.stalls {
            text += &format!("  {}", held.wait());
        } else if self.bytes_found > 0 {
            if let Some(rate) = quantity::rate(rate, Duration::from_secs(1)).filter(|_| rate > 0) {
                text += &format!("  {rate}");
            }
            let left = self.bytes_found.saturating_sub(self.bytes_done);
            // Once all bytes are sent (`left` is 0), the last responses are outstanding, and the time until they arrive is unknown.
            if self.scan_complete && rate > 0 && left > 0 && held.still < FORETOLD {
                let left = left.div_ceil(rate);
                text += &format!("  {} left", time_shown(left));
            }
        }
        text
    }
}

fn time_shown(seconds: u64) -> String {
    if seconds < 120 { format!("{seconds} s") } else { quantity::duration(Duration::from_secs(seconds)) }
}

fn hidden_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("[{bar:20}] {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn draw(bar: &ProgressBar, now: &ProgressSnapshot, rate: u64, held: &DelayReasons) {
    if bar.is_hidden() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }
    bar.set_position(now.thousandths());
    bar.set_message(now.text(rate, held));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: ProgressSnapshot = ProgressSnapshot {
        items_done: 412,
        items_found: 1000,
        bytes_done: 1_900_000,
        bytes_found: 4_700_000,
        bytes_there: 0,
        scan_complete: true,
    };

    #[test]
    fn the_text_says_how_far_how_fast_and_how_long() {
        assert_eq!(
            HALF.text(1_000_000, &DelayReasons::default()),
            "412 of 1000  1.81 MiB of 4.5 MiB  977 KiB/s  3 s left"
        );
    }

    fn after_secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_stall_says_whom_it_waits_for_and_foretells_no_end() {
        let mut held = DelayReasons { still: FORETOLD, ..DelayReasons::default() };
        assert_eq!(HALF.text(1_000, &held), "412 of 1000  1.81 MiB of 4.5 MiB  1000 B/s");
        (held.still, held.stalls, held.host) = (after_secs(12), true, Some("h:9000".to_owned()));
        assert_eq!(HALF.text(1, &held), "412 of 1000  1.81 MiB of 4.5 MiB  waiting for h:9000, 12 s");
        held.host = None;
        assert!(HALF.text(1, &held).ends_with("  nothing has moved for 12 s"));
        let sent = ProgressSnapshot { bytes_done: HALF.bytes_found, ..HALF };
        assert!(!sent.text(1_000_000, &DelayReasons::default()).contains("left"));
    }

    #[test]
    fn a_stall_begins_after_five_seconds_or_the_pauses_of_a_limit() {
        assert_eq!((stalled_after(None), stalled_after(Some(32 << 10))), (STALLED, STALLED + after_secs(8)));
        let (progress, mut stillness) = (Progress::default(), StallClock::default());
        assert_eq!(stillness.update(&progress, after_secs(5)), after_secs(5));
    }

    #[test]
    fn throttles_are_told_after_seconds_of_them_and_for_as_long_as_they_go_on() {
        let mut throttling = ThrottleClock::default();
        let mut update = |throttles, secs| throttling.update(throttles, after_secs(secs));
        assert!(!update(0, 10) && !update(1, 11) && !update(1, 20), "one alone");
        assert!(update(5, 22) && update(5, 42) && !update(5, 43));
        assert!(update(6, 72), "as a server's pause of half a minute belongs to it");
        assert!(!update(6, 200) && !update(7, 210) && update(8, 213));
        assert_eq!(throttling.lasted(), after_secs(61 + 3));
    }

    #[test]
    fn a_throttled_job_says_so() {
        let held = DelayReasons { is_throttled: true, ..DelayReasons::default() };
        assert_eq!(
            HALF.text(1_000_000, &held),
            "412 of 1000  1.81 MiB of 4.5 MiB  throttled  977 KiB/s  3 s left"
        );
    }

    #[test]
    fn what_an_earlier_run_has_moved_counts_as_done_and_not_as_speed() {
        let resumed = ProgressSnapshot { bytes_there: 1_500_000, ..HALF };
        assert_eq!((resumed.moved(), resumed.thousandths()), (400_000, HALF.thousandths()));
    }

    #[test]
    fn while_the_walk_goes_on_totals_may_grow_and_no_end_is_foretold() {
        let walking = ProgressSnapshot { scan_complete: false, ..HALF };
        assert_eq!(
            walking.text(1_000_000, &DelayReasons::default()),
            "412 of 1000+  1.81 MiB of 4.5 MiB+  977 KiB/s"
        );
    }

    #[test]
    fn objects_without_bytes_are_counted_by_number() {
        let empty = ProgressSnapshot {
            items_done: 5,
            items_found: 10,
            scan_complete: true,
            ..ProgressSnapshot::default()
        };
        assert_eq!((empty.thousandths(), empty.text(0, &DelayReasons::default()).as_str()), (500, "5 of 10"));
        assert_eq!(ProgressSnapshot::default().thousandths(), 0);
    }

    #[test]
    fn more_bytes_than_were_found_do_not_overflow_the_bar() {
        let grown = ProgressSnapshot { bytes_done: 9_000_000, ..HALF };
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
