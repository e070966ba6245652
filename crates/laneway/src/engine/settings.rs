//! The settings of a client.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use laneway_store::{Capabilities, Dialect, Provider, capabilities_of};

use crate::engine::NetworkSettings;
use crate::plan::copies::CopySizes;

/// Settings of a client, as its builder collects them.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    /// The settings that concern stores: endpoints, credentials, encryption and added headers.
    pub(crate) store: laneway_store::Settings,
    pub(crate) network: NetworkSettings,
    pub(crate) user_agent: HeaderValue,
    pub(crate) retry_for: Duration,
    /// The retry time for a server that has never answered. Its default is shorter than that of other
    /// servers, because the server's name, port or proxy may be wrong.
    pub(crate) retry_unanswered_for: Duration,
    pub(crate) copy_sizes: CopySizes,
    pub(crate) upload_journals: Option<PathBuf>,
    /// The dialects that the caller added, each for one URL scheme.
    pub(crate) dialects: Vec<Arc<dyn Dialect>>,
    pub(crate) epoch: Instant,
}

impl ClientSettings {
    /// Returns what a provider's stores support, or `None` if this client has no dialect for the provider.
    pub(crate) fn capabilities(&self, provider: Provider) -> Option<&Capabilities> {
        let own = self.dialects.iter().find(|dialect| dialect.provider() == provider);
        own.map(|dialect| dialect.capabilities()).or_else(|| capabilities_of(provider))
    }

    /// Sets the retry time for all servers, including those that have never answered.
    pub(crate) fn set_retry_for(&mut self, time: Duration) {
        (self.retry_for, self.retry_unanswered_for) = (time, time);
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        let lanes = laneway_lanes::LanesConfig::default();
        Self {
            store: laneway_store::Settings::default(),
            network: NetworkSettings::default(),
            user_agent: lanes.user_agent,
            retry_for: lanes.retry_for,
            retry_unanswered_for: lanes.retry_unanswered_for,
            copy_sizes: CopySizes::default(),
            upload_journals: None,
            dialects: Vec::new(),
            epoch: Instant::now(),
        }
    }
}
