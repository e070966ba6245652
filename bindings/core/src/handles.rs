//! Numbers (handles) that a host holds instead of pointers. If a host uses a number that was closed or never issued,
//! the call fails, and no memory is corrupted. Don't use handles in hosts that fork: the engine's threads also issue
//! numbers, so a fork could leave the lock held for ever.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use bytes::Bytes;
use laneway::{Bucket, Canceller, Client, Download, Error, Job, List, Progress, Reader, Writer};
use tokio::sync::Mutex;

use crate::failure::Failure;
use crate::plan::{OpenPlan, PlanHost, PlanTask, Stop};
use crate::settings::BuiltClient;

/// The object that a number refers to. Clones share it.
#[derive(Clone)]
pub enum HandleTarget {
    /// A client.
    Client(Box<BuiltClient>),
    /// A bucket, or the part of a bucket below a prefix.
    Bucket(Bucket),
    /// An object that is open for reading.
    Reader(Arc<OpenObject>),
    /// A download that is read in order.
    Download(Arc<Exclusive<Download>>),
    /// A listing.
    List(Arc<Exclusive<OpenListing>>),
    /// An object that is being written.
    Writer(Arc<Exclusive<WriterState>>),
    /// A job.
    Job(Arc<RunningJob>),
    /// A plan that was opened.
    Plan(Arc<OpenPlan>),
    /// A running action on a plan.
    PlanTask(Arc<RunningPlanTask>),
    /// Bytes that arrived.
    Body(Bytes),
}

static OBJECTS: LazyLock<RwLock<HashMap<u64, HandleTarget>>> = LazyLock::new(RwLock::default);

/// The last number that was issued. The number 0 is never issued.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Stores an object for the host, and returns its number.
pub fn keep(object: HandleTarget) -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    OBJECTS.write().unwrap_or_else(PoisonError::into_inner).insert(number, object);
    number
}

/// Removes a number. Running calls that use the object continue.
pub fn close(number: u64) {
    let object = OBJECTS.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    // Drop the object only after the lock is released, because the drop may take time.
    drop(object);
}

/// Returns the object that a number refers to.
///
/// # Errors
/// Fails if the number was closed.
fn held(number: u64) -> Result<HandleTarget, Failure> {
    OBJECTS.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned().ok_or_else(Failure::closed)
}

macro_rules! of_kind {
    ($name:ident, $kind:ident, $of:ty) => {
        /// Returns the object of this kind behind a number.
        ///
        /// # Errors
        /// Fails if the number was closed.
        pub fn $name(number: u64) -> Result<$of, Failure> {
            match held(number)? {
                HandleTarget::$kind(of) => Ok(of),
                _ => Err(Failure::of_another_version()),
            }
        }
    };
}

of_kind!(bucket, Bucket, Bucket);
of_kind!(reader, Reader, Arc<OpenObject>);
of_kind!(download, Download, Arc<Exclusive<Download>>);
of_kind!(list, List, Arc<Exclusive<OpenListing>>);
of_kind!(writer, Writer, Arc<Exclusive<WriterState>>);
of_kind!(job, Job, Arc<RunningJob>);
of_kind!(plan_task, PlanTask, Arc<RunningPlanTask>);
of_kind!(body, Body, Bytes);

/// Returns the client behind a number.
///
/// # Errors
/// Fails if the number was closed.
pub fn client(number: u64) -> Result<Client, Failure> {
    match held(number)? {
        HandleTarget::Client(built) => Ok(built.client),
        _ => Err(Failure::of_another_version()),
    }
}

/// Returns the client or the plan behind a number.
///
/// # Errors
/// Fails if the number was closed.
pub(crate) fn plan_host(number: u64) -> Result<PlanHost, Failure> {
    match held(number)? {
        HandleTarget::Client(built) => Ok(PlanHost::Client(built)),
        HandleTarget::Plan(plan) => Ok(PlanHost::Plan(plan)),
        _ => Err(Failure::of_another_version()),
    }
}

/// An object that is open for reading. It has one reader for reads at any position, and one for reads in order.
pub struct OpenObject {
    pub(crate) client: Client,
    /// The lock is held only while a call is created. The call itself runs without the lock.
    pub(crate) at_places: std::sync::Mutex<Reader>,
    pub(crate) in_order: Mutex<Reader>,
}

impl OpenObject {
    /// Creates a call that reads at a position.
    pub(crate) fn call<T>(&self, make: impl FnOnce(&Reader) -> T) -> T {
        make(&self.at_places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A value that only one call at a time may use, and the client whose engine runs these calls.
pub struct Exclusive<T> {
    pub(crate) client: Client,
    pub(crate) value: Mutex<T>,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(client: &Client, value: T) -> Arc<Self> {
        Arc::new(Self { client: client.clone(), value: Mutex::new(value) })
    }
}

/// A listing whose entries the host fetches step by step.
pub struct OpenListing {
    pub(crate) list: List,
    /// The failure that ended the listing. It is reported after the last object that arrived.
    pub(crate) failed: Option<Error>,
}

/// An object that is being written.
pub struct WriterState {
    /// The writer, or `None` once the object was completed or aborted.
    pub(crate) writer: Option<Writer>,
    /// A failure that occurred when there was no call to report it. The next call reports it.
    pub(crate) failed: Option<Failure>,
}

/// A running job. Dropping this value cancels the job.
pub struct RunningJob {
    pub(crate) client: Client,
    pub(crate) job: Mutex<Job>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) canceller: Canceller,
}

/// A running action on a plan. Dropping this value stops the action.
pub struct RunningPlanTask {
    pub(crate) client: Client,
    pub(crate) task: Mutex<PlanTask>,
    pub(crate) stop: Stop,
}
