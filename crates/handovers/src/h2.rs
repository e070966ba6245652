//! Requests that share a connection.

#[path = "../../lanes/src/h2/first_flights.rs"]
pub(crate) mod first_flights;
