//! Replaces the parts of the library and of the bindings' core that the modules under test need: a client that runs
//! tasks, and failures without content.

use shuttle::future::JoinHandle;

use crate::Error;
use crate::packed::Packed;

#[derive(Clone, Debug)]
pub struct Client;

impl Client {
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Result<Spawned, Error> {
        Ok(Spawned(shuttle::future::spawn(future)))
    }
}

/// A running task. Dropping this value cancels the task.
#[derive(Debug)]
pub struct Spawned(JoinHandle<()>);

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Replaces the module `failure` of the bindings' core.
pub(crate) mod failure {
    use super::{Error, Packed};

    pub(crate) struct Failure;

    impl Failure {
        pub(crate) fn cancelled() -> Self {
            Self
        }
    }

    impl From<Error> for Failure {
        fn from(_: Error) -> Self {
            Self
        }
    }

    /// Packs only a flag, which is true if the call succeeded.
    pub(crate) fn answer(outcome: Result<Packed, Failure>) -> Packed {
        let mut packed = Packed::default();
        packed.flag(outcome.is_ok());
        packed
    }
}
