//! The calls on single objects.

mod blocking;
mod columns;
mod dropping;
mod filling;
mod multipart;
mod partly;
mod readers;
mod reading;
mod scattering;
mod unless;
mod writing;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use laneway::Bucket;

use crate::stage::{BUCKET, Stage};

/// Waits for a future without a runtime, since calls work under any executor.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Returns the stage's bucket, below a prefix.
pub(crate) fn bucket(stage: &Stage, prefix: &str) -> Bucket {
    stage.client.bucket(&format!("{}://{BUCKET}/{prefix}", stage.kind.provider.scheme())).unwrap()
}
