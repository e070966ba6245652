//! Scenarios in which threads use the same data at the same time.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use laneway_store::{GetHedge, GetSink, ObjectId, ObjectMeta, Route, Version};
use shuttle::future::{block_on, spawn, yield_now};
use shuttle::thread;

use crate::call::{self, PendingAnswer, Work};
use crate::events::Events;
use crate::files::FileThreads;
use crate::first_flights::FirstFlights;
use crate::memory::MemoryBudget;
use crate::outage::Outage;
use crate::packed::{Packed, Unpacked};
use crate::range_writer::{ObjectPin, Output, RangeWriter};
use crate::threads::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::tracker::Tracker;
use crate::valve::Valve;
use crate::waiting::{BodyBuffer, ROOM};
use crate::{Alike, Error, Progress, ResponseHead};

/// Tests a race: calls from Java end, their callers cancel them, and Java's listening thread is woken, all at once. The
/// scenario checks that the end of each call is reported once, after the call has given back the memory that Java lent
/// to it. No call is left running.
pub fn calls_of_java() {
    const CALLS: usize = 3;
    /// The call that never ends unless it is cancelled.
    const ENDLESS: usize = 2;
    struct Lent(Arc<[AtomicUsize; CALLS]>, usize);
    impl Drop for Lent {
        fn drop(&mut self) {
            self.0[self.1].fetch_sub(1, SeqCst);
        }
    }
    let events = Arc::<Events>::default();
    let lent: Arc<[AtomicUsize; CALLS]> = Arc::default();
    let callers: Vec<_> = (0..CALLS)
        .map(|call| {
            let (events, lent) = (Arc::clone(&events), Arc::clone(&lent));
            thread::spawn(move || {
                let ending = PendingAnswer::new(&events, call as u64);
                lent[call].fetch_add(1, SeqCst);
                // As in `LentMemory`, the memory is given back before the last `PendingAnswer` is dropped, which reports the
                // call's end.
                let memory = (Lent(lent, call), Arc::clone(&ending));
                let work = Work::new(&crate::Client, async move {
                    let _memory = memory;
                    yield_now().await;
                    if call == ENDLESS {
                        std::future::pending::<()>().await;
                    }
                    Ok(Packed::default())
                });
                call::begin(ending, Ok(work));
                if call > 0 {
                    call::cancel(&events, call as u64);
                }
            })
        })
        .collect();
    let waking = Arc::clone(&events);
    let wakes = thread::spawn(move || waking.wake());
    let mut ended = [0; CALLS];
    while ended.iter().sum::<usize>() < CALLS {
        let came = events.take();
        let mut came = Unpacked::new(came.bytes());
        // An event consists of its length, its kind, the number of the call, and a flag that is true if the call
        // succeeded.
        while let Ok(_length) = came.number() {
            let (_kind, call) = (came.number().expect("a kind"), came.number().expect("a call") as usize);
            let has_answer = came.flag().expect("whether there is an answer");
            assert!(has_answer || call > 0, "a call that wasn't cancelled has no answer");
            assert_eq!(lent[call].load(SeqCst), 0, "memory is lent to a call that has ended");
            ended[call] += 1;
        }
    }
    for caller in callers {
        caller.join().expect("it ends");
    }
    wakes.join().expect("it ends");
    assert_eq!(ended, [1; CALLS]);
    events.wake();
    assert!(events.take().is_empty(), "an end is reported again");
    assert!(events.running().is_empty(), "a call is under way that has ended");
}

/// The budget is never exceeded. A request for more than the whole budget gets all of it. A cancelled wait doesn't
/// block other waits.
pub fn a_memory_budget() {
    const KIB: usize = 1024;
    const ALL: usize = 8 * KIB;
    let (budget, held) = (MemoryBudget::new(ALL), Arc::new(AtomicUsize::new(0)));
    let tasks = [3, 5, 8, 20].map(|wish| {
        let (budget, held) = (budget.clone(), Arc::clone(&held));
        spawn(async move {
            for _ in 0..2 {
                let reserved = budget.reserve(wish * KIB).await;
                let mine = ALL.min(wish * KIB);
                assert!(held.fetch_add(mine, SeqCst) + mine <= ALL, "more is reserved than there is");
                yield_now().await;
                held.fetch_sub(mine, SeqCst);
                drop(reserved);
            }
        })
    });
    let impatient = budget.clone();
    let gives_up = spawn(async move {
        let mut waits = Box::pin(impatient.reserve(6 * KIB));
        let _ = (&mut waits).now_or_never();
        yield_now().await;
        drop(waits);
    });
    block_on(async {
        for task in tasks {
            task.await.expect("it ends");
        }
        gives_up.await.expect("it ends");
    });
    assert_eq!(budget.available(), ALL);
}

/// A task waits at a valve because of a rate limit. It continues when the limit is lifted, no matter how often the
/// limit was set and lifted before.
pub fn a_valve() {
    // This runtime's timers never fire, because no thread runs it. So a task that misses the opening waits for ever,
    // and the scheduler reports a deadlock.
    let timers = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("timers");
    let _timers = timers.enter();
    let valve = Arc::new(Valve::default());
    valve.set(Some(1));
    let passing = [1, 2].map(|times| {
        let valve = Arc::clone(&valve);
        spawn(async move {
            for _ in 0..times {
                valve.pass(1 << 30).await;
            }
        })
    });
    let turning = Arc::clone(&valve);
    let turns = thread::spawn(move || {
        for rate in [None, Some(2), None, Some(3), None] {
            turning.set(rate);
        }
    });
    block_on(async {
        for one in passing {
            one.await.expect("it ends");
        }
    });
    turns.join().expect("it ends");
}

/// When a hedge is wanted, the waiting task is notified. Each snapshot of an attempt is consistent.
pub fn a_tracker() {
    let now = Instant::now();
    let tracker = Arc::new(Tracker::new(now, Alike));
    let waits = Arc::clone(&tracker);
    let waiting = spawn(async move { waits.hedge_wanted().await });
    let reads = Arc::clone(&tracker);
    let reading = thread::spawn(move || {
        reads.sent(now);
        reads.head(now + Duration::from_millis(1));
        for n in 2..5 {
            reads.body(now + Duration::from_millis(n), 10);
            reads.sunk(now + Duration::from_millis(n));
        }
        reads.whole();
    });
    for _ in 0..3 {
        if let Some(seen) = tracker.snapshot() {
            assert!(seen.moved >= seen.sent && seen.bytes <= 30, "{seen:?}");
            assert!(seen.silence <= Duration::from_millis(1), "nothing was silent for longer: {seen:?}");
        }
    }
    tracker.want_hedge();
    block_on(async { waiting.await.expect("it ends") });
    reading.join().expect("it ends");
    let seen = tracker.snapshot().expect("it was sent");
    assert!(tracker.is_hedged() && seen.is_whole && !seen.is_sinking && seen.bytes == 30, "{seen:?}");
}

/// The reader gets all bytes of a body in order. The connection doesn't wait for ever for free space in the buffer, and
/// the reader doesn't wait for ever for bytes.
pub fn a_body() {
    const CHUNKS: u8 = 6;
    let waiting = Arc::new(BodyBuffer::default());
    let filling = Arc::clone(&waiting);
    let connection = spawn(async move {
        filling.begin(ResponseHead);
        for n in 0..CHUNKS {
            poll_fn(|context| filling.poll_room(context)).await;
            assert!(filling.bytes() < ROOM);
            filling.fill(Bytes::from(vec![n; ROOM / 2 + 1]));
        }
    });
    let reader = spawn(async move {
        let ResponseHead =
            poll_fn(|context| waiting.head_if_any(context).map_or(Poll::Pending, Poll::Ready)).await;
        for n in 0..CHUNKS {
            let chunk = poll_fn(|context| waiting.take(context).map_or(Poll::Pending, Poll::Ready)).await;
            assert!(chunk.len() == ROOM / 2 + 1 && chunk[0] == n, "chunk {n}");
        }
        assert_eq!(waiting.bytes(), 0);
    });
    block_on(async {
        connection.await.expect("it ends");
        reader.await.expect("it ends");
    });
}

/// Each request gets its turn on a new connection, no matter which task flushes the connection and how often.
pub fn a_young_connection() {
    let flights = Arc::new(FirstFlights::new());
    let (wire, mut sent) = tokio::sync::mpsc::unbounded_channel();
    let requests = [(); 3].map(|()| {
        let (flights, wire) = (Arc::clone(&flights), wire.clone());
        spawn(async move {
            flights.turn().await;
            wire.send(()).expect("the connection is there");
        })
    });
    drop(wire);
    let connection = spawn(async move {
        flights.written();
        while let Some(()) = sent.recv().await {
            flights.written();
            yield_now().await;
            flights.written();
        }
    });
    block_on(async {
        for request in requests {
            request.await.expect("it ends");
        }
        connection.await.expect("it ends");
    });
}

/// If an outage affects several calls, exactly one of them reports the outage, and exactly one reports its end.
pub fn an_outage() {
    const CALLS: u64 = 3;
    let began = Instant::now();
    let at = move |millis| began + Duration::from_millis(millis);
    let outage = Arc::new(Outage::new(began));
    let count = |say: fn(&Outage, Instant) -> bool, from: u64| {
        let calls = (0..CALLS).map(|n| {
            let outage = Arc::clone(&outage);
            thread::spawn(move || say(&outage, at(from + n)))
        });
        let calls: Vec<_> = calls.collect();
        calls.into_iter().map(|call| call.join().expect("it ends")).filter(|said| *said).count()
    };
    let fails = |outage: &Outage, now: Instant| {
        outage.failed(now, Duration::from_millis(1));
        outage.is_to_be_reported(now)
    };
    assert_eq!(count(fails, 0), 0, "it is too short to be reported");
    assert_eq!(count(fails, 2000), 1);
    let answers = |outage: &Outage, now: Instant| {
        outage.heard(now);
        outage.is_over(now).is_some()
    };
    assert_eq!(count(answers, 3000), 1);
    assert!(outage.lasts(at(4000)).is_zero());
}

/// Every task for the file threads is carried out or refused, even while the threads are being stopped. No caller waits
/// for ever.
pub fn file_threads() {
    let (files, done) = (FileThreads::new(2), Arc::new(AtomicUsize::new(0)));
    let run = |n: usize| {
        let (files, done) = (files.clone(), Arc::clone(&done));
        spawn(async move {
            let ended = files.run(move || {
                done.fetch_add(1, SeqCst);
                n
            });
            ended.await.ok()
        })
    };
    let tasks: Vec<_> = (0..4).map(run).collect();
    let closing = files.clone();
    let end = thread::spawn(move || closing.close());
    let ended = block_on(join_all(tasks));
    let ended: Vec<_> = ended.into_iter().map(|task| task.expect("it ends")).collect();
    end.join().expect("it ends");
    for (n, ended) in ended.iter().enumerate() {
        assert!(ended.is_none_or(|number| number == n), "{ended:?}");
    }
    assert_eq!(ended.iter().flatten().count(), done.load(SeqCst), "done tasks are reported as done");
}

/// A deliberate mistake, which the schedulers must find: the waiting task checks the flag before it registers its
/// waker.
pub fn a_wake_up_that_is_lost() {
    let state = Arc::new(crate::threads::Mutex::new((false, None::<Waker>)));
    let waits = Arc::clone(&state);
    let waiting = spawn(poll_fn(move |context| {
        if waits.lock().expect("a lock").0 {
            return Poll::Ready(());
        }
        waits.lock().expect("a lock").1 = Some(context.waker().clone());
        Poll::Pending
    }));
    let tells = thread::spawn(move || {
        let mut state = state.lock().expect("a lock");
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    });
    block_on(async { waiting.await.expect("it ends") });
    tells.join().expect("it ends");
}

const START: u64 = 3;
const END: u64 = 23;
const CUT: u64 = 17;

fn meta() -> ObjectMeta {
    let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 40);
    meta.version = Some(Version::Generation(1));
    meta
}

fn writer() -> (Arc<RangeWriter<Slice>>, Arc<Progress>) {
    let progress = Arc::<Progress>::default();
    let slice = Slice { start: START, end: END, bytes: Vec::new() };
    (RangeWriter::pinned(START, ObjectPin::of(&meta()), slice, Arc::clone(&progress)), progress)
}

fn byte(at: u64) -> u8 {
    at as u8 * 7 + 1
}

/// Writes the bytes of a response in chunks, until all are written or the sink asks to stop.
fn bring(sink: &mut dyn GetSink, from: u64, to: u64, chunk: u64) {
    if sink.begin(&meta(), from..to).expect("it begins") == Route::Stop {
        return;
    }
    let mut at = from;
    while at < to {
        let bytes: Vec<u8> = (at..to.min(at + chunk)).map(byte).collect();
        at += bytes.len() as u64;
        if sink.write(&bytes).expect("it is taken") == Route::Stop {
            return;
        }
    }
}

/// Panics unless exactly the bytes up to `end` were written, and each was counted once.
fn is_whole(writer: &RangeWriter<Slice>, progress: &Progress, end: u64) {
    assert_eq!(writer.position(), (end, end));
    let written = writer.end(|slice| std::mem::take(&mut slice.bytes));
    assert_eq!(written, (START..end).map(byte).collect::<Vec<_>>());
    assert_eq!(progress.bytes(), end - START, "each byte is counted once");
}

/// Two responses bring the same bytes. Each byte is written once and at its offset, even if the range's end moves
/// meanwhile.
pub fn two_answers_and_a_cut() {
    let (writer, progress) = writer();
    let mut first = writer.sink();
    let hedged = Arc::clone(&writer);
    let threads = [
        shuttle::thread::spawn(move || bring(&mut first, START, END, 4)),
        shuttle::thread::spawn(move || {
            if let GetHedge::Send(Some(range), mut sink) = hedged.hedge() {
                bring(&mut *sink, range.start, range.end, 3);
            }
        }),
    ];
    // Shorten the range, as when a free connection takes over its end.
    let end = writer.cut(|at, slice| {
        slice.end = slice.end.min(CUT.max(at));
        slice.end
    });
    for thread in threads {
        thread.join().expect("it ends");
    }
    is_whole(&writer, &progress, end);
}

/// The length of a segment with a checksum.
const SEGMENT: u64 = 6;

/// Writes the bytes of a response that has a checksum after each segment.
fn bring_checked(sink: &mut dyn GetSink, from: u64, to: u64, chunk: u64) {
    if sink.begin(&meta(), from..to).expect("it begins") == Route::Stop {
        return;
    }
    sink.expect_checks();
    let mut at = from;
    while at < to {
        let segment_end = to.min(at + SEGMENT - (at - from) % SEGMENT);
        let bytes: Vec<u8> = (at..segment_end.min(at + chunk)).map(byte).collect();
        at += bytes.len() as u64;
        if sink.write(&bytes).expect("it is taken") == Route::Stop {
            return;
        }
        if at == segment_end && sink.checked().expect("it is noted") == Route::Stop {
            return;
        }
    }
}

/// Two responses with checksums bring the same bytes. In the end all bytes are checked, whichever response brought them,
/// even if the range's end moves meanwhile.
pub fn two_checked_answers_and_a_cut() {
    let (writer, progress) = writer();
    let mut first = writer.sink();
    let hedged = Arc::clone(&writer);
    let threads = [
        shuttle::thread::spawn(move || bring_checked(&mut first, START, END, 4)),
        shuttle::thread::spawn(move || {
            if let GetHedge::Send(Some(range), mut sink) = hedged.hedge() {
                bring_checked(&mut *sink, range.start, range.end, 3);
            }
        }),
    ];
    let end = writer.cut(|at, slice| {
        slice.end = slice.end.min(CUT.max(at));
        slice.end
    });
    for thread in threads {
        thread.join().expect("it ends");
    }
    assert!(writer.end_checked(|_, is_checked| is_checked), "some bytes aren't checked");
    is_whole(&writer, &progress, end);
}

/// After another attempt has begun, bytes of an earlier attempt are no longer written.
pub fn an_attempt_that_was_given_up_writes_no_more() {
    let (writer, progress) = writer();
    let mut given_up = writer.sink();
    let (from, _) = writer.position();
    let late = shuttle::thread::spawn(move || bring(&mut given_up, from, END, 5));
    let mut again = writer.sink();
    let (at, end) = writer.position();
    bring(&mut again, at, end, 4);
    late.join().expect("it ends");
    is_whole(&writer, &progress, END);
}

/// A range of a download that is written to memory, and whose end may move: the bytes that were written, in order.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Output for Slice {
    fn route(&self, _at: u64) -> Route {
        Route::Stay
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        assert_eq!(at, self.start + self.bytes.len() as u64, "bytes arrive in order");
        let room = self.end.saturating_sub(at).min(bytes.len() as u64);
        self.bytes.extend_from_slice(&bytes[..room as usize]);
        Ok(room)
    }
}
