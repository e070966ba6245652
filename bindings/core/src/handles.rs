//! Numbers that a host holds instead of pointers. A number that was closed or never issued refers to nothing, so a
//! mistake of the host can't corrupt memory. They are for hosts that don't fork, because the engine's threads also
//! issue numbers, and hold a lock meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use bytes::Bytes;
use laneway::{Bucket, Client, Download};

use crate::failure::Failure;
use crate::opened::{Exclusive, Listing, OpenObject, RunningJob, WriterState};

/// An object behind a number. Clones share it.
#[derive(Clone)]
pub enum Object {
    /// A client.
    Client(Client),
    /// A bucket, or the part of one below a prefix.
    Bucket(Bucket),
    /// An object that is open for reads.
    Reader(Arc<OpenObject>),
    /// A download that is read in order.
    Download(Arc<Exclusive<Download>>),
    /// A listing.
    List(Arc<Exclusive<Listing>>),
    /// An object that is being written.
    Writer(Arc<Exclusive<WriterState>>),
    /// A job.
    Job(Arc<RunningJob>),
    /// Bytes that arrived.
    Body(Bytes),
}

static OBJECTS: LazyLock<RwLock<HashMap<u64, Object>>> = LazyLock::new(RwLock::default);

/// The last number that was issued. 0 refers to nothing.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns a number for an object that the host will hold.
pub fn keep(object: Object) -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    OBJECTS.write().unwrap_or_else(PoisonError::into_inner).insert(number, object);
    number
}

/// Forgets a number. Calls that use the object continue.
pub fn close(number: u64) {
    let object = OBJECTS.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    // Dropped after the lock is released, since dropping it may do work.
    drop(object);
}

/// Returns the object behind a number.
///
/// # Errors
/// Fails for a number that was closed.
fn held(number: u64) -> Result<Object, Failure> {
    OBJECTS.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned().ok_or_else(Failure::closed)
}

macro_rules! of_kind {
    ($name:ident, $kind:ident, $of:ty) => {
        /// Returns the object of this kind behind a number.
        ///
        /// # Errors
        /// Fails for a number that was closed.
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
