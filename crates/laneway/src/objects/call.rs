//! Runs calls, on the engine's thread or on a thread that blocks until the call is done. Dropping a call's
//! future ends the call.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::engine::fork::OfProcess;
use crate::job::CommonBuckets;
use crate::job::running::{JobState, Purpose};
use crate::{Bucket, Client, Error, Job};

/// The future of a call. It can be awaited on any async runtime. Dropping it cancels the call.
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

/// Runs a call, and ends it with an error when it takes longer than `deadline`.
///
/// # Errors
/// The errors of `call`; `ErrorKind::Timeout` with `url` if the deadline passes.
pub(super) fn within<T>(
    deadline: Option<Duration>,
    url: &str,
    call: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    // Box the future. Otherwise the returned future would hold it twice, once as its argument and once in the
    // timeout.
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

/// Runs a call on the engine's thread. The call makes progress even while the returned future isn't polled.
pub(super) fn pending<T: Send + 'static>(
    client: &Client,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Pending<T> {
    let (client, call) = (client.clone(), Box::pin(call));
    Pending::new(async move { client.worker()?.run(call).await })
}

/// Runs a call. If the thread that awaits the call blocks until it is done, that thread runs it. Otherwise
/// the engine's thread runs it.
pub(super) fn awaited<T: Send + 'static>(
    client: &Client,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Pending<T> {
    let (client, call) = (client.clone(), Box::pin(call));
    Pending::new(async move { client.worker()?.run_here(call).await })
}

/// Returns a job that carries out the transfer of a single call. The first value owns the job: dropping it
/// cancels the job. The second value is the job's running state.
///
/// # Errors
/// If the engine can't start.
pub(super) fn job(bucket: &Bucket) -> Result<(Job, Arc<JobState>), Error> {
    let (owner, ends) = Job::unheard();
    Ok((owner, JobState::new(bucket.client().state()?, ends, Purpose::Plain, CommonBuckets::default())))
}

/// Starts a transfer on the engine's thread. If the caller drops the returned future, the job is cancelled,
/// but the transfer still runs until it has cleaned up.
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
            // Ignore an error: the caller may have dropped its future.
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

/// Defines what every call has: `IntoFuture`, the blocking `call` and the setter `deadline`. The type must
/// have the fields `bucket` and `deadline`, and a method `run`.
macro_rules! callable {
    ($verb:ty, $output:ty) => {
        impl $verb {
            /// Limits the time of the call. After this time, the call fails with an error of kind
            /// [`Timeout`](crate::ErrorKind::Timeout). Without a deadline, a call that makes progress can
            /// take any time. The call fails once the server has made no progress for the client's
            /// [`retry_for`](crate::ClientBuilder::retry_for).
            pub fn deadline(mut self, deadline: ::std::time::Duration) -> Self {
                self.deadline = Some(deadline);
                self
            }

            /// Does the same as awaiting the call, and blocks the thread until the call ends. Don't call it
            /// on a thread that runs async tasks.
            ///
            /// # Errors
            /// The same errors as awaiting the call.
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
