//! A range of an object, which two answers may fetch at once.

#[path = "../../laneway/src/transfer/download/range_writer.rs"]
pub(crate) mod range_writer;
pub(crate) mod scenario;
pub(crate) mod slice;
