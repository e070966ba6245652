//! Finds credentials where the vendors' own tools look for them, and caches them until they expire.

mod aws;
mod azure;
mod cache;
mod caller_provider;
#[cfg(test)]
mod cases;
mod command;
mod deadline;
mod failure;
mod google;
mod presence;
mod request;
pub(crate) mod sigv4;

pub(crate) use aws::{AwsCredentials, Key};
pub(crate) use azure::hosts as azure_hosts;
pub(crate) use azure::shared_key::{RequestToSign, signature as sas_signature};
pub(crate) use azure::{AzureAccount, AzureCredentials, SasSigner, stamp};
pub(crate) use cache::new_number;
pub use deadline::SLOW_CREDENTIALS;
pub(crate) use deadline::within;
pub(crate) use google::{GoogleCredentials, endpoint as google_endpoint};
