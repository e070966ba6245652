//! The settings of a client, the environment variables that change them, and the state that all jobs of the
//! client share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::HeaderValue;
use laneway_lanes::Lanes;
use laneway_quantity::parse_duration;
use laneway_store::{
    Capabilities, CustomerKey, Dialect, Environment, Listings, Provider, Requests, Store, capabilities_of,
};

use crate::engine::files::FileThreads;
use crate::engine::{EngineThreads, NetworkSettings};
use crate::plan::parts::CopySizes;
use crate::{Engine, Error};

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

pub(crate) const RETRY_FOR: &str = "LANEWAY_RETRY_FOR";
pub(crate) const CUSTOMER_KEY: &str = "LANEWAY_CUSTOMER_KEY";
pub(crate) const SOURCE_CUSTOMER_KEY: &str = "LANEWAY_SOURCE_CUSTOMER_KEY";

/// A `LANEWAY_` variable whose value can't be parsed. It is an error unless the program overrides the
/// variable with a setting. The `aws` program, too, ignores a bad variable that an option overrides
/// (<https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-envvars.html>).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadVariable {
    pub(crate) name: &'static str,
    why: String,
}

impl From<BadVariable> for Error {
    fn from(unreadable: BadVariable) -> Self {
        Self::usage(unreadable.name, unreadable.why)
    }
}

/// Returns the settings in these variables, and the variables whose values can't be parsed.
pub(crate) fn settings(environment: Environment) -> (ClientSettings, Vec<BadVariable>) {
    let (mut settings, mut unreadable) = (ClientSettings::default(), Vec::new());
    let variable = |name: &str| environment.get(name);
    let proxies = laneway_lanes::LanesConfig::from_variables(variable);
    settings.network = NetworkSettings {
        ca_files: variable("AWS_CA_BUNDLE").map(PathBuf::from).into_iter().collect(),
        https_proxy: proxies.https_proxy,
        http_proxy: proxies.http_proxy,
        no_proxy: proxies.no_proxy,
        ..settings.network
    };
    if let Some(text) = variable(RETRY_FOR) {
        match parse_duration(text.trim()) {
            Ok(time) => settings.set_retry_for(time),
            // Leave the value out of the message, as the messages about other variables do.
            Err(_) => {
                let why = "is not a time; write a number with ms, s, m or h, such as 90s, or 0".to_owned();
                unreadable.push(BadVariable { name: RETRY_FOR, why });
            }
        }
    }
    let mut key = |name| {
        CustomerKey::parse(variable(name)?.as_bytes())
            .map_err(|e| unreadable.push(BadVariable { name, why: e.to_string() }))
            .ok()
    };
    let (customer_key, source_customer_key) = (key(CUSTOMER_KEY), key(SOURCE_CUSTOMER_KEY));
    settings.upload_journals = state_folder(&environment).map(|state| state.join("laneway/uploads"));
    settings.store = laneway_store::Settings::from_environment(environment);
    settings.store.encryption.customer_key = customer_key;
    settings.store.encryption.source_customer_key = source_customer_key;
    (settings, unreadable)
}

/// Returns the folder for state that outlives a run, by the XDG base directory specification
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>). Relative paths are ignored.
fn state_folder(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::{ClientBuilder, ErrorKind};

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn of<const N: usize>(variables: [(&str, &str); N]) -> ClientSettings {
        let (settings, unreadable) = settings(Environment::of(variables));
        assert_eq!(unreadable, []);
        settings
    }

    #[test]
    fn every_variable_sets_what_it_names() {
        let settings = of([
            ("AWS_CA_BUNDLE", "/ca.pem"),
            ("HTTPS_PROXY", "http://p:1"),
            ("http_proxy", "http://q:2"),
            ("NO_PROXY", "A.example, 10.0.0.0/8,"),
            ("STORAGE_EMULATOR_HOST", "localhost:4443"),
            ("GCLOUD_PROJECT", "project"),
            (RETRY_FOR, "1.5m"),
            (CUSTOMER_KEY, KEY),
            ("XDG_STATE_HOME", "/state"),
            ("HOME", "/home/u"),
        ]);
        let NetworkSettings { ca_files, https_proxy, http_proxy, no_proxy, .. } = settings.network;
        assert_eq!(ca_files, [Path::new("/ca.pem")]);
        assert_eq!((https_proxy.as_deref(), http_proxy.as_deref()), (Some("http://p:1"), Some("http://q:2")));
        assert_eq!(no_proxy, ["a.example", "10.0.0.0/8"]);
        assert_eq!(settings.store.gcs_endpoint.as_deref(), Some("localhost:4443"));
        assert_eq!(settings.store.project.as_deref(), Some("project"));
        assert_eq!((settings.retry_for, settings.retry_unanswered_for), [Duration::from_secs(90); 2].into());
        assert_eq!(settings.store.encryption.customer_key, CustomerKey::parse(KEY.as_bytes()).ok());
        assert_eq!(settings.store.encryption.source_customer_key, None);
        assert_eq!(settings.upload_journals.as_deref(), Some(Path::new("/state/laneway/uploads")));
    }

    #[test]
    fn what_is_unset_or_empty_leaves_the_defaults() {
        let usual = ClientSettings::default();
        for settings in [of([]), of([(RETRY_FOR, ""), (CUSTOMER_KEY, ""), ("AWS_CA_BUNDLE", "")])] {
            assert_eq!((settings.retry_for, settings.network), (usual.retry_for, usual.network.clone()));
            assert_eq!((settings.store.gcs_endpoint, settings.upload_journals), (None, None));
            assert_eq!(settings.store.encryption.customer_key, None);
        }
    }

    #[test]
    fn journals_lie_below_the_users_folder_where_nothing_else_is_said() {
        let at = |variables: [(&str, &str); 2]| of(variables).upload_journals;
        let below = Some(Path::new("/home/u/.local/state/laneway/uploads"));
        assert_eq!(at([("HOME", "/home/u"), ("XDG_STATE_HOME", "")]).as_deref(), below);
        assert_eq!(at([("HOME", "/home/u"), ("XDG_STATE_HOME", "relative")]).as_deref(), below);
    }

    #[test]
    fn what_can_t_be_read_is_named_and_its_value_is_not_repeated() {
        for (name, value) in
            [(RETRY_FOR, "soon"), (CUSTOMER_KEY, "hunter2"), (SOURCE_CUSTOMER_KEY, "hunter2")]
        {
            let error = ClientBuilder::from_variables([(name, value)]).build().unwrap_err();
            assert_eq!((error.kind(), error.url()), (ErrorKind::Usage, Some(name)));
            assert!(!error.to_string().contains(value), "{error}");
        }
    }

    #[test]
    fn what_is_set_goes_before_a_variable_that_cannot_be_read() {
        let all = [(RETRY_FOR, "soon"), (CUSTOMER_KEY, "hunter2"), (SOURCE_CUSTOMER_KEY, "hunter2")];
        let unreadable =
            |builder: ClientBuilder| builder.build().err().and_then(|e| Some(e.url()?.to_owned()));
        let builder = ClientBuilder::from_variables(all).retry_for(Duration::ZERO);
        assert_eq!(unreadable(builder.clone()).as_deref(), Some(CUSTOMER_KEY));
        let builder = builder.customer_key(None);
        assert_eq!(unreadable(builder.clone()).as_deref(), Some(SOURCE_CUSTOMER_KEY));
        let builder = builder.engine(crate::Engine::builder().build());
        builder.source_customer_key(CustomerKey::parse(KEY.as_bytes()).ok()).build().unwrap();
    }
}
