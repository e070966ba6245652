//! The bodies of requests and answers.

pub(crate) mod aws_chunked;
mod documents;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod request;
mod response;
mod running_request;

pub(crate) use documents::{DocumentBytes, IncomingDocument};
pub(crate) use request::RequestBody;
pub(crate) use response::{ObjectStream, ResponseBody};
pub(crate) use running_request::RunningRequest;
