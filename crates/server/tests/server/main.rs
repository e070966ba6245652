//! The server's behaviour, from a plain client over real sockets.

#![allow(clippy::unwrap_used, reason = "a failing test may end anywhere")]

mod access_lists;
mod azure;
mod client;
mod cross_origin;
mod disk;
mod faults;
mod gcs_buckets;
mod gcs_clients;
mod gcs_folders;
mod gcs_json;
mod gcs_xml;
mod habits;
mod locks;
mod operations;
mod s3_multipart;
mod s3_objects;
mod s3_requests;
mod s3_signed;
mod transport;
mod versions;
