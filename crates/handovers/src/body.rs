//! A body that is read as it comes.

#[path = "../../lanes/src/streamed/waiting.rs"]
pub(crate) mod waiting;
