//! The buffer between a connection and the reader of a response's body.

#[path = "../../lanes/src/streamed/waiting.rs"]
pub(crate) mod waiting;
