//! A body that is read as it arrives.

#[path = "../../lanes/src/streamed/waiting.rs"]
pub(crate) mod waiting;
