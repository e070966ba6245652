//! Sizes, rates and durations as people write them on a command line ([`parse_size`] and its kind) and as they are shown
//! them ([`size()`] and its kind). It stands on no other crate of the workspace and knows neither arguments nor terminals.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that can't go on has failed"))]

mod parse;
mod show;

pub use parse::{LOSS_MAX, Unreadable, parse_duration, parse_loss, parse_rate, parse_size};
pub use show::{count, duration, grouped, link_rate, rate, readable_size, short, size};
