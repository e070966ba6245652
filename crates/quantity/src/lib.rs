//! Parses sizes, rates and durations from texts of a command line ([`parse_size`] and others), and formats them
//! ([`size()`] and others). This crate depends on no other crate of the workspace. It doesn't read arguments or write
//! to a terminal.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that can't go on has failed"))]

mod parse;
mod show;

pub use parse::{InvalidQuantity, LOSS_MAX, parse_duration, parse_loss, parse_rate, parse_size};
pub use show::{count, duration, grouped, link_rate, rate, readable_size, short, size};
