//! Numbers that a host holds instead of pointers. A number that was closed or never issued refers to nothing, so a
//! mistake of the host can't corrupt memory. These numbers are for hosts that don't fork: the engine's threads
//! also issue numbers, and a fork could find their lock taken.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use bytes::Bytes;
use laneway::{Bucket, Canceller, Client, Download, Error, Job, List, Progress, Reader, Writer};
use tokio::sync::Mutex;

use crate::failure::Failure;

/// An object behind a number. Clones share it.
#[derive(Clone)]
pub enum HandleTarget {
    /// A client.
    Client(Client),
    /// A bucket, or the part of one below a prefix.
    Bucket(Bucket),
    /// An object that is open for reads.
    Reader(Arc<OpenObject>),
    /// A download that is read in order.
    Download(Arc<Exclusive<Download>>),
    /// A listing.
    List(Arc<Exclusive<OpenListing>>),
    /// An object that is being written.
    Writer(Arc<Exclusive<WriterState>>),
    /// A job.
    Job(Arc<RunningJob>),
    /// Bytes that arrived.
    Body(Bytes),
}

static OBJECTS: LazyLock<RwLock<HashMap<u64, HandleTarget>>> = LazyLock::new(RwLock::default);

/// The last number that was issued. 0 refers to nothing.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns a number for an object that the host will hold.
pub fn keep(object: HandleTarget) -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    OBJECTS.write().unwrap_or_else(PoisonError::into_inner).insert(number, object);
    number
}

/// Forgets a number. Calls that use the object continue.
pub fn close(number: u64) {
    let object = OBJECTS.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    // Drop the object after the lock is released, because dropping it may do work.
    drop(object);
}

/// Returns the object behind a number.
///
/// # Errors
/// Fails for a number that was closed.
fn held(number: u64) -> Result<HandleTarget, Failure> {
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
                HandleTarget::$kind(of) => Ok(of),
                _ => Err(Failure::of_another_version()),
            }
        }
    };
}

of_kind!(client, Client, Client);
of_kind!(bucket, Bucket, Bucket);
of_kind!(reader, Reader, Arc<OpenObject>);
of_kind!(download, Download, Arc<Exclusive<Download>>);
of_kind!(list, List, Arc<Exclusive<OpenListing>>);
of_kind!(writer, Writer, Arc<Exclusive<WriterState>>);
of_kind!(job, Job, Arc<RunningJob>);
of_kind!(body, Body, Bytes);

/// An object that is open for reads at positions and in order.
pub struct OpenObject {
    pub(crate) client: Client,
    /// The lock is held only while a call is created. The call itself runs without the lock.
    pub(crate) at_places: std::sync::Mutex<Reader>,
    pub(crate) in_order: Mutex<Reader>,
}

impl OpenObject {
    /// Makes a call that reads at a position.
    pub(crate) fn call<T>(&self, make: impl FnOnce(&Reader) -> T) -> T {
        make(&self.at_places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A value that one call at a time uses, and the client whose engine runs its calls.
pub struct Exclusive<T> {
    pub(crate) client: Client,
    pub(crate) value: Mutex<T>,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(client: &Client, value: T) -> Arc<Self> {
        Arc::new(Self { client: client.clone(), value: Mutex::new(value) })
    }
}

/// A listing under way.
pub struct OpenListing {
    pub(crate) list: List,
    /// The failure that ended the listing. It is reported after the objects that arrived before.
    pub(crate) failed: Option<Error>,
}

/// An object that is being written.
pub struct WriterState {
    /// `None` after the writer is finished or aborted.
    pub(crate) writer: Option<Writer>,
    /// A failure that occurred while no call could report it.
    pub(crate) failed: Option<Failure>,
}

/// A job under way. Dropping this value cancels the job.
pub struct RunningJob {
    pub(crate) client: Client,
    pub(crate) job: Mutex<Job>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) canceller: Canceller,
}
