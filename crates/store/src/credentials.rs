//! Finds credentials where the vendors' own tools look for them, and caches them until they expire.

mod ask;
mod aws;
mod cache;
#[cfg(test)]
mod cases;
mod command;
mod deadline;
pub(crate) mod goog4;
mod google;
mod lacking;
mod presence;
mod provided;
mod sigv4;

pub(crate) use aws::{Aws, Key};
pub(crate) use cache::new_number;
pub use deadline::SLOW_CREDENTIALS;
pub(crate) use google::{Google, endpoint as google_endpoint};
