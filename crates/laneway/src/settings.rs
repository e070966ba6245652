//! What a client is given at its start.

use std::env::var_os;
use std::path::PathBuf;
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
    /// The folder of this user's in which journals of large uploads are kept, so that one that was interrupted can be gone
    /// on with; it is made when it is needed. `None` keeps none: an upload that is interrupted is aborted where that is
    /// still possible. Journals hold what lets their reader write to an upload, so that only their owner can read them.
    pub upload_journals: Option<PathBuf>,
    /// What the times of [`Item`](crate::Item)s count from: the program's start.
    pub epoch: Instant,
}

impl Settings {
    /// The settings that the environment's variables hold, counting time from now. Large uploads have journals, below
    /// `XDG_STATE_HOME` or `~/.local/state`.
    pub fn from_env() -> Self {
        Self {
            store: laneway_store::Settings::from_env(),
            lanes: laneway_lanes::Config::from_env(),
            copy_sizes: CopySizes::default(),
            upload_journals: state_folder().map(|state| state.join("laneway/uploads")),
            epoch: Instant::now(),
        }
    }
}

/// Where programs keep what should outlive a run, by the XDG base directory specification
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>): relative paths don't count.
fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: laneway_store::Settings::default(),
            lanes: laneway_lanes::Config::default(),
            copy_sizes: CopySizes::default(),
            upload_journals: None,
            epoch: Instant::now(),
        }
    }
}
