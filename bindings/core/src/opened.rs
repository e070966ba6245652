//! Objects behind numbers, and their state between two calls.

use std::sync::{Arc, PoisonError};

use laneway::{Canceller, Client, Error, Job, List, Progress, Reader, Writer};
use tokio::sync::Mutex;

use crate::failure::Failure;

/// An object that is open for reads at positions and in order.
pub struct OpenObject {
    pub(crate) client: Client,
    /// Locked only while a call is made. The call itself runs without the lock.
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
pub struct Listing {
    pub(crate) list: List,
    /// The failure with which it ended, until it is reported after the objects that arrived before.
    pub(crate) failed: Option<Error>,
}

/// An object that is being written.
pub struct WriterState {
    /// `None` once it is finished or aborted.
    pub(crate) writer: Option<Writer>,
    /// A failure that occurred while no call could report it.
    pub(crate) failed: Option<Failure>,
}

/// A job under way. Dropping it cancels it.
pub struct RunningJob {
    pub(crate) client: Client,
    pub(crate) job: Mutex<Job>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) canceller: Canceller,
}
