//! Objects as files, with the methods of Python's own files as far as objects have them.

mod begun;
mod fetched;
mod opening;
mod readable;
mod writable;

pub(crate) use fetched::Fetched;
pub(crate) use opening::Opening;
pub(crate) use readable::{AsyncReadableFile, Readable, ReadableFile};
pub(crate) use writable::{AsyncWritableFile, Writable, WritableFile};
