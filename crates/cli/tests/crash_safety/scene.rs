//! Files and objects before a command and after it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use laneway_server::{Config, GcsConfig, S3Config};
use laneway_testkit::{Endpoint, Program, Run, Running, Wire, random_bytes};

pub(crate) const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
/// A killed program has no exit status.
pub(crate) const KILLED: Option<i32> = None;

/// The beginning of the embedded store's id for the uncommitted blocks of a blob.
const UNCOMMITTED_BLOCKS: &str = "blocks-";
const AZURE_BUCKET: &str = "az://bucket/";

pub(crate) type Bytes = Rc<Vec<u8>>;

/// The content of a file or object before and after the command. `None` means that it doesn't exist.
#[derive(Clone)]
pub(crate) struct Change {
    old: Option<Bytes>,
    new: Option<Bytes>,
}

/// A store, files, and a command that changes some of them.
pub(crate) struct Scene {
    pub(crate) endpoint: Endpoint,
    pub(crate) arguments: Vec<String>,
    files: BTreeMap<String, Change>,
    objects: BTreeMap<String, Change>,
}

impl Scene {
    pub(crate) fn new(wire: Wire, arguments: &[&str]) -> Self {
        let config = Config {
            // Skip checksums that take time and don't matter here.
            gcs: GcsConfig { md5_bytes_max: 0, ..GcsConfig::default() },
            s3: S3Config { md5_etags: false, ..S3Config::default() },
            ..Config::default()
        };
        let endpoint = Endpoint::start_with(wire, config);
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let scene = Self { endpoint, arguments, files: BTreeMap::new(), objects: BTreeMap::new() };
        fs::create_dir_all(scene.journals()).expect("made");
        scene
    }

    /// Adds a file that the command doesn't change.
    pub(crate) fn file(self, name: &str, bytes: &Bytes) -> Self {
        self.changed_file(name, Some(bytes), Some(bytes))
    }

    /// Adds an object that the command doesn't change.
    pub(crate) fn object(self, key: &str, bytes: &Bytes) -> Self {
        self.changed_object(key, Some(bytes), Some(bytes))
    }

    pub(crate) fn changed_file(mut self, name: &str, old: Option<&Bytes>, new: Option<&Bytes>) -> Self {
        self.files.insert(name.to_owned(), Change { old: old.cloned(), new: new.cloned() });
        self
    }

    pub(crate) fn changed_object(mut self, key: &str, old: Option<&Bytes>, new: Option<&Bytes>) -> Self {
        self.objects.insert(key.to_owned(), Change { old: old.cloned(), new: new.cloned() });
        self
    }

    pub(crate) fn program(&self) -> Program {
        let program = self.endpoint.program(LANEWAY);
        let variables = self.endpoint.azure_variables();
        variables.into_iter().fold(program, |program, (name, value)| program.with(name, value))
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.endpoint.folder()
    }

    /// Returns the folder for the journals of uploads.
    pub(crate) fn journals(&self) -> PathBuf {
        self.program().home().join(".local/state/laneway/uploads")
    }

    /// Restores the state before the command.
    pub(crate) fn reset(&self) {
        self.quiet();
        let folder = self.folder();
        for entry in fs::read_dir(&folder).expect("read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
        }
        for (name, change) in &self.files {
            let path = folder.join(name);
            if let Some(old) = &change.old {
                fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                fs::write(path, &**old).expect("written");
            }
        }
        let store = self.endpoint.server().store();
        for key in store.keys(Endpoint::BUCKET) {
            let is_old = |change: &Change| self.stored(&key).as_ref() == change.old.as_deref();
            if !self.objects.get(&key).is_some_and(is_old) {
                store.remove(Endpoint::BUCKET, &key);
            }
        }
        for (key, change) in &self.objects {
            if let Some(old) = change.old.as_ref().filter(|_| self.stored(key).is_none()) {
                store.put(Endpoint::BUCKET, key, old).expect("stored");
            }
        }
    }

    /// Waits until the server has read everything that an ended program sent.
    pub(crate) fn quiet(&self) {
        let server = self.endpoint.server();
        assert!(server.wait_until_idle(Running::TIME_MAX));
    }

    /// Panics unless every file and object is either old or new. Temporary files are allowed. A journal must name each open upload that
    /// has bytes in the store. On Azure, the uncommitted blocks of a blob belong to no upload, so the journal must name the blob.
    #[track_caller]
    pub(crate) fn assert_old_or_new(&self, when: &str) {
        self.assert_either(when, |_| false);
    }

    /// Does the same after a command that has failed and given up its uploads. Azure keeps their blocks, because it has no request
    /// that removes them.
    #[track_caller]
    pub(crate) fn assert_given_up(&self, when: &str) {
        self.assert_either(when, |id| id.starts_with(UNCOMMITTED_BLOCKS));
    }

    #[track_caller]
    fn assert_either(&self, when: &str, may_be_left: impl Fn(&str) -> bool) {
        self.quiet();
        for (place, there, change) in self.places() {
            let there = there.as_ref();
            let is_either = [&change.old, &change.new].into_iter().any(|either| either.as_deref() == there);
            let len = there.map(Vec::len);
            assert!(is_either, "{when}: {place} is neither old nor new: {len:?} bytes");
        }
        let journals: Vec<String> =
            files(&self.journals()).iter().map(|path| fs::read_to_string(path).expect("text")).collect();
        for (id, size) in self.endpoint.server().uploads_open(Endpoint::BUCKET) {
            let name = if id.starts_with(UNCOMMITTED_BLOCKS) { AZURE_BUCKET } else { &id };
            let is_named = journals.iter().any(|journal| journal.contains(name));
            let is_left = size == 0 || may_be_left(&id);
            assert!(is_named || is_left, "{when}: no journal names an upload of {size} bytes");
        }
    }

    /// Panics unless every file and object is old. Temporary files are allowed.
    #[track_caller]
    pub(crate) fn assert_old(&self, when: &str) {
        for (place, there, change) in self.places() {
            assert!(there.as_ref() == change.old.as_deref(), "{when}: {place} has changed");
        }
    }

    /// Panics unless every file and object is new and nothing else exists. Open uploads without a part are allowed.
    #[track_caller]
    pub(crate) fn assert_new(&self, when: &str) {
        self.assert_changed(when);
        self.assert_tidy(when);
    }

    /// Panics unless every file and object is new. Temporary files are allowed.
    #[track_caller]
    pub(crate) fn assert_changed(&self, when: &str) {
        self.quiet();
        for (place, there, change) in self.places() {
            let len = there.as_ref().map(Vec::len);
            assert!(
                there.as_ref() == change.new.as_deref(),
                "{when}: {place} is not as it is to be: {len:?} bytes"
            );
        }
        let store = self.endpoint.server();
        let left: Vec<_> =
            store.uploads_open(Endpoint::BUCKET).into_iter().filter(|(_, size)| *size > 0).collect();
        assert!(left.is_empty(), "{when}: uploads are left: {left:?}");
    }

    /// Panics if a temporary file or a journal exists.
    #[track_caller]
    pub(crate) fn assert_tidy(&self, when: &str) {
        let mut left = self.temporary();
        // If the final answer was lost, `sync` and `-n` don't send the object again. Laneway removes the journal a week later.
        if !["sync", "-n"].iter().any(|word| self.arguments.iter().any(|argument| argument == word)) {
            left.extend(files(&self.journals()));
        }
        assert!(left.is_empty(), "{when}: {left:?} are left");
    }

    /// Returns the temporary files.
    pub(crate) fn temporary(&self) -> Vec<PathBuf> {
        files(&self.folder()).into_iter().filter(|path| is_temporary(path)).collect()
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self) -> Run {
        self.program().run(&self.arguments)
    }

    /// Runs the same command again, and panics unless it ends exactly right.
    #[track_caller]
    pub(crate) fn finish(&self, when: &str) {
        let run = self.run();
        assert_eq!(run.status, Some(0), "{when}, the next run: {}", run.stderr);
        self.assert_new(when);
    }

    /// Returns each file and object that exists or should exist, with its present and its expected content.
    fn places(&self) -> Vec<(String, Option<Vec<u8>>, Change)> {
        let (folder, none) = (self.folder(), Change { old: None, new: None });
        let mut names: Vec<String> = files(&folder)
            .iter()
            .filter(|path| !is_temporary(path))
            .map(|path| path.strip_prefix(&folder).expect("below").to_str().expect("UTF-8").to_owned())
            .chain(self.files.keys().cloned())
            .collect();
        names.sort();
        names.dedup();
        let mut keys = self.endpoint.server().store().keys(Endpoint::BUCKET);
        keys.extend(self.objects.keys().cloned());
        keys.sort();
        keys.dedup();
        let files = names.into_iter().map(|name| {
            let change = self.files.get(&name).unwrap_or(&none).clone();
            (name.clone(), fs::read(folder.join(name)).ok(), change)
        });
        let objects = keys.into_iter().map(|key| {
            let change = self.objects.get(&key).unwrap_or(&none).clone();
            (format!("bucket/{key}"), self.stored(&key), change)
        });
        files.chain(objects).collect()
    }

    fn stored(&self, key: &str) -> Option<Vec<u8>> {
        self.endpoint.server().store().read(Endpoint::BUCKET, key).ok()
    }
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".laneway-") && (name.ends_with(".part") || name.ends_with(".journal"))
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// A size that takes several requests, in a download and in an upload.
const LARGE: usize = (17 << 20) + 5;
/// Number of small files in a tree, beside its large one.
const FILES: usize = 24;

pub(crate) fn bytes(seed: u64, len: usize) -> Bytes {
    Rc::new(random_bytes(seed, len))
}

/// A download of a large object over an existing file.
pub(crate) fn large_download(wire: Wire, scheme: &str, options: &[&str]) -> Scene {
    let url = format!("{scheme}://bucket/large");
    let new = bytes(1, LARGE);
    Scene::new(wire, &[&["cp", &url, "out/large"][..], options].concat()).object("large", &new).changed_file(
        "out/large",
        Some(&bytes(2, 777)),
        Some(&new),
    )
}

/// A download of a small object into new nested folders.
pub(crate) fn small_download(options: &[&str]) -> Scene {
    let new = bytes(1, 5000);
    Scene::new(Wire::Plain, &[&["cp", "-r", "s3://bucket/tree", "out/"][..], options].concat())
        .object("tree/a/b/small", &new)
        .file("out/beside", &bytes(3, 10))
        .changed_file("out/tree/a/b/small", None, Some(&new))
}

/// An upload of a large file over an existing object.
pub(crate) fn large_upload(wire: Wire, scheme: &str) -> Scene {
    let url = format!("{scheme}://bucket/large");
    let new = bytes(1, LARGE);
    Scene::new(wire, &["cp", "large", &url]).file("large", &new).changed_object(
        "large",
        Some(&bytes(2, 777)),
        Some(&new),
    )
}

/// An upload of a large file through a resumable session.
pub(crate) fn session() -> Scene {
    let new = bytes(1, LARGE);
    Scene::new(Wire::TlsH2, &["cp", "-n", "large", "gs://bucket/large"]).file("large", &new).changed_object(
        "large",
        None,
        Some(&new),
    )
}

/// Returns the files of a tree with their contents before and after a sync: changed, new, removed and unchanged ones, and a large one.
fn tree() -> Vec<(String, Option<Bytes>, Option<Bytes>)> {
    let file = |n: usize| {
        let (old, new) = (bytes(n as u64, 100 + n), bytes(1000 + n as u64, 2000 + n));
        let name = format!("d{}/f{n}", n % 5);
        match n % 4 {
            0 => (name, Some(old), Some(new)),
            1 => (name, None, Some(new)),
            2 => (name, Some(old), None),
            _ => (name, Some(old.clone()), Some(old)),
        }
    };
    let mut tree: Vec<_> = (0..FILES).map(file).collect();
    tree.push(("large".to_owned(), None, Some(bytes(1, LARGE))));
    tree
}

/// A sync of a prefix into a folder.
pub(crate) fn sync_down(wire: Wire, scheme: &str) -> Scene {
    let url = format!("{scheme}://bucket/tree");
    let scene = Scene::new(wire, &["sync", "--delete", &url, "tree"]);
    tree().iter().fold(scene, |scene, (name, old, new)| {
        let scene = match new {
            Some(new) => scene.object(&format!("tree/{name}"), new),
            None => scene,
        };
        scene.changed_file(&format!("tree/{name}"), old.as_ref(), new.as_ref())
    })
}

/// A sync of a folder into a prefix.
pub(crate) fn sync_up(scheme: &str) -> Scene {
    let url = format!("{scheme}://bucket/tree");
    let scene = Scene::new(Wire::Plain, &["sync", "--delete", "tree", &url]);
    tree().iter().fold(scene, |scene, (name, old, new)| {
        let scene = match new {
            Some(new) => scene.file(&format!("tree/{name}"), new),
            None => scene,
        };
        scene.changed_object(&format!("tree/{name}"), old.as_ref(), new.as_ref())
    })
}

/// A sync of a prefix with one large object into a folder.
pub(crate) fn large_sync() -> Scene {
    let new = bytes(1, LARGE);
    Scene::new(Wire::Plain, &["sync", "--durable", "s3://bucket/tree", "tree"])
        .object("tree/large", &new)
        .changed_file("tree/large", None, Some(&new))
}

/// A run of commands: downloads, uploads and copies, large and small.
pub(crate) fn commands() -> Scene {
    let large = bytes(1, LARGE);
    let mut lines = String::from(
        "cp s3://bucket/large down/large\ncp up/large s3://bucket/up/large\ncp up/large az://bucket/up/larger\n",
    );
    let mut scene = Scene::new(Wire::Plain, &["run", "commands"])
        .object("large", &large)
        .changed_file("down/large", None, Some(&large))
        .file("up/large", &large)
        .changed_object("up/large", Some(&bytes(2, 9)), Some(&large))
        .changed_object("up/larger", None, Some(&large));
    for n in 0..FILES {
        let (old, new) = (bytes(n as u64, 50), bytes(1000 + n as u64, 3000));
        lines += &format!(
            "cp s3://bucket/from/{n} down/{n}\ncp up/{n} gs://bucket/up/{n}\ncp s3://bucket/from/{n} s3://bucket/to/{n}\ncp az://bucket/from/{n} az://bucket/at/{n}\n"
        );
        scene = scene
            .object(&format!("from/{n}"), &new)
            .changed_file(&format!("down/{n}"), Some(&old), Some(&new))
            .file(&format!("up/{n}"), &new)
            .changed_object(&format!("up/{n}"), None, Some(&new))
            .changed_object(&format!("to/{n}"), Some(&old), Some(&new))
            .changed_object(&format!("at/{n}"), Some(&old), Some(&new));
    }
    scene.file("commands", &Rc::new(lines.into_bytes()))
}
