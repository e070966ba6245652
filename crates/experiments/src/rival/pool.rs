//! A pool of kept-alive HTTP/1.1 connections, as every SDK has one.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Error, Http1, Rival};

/// Connections that are dialled when none is idle. Clones share it.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    rival: Rival,
    /// How many requests may be under way; whoever comes beyond that waits his turn. `None` is no bound.
    bound: Option<Semaphore>,
    /// The one that was used last is on top, as in most pools: the others may be closed by the server meanwhile.
    idle: Mutex<Vec<Http1>>,
}

/// A connection out of the pool. It is lost unless it is [given back](Self::give_back).
pub(crate) struct Taken<'a> {
    pub(crate) connection: Http1,
    /// Whether it has carried a request before: the server may close it meanwhile.
    pub(crate) is_reused: bool,
    pool: &'a Pool,
    _turn: Option<SemaphorePermit<'a>>,
}

impl Pool {
    /// A pool of at most `bound` connections.
    pub(crate) fn new(rival: Rival, bound: Option<usize>) -> Self {
        Self(Arc::new(Inner { rival, bound: bound.map(Semaphore::new), idle: Mutex::default() }))
    }

    /// Waits for its turn and takes an idle connection, or dials one.
    ///
    /// # Errors
    /// What keeps a connection from being opened.
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
    /// The answer has been read to its end: the connection can carry another request.
    pub(crate) fn give_back(self) {
        self.pool.0.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.connection);
    }
}
