//! Bytes of a body that have come and aren't taken yet. A connection's thread adds them, and the reader takes them.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::Head;
use crate::threads::{Mutex, MutexGuard, PoisonError};

/// Bytes that may wait to be read before the connection is read no further.
pub(crate) const ROOM: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct BodyBuffer(Mutex<BufferState>);

#[derive(Default)]
struct BufferState {
    head: Option<Head>,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// The reader that waits for chunks.
    reader: Option<Waker>,
    /// The connection that waits for room.
    connection: Option<Waker>,
}

impl BodyBuffer {
    /// The head has come. It is handed on with the first bytes.
    pub(crate) fn begin(&self, head: Head) {
        self.lock().head = Some(head);
    }

    /// More bytes have come.
    pub(crate) fn fill(&self, chunk: Bytes) {
        let mut state = self.lock();
        state.bytes += chunk.len();
        state.chunks.push_back(chunk);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Returns whether there is room for more.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.bytes < ROOM {
            return Poll::Ready(());
        }
        state.connection = Some(context.waker().clone());
        Poll::Pending
    }

    /// The head, once bytes have come after it: before them it may turn out that they come by another lane. Who asks is woken by the
    /// next ones.
    pub(crate) fn head_if_any(&self, context: &mut Context<'_>) -> Option<Head> {
        let mut state = self.lock();
        state.reader = Some(context.waker().clone());
        if state.chunks.is_empty() { None } else { state.head.take() }
    }

    /// The next bytes, if some have come. Who asks is woken by the next ones.
    pub(crate) fn take(&self, context: &mut Context<'_>) -> Option<Bytes> {
        let mut state = self.lock();
        state.reader = Some(context.waker().clone());
        let chunk = state.chunks.pop_front()?;
        state.bytes = state.bytes.saturating_sub(chunk.len());
        let connection = state.connection.take();
        drop(state);
        connection.into_iter().for_each(Waker::wake);
        Some(chunk)
    }

    /// Returns how many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, BufferState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
