//! Requests that are watched in case they need a hedge.

#[path = "../../lanes/src/hedge/tracker.rs"]
pub(crate) mod tracker;

/// The group in which requests are compared. The scenarios have only one group.
#[derive(Clone, Copy, Debug)]
pub struct Alike;
