//! Requests that are watched in case they need a hedge.

#[path = "../../lanes/src/hedge/tracker.rs"]
pub(crate) mod tracker;

/// The group in which requests are compared. It doesn't matter here.
#[derive(Clone, Copy, Debug)]
pub struct Alike;
