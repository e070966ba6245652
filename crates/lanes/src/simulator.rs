//! A network and servers in virtual time, and a driver that lets a dispatcher loose on them: for tests.
//!
//! A [`World`](world::World) holds a [`Dispatcher`](crate::dispatch::Dispatcher), feeds it events and carries out its actions, on a
//! [`Network`](network::Network) that moves packets through bottlenecks with finite queues. `network` also holds the links, the servers
//! and a program's requests. Nothing here knows a rule of the dispatcher's, so that it can contradict them. What it is asked stands in
//! `scenarios`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub(crate) mod link;
pub(crate) mod network;
pub(crate) mod world;

pub(crate) use link::congestion::CongestionControl;
pub(crate) use network::{
    Bottleneck, Faults, IdleClose, RequestSpec, Server, ServerPath, Wire, nanos, on_wire,
};
pub(crate) use world::World;
