//! Mixed work under faults, looked after by a model that knows what has to be stored.
//!
//! The program and the library work side by side on one embedded store, each in both dialects and in a part of the bucket of its own, while
//! the store breaks, delays and falsifies what it answers, or while the network between them is cut and restored. What an operation that
//! succeeded has written is there, what it has read is what was there, and one that failed has left what was there or what it was to
//! write. Which faults come when is drawn from a seed, `LANEWAY_SOAK_SEED`; which request one meets depends on the machine.
//!
//! `make soak` works for `LANEWAY_SOAK_MINUTES` and then looks whether memory, descriptors and threads have grown; otherwise each client plays
//! each operation twice. `LANEWAY_OTHER` names the program of another version, which then works beside this one.

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

/// How long it goes on; `None` is two rounds of every operation.
fn minutes() -> Option<u64> {
    let minutes = std::env::var("LANEWAY_SOAK_MINUTES").ok()?;
    Some(minutes.parse().expect("LANEWAY_SOAK_MINUTES is a number"))
}

fn seed() -> u64 {
    std::env::var("LANEWAY_SOAK_SEED").map_or(1, |seed| seed.parse().expect("LANEWAY_SOAK_SEED is a number"))
}

/// Either protocol for either season.
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
    // Where one has ended before its time the others needn't go on.
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
        // What one has found wrong is what the test fails with.
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
        endpoint.server().wait_until(rest, |counters| counters.connections_open == 0),
        "connections stay open: {:?}",
        endpoint.server().counters()
    );
    println!("{samples}");
    if lasts.is_some() {
        samples.are_flat();
    }
}

/// The program and the library, each in both dialects; and the program of another version, where one is named.
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
