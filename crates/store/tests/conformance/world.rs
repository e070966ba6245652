//! The place where a behaviour runs: a store, a bucket, and a prefix of its own.

use std::env;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use laneway::dialect::InMemory;
use laneway_lanes::{Lanes, LanesConfig, Trust};
use laneway_server::Habits;
use laneway_store::{
    AccessKey, Body, Checksums, Deletion, Environment, Error, Get, Got, ObjectId, ObjectMeta, Provider,
    PutOptions, Settings, Store,
};
use laneway_testkit::{Endpoint, Wire};

use crate::capabilities::{self, Capability};

/// A server, and the protocol to reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Our own server, in this process.
    Embedded(Provider, Wire),
    /// Our own server, with the habits of a service.
    Like(&'static str, Provider, Wire),
    /// The server that the environment names.
    External(Provider),
    /// A dialect from outside the crate.
    Memory,
}

/// The argument of a behaviour.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) place: Place,
}

/// Runs a behaviour if the server has the capability that it needs.
pub(crate) fn run<F>(place: Place, name: &str, needs: &[Capability], behaviour: impl FnOnce(World) -> F)
where
    F: Future<Output = ()>,
{
    let (server, provider) = match place {
        Place::Embedded(provider, _) => ("embedded".to_owned(), provider),
        Place::Like(name, provider, _) => (format!("like {name}"), provider),
        Place::External(provider) => (external_name(provider), provider),
        Place::Memory => ("memory".to_owned(), Provider::other(SCHEME).expect("a scheme")),
    };
    if let Some(lacking) = needs.iter().find(|need| !capabilities::has(&server, provider, **need)) {
        println!("{server} lacks {lacking:?}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let world = World { prefix: format!("{name}/"), ..shared(place) };
    runtime.block_on(async {
        if let Place::External(_) = place {
            world.clear().await;
        }
        behaviour(world).await;
    });
}

/// Returns the world of a place. All its tests share one server and its lanes, as the requests of a program do.
fn shared(place: Place) -> World {
    type Worlds = Mutex<Vec<(World, Option<Arc<Endpoint>>)>>;
    static WORLDS: Worlds = Mutex::new(Vec::new());
    let mut worlds = WORLDS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((world, _)) = worlds.iter().find(|(world, _)| world.place == place) {
        return world.clone();
    }
    let (world, endpoint) = match place {
        Place::Embedded(provider, wire) => {
            let endpoint = Endpoint::start(wire);
            (embedded(&endpoint, provider, place), Some(Arc::new(endpoint)))
        }
        Place::Like(name, provider, wire) => {
            let habits = Habits::named(name).expect("a service with known habits");
            let endpoint =
                Endpoint::start_with(wire, laneway_server::Config { habits, ..Default::default() });
            (embedded(&endpoint, provider, place), Some(Arc::new(endpoint)))
        }
        Place::External(provider) => (external(provider, place), None),
        Place::Memory => (in_memory(place), None),
    };
    worlds.push((world.clone(), endpoint));
    world
}

/// The scheme of the in-memory store.
const SCHEME: &str = "mem";

fn in_memory(place: Place) -> World {
    let memory = InMemory::new(SCHEME).expect("a scheme").bucket(Endpoint::BUCKET);
    let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
    let store = Store::of(Arc::new(memory), lanes);
    World { store, bucket: Endpoint::BUCKET.to_owned(), prefix: String::new(), place }
}

fn embedded(endpoint: &Endpoint, provider: Provider, place: Place) -> World {
    World {
        store: store_of(endpoint, provider),
        bucket: Endpoint::BUCKET.to_owned(),
        prefix: String::new(),
        place,
    }
}

/// Returns a store for an embedded server, with its own lanes.
pub(crate) fn store_of(endpoint: &Endpoint, provider: Provider) -> Store {
    let (keys, azure) = (laneway_server::S3Config::default(), laneway_server::AzureConfig::default());
    let settings = Settings {
        gcs_endpoint: Some(endpoint.url()),
        s3_endpoint: Some(endpoint.url()),
        access_key: Some(AccessKey::new(keys.access_key, keys.secret_key)),
        region: Some(keys.region),
        project: Some("project".to_owned()),
        azure_endpoint: Some(format!("{}/{}", endpoint.url(), azure.account)),
        environment: Environment::of([("AZURE_STORAGE_KEY", azure.key)]),
        ..Settings::default()
    };
    let ca: Vec<PathBuf> = endpoint.ca_file().map(PathBuf::from).into_iter().collect();
    let lanes = Lanes::start(LanesConfig { trust: Trust { extra_ca_files: ca }, ..LanesConfig::default() })
        .expect("lanes");
    Store::new(provider, &settings, lanes).expect("a store")
}

fn variable(provider: Provider, suffix: &str) -> Option<String> {
    let name = match provider {
        Provider::Gcs => "LANEWAY_CONFORMANCE_GCS",
        Provider::Azure => "LANEWAY_CONFORMANCE_AZURE",
        _ => "LANEWAY_CONFORMANCE_S3",
    };
    env::var(format!("{name}{suffix}")).ok().filter(|value| !value.is_empty())
}

fn external_name(provider: Provider) -> String {
    let usual = match provider {
        Provider::Gcs => "fake-gcs-server",
        Provider::Azure => "azurite",
        _ => "minio",
    };
    variable(provider, "_SERVER").unwrap_or_else(|| usual.to_owned())
}

fn external(provider: Provider, place: Place) -> World {
    let url = variable(provider, "").expect("LANEWAY_CONFORMANCE_GCS, _S3 or _AZURE names an endpoint");
    let mut settings = Settings { project: Some("project".to_owned()), ..Settings::from_env() };
    match provider {
        Provider::Gcs => settings.gcs_endpoint = Some(url),
        Provider::Azure => settings.azure_endpoint = Some(url),
        _ => settings.s3_endpoint = Some(url),
    }
    let store = Store::new(provider, &settings, Lanes::start(LanesConfig::from_env()).expect("lanes"))
        .expect("a store");
    let bucket = env::var("LANEWAY_CONFORMANCE_BUCKET").unwrap_or_else(|_| "conformance".to_owned());
    World { store, bucket, prefix: String::new(), place }
}

impl World {
    /// Returns the id of a key under the behaviour's own prefix.
    pub(crate) fn id(&self, key: &str) -> ObjectId {
        ObjectId::new(&self.bucket, format!("{}{key}", self.prefix))
    }

    /// Writes an object with its correct checksum.
    pub(crate) async fn put(&self, key: &str, bytes: &[u8]) -> ObjectMeta {
        self.try_put(key, bytes, &PutOptions::default()).await.unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) async fn try_put(
        &self,
        key: &str,
        bytes: &[u8],
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let body = Body::from(Bytes::copy_from_slice(bytes));
        self.store.put(&self.id(key), body, &sums(bytes), options).await
    }

    /// Reads the whole object into memory.
    pub(crate) async fn get(&self, key: &str) -> Got {
        self.store.get(Get::new(&self.id(key))).await.unwrap_or_else(|e| panic!("{e}"))
    }

    async fn clear(&self) {
        let list = laneway_store::List::new(&self.bucket, &self.prefix);
        let mut next = None;
        loop {
            let page = self.store.list(&laneway_store::List { token: next, ..list.clone() }).await;
            let page = page.unwrap_or_else(|e| panic!("{e}"));
            let keys: Vec<_> = page.objects.into_iter().map(|object| Deletion::any(object.id.key)).collect();
            for result in self.store.delete_many(&self.bucket, &keys).await {
                result.unwrap_or_else(|e| panic!("{e}"));
            }
            next = page.next;
            if next.is_none() {
                return;
            }
        }
    }
}

/// Returns the checksums of bytes that a caller knows.
pub(crate) fn sums(bytes: &[u8]) -> Checksums {
    Checksums::crc32c(crc32c(bytes))
}

pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Returns bytes that compress badly and don't repeat.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    laneway_testkit::random_bytes(len as u64, len)
}
