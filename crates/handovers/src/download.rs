//! The writer of an object's range, which two responses may fill at once.

#[path = "../../laneway/src/content/range_writer.rs"]
pub(crate) mod range_writer;
pub(crate) mod scenario;
pub(crate) mod slice;
