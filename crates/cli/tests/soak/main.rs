//! Mixed work under faults, checked against a model of the store's content.
//!
//! The program and the library work side by side on one embedded store, in both dialects. Each client has its own part of the bucket.
//! Meanwhile the store breaks, delays and corrupts its answers, or the network is cut and restored. A successful write must be stored, and
//! a successful read must return the stored bytes. A failed operation may leave the old content or the new. The seed `LANEWAY_SOAK_SEED`
//! decides the sequence of faults. The machine's timing decides which request meets which fault.
//!
//! `make soak` runs for `LANEWAY_SOAK_MINUTES`, and then checks that memory, descriptors and threads have not grown. Without this variable,
//! each client performs each operation twice. `LANEWAY_OTHER` names the program of another version to run beside this one.

mod actor;
mod clients;
mod day;
mod model;
mod network;
mod weather;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use actor::{Actor, ActorOutcome};
use clients::{Client, Library, Programs};
use laneway::Provider;
use laneway_testkit::{Endpoint, Wire};
use network::Network;
use network::Samples;
use weather::{Season, Weather};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// Returns the duration of the run, or `None` for two rounds of every operation.
fn minutes() -> Option<u64> {
    let minutes = std::env::var("LANEWAY_SOAK_MINUTES").ok()?;
    Some(minutes.parse().expect("LANEWAY_SOAK_MINUTES is a number"))
}

fn seed() -> u64 {
    std::env::var("LANEWAY_SOAK_SEED").map_or(1, |seed| seed.parse().expect("LANEWAY_SOAK_SEED is a number"))
}

/// Returns the protocols of the two soaks: under faults, and under network cuts.
fn wires() -> [Wire; 2] {
    if seed().is_multiple_of(2) { [Wire::Plain, Wire::TlsH2] } else { [Wire::TlsH2, Wire::Plain] }
}

#[test]
fn whatever_the_store_does_what_was_acknowledged_is_stored() {
    soak(wires()[0], Season::Faults);
}

#[test]
fn however_often_the_network_is_cut_what_was_acknowledged_is_stored() {
    soak(wires()[1], Season::Cuts);
}

fn soak(wire: Wire, season: Season) {
    let lasts = minutes().map(|minutes| Duration::from_secs(60 * minutes));
    let endpoint = Endpoint::start(wire);
    let network = Network::before(endpoint.server().addr());
    let url =
        endpoint.url().replace(&endpoint.server().addr().port().to_string(), &network.port().to_string());
    let clients = clients(&endpoint, &url);
    let weather = Weather::new(season, lasts.is_some(), seed());
    // If one actor ends early, the others stop too.
    let over = AtomicBool::new(false);
    let (samples, ended) = std::thread::scope(|scope| {
        let over = &over;
        let actors = clients.into_iter().zip(0..).map(|(client, number)| {
            let actor = Actor::new(client, number, seed(), &endpoint, weather.log());
            scope.spawn(move || match lasts {
                None => actor.work(|rounds| rounds < 2),
                Some(lasts) => {
                    let until = Instant::now() + lasts;
                    actor.work(|_| Instant::now() < until && !over.load(Relaxed))
                }
            })
        });
        let actors: Vec<_> = actors.collect();
        let mut samples = Samples::default();
        weather.pass(endpoint.server(), &network, || {
            samples.take();
            over.fetch_or(actors.iter().any(|actor| actor.is_finished()), Relaxed);
            actors.iter().all(|actor| actor.is_finished())
        });
        // The test fails with the first actor's panic.
        let ended: Vec<ActorOutcome> = actors
            .into_iter()
            .map(|actor| actor.join().unwrap_or_else(|found| std::panic::resume_unwind(found)))
            .collect();
        (samples, ended)
    });
    for actor in &ended {
        println!("{actor}");
        actor.check(endpoint.server().store());
    }
    drop(network);
    let rest = Duration::from_secs(120);
    assert!(
        endpoint.server().wait_until_idle(rest),
        "connections stay open: {:?}",
        endpoint.server().counters()
    );
    println!("{samples}");
    if lasts.is_some() {
        samples.are_flat();
    }
}

/// Returns the program and the library in both dialects, and another version of the program if one is named.
fn clients(endpoint: &Endpoint, url: &str) -> Vec<Box<dyn Client>> {
    let engine = Library::engine();
    let other = std::env::var("LANEWAY_OTHER").ok();
    let binaries = [Some(LANEWAY.to_owned()), other];
    let mut clients = Vec::<Box<dyn Client>>::new();
    for provider in [Provider::Gcs, Provider::S3] {
        for binary in binaries.iter().flatten() {
            clients.push(Box::new(Programs::new(endpoint, url, binary, provider)));
        }
        clients.push(Box::new(Library::new(endpoint, url, &engine, provider)));
    }
    clients
}
