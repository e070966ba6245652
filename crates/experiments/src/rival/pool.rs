//! A pool of kept-alive HTTP/1.1 connections, such as every SDK has.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Error, Http1, Rival};

/// A pool, which opens a connection if none is idle. Clones share it.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    rival: Rival,
    /// Maximum number of concurrent requests. Further requests wait. `None` sets no limit.
    bound: Option<Semaphore>,
    /// Idle connections. As in most pools, a request takes the connection that was used last. The server may close the
    /// others meanwhile.
    idle: Mutex<Vec<Http1>>,
}

/// A connection that was taken out of the pool. Dropping the value closes the connection, unless it was [given back](Self::give_back).
pub(crate) struct Taken<'a> {
    pub(crate) connection: Http1,
    /// True if the connection has carried a request before. The server may have closed it meanwhile, so a failed
    /// request should be repeated.
    pub(crate) is_reused: bool,
    pool: &'a Pool,
    _turn: Option<SemaphorePermit<'a>>,
}

impl Pool {
    /// Creates a pool of at most `bound` connections.
    pub(crate) fn new(rival: Rival, bound: Option<usize>) -> Self {
        Self(Arc::new(Inner { rival, bound: bound.map(Semaphore::new), idle: Mutex::default() }))
    }

    /// Waits until the pool's bound permits another request. Then takes an idle connection, or opens one.
    ///
    /// # Errors
    /// Fails if a connection can't be opened.
    pub(crate) async fn take(&self) -> Result<Taken<'_>, Error> {
        let turn = match &self.0.bound {
            // The semaphore is fair and is never closed.
            Some(bound) => bound.acquire().await.ok(),
            None => None,
        };
        loop {
            let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut connection) = idle else { break };
            if connection.is_usable().await {
                return Ok(Taken { connection, is_reused: true, pool: self, _turn: turn });
            }
        }
        let connection = self.0.rival.connect_h1().await?;
        Ok(Taken { connection, is_reused: false, pool: self, _turn: turn })
    }
}

impl Taken<'_> {
    /// Returns the connection to the pool. The answer must have been read completely, so that the connection can carry
    /// another request.
    pub(crate) fn give_back(self) {
        self.pool.0.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.connection);
    }
}
