//! What all jobs of a client stand on.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use laneway_lanes::Lanes;
use laneway_store::{Provider, Requests, Store};

use crate::files::Files;
use crate::{CopySizes, Error, Settings};

/// The engine, the stores and the file threads of a client.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) lanes: Lanes,
    pub(crate) files: Files,
    /// Threads that the machine runs at once.
    pub(crate) cores: usize,
    pub(crate) copy_sizes: CopySizes,
    pub(crate) upload_journals: Option<PathBuf>,
    stores: [Slot; 2],
    settings: laneway_store::Settings,
    epoch: Instant,
}

/// A provider's store, once it is asked for.
#[derive(Debug, Default)]
struct Slot {
    store: OnceLock<Store>,
    has_uploaded: AtomicBool,
}

impl Engine {
    /// Starts the engine. Nothing is dialled yet, and no store looked up.
    ///
    /// # Errors
    /// What [`Lanes::start`] says.
    pub(crate) fn start(mut settings: Settings) -> Result<Self, Error> {
        settings.lanes.trust.extra_ca_files.extend(settings.store.profile_ca_bundle());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            lanes: Lanes::start(settings.lanes)?,
            files: Files::new(Files::threads_for(cores)),
            cores,
            copy_sizes: settings.copy_sizes,
            upload_journals: settings.upload_journals,
            stores: Default::default(),
            settings: settings.store,
            epoch: settings.epoch,
        })
    }

    /// What has been asked of a provider.
    pub(crate) fn requests(&self, provider: Provider) -> Requests {
        self.slot(provider).store.get().map_or_else(Requests::default, Store::requests)
    }

    /// Whether this is the first time that it is asked of a provider, before a large upload.
    pub(crate) fn is_first_upload(&self, provider: Provider) -> bool {
        !self.slot(provider).has_uploaded.swap(true, Ordering::Relaxed)
    }

    fn slot(&self, provider: Provider) -> &Slot {
        match provider {
            Provider::Gcs => &self.stores[0],
            Provider::S3 => &self.stores[1],
        }
    }

    /// The store of a provider, made at its first use.
    ///
    /// # Errors
    /// For an endpoint that is no URL.
    pub(crate) fn store(&self, provider: Provider) -> Result<&Store, Error> {
        let slot = &self.slot(provider).store;
        if let Some(store) = slot.get() {
            return Ok(store);
        }
        let store = Store::new(provider, &self.settings, self.lanes.clone())?;
        Ok(slot.get_or_init(|| store))
    }

    /// Time since the epoch of the settings.
    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.files.close();
    }
}
