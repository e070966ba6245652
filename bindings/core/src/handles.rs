//! Numbers that a host holds instead of pointers. A number that was closed, or never given, means nothing: no mistake of the host's reaches
//! memory. They are for hosts that don't fork: the engine's threads give numbers too, and hold a lock meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use bytes::Bytes;
use laneway::{Bucket, Client, Download};

use crate::failure::Failure;
use crate::opened::{Exclusive, Listing, OpenObject, RunningJob, WriterState};

/// A thing that a number means. Clones share it.
#[derive(Clone)]
pub enum Object {
    /// A client.
    Client(Client),
    /// A bucket, or the part of one below a prefix.
    Bucket(Bucket),
    /// An object that is open for reads.
    Reader(Arc<OpenObject>),
    /// An object that is read in order.
    Download(Arc<Exclusive<Download>>),
    /// A listing.
    List(Arc<Exclusive<Listing>>),
    /// An object that is written.
    Writer(Arc<Exclusive<WriterState>>),
    /// A job.
    Job(Arc<RunningJob>),
    /// Bytes that came.
    Body(Bytes),
}

static OBJECTS: LazyLock<RwLock<HashMap<u64, Object>>> = LazyLock::new(RwLock::default);

/// Numbers that were given. 0 is nothing's.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Gives a number to something that the host is to hold.
pub fn keep(object: Object) -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    OBJECTS.write().unwrap_or_else(PoisonError::into_inner).insert(number, object);
    number
}

/// Forgets a number. Calls that use it go on.
pub fn close(number: u64) {
    let object = OBJECTS.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    // Dropped after the lock on the others: it may have an end of its own.
    drop(object);
}

/// Returns the meaning of a number.
///
/// # Errors
/// For a number that was closed.
fn held(number: u64) -> Result<Object, Failure> {
    OBJECTS.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned().ok_or_else(Failure::closed)
}

macro_rules! of_kind {
    ($name:ident, $kind:ident, $of:ty) => {
        /// Returns the meaning of a number, of this kind.
        ///
        /// # Errors
        /// For a number that was closed.
        pub fn $name(number: u64) -> Result<$of, Failure> {
            match held(number)? {
                Object::$kind(of) => Ok(of),
                _ => Err(Failure::of_another_version()),
            }
        }
    };
}

of_kind!(client, Client, Client);
of_kind!(bucket, Bucket, Bucket);
of_kind!(reader, Reader, Arc<OpenObject>);
of_kind!(download, Download, Arc<Exclusive<Download>>);
of_kind!(list, List, Arc<Exclusive<Listing>>);
of_kind!(writer, Writer, Arc<Exclusive<WriterState>>);
of_kind!(job, Job, Arc<RunningJob>);
of_kind!(body, Body, Bytes);
