//! This crate has only tests and a benchmark: see `tests` and `benches`.
