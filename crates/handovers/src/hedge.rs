//! Requests that are watched for whether they need a hedge.

#[path = "../../lanes/src/hedge/tracker.rs"]
pub(crate) mod tracker;

/// Among which others a request is found slow: nothing that is looked at here.
#[derive(Clone, Copy, Debug)]
pub struct Alike;
