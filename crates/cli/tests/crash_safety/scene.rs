//! Files and objects before a command and after it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use laneway_server::{Config, GcsConfig, S3Config};
use laneway_testkit::{Endpoint, Program, Run, Running, Wire};

pub(crate) const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
/// How the program ends that is killed.
pub(crate) const KILLED: Option<i32> = None;

pub(crate) type Bytes = Rc<Vec<u8>>;

/// What a file or object holds before the command, and what after it; nothing where it isn't there.
#[derive(Clone)]
pub(crate) struct Change {
    old: Option<Bytes>,
    new: Option<Bytes>,
}

/// A store, files, and a command that changes some of both.
pub(crate) struct Scene {
    pub(crate) endpoint: Endpoint,
    pub(crate) arguments: Vec<String>,
    files: BTreeMap<String, Change>,
    objects: BTreeMap<String, Change>,
}

impl Scene {
    pub(crate) fn new(wire: Wire, arguments: &[&str]) -> Self {
        let config = Config {
            // What takes time and decides nothing here.
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

    /// With a file that the command doesn't change.
    pub(crate) fn file(self, name: &str, bytes: &Bytes) -> Self {
        self.changed_file(name, Some(bytes), Some(bytes))
    }

    /// With an object that the command doesn't change.
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
        self.endpoint.program(LANEWAY)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.endpoint.folder()
    }

    /// Where journals of uploads lie.
    pub(crate) fn journals(&self) -> PathBuf {
        self.program().home().join(".local/state/laneway/uploads")
    }

    /// Puts everything back to what it was before the command.
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

    /// Waits until the store has heard all that a program which is gone had sent.
    pub(crate) fn quiet(&self) {
        let server = self.endpoint.server();
        assert!(server.wait_until(Running::TIME_MAX, |counters| counters.connections_open == 0));
    }

    /// Every file and object is as it was or as it is to be; beside them there are temporary files only. Each upload that the store has
    /// something of is named in a journal.
    #[track_caller]
    pub(crate) fn assert_old_or_new(&self, when: &str) {
        self.quiet();
        for (place, there, change) in self.places() {
            let there = there.as_ref();
            let is_either = [&change.old, &change.new].into_iter().any(|either| either.as_deref() == there);
            let len = there.map(Vec::len);
            assert!(is_either, "{when}: {place} is neither what it was nor what it is to be: {len:?} bytes");
        }
        let journals: Vec<String> =
            files(&self.journals()).iter().map(|path| fs::read_to_string(path).expect("text")).collect();
        for (id, size) in self.endpoint.server().uploads_open(Endpoint::BUCKET) {
            let is_named = journals.iter().any(|journal| journal.contains(&id));
            assert!(is_named || size == 0, "{when}: {size} bytes of an upload that no journal names");
        }
    }

    /// Every file and object is as it was; temporary files may be there.
    #[track_caller]
    pub(crate) fn assert_old(&self, when: &str) {
        for (place, there, change) in self.places() {
            assert!(there.as_ref() == change.old.as_deref(), "{when}: {place} is not what it was");
        }
    }

    /// Every file and object is as it is to be, nothing else is there, and nothing of an upload but what came of none of its parts.
    #[track_caller]
    pub(crate) fn assert_new(&self, when: &str) {
        self.assert_changed(when);
        self.assert_tidy(when);
    }

    /// Every file and object is as it is to be; temporary files may be there.
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

    /// No temporary file and no journal is there.
    #[track_caller]
    pub(crate) fn assert_tidy(&self, when: &str) {
        let mut left = self.temporary();
        // Where what was completed unheard is not sent again, its journal is found a week later.
        if !["sync", "-n"].iter().any(|word| self.arguments.iter().any(|argument| argument == word)) {
            left.extend(files(&self.journals()));
        }
        assert!(left.is_empty(), "{when}: {left:?} stay");
    }

    /// The temporary files that are there.
    pub(crate) fn temporary(&self) -> Vec<PathBuf> {
        files(&self.folder()).into_iter().filter(|path| is_temporary(path)).collect()
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self) -> Run {
        self.program().run(&self.arguments)
    }

    /// The same command once more, which has to end exactly right.
    #[track_caller]
    pub(crate) fn finish(&self, when: &str) {
        let run = self.run();
        assert_eq!(run.status, Some(0), "{when}, the next run: {}", run.stderr);
        self.assert_new(when);
    }

    /// All files and objects that are or have to be somewhere, with what they hold and what they are to hold.
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

/// All files below a folder.
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
