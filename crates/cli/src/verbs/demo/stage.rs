//! The demo's store, and the copies that are made to it and from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use laneway::{
    Canceller, Client, CopyRequest, Engine, Event, Location, Outcome, Provider, Summary, Verified,
};
use laneway_experiments::ladder::{self, Usual};
use laneway_experiments::{Imitated, Remote, Tally};
use laneway_quantity::link_rate;
use laneway_server::{Config, GcsConfig, Server, Storage, Tls};

const BUCKET: &str = "demo";

/// A running store and how to reach it.
pub(super) struct Stage {
    server: Server,
    ca_file: PathBuf,
    stop: Stop,
}

/// What a copy took, from setting up its client to its end.
#[derive(Clone, Default, Debug)]
pub(super) struct Took {
    pub(super) time: Duration,
    pub(super) bytes: u64,
    pub(super) requests: u64,
    pub(super) connections: u64,
    /// Whether every object's CRC32C was compared.
    pub(super) verified: bool,
}

/// Ctrl-C has been pressed: the steps end, and everything is cleaned up.
#[derive(Debug)]
pub(super) struct Stopped;

/// Tells running and future steps to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    pressed: Arc<AtomicBool>,
    running: Arc<Mutex<Option<Canceller>>>,
    usual: laneway_experiments::Stop,
}

impl Stage {
    /// Starts a store with TLS, HTTP/2 and a delay, keeping its objects below `folder`.
    ///
    /// # Errors
    /// When the store can't be started.
    pub(super) fn set(folder: &Path, stop: Stop) -> anyhow::Result<Self> {
        let server = Server::start(Config {
            storage: Storage::Disk(folder.join("store")),
            tls: Some(Tls::Generated),
            rtt: Imitated::USUAL.rtt,
            bandwidth: Imitated::USUAL.bandwidth,
            // The time is to be the transfers', not that of the store's MD5s.
            gcs: GcsConfig { md5: false, ..GcsConfig::default() },
            ..Config::default()
        })?;
        server.create_bucket(BUCKET)?;
        let ca_file = folder.join("ca.pem");
        fs::write(&ca_file, server.ca_pem().unwrap_or_default())?;
        Ok(Self { server, ca_file, stop })
    }

    /// One sentence on what this is.
    pub(super) fn description(&self) -> String {
        format!(
            "A store in this process: {}, TLS, HTTP/2, at the end of an imitated link of {} ms{}.\n\
             No account, no network.",
            self.server.url(),
            Imitated::USUAL.rtt.as_millis(),
            Imitated::USUAL.bandwidth.map(|rate| format!(" and {}", link_rate(rate))).unwrap_or_default(),
        )
    }

    /// A place in the store.
    pub(super) fn at(&self, key: &str) -> Location {
        Location::object(Provider::Gcs, BUCKET, key)
    }

    /// Copies as `laneway cp -r` does, with a client that begins with nothing, as a process of its own would.
    ///
    /// # Errors
    /// The first failure, or [`Stopped`].
    pub(super) fn copy(&self, sources: Vec<Location>, destination: Location) -> anyhow::Result<Took> {
        let started = Instant::now();
        // Each copy begins without connections.
        let client = Client::builder()
            .engine(Engine::builder().build())
            .epoch(started)
            .anonymous(true)
            .gcs_endpoint(self.server.url())
            .ca_file(&self.ca_file)
            .build()?;
        let mut job = client.copy(CopyRequest::new(sources, destination).recursive(true));
        self.stop.watch(job.canceller());

        let mut failure = None;
        let mut verified = true;
        while let Some(event) = job.next_blocking() {
            match event {
                Event::Item(item) => match item.outcome {
                    Outcome::Failed(error) => failure = failure.or(Some(error)),
                    Outcome::Done { verified: Verified::Unverified } => verified = false,
                    _ => {}
                },
                Event::Done(summary) => {
                    self.check()?;
                    if let Some(error) = failure {
                        return Err(error.into());
                    }
                    let Summary { bytes, requests, connections, .. } = summary;
                    return Ok(Took { time: started.elapsed(), bytes, requests, connections, verified });
                }
                _ => {}
            }
        }
        bail!("the copy ended without saying how")
    }

    /// Uploads the files of a folder in a way that has no engine.
    ///
    /// # Errors
    /// The first failure, or [`Stopped`].
    pub(super) fn upload_as_usual(&self, way: Usual, folder: &Path, prefix: &str) -> anyhow::Result<Took> {
        let remote = Remote {
            bucket: Some(BUCKET.to_owned()),
            anonymous: true,
            ca_files: vec![self.ca_file.clone()],
            ..Remote::gcs(self.server.url())
        };
        let uploaded = ladder::upload(way, folder, (&remote, prefix), &self.stop.usual);
        self.check()?;
        let (time, tally) = uploaded?;
        let Tally { requests, connections } = tally;
        let sizes = fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len()));
        let bytes = sizes.sum::<std::io::Result<u64>>()?;
        // What it uploads is compared when it has come back.
        Ok(Took { time, bytes, requests, connections, verified: true })
    }

    /// Ends the program's part if Ctrl-C has been pressed.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(super) fn check(&self) -> Result<(), Stopped> {
        if self.stop.pressed() { Err(Stopped) } else { Ok(()) }
    }
}

impl Stop {
    /// Ends the step that is running and keeps others from beginning.
    pub(super) fn press(&self) {
        self.pressed.store(true, Ordering::SeqCst);
        self.usual.stop();
        if let Some(running) = &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            running.cancel();
        }
    }

    /// Whether [`press`](Self::press) has been called.
    pub(super) fn pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }

    fn watch(&self, canceller: Canceller) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Pressed while this was about to begin.
        if self.pressed() {
            canceller.cancel();
        }
        *running = Some(canceller);
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Stopped {}
