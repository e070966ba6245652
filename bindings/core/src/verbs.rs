//! The verbs, in one table with their names and numbers. A verb creates a call of the library from packed arguments.

mod job;
mod objects;
mod plan;
mod read;
mod write;

use std::sync::Arc;

use bytes::Bytes;

pub use job::{JobEvents, job, next_events};
pub use objects::list;
pub use plan::plan;
pub use read::{drop_ahead, read_now};
pub use write::{write_now, writer};

use crate::call::{PendingAnswer, Work};
use crate::failure::Failure;
use crate::handles::{self, HandleTarget};
use crate::lent::Memory;
use crate::packed::{Packed, Unpacked};

/// A verb that is called by its number.
#[derive(Debug)]
pub struct NumberedVerb {
    /// The number, which never changes.
    pub number: i32,
    /// The name.
    pub name: &'static str,
    work: fn(CallArguments<'_, '_>) -> Result<Work, Failure>,
}

/// The arguments of a call.
struct CallArguments<'a, 'b> {
    /// The handle of the object that the verb acts on.
    of: u64,
    from: &'a mut Unpacked<'b>,
    memory: Memory,
    ending: &'a Arc<PendingAnswer>,
}

macro_rules! verbs {
    ($($number:literal $name:ident: $work:expr;)*) => {
        &[$(NumberedVerb { number: $number, name: stringify!($name), work: $work },)*]
    };
}

/// All verbs, in the order of their numbers.
pub static VERBS: &[NumberedVerb] = verbs! {
    1 head: |a| objects::head(&handles::bucket(a.of)?, a.from);
    2 open: |a| read::open(&handles::bucket(a.of)?, a.from);
    3 get: |a| read::get_object(&handles::bucket(a.of)?, a.from);
    4 put: |a| write::put(&handles::bucket(a.of)?, a.from, a.memory);
    5 delete: |a| objects::delete(&handles::bucket(a.of)?, a.from);
    6 delete_many: |a| objects::delete_many(&handles::bucket(a.of)?, a.from);
    7 copy: |a| objects::copy(&handles::bucket(a.of)?, a.from, false);
    8 rename: |a| objects::copy(&handles::bucket(a.of)?, a.from, true);
    9 list_some: |a| Ok(objects::next_entries(handles::list(a.of)?));
    10 list_dir: |a| objects::list_dir(&handles::bucket(a.of)?, a.from);
    11 begin_multipart: |a| write::begin_multipart(&handles::bucket(a.of)?, a.from);
    12 send_part: |a| write::put_part(&handles::bucket(a.of)?, a.from, a.memory);
    13 complete_multipart: |a| write::complete_multipart(&handles::bucket(a.of)?, a.from);
    14 abort_multipart: |a| write::abort_multipart(&handles::bucket(a.of)?, a.from);
    15 list_multipart: |a| write::list_parts(&handles::bucket(a.of)?, a.from);
    16 read_at: |a| read::at(&*handles::reader(a.of)?, a.from);
    17 read_into: |a| read::into(&*handles::reader(a.of)?, a.from, a.memory);
    18 read_ranges: |a| read::ranges(&*handles::reader(a.of)?, a.from, a.ending);
    19 read_next: |a| read::next(handles::reader(a.of)?, a.from);
    20 chunk: |a| Ok(read::next_chunk(handles::download(a.of)?));
    21 write: |a| Ok(write::write(handles::writer(a.of)?, a.memory));
    22 finish: |a| Ok(write::finish(handles::writer(a.of)?));
    23 abort: |a| Ok(write::abort(handles::writer(a.of)?));
    24 job_events: |a| Ok(job::events(handles::job(a.of)?));
    25 read_ranges_into: |a| read::ranges_into(&*handles::reader(a.of)?, a.from, a.memory, a.ending);
    26 plan_events: |a| Ok(plan::events(handles::plan_task(a.of)?));
};

/// Creates the call for a verb. `verb` is the verb's number, and `of` is the handle of the object that it acts
/// on.
///
/// # Errors
/// Fails if the arguments are invalid, or if the handle was closed.
pub fn work(
    verb: i32,
    of: u64,
    arguments: &[u8],
    memory: Memory,
    ending: &Arc<PendingAnswer>,
) -> Result<Work, Failure> {
    let verb = VERBS.iter().find(|known| known.number == verb).ok_or_else(Failure::of_another_version)?;
    (verb.work)(CallArguments { of, from: &mut Unpacked::new(arguments), memory, ending })
}

/// Stores received bytes for the host, and packs their handle and length. The handle 0 means that there are no bytes.
fn body(bytes: Bytes) -> Packed {
    let len = bytes.len() as u64;
    let number = if bytes.is_empty() { 0 } else { handles::keep(HandleTarget::Body(bytes)) };
    let mut packed = Packed::default();
    packed.number(number).number(len);
    packed
}
