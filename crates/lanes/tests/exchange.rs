//! Requests over real connections, against servers that follow a script.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exchange {
    mod addresses;
    mod client_certificates;
    mod h1;
    mod h2;
    mod hedging;
    mod outages;
    mod proxies;
    mod streaming;
    mod support;
}
