//! The progress of a request, which one thread records and another reads to decide about a hedge.

#[path = "../../lanes/src/hedge/tracker.rs"]
pub(crate) mod tracker;

/// Replaces the group of similar requests with which a request is compared. The scenarios need only one group.
#[derive(Clone, Copy, Debug)]
pub struct Alike;
