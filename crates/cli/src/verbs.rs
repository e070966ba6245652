//! The verbs, one file each, with their options and actions.

#[cfg(feature = "bench")]
pub(crate) mod bench;
pub(crate) mod buckets;
pub(crate) mod cat;
pub(crate) mod compose;
pub(crate) mod cp;
#[cfg(feature = "demo")]
pub(crate) mod demo;
pub(crate) mod du;
pub(crate) mod hash;
pub(crate) mod help;
pub(crate) mod ls;
pub(crate) mod plan;
pub(crate) mod restore;
pub(crate) mod rm;
pub(crate) mod run;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod setmeta;
pub(crate) mod sign;
pub(crate) mod sync;
pub(crate) mod verify;
