//! Who we are to the stores: found by the chains that people already have, kept while they last.

mod aws;
mod cache;
mod context;
mod deadline;
mod google;
mod sigv4;
mod source;

pub(crate) use aws::Aws;
pub(crate) use google::Google;
