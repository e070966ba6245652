//! Objects as files: what Python's own files can do, as far as objects can.

mod begun;
mod fetched;
mod opening;
mod readable;
mod writable;

pub(crate) use fetched::Fetched;
pub(crate) use opening::Opening;
pub(crate) use readable::{AsyncReadableFile, Readable, ReadableFile};
pub(crate) use writable::{AsyncWritableFile, Writable, WritableFile};
