//! The operations through object_store 0.13.

use laneway_object_store::v0_13::LanewayStore;
use object_store_0_13 as object_store;

#[path = "operations.rs"]
mod operations;

pub(crate) use operations::carry_out;
