//! The state that all jobs of a client share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use laneway_lanes::Lanes;
use laneway_store::{Dialect, Listings, Provider, Requests, Store};

use crate::engine::EngineThreads;
use crate::engine::files::FileThreads;
use crate::engine::settings::ClientSettings;
use crate::plan::parts::CopySizes;
use crate::{Engine, Error};

/// A client's state: the running engine, the client's settings, and a store for each provider.
#[derive(Debug)]
pub(crate) struct ClientState {
    pub(crate) lanes: Lanes,
    pub(crate) files: FileThreads,
    /// The number of threads that the machine can run at the same time.
    pub(crate) cores: usize,
    pub(crate) copy_sizes: CopySizes,
    pub(crate) upload_journals: Option<PathBuf>,
    pub(crate) machinery: Arc<EngineThreads>,
    /// A slot for each known cloud and for each dialect that the caller added.
    stores: Vec<(Provider, StoreSlot)>,
    settings: laneway_store::Settings,
    epoch: Instant,
}

/// A provider's store, which is made at its first use.
#[derive(Debug, Default)]
struct StoreSlot {
    store: OnceLock<Store>,
    has_uploaded: AtomicBool,
}

impl ClientState {
    /// Starts the engine, unless it already runs. Opens no connection, and makes no store of a cloud.
    ///
    /// # Errors
    /// If a CA file can't be read, a proxy isn't a URL, or threads can't be started.
    pub(crate) fn start(engine: &Engine, settings: &ClientSettings) -> Result<Self, Error> {
        let ClientSettings {
            store,
            network,
            user_agent,
            retry_for,
            retry_unanswered_for,
            copy_sizes,
            upload_journals,
            dialects,
            epoch,
        } = settings.clone();
        let mut network = network;
        network.ca_files.extend(store.profile_ca_bundle());
        let machinery = engine.running()?;
        Ok(Self {
            lanes: machinery.lanes(&network.heard_within(retry_for))?.for_caller(
                user_agent,
                retry_for,
                retry_unanswered_for,
            ),
            files: machinery.files.clone(),
            cores: machinery.cores,
            copy_sizes,
            upload_journals,
            machinery,
            stores: Vec::new(),
            settings: store,
            epoch,
        }
        .with_stores(dialects))
    }

    pub(crate) fn requests(&self, provider: Provider) -> Requests {
        self.slot(provider).and_then(|slot| slot.store.get()).map_or_else(Requests::default, Store::requests)
    }

    pub(crate) fn listings(&self, provider: Provider) -> Listings {
        self.slot(provider).and_then(|slot| slot.store.get()).map_or_else(Listings::default, Store::listings)
    }

    /// Returns true at the first call for a provider, and false later. Each large upload calls this when it
    /// begins, and the first one also aborts abandoned uploads.
    pub(crate) fn is_first_upload(&self, provider: Provider) -> bool {
        self.slot(provider).is_some_and(|slot| !slot.has_uploaded.swap(true, Ordering::Relaxed))
    }

    fn with_stores(mut self, dialects: Vec<Arc<dyn Dialect>>) -> Self {
        self.stores.extend(Provider::CLOUDS.map(|provider| (provider, StoreSlot::default())));
        for dialect in dialects {
            let (provider, slot) = (dialect.provider(), StoreSlot::default());
            let _ = slot.store.set(Store::of(dialect, self.lanes.clone()));
            self.stores.retain(|(other, _)| *other != provider);
            self.stores.push((provider, slot));
        }
        self
    }

    fn slot(&self, provider: Provider) -> Option<&StoreSlot> {
        self.stores.iter().find(|(other, _)| *other == provider).map(|(_, slot)| slot)
    }

    /// Returns the providers whose URLs this client accepts.
    pub(crate) fn providers(&self) -> impl Iterator<Item = Provider> {
        self.stores.iter().map(|(provider, _)| *provider)
    }

    /// Returns a provider's store. Makes it at its first use.
    ///
    /// # Errors
    /// If an endpoint isn't a URL, or this client has no dialect for the scheme.
    pub(crate) fn store(&self, provider: Provider) -> Result<&Store, Error> {
        let Some(StoreSlot { store: slot, .. }) = self.slot(provider) else {
            return Err(no_dialect(provider));
        };
        if let Some(store) = slot.get() {
            return Ok(store);
        }
        let store = Store::new(provider, &self.settings, self.lanes.clone())?;
        Ok(slot.get_or_init(|| store))
    }

    /// Returns the time since [`ClientBuilder::epoch`](crate::ClientBuilder::epoch).
    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

/// Returns the error for a URL whose scheme needs a dialect that this client doesn't have. Another client may
/// have the dialect.
pub(crate) fn no_dialect(provider: Provider) -> Error {
    let why = "this client has no dialect for such URLs: ClientBuilder::dialect adds one";
    Error::usage(format!("{}://", provider.scheme()), why)
}
