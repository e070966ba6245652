//! The bytes of objects: their checksums, their compression and their content types.

pub(crate) mod checksum;
pub(crate) mod content_type;
pub(crate) mod encoding;
pub(crate) mod gzip;
