//! The verbs, one file each. Each verb is a method of a store, and most verbs have a second method whose name ends in
//! `_async`.

mod copy;
mod delete;
mod get;
mod get_range;
mod get_ranges;
mod head;
mod list;
mod list_with_delimiter;
mod open_reader;
mod open_writer;
mod put;
mod rename;
mod sign;

pub(crate) use get::{BytesStream, GetResult};
pub(crate) use list::ListStream;
