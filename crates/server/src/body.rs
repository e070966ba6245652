//! The bodies of requests and answers.

pub(crate) mod aws_chunked;
mod request;
mod response;
mod under_way;

pub(crate) use request::RequestBody;
pub(crate) use response::{ObjectStream, ResponseBody};
pub(crate) use under_way::UnderWay;
