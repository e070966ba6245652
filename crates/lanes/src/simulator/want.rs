//! A program's request.

use crate::dispatch::Size;

/// A request: bytes of its body and of its answer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// True if the dispatcher knows the answer's size.
    pub(crate) known: bool,
    pub(crate) origin: usize,
    /// The object that it is a part of, by its number.
    pub(crate) part_of: Option<usize>,
}

impl Want {
    pub(crate) fn get(bytes: u64) -> Self {
        Self { up: 0, down: bytes, known: true, origin: 0, part_of: None }
    }

    pub(crate) fn put(bytes: u64) -> Self {
        Self { up: bytes, down: 0, known: true, origin: 0, part_of: None }
    }

    pub(crate) fn unknown(bytes: u64) -> Self {
        Self { known: false, ..Self::get(bytes) }
    }

    pub(crate) fn of(self, origin: usize) -> Self {
        Self { origin, ..self }
    }

    pub(crate) fn part_of(self, object: usize) -> Self {
        Self { part_of: Some(object), ..self }
    }

    pub(crate) fn size(&self) -> Size {
        Size::new(self.up, self.known.then_some(self.down), !self.known || self.down > 0)
    }
}
