//! The bodies of requests and answers.

pub(crate) mod aws_chunked;
mod documents;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod request;
mod response;
mod under_way;

pub(crate) use documents::{Coming, Held};
pub(crate) use request::RequestBody;
pub(crate) use response::{ObjectStream, ResponseBody};
pub(crate) use under_way::UnderWay;
