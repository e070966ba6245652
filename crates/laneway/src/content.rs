//! The bytes of objects: how ranges are read, checksums, compression and content types.

pub(crate) mod checksum;
pub(crate) mod encoding;
pub(crate) mod range_writer;
pub(crate) mod read;
