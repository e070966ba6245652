//! The verbs. Each verb is a method of a store, and most verbs have a second method whose name ends in `_async`.

mod get;
mod get_ranges;
mod list;
mod objects;
mod open;
mod put;

pub(crate) use get::{BytesStream, GetResult};
pub(crate) use list::ListStream;
