//! Runs calls on the engine's thread. Dropping a call's future ends the call.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::engine::fork::OfProcess;
use crate::job::running::{Purpose, Running};
use crate::job::shared::Common;
use crate::{Bucket, Client, Error, Job};

/// A running call. It may be awaited on any runtime. Dropping it cancels it.
#[must_use = "a call does nothing until it is awaited"]
pub struct Pending<T>(Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>);

impl<T> Pending<T> {
    pub(super) fn new(future: impl Future<Output = Result<T, Error>> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

/// Ends a call that takes longer than its caller allows.
///
/// # Errors
/// Those of `call`; a timeout, which names `url`.
pub(super) fn within<T>(
    deadline: Option<Duration>,
    url: &str,
    call: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    // Boxed at once: passing the future on by value would need its size twice.
    let call = Box::pin(call);
    async move {
        match deadline {
            None => call.await,
            Some(deadline) => match tokio::time::timeout(deadline, call).await {
                Ok(done) => done,
                Err(_) => Err(Error::timed_out(url, deadline)),
            },
        }
    }
}

/// Runs a call on the client's own thread. It goes on even while its future isn't polled.
pub(super) fn pending<T: Send + 'static>(
    client: &Client,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Pending<T> {
    let (client, call) = (client.clone(), Box::pin(call));
    Pending::new(async move { client.worker()?.run(call).await })
}

/// Runs a call to its end on the thread that awaits it, or on the client's own.
pub(super) fn awaited<T: Send + 'static>(
    client: &Client,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Pending<T> {
    let (client, call) = (client.clone(), Box::pin(call));
    Pending::new(async move { client.worker()?.run_here(call).await })
}

/// Returns an owner and the running job that counts a call's transfers. Dropping the owner cancels the job.
///
/// # Errors
/// If the engine can't start.
pub(super) fn job(bucket: &Bucket) -> Result<(Job, Arc<Running>), Error> {
    let (owner, ends) = Job::unheard();
    Ok((owner, Running::new(bucket.client().state()?, ends, Purpose::Plain, Common::default())))
}

/// Starts, on the client's own thread, a transfer that must clean up when it is abandoned. Dropping the
/// returned future cancels the job, and the transfer then ends by itself.
pub(super) fn cleaning<T: Send + 'static>(
    client: &Client,
    owner: Job,
    transfer: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> impl Future<Output = Result<T, Error>> + Send + 'static {
    let (end, ended) = oneshot::channel();
    let ended = OfProcess::new(ended);
    let begun = client.worker().map(|worker| {
        let engine = client.clone();
        worker.spawn(async move {
            // The caller may be gone.
            drop(end.send(transfer.await));
            drop(engine);
        });
    });
    async move {
        begun?;
        let ended = ended.await.ok_or_else(|| Error::forked("the request"))?;
        drop(owner);
        ended.unwrap_or_else(|_| Err(Error::cancelled("the request")))
    }
}

/// Makes the methods that every verb's call has: awaiting, blocking, and a deadline. The verb has the fields
/// `bucket` and `deadline`, and a method `run`.
macro_rules! callable {
    ($verb:ty, $output:ty) => {
        impl $verb {
            /// Limits the time of the call. After this time, the call fails with an error of kind timeout.
            /// Without a deadline, a transfer that makes progress may take any time. The call then fails only
            /// once the store has sent nothing for the time of the client's
            /// [`retry_for`](crate::ClientBuilder::retry_for).
            pub fn deadline(mut self, deadline: ::std::time::Duration) -> Self {
                self.deadline = Some(deadline);
                self
            }

            /// Does the same as awaiting the call, and blocks the thread until the call ends. Don't call it
            /// on a thread that runs async tasks.
            ///
            /// # Errors
            /// The same as those of awaiting the call.
            pub fn call(self) -> Result<$output, $crate::Error> {
                $crate::engine::runtime::block_on(self.into_future())
            }
        }

        impl IntoFuture for $verb {
            type Output = Result<$output, $crate::Error>;
            type IntoFuture = $crate::objects::call::Pending<$output>;

            fn into_future(self) -> Self::IntoFuture {
                let client = self.bucket.client().clone();
                $crate::objects::call::awaited(&client, self.run())
            }
        }
    };
}

pub(super) use callable;
