//! The buffer between a connection and the reader of a body. The connection's thread adds bytes, and the reader takes them.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::ResponseHead;
use crate::threads::{Mutex, MutexGuard, PoisonError};

/// The maximum number of bytes that wait for the reader. While this many wait, the connection isn't read further.
pub(crate) const ROOM: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct BodyBuffer(Mutex<BufferState>);

#[derive(Default)]
struct BufferState {
    head: Option<ResponseHead>,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// The reader that waits for chunks.
    reader: Option<Waker>,
    /// The connection that waits for free space.
    connection: Option<Waker>,
}

impl BodyBuffer {
    /// Stores the head. The reader gets it when the first bytes of the body have come.
    pub(crate) fn begin(&self, head: ResponseHead) {
        self.lock().head = Some(head);
    }

    /// Adds bytes.
    pub(crate) fn fill(&self, chunk: Bytes) {
        let mut state = self.lock();
        state.bytes += chunk.len();
        state.chunks.push_back(chunk);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Returns whether more bytes may be added.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.bytes < ROOM {
            return Poll::Ready(());
        }
        state.connection = Some(context.waker().clone());
        Poll::Pending
    }

    /// Returns the head once bytes of the body have come. Before that, the request may still be sent again on another lane. If this returns
    /// `None`, the next bytes wake the caller.
    pub(crate) fn head_if_any(&self, context: &mut Context<'_>) -> Option<ResponseHead> {
        let mut state = self.lock();
        state.reader = Some(context.waker().clone());
        if state.chunks.is_empty() { None } else { state.head.take() }
    }

    /// Returns the next bytes, if any. Further bytes wake the caller.
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

    /// Returns how many bytes wait to be read.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, BufferState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
