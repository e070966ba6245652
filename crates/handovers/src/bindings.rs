//! Stand-ins for the parts of the library and the bindings' core that the modules need: a client that runs tasks on
//! any thread, and empty failures.

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

/// A task. Dropping it ends its future.
#[derive(Debug)]
pub struct Spawned(JoinHandle<()>);

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A replacement for the core's `failure`.
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

    /// Packs a flag that tells whether there is an answer.
    pub(crate) fn answer(outcome: Result<Packed, Failure>) -> Packed {
        let mut packed = Packed::default();
        packed.flag(outcome.is_ok());
        packed
    }
}
