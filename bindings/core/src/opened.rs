//! Objects of a host that numbers name, and the state that they have between two calls.

use std::sync::{Arc, PoisonError};

use laneway::{Canceller, Client, Error, Job, List, Progress, Reader, Writer};
use tokio::sync::Mutex;

use crate::failure::Failure;

/// An object that is open for reads: at places, and in order.
pub struct OpenObject {
    pub(crate) client: Client,
    /// Locked for as long as it takes to make a call of it, which is carried out without.
    pub(crate) at_places: std::sync::Mutex<Reader>,
    pub(crate) in_order: Mutex<Reader>,
}

impl OpenObject {
    /// Makes a call that reads at places.
    pub(crate) fn call<T>(&self, make: impl FnOnce(&Reader) -> T) -> T {
        make(&self.at_places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A value that one call at a time has, and the client whose engine carries its calls out.
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
    /// The failure that it ended with, until it is announced: behind the objects that came before.
    pub(crate) failed: Option<Error>,
}

/// An object that is being written.
pub struct WriterState {
    /// `None` once it is finished or aborted.
    pub(crate) writer: Option<Writer>,
    /// A failure that no call was there to take yet.
    pub(crate) failed: Option<Failure>,
}

/// A job under way. Dropped, it is cancelled.
pub struct RunningJob {
    pub(crate) client: Client,
    pub(crate) job: Mutex<Job>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) canceller: Canceller,
}
