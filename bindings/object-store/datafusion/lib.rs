//! Nothing but tests and a benchmark: see `tests` and `benches`.
