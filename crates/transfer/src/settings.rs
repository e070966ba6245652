//! What a client is told at its start.

use std::time::Instant;

use crate::CopySizes;

/// Settings of a [`Client`](crate::Client). None of them has to be set for speed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Endpoints, credentials, headers.
    pub store: laneway_store::Settings,
    /// Certificates, proxies, caps.
    pub lanes: laneway_lanes::Config,
    /// Which copies inside a store go part by part.
    pub copy_sizes: CopySizes,
    /// What the times of [`Item`](crate::Item)s count from: the program's start.
    pub epoch: Instant,
}

impl Settings {
    /// The settings that the environment's variables hold, counting time from now.
    pub fn from_env() -> Self {
        Self {
            store: laneway_store::Settings::from_env(),
            lanes: laneway_lanes::Config::from_env(),
            copy_sizes: CopySizes::default(),
            epoch: Instant::now(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: laneway_store::Settings::default(),
            lanes: laneway_lanes::Config::default(),
            copy_sizes: CopySizes::default(),
            epoch: Instant::now(),
        }
    }
}
