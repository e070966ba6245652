//! Applies faults to a body while it is transferred.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use s3s::StdError;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::select::BodyFault;
use crate::socket::Control;

/// The pause between two checks. Each check finds out if the bytes before the fault's position have left the process.
const PAUSE: Duration = Duration::from_millis(2);
/// After this many checks, the fault is applied anyway, although those bytes haven't left. Otherwise a client that
/// reads nothing would delay it for ever.
const PAUSES_MAX: u32 = 1000;

/// The fault of one body, and the body's progress.
pub(crate) struct BodyDamage {
    fault: BodyFault,
    passed: u64,
    /// The announced length of the body, at least 1. By default, the fault is in the middle of the body.
    expected: u64,
    timer: Option<Pin<Box<Sleep>>>,
    started: Option<Instant>,
    leaving: Option<FlushWait>,
    ended: bool,
    direction: BodyDirection,
    control: Arc<Control>,
    h2: bool,
    /// Set to true to make the request's handler reset the stream instead of answering.
    reset: Arc<AtomicBool>,
    /// A future that is ready when the server's faults have been replaced.
    replaced: RulesReplacement,
}

pub(crate) type RulesReplacement = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// The direction of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyDirection {
    Request,
    Response,
}

/// The state of the wait until the transferred bytes have left the process.
struct FlushWait {
    flushes_before: u64,
    pauses: u32,
}

impl BodyDamage {
    /// Returns the state with which a fault is applied to a body. `expected` is the body's announced length, or 0 if it
    /// has none.
    pub(crate) fn new(
        fault: BodyFault,
        direction: BodyDirection,
        expected: u64,
        control: Arc<Control>,
        h2: bool,
        reset: Arc<AtomicBool>,
        replaced: RulesReplacement,
    ) -> Box<BodyDamage> {
        Box::new(BodyDamage {
            fault,
            passed: 0,
            expected: expected.max(1),
            timer: None,
            started: None,
            leaving: None,
            ended: false,
            direction,
            control,
            h2,
            reset,
            replaced,
        })
    }

    /// Called before each transfer of bytes. It waits if the body is stalled or slow, and returns an error if the body
    /// breaks off.
    pub(crate) fn poll_before(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        match self.fault {
            BodyFault::Stall(at) if self.passed >= at => {
                ready!(self.replaced.as_mut().poll(cx));
                Poll::Ready(Err(self.break_off()))
            }
            BodyFault::Reset(at) | BodyFault::Drop(at) | BodyFault::Cut(at) if self.passed >= at => {
                ready!(self.poll_left(cx));
                Poll::Ready(Err(self.break_off()))
            }
            BodyFault::Truncate(_) if !self.h2 && self.ended() => {
                // Wait until hyper's buffer is empty. If a body ends early, hyper closes the connection without sending
                // its remaining buffer.
                self.poll_left(cx).map(Ok)
            }
            BodyFault::Slow(rate) => {
                let started = *self.started.get_or_insert_with(Instant::now);
                let due = started + Duration::from_secs_f64(self.passed as f64 / rate as f64);
                if due <= Instant::now() {
                    return Poll::Ready(Ok(()));
                }
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                timer.as_mut().poll(cx).map(Ok)
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    fn break_off(&self) -> StdError {
        self.reset.store(true, Relaxed);
        if matches!(self.fault, BodyFault::Cut(_)) {
            self.control.close();
        } else if !self.h2 || matches!(self.fault, BodyFault::Drop(_)) {
            self.control.kill();
        }
        Box::new(h2::Error::from(h2::Reason::INTERNAL_ERROR))
    }

    /// Waits until the transferred bytes have left the process. This is necessary because hyper and h2 drop their
    /// buffers when a stream or connection ends with an error.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.direction == BodyDirection::Request {
            return Poll::Ready(());
        }
        let flushes = self.control.flushes();
        let leaving = self.leaving.get_or_insert(FlushWait { flushes_before: flushes, pauses: 0 });
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
            ready!(timer.as_mut().poll(cx));
            if self.control.flushes() > leaving.flushes_before || leaving.pauses >= PAUSES_MAX {
                return Poll::Ready(());
            }
            leaving.pauses += 1;
            self.timer = None;
        }
    }

    /// Returns the bytes to transfer. Bytes after the fault's position are dropped.
    pub(crate) fn pass(&mut self, bytes: Bytes) -> Bytes {
        let start = self.passed;
        let end = start + bytes.len() as u64;
        self.passed = end;
        match self.fault {
            BodyFault::Stall(at) | BodyFault::Reset(at) | BodyFault::Drop(at) | BodyFault::Cut(at) => {
                cut(bytes, start, at)
            }
            BodyFault::Truncate(at) => {
                let at = at.unwrap_or(self.expected / 2);
                self.ended = end >= at;
                cut(bytes, start, at)
            }
            BodyFault::Corrupt(at) => {
                let at = at.unwrap_or(self.expected / 2);
                if !(start..end).contains(&at) {
                    return bytes;
                }
                let mut flipped = BytesMut::from(&bytes[..]);
                flipped[(at - start) as usize] ^= 1;
                flipped.freeze()
            }
            BodyFault::Slow(_) => bytes,
        }
    }

    /// Returns true if the body ends early.
    pub(crate) fn ended(&self) -> bool {
        self.ended || matches!(self.fault, BodyFault::Truncate(Some(0)))
    }
}

fn cut(bytes: Bytes, start: u64, at: u64) -> Bytes {
    let left = at.saturating_sub(start).min(bytes.len() as u64);
    bytes.slice(..left as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(fault: BodyFault, expected: u64) -> Box<BodyDamage> {
        let replaced = Box::pin(std::future::pending());
        BodyDamage::new(
            fault,
            BodyDirection::Response,
            expected,
            Arc::default(),
            true,
            Arc::default(),
            replaced,
        )
    }

    #[test]
    fn a_truncated_body_ends_in_its_middle_unless_told_where() {
        let mut half = damage(BodyFault::Truncate(None), 10);
        assert_eq!(half.pass(Bytes::from_static(b"012")), "012");
        assert!(!half.ended());
        assert_eq!(half.pass(Bytes::from_static(b"3456789")), "34");
        assert!(half.ended());
        assert!(damage(BodyFault::Truncate(Some(0)), 10).ended());
    }

    #[test]
    fn one_bit_of_one_byte_is_flipped() {
        let mut corrupt = damage(BodyFault::Corrupt(Some(4)), 6);
        assert_eq!(corrupt.pass(Bytes::from_static(b"abc")), "abc");
        assert_eq!(corrupt.pass(Bytes::from_static(b"abc")), "acc");
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_wait_until_the_rate_has_paid_for_those_before_them() {
        let mut slow = damage(BodyFault::Slow(1000), 1 << 20);
        let began = Instant::now();
        for (due_ms, len) in [(0, 300), (300, 700), (1000, 1)] {
            std::future::poll_fn(|cx| slow.poll_before(cx)).await.expect("it goes on");
            // Timers have a resolution of whole milliseconds.
            assert!((due_ms..=due_ms + 1).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
            slow.pass(vec![0; len].into());
        }
    }

    #[test]
    fn nothing_passes_beyond_the_place_of_a_stall() {
        let mut stall = damage(BodyFault::Stall(4), 6);
        assert_eq!(stall.pass(Bytes::from_static(b"abcdef")), "abcd");
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(stall.poll_before(&mut cx).is_pending());
    }
}
