//! The order of requests on a new HTTP/2 connection.

#[path = "../../lanes/src/h2/first_flights.rs"]
pub(crate) mod first_flights;
