//! What is begun: each verb makes a call of the library of its arguments.

mod copy;
mod delete;
mod download;
mod head;
mod job;
mod list;
mod multipart;
mod open;
mod put;
mod read;
mod write;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use job::job;
pub(crate) use list::list;
pub(crate) use read::{drop_ahead, read_now};
pub(crate) use write::{write_now, writer};

use crate::call::{Ending, Work};
use crate::failure::Failure;
use crate::handles::{self, Object};
use crate::lent::Lent;
use crate::packed::{Packed, Unpacked};

/// Memory that comes with a call.
pub(crate) enum Memory {
    None,
    /// Of a direct buffer, to be read or written.
    Lent(Lent),
    /// Copied out of an array.
    Copied(Vec<u8>),
}

impl Memory {
    /// What is to be sent.
    fn into_bytes(self) -> Bytes {
        match self {
            Self::None => Bytes::new(),
            Self::Lent(lent) => Bytes::from_owner(lent),
            Self::Copied(bytes) => bytes.into(),
        }
    }
}

/// What a verb makes of its arguments, by the numbers that `dev.laneway.Native` has.
///
/// # Errors
/// For what makes no sense, or was closed.
pub(crate) fn work(
    verb: i32,
    of: u64,
    arguments: &[u8],
    memory: Memory,
    ending: &Arc<Ending>,
) -> Result<Work, Failure> {
    let from = &mut Unpacked::new(arguments);
    match verb {
        1 => head::head(&handles::bucket(of)?, from),
        2 => open::open(&handles::bucket(of)?, from),
        3 => download::get(&handles::bucket(of)?, from),
        4 => put::put(&handles::bucket(of)?, from, memory),
        5 => delete::delete(&handles::bucket(of)?, from),
        6 => delete::delete_many(&handles::bucket(of)?, from),
        7 => copy::copy(&handles::bucket(of)?, from, false),
        8 => copy::copy(&handles::bucket(of)?, from, true),
        9 => Ok(list::some(handles::list(of)?)),
        10 => list::list_dir(&handles::bucket(of)?, from),
        11 => multipart::begin(&handles::bucket(of)?, from),
        12 => multipart::part(&handles::bucket(of)?, from, memory),
        13 => multipart::complete(&handles::bucket(of)?, from),
        14 => multipart::abort(&handles::bucket(of)?, from),
        15 => multipart::list(&handles::bucket(of)?, from),
        16 => read::at(&*handles::reader(of)?, from),
        17 => read::into(&*handles::reader(of)?, from, memory),
        18 => read::ranges(&*handles::reader(of)?, from, ending),
        19 => read::next(handles::reader(of)?, from),
        20 => Ok(download::chunk(handles::download(of)?)),
        21 => Ok(write::write(handles::writer(of)?, memory)),
        22 => Ok(write::finish(handles::writer(of)?)),
        23 => Ok(write::abort(handles::writer(of)?)),
        24 => Ok(job::events(handles::job(of)?)),
        _ => Err(Failure::of_another_version()),
    }
}

/// Bytes that Java fetches by their number; 0 for none.
fn body(bytes: Bytes) -> Packed {
    let len = bytes.len() as u64;
    let number = if bytes.is_empty() { 0 } else { handles::keep(Object::Body(bytes)) };
    let mut packed = Packed::default();
    packed.number(number).number(len);
    packed
}
