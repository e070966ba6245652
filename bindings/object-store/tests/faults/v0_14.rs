//! The operations through object_store 0.14.

use laneway_object_store::v0_14::LanewayStore;
use object_store_0_14 as object_store;

#[path = "operations.rs"]
mod operations;

pub(crate) use operations::carry_out;
