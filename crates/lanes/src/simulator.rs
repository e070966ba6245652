//! A simulator for tests: a network and servers in virtual time, and a driver that runs a dispatcher on them.
//!
//! A [`World`](world::World) holds a [`Dispatcher`](crate::dispatch::Dispatcher), feeds it events and carries out its actions. Its
//! [`Network`](network::Network) moves packets through bottlenecks with finite queues. The module `network` also defines the links, the
//! servers and a program's requests. The simulator doesn't use the dispatcher's rules, so a simulation can show that a rule is wrong. The
//! tests are in `scenarios`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub(crate) mod link;
pub(crate) mod network;
pub(crate) mod world;

pub(crate) use link::congestion::CongestionControl;
pub(crate) use network::{
    Bottleneck, Faults, IdleClose, RequestSpec, Server, ServerPath, Wire, nanos, on_wire,
};
pub(crate) use world::World;
