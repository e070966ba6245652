//! Scenarios in which a request and its hedge fetch the same range, while another slice takes over a part of it.

use std::sync::Arc;

use laneway_store::{GetHedge, GetSink, ObjectId, ObjectMeta, Route, Version};

use super::range_writer::{ObjectPin, RangeWriter};
use super::slice::Slice;
use crate::Progress;

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
