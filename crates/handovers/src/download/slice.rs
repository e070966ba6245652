//! A range of a download that is written to memory, and whose end may move.

use laneway_store::Route;

use super::range_writer::Output;
use crate::Error;

/// The bytes that were written, in order.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Output for Slice {
    fn route(&self, _at: u64) -> Route {
        Route::Stay
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        assert_eq!(at, self.start + self.bytes.len() as u64, "bytes arrive in order");
        let room = self.end.saturating_sub(at).min(bytes.len() as u64);
        self.bytes.extend_from_slice(&bytes[..room as usize]);
        Ok(room)
    }
}
