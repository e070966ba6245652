//! Received bytes of a body that wait for their reader. A connection's thread adds them, and the reader takes them.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::Head;
use crate::threads::{Mutex, MutexGuard, PoisonError};

/// Most bytes that wait to be read. Beyond them the connection isn't read further.
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
    /// Takes the head. The reader gets it with the first bytes.
    pub(crate) fn begin(&self, head: Head) {
        self.lock().head = Some(head);
    }

    /// Takes more bytes.
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

    /// Returns the head once bytes have followed it. Before that, the answer may still change its lane. The caller is woken by the next
    /// bytes.
    pub(crate) fn head_if_any(&self, context: &mut Context<'_>) -> Option<Head> {
        let mut state = self.lock();
        state.reader = Some(context.waker().clone());
        if state.chunks.is_empty() { None } else { state.head.take() }
    }

    /// Returns the next bytes, if any. The caller is woken by the next ones.
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
