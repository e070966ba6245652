//! A dialect written by the caller. Here it is the in-memory store with injected faults. Jobs and verbs use it as they use a cloud.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use laneway::dialect::{
    Body, Capabilities, Dialect, Error, ErrorKind, Get, GetSink, Got, InFolder, InMemory, List, Multipart,
    Operation, Page, Part, ReadAs, Route, SinkError, Unless, VersionNames,
};
use laneway::{
    Checksums, Client, Condition, CopyRequest, Event, Job, Location, ObjectId, ObjectMeta, Provider,
    PutOptions, RemoveRequest, Summary, SyncRequest, Version,
};

const MIB: usize = 1 << 20;

/// A fault that a dialect injects into one verb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// The store fails.
    Error,
    /// The body breaks off in the middle.
    Cut,
    /// One byte of the body is changed.
    WrongBytes,
    /// The operation is carried out, but its answer is lost.
    LostAnswer,
}

/// An in-memory store whose verbs can fail.
#[derive(Debug)]
struct Faulty {
    memory: InMemory,
    capabilities: Capabilities,
    /// If true, the store offers only the five verbs that every store has.
    is_plain: bool,
    /// The pending faults, each with the number of times to inject it.
    faults: Mutex<Vec<(Operation, Fault, u32)>>,
}

impl Faulty {
    fn new(memory: InMemory) -> Self {
        let capabilities = memory.capabilities().clone();
        Self { memory, capabilities, is_plain: false, faults: Mutex::default() }
    }

    fn plain(memory: InMemory) -> Self {
        let capabilities = Capabilities { versions: VersionNames::Generation, ..Capabilities::default() };
        Self { capabilities, is_plain: true, ..Self::new(memory) }
    }

    /// Returns the next fault for a verb.
    fn next(&self, verb: Operation) -> Fault {
        let mut faults = self.faults.lock().unwrap();
        let set = faults.iter_mut().find(|(set, _, times)| *set == verb && *times > 0);
        set.map_or(Fault::None, |(_, fault, times)| {
            *times -= 1;
            *fault
        })
    }

    /// Carries out a verb, unless a fault prevents it.
    async fn meets<T>(
        &self,
        verb: Operation,
        id: &ObjectId,
        done: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        use Operation::{Delete, Get, Head, List, Put};
        if self.is_plain && !matches!(verb, Delete | Get | Head | List | Put) {
            return Err(self.error(ErrorKind::Unsupported, verb, id));
        }
        match self.next(verb) {
            Fault::None => done.await,
            Fault::WrongBytes => Err(self.error(ErrorKind::Integrity, verb, id)),
            Fault::LostAnswer => {
                done.await?;
                Err(self.error(ErrorKind::Transport, verb, id).uncertain(true))
            }
            _ => Err(self.error(ErrorKind::Server, verb, id)),
        }
    }

    fn error(&self, kind: ErrorKind, verb: Operation, id: &ObjectId) -> Error {
        Error::new(kind, verb, "injected").on_object(self.memory.provider(), id)
    }
}

/// Passes a body on, but cuts it in the middle or changes one byte.
struct Damaged {
    sink: Box<dyn GetSink>,
    fault: Fault,
    /// Set once the damage is done. Only the first bytes are damaged.
    is_done: bool,
}

impl GetSink for Damaged {
    fn begin(&mut self, meta: &ObjectMeta, range: std::ops::Range<u64>) -> Result<Route, SinkError> {
        self.sink.begin(meta, range)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        if std::mem::replace(&mut self.is_done, true) {
            return self.sink.write(bytes);
        }
        if self.fault == Fault::Cut {
            self.sink.write(&bytes[..bytes.len() / 2])?;
            return Err("cut".into());
        }
        let mut bytes = bytes.to_vec();
        bytes[0] ^= 1;
        self.sink.write(&bytes)
    }
}

#[async_trait]
impl Dialect for Faulty {
    fn provider(&self) -> Provider {
        self.memory.provider()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn endpoint(&self) -> String {
        self.memory.endpoint()
    }

    fn supports_multipart(&self) -> bool {
        !self.is_plain
    }

    async fn head(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        read: ReadAs,
    ) -> Result<ObjectMeta, Error> {
        self.meets(Operation::Head, id, self.memory.head(id, version, unless, read)).await
    }

    async fn get(&self, get: &Get<'_>, read: ReadAs) -> Result<Got, Error> {
        let fault = self.next(Operation::Get);
        match (fault, get.sink) {
            (Fault::None, _) => self.memory.get(get, read).await,
            (Fault::Cut | Fault::WrongBytes, Some(maker)) => {
                let maker = || Box::new(Damaged { sink: maker(), fault, is_done: false }) as Box<dyn GetSink>;
                let got = self.memory.get(&Get { sink: Some(&maker), ..get.clone() }, read).await;
                let cut = |_| self.error(ErrorKind::Transport, Operation::Get, get.id).interrupted(true);
                if fault == Fault::Cut { got.map_err(cut) } else { got }
            }
            (Fault::WrongBytes, None) => {
                let mut got = self.memory.get(get, read).await?;
                let mut body = got.body.to_vec();
                body[0] ^= 1;
                got.body = body.into();
                Ok(got)
            }
            _ => Err(self.error(ErrorKind::Server, Operation::Get, get.id)),
        }
    }

    async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        self.meets(Operation::Put, id, self.memory.put(id, body, sums, options)).await
    }

    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        self.meets(Operation::Delete, id, self.memory.delete(id, condition)).await
    }

    async fn list(
        &self,
        list: &List,
        arrived: &mut (dyn FnMut(Vec<ObjectMeta>) + Send),
    ) -> Result<Page, Error> {
        let id = ObjectId::new(&list.bucket, &list.prefix);
        self.meets(Operation::List, &id, self.memory.list(list, arrived)).await
    }

    async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.meets(Operation::Begin, id, self.memory.begin(id, options)).await
    }

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        self.meets(Operation::Part, &upload.id, self.memory.part(upload, number, body, crc32c)).await
    }

    async fn complete(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let completed = self.memory.complete(upload, parts, whole, condition);
        self.meets(Operation::Complete, &upload.id, completed).await
    }

    async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        self.meets(Operation::Abort, &upload.id, self.memory.abort(upload)).await
    }

    async fn copy(
        &self,
        from: &ObjectId,
        known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        self.meets(Operation::Copy, to, self.memory.copy(from, known, to, options, condition)).await
    }
}

struct Stage {
    store: Arc<Faulty>,
    client: Client,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let memory = InMemory::new("faulty").unwrap().bucket("b");
        let store = Arc::new(Faulty::new(memory));
        let client = Client::builder().dialect(store.clone()).build().unwrap();
        Self { store, client, folder: tempfile::tempdir().unwrap() }
    }

    fn set(&self, verb: Operation, fault: Fault, times: u32) {
        self.store.faults.lock().unwrap().push((verb, fault, times));
    }

    /// Returns the number of open uploads.
    fn uploads(&self) -> usize {
        pollster::block_on(self.store.memory.list_uploads("b", "")).unwrap().len()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, key: &str, bytes: Vec<u8>) {
        self.client.bucket("faulty://b").unwrap().put(key, bytes).call().unwrap();
    }

    fn object(&self, key: &str) -> Vec<u8> {
        self.client.bucket("faulty://b").unwrap().get(key).call().unwrap().bytes_blocking().unwrap().to_vec()
    }

    fn cp(&self, from: impl Into<String>, to: Location) -> Summary {
        summary(self.client.copy(CopyRequest::new(vec![from.into().parse().unwrap()], to)))
    }
}

/// Returns a job's summary.
fn summary(mut job: Job) -> Summary {
    loop {
        if let Event::Done(summary) = job.next_blocking().expect("a job ends with its summary") {
            return summary;
        }
    }
}

fn noise(len: usize) -> Vec<u8> {
    laneway_testkit::random_bytes(len as u64, len)
}

fn url(at: &str) -> Location {
    format!("faulty://b/{at}").parse().unwrap()
}

#[test]
fn trees_are_copied_synchronised_and_removed() {
    let stage = Stage::new();
    for name in ["tree/a", "tree/sub/b", "tree/sub/c"] {
        std::fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        std::fs::write(stage.path(name), noise(1000)).unwrap();
    }
    std::fs::write(stage.path("tree/large"), noise(40 * MIB)).unwrap();
    let up = CopyRequest::new(vec![Location::Local(stage.path("tree"))], url("tree")).recursive(true);
    assert_eq!(summary(stage.client.copy(up)).files, 4);
    assert!(stage.object("tree/large") == noise(40 * MIB));

    let back = SyncRequest::new(url("tree"), Location::Local(stage.path("back")));
    assert_eq!(summary(stage.client.sync(back.clone())).files, 4);
    assert!(std::fs::read(stage.path("back/large")).unwrap() == noise(40 * MIB));
    let again = summary(stage.client.sync(back));
    assert_eq!((again.files, again.unchanged), (0, 4));

    let within = CopyRequest::new(vec![url("tree/")], url("copy")).recursive(true);
    assert_eq!(summary(stage.client.copy(within)).files, 4);
    let bucket = stage.client.bucket("faulty://b").unwrap();
    let ranges =
        bucket.get_ranges("copy/large", [0..10, 20 * MIB as u64..20 * MIB as u64 + 5]).call().unwrap();
    let large = noise(40 * MIB);
    assert_eq!((&ranges[0][..], &ranges[1][..]), (&large[..10], &large[20 * MIB..20 * MIB + 5]));

    let removed = summary(stage.client.remove(RemoveRequest::new(vec![url("")]).recursive(true)));
    assert_eq!((removed.files, removed.failed), (8, 0));
}

/// Injects each fault into each verb, once or at every attempt. A job succeeds with the right bytes, or it fails and leaves nothing
/// under the final name.
#[test]
fn faults_of_a_dialect_never_end_in_wrong_bytes() {
    for size in [1000, 40 * MIB] {
        for times in [1, u32::MAX] {
            for (fault, succeeds) in [
                (Fault::Error, false),
                (Fault::Cut, times == 1),
                // Laneway fetches the bytes a second time if their checksum is wrong.
                (Fault::WrongBytes, times == 1),
            ] {
                let stage = Stage::new();
                stage.put("k", noise(size));
                stage.set(Operation::Get, fault, times);
                let copied = stage.cp("faulty://b/k", Location::Local(stage.path("k")));
                let case = format!("get of {size} bytes, {fault:?} {times} times");
                if succeeds {
                    assert_eq!(copied.failed, 0, "{case}");
                }
                match copied.failed {
                    0 => assert!(std::fs::read(stage.path("k")).unwrap() == noise(size), "{case}"),
                    _ => assert!(!stage.path("k").exists(), "{case}"),
                }
            }
        }
    }
    for (verb, size, fault, times, succeeds) in [
        (Operation::Put, 1000, Fault::Error, 1, false),
        (Operation::Put, 1000, Fault::WrongBytes, 1, true),
        (Operation::Put, 1000, Fault::WrongBytes, 2, false),
        (Operation::Put, 1000, Fault::LostAnswer, 1, false),
        (Operation::Part, 40 * MIB, Fault::Error, 1, false),
        (Operation::Part, 40 * MIB, Fault::WrongBytes, 1, true),
        (Operation::Begin, 40 * MIB, Fault::Error, 1, false),
        (Operation::Complete, 40 * MIB, Fault::Error, 1, false),
        (Operation::Complete, 40 * MIB, Fault::WrongBytes, 1, true),
        (Operation::Complete, 40 * MIB, Fault::WrongBytes, 2, false),
        (Operation::Complete, 40 * MIB, Fault::LostAnswer, 1, false),
    ] {
        let stage = Stage::new();
        std::fs::write(stage.path("k"), noise(size)).unwrap();
        stage.set(verb, fault, times);
        let source = stage.path("k").to_str().unwrap().to_owned();
        let copied = stage.cp(source, url("k"));
        let case = format!("{verb:?}, {fault:?} {times} times");
        assert_eq!(copied.failed == 0, succeeds, "{case}");
        // If only the answer was lost, the object was written.
        match succeeds || fault == Fault::LostAnswer {
            true => assert!(stage.object("k") == noise(size), "{case}"),
            false => assert!(stage.client.bucket("faulty://b").unwrap().head("k").call().is_err(), "{case}"),
        }
        assert_eq!(stage.uploads(), 0, "{case}");
    }
}

#[test]
fn an_upload_that_cannot_be_aborted_fails_by_its_first_error() {
    let stage = Stage::new();
    std::fs::write(stage.path("k"), noise(40 * MIB)).unwrap();
    stage.set(Operation::Complete, Fault::Error, 1);
    stage.set(Operation::Abort, Fault::Error, 1);
    let source = Location::Local(stage.path("k"));
    let mut job = stage.client.copy(CopyRequest::new(vec![source], url("k")));
    let mut errors = Vec::new();
    while let Some(event) = job.next_blocking() {
        if let Event::Item(item) = &event
            && let laneway::Outcome::Failed(error) = &item.outcome
        {
            errors.push(error.to_string());
        }
    }
    assert!(errors.len() == 1 && !errors[0].contains("abort"), "{errors:?}");
    assert_eq!(stage.uploads(), 1, "its parts are still there");
    assert!(stage.client.bucket("faulty://b").unwrap().head("k").call().is_err());
}

#[test]
fn errors_of_a_dialect_name_the_object_and_remove_nothing() {
    let stage = Stage::new();
    stage.put("t/k", noise(1000));
    stage.set(Operation::Copy, Fault::Error, 1);
    let copied = stage.cp("faulty://b/t/k", url("other"));
    assert_eq!(copied.failed, 1);
    stage.set(Operation::Head, Fault::Error, 2);
    let looked = stage.client.bucket("faulty://b").unwrap().head("t/k").call().unwrap_err();
    assert!(looked.to_string().contains("faulty://b/t/k"), "{looked}");
    // A move must know the state of the object that it removes.
    let moved = CopyRequest::new(vec!["faulty://b/t/k".parse().unwrap()], url("other")).remove_source(true);
    assert_eq!(summary(stage.client.copy(moved)).failed, 1);
    stage.set(Operation::Delete, Fault::Error, 1);
    let removed = summary(stage.client.remove(RemoveRequest::new(vec![url("t/k")])));
    assert_eq!((removed.failed, removed.files), (1, 0));
    stage.set(Operation::List, Fault::Error, 1);
    let listed = stage
        .client
        .copy(CopyRequest::new(vec![url("t/")], Location::Local(stage.path("out"))).recursive(true));
    assert_eq!(summary(listed).failed, 1);
    assert!(stage.object("t/k") == noise(1000));
    let error = stage.client.bucket("faulty://b").unwrap().get("missing").call().unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("faulty://b/missing"), "{error}");
}

#[test]
fn a_store_of_five_verbs_takes_trees_copies_and_moves() {
    let memory = InMemory::new("plain").unwrap().bucket("b");
    let client = Client::builder().dialect(Arc::new(Faulty::plain(memory))).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::create_dir_all(folder.path().join("tree")).unwrap();
        std::fs::write(folder.path().join("tree").join(name), noise(2 * MIB)).unwrap();
    }
    let at = |key: &str| -> Location { format!("plain://b/{key}").parse().unwrap() };
    let copy =
        |from: Location, to: Location| summary(client.copy(CopyRequest::new(vec![from], to).recursive(true)));
    assert_eq!(copy(Location::Local(folder.path().join("tree")), at("tree")).files, 2);
    assert_eq!(copy(at("tree/"), at("copy")).files, 2, "through this machine");
    let moved = CopyRequest::new(vec![at("copy/")], at("moved")).recursive(true).remove_source(true);
    assert_eq!(summary(client.copy(moved)).files, 2);
    let bucket = client.bucket("plain://b/").unwrap();
    assert!(bucket.get("copy/a").call().unwrap_err().is_not_found());
    assert!(bucket.get("moved/a").call().unwrap().bytes_blocking().unwrap() == noise(2 * MIB));
    // A file that needs a multipart upload is refused.
    std::fs::write(folder.path().join("large"), noise(17 * MIB)).unwrap();
    assert_eq!(copy(Location::Local(folder.path().join("large")), at("large")).failed, 1);
    assert!(bucket.head("large").call().unwrap_err().is_not_found());
}

#[test]
fn a_file_that_was_preserved_is_copied_back_once() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("tree")).unwrap();
    std::fs::write(stage.path("tree/a"), noise(1000)).unwrap();
    let up = CopyRequest::new(vec![Location::Local(stage.path("tree"))], url("tree"));
    assert_eq!(summary(stage.client.copy(up.recursive(true).preserve(true))).files, 1);
    let down = SyncRequest::new(url("tree"), Location::Local(stage.path("down")));
    let copied = [down.clone(), down].map(|sync| summary(stage.client.sync(sync)).files);
    assert_eq!(copied, [1, 0]);
}

#[test]
fn a_delete_in_memory_spares_what_replaced_its_object() {
    let stage = Stage::new();
    stage.put("k", noise(10));
    let bucket = stage.client.bucket("faulty://b").unwrap();
    let old = bucket.head("k").call().unwrap().version.unwrap();
    stage.put("k", noise(11));
    assert!(bucket.delete("k").if_version(&old).call().unwrap_err().is_precondition());
    assert!(stage.object("k") == noise(11));
    let tagged = bucket.put("t", "x").options(PutOptions::default().tag("a", "b")).call().unwrap_err();
    assert!(tagged.kind() == laneway::ErrorKind::Unsupported, "tags are refused: {tagged}");
}

#[test]
fn a_scheme_without_a_dialect_is_refused_by_name() {
    let stage = Stage::new();
    let other = Client::builder().build().unwrap();
    let error = other.bucket("faulty://b").unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("faulty://"), "{error}");
    let to = Location::Local(stage.path("k"));
    assert_eq!(summary(other.copy(CopyRequest::new(vec![url("k")], to))).failed, 1);
    for taken in ["s3", "gs", "az", "file", "Mem", "1m", ""] {
        assert!(InMemory::new(taken).is_err(), "{taken:?}");
    }
}

/// Returns a folder, and a bucket whose objects are its files.
fn folder_bucket() -> (tempfile::TempDir, laneway::Bucket) {
    let folder = tempfile::tempdir().unwrap();
    let store = InFolder::new("disk").unwrap().bucket("b", folder.path()).remove_empty_folders(true);
    let client = Client::builder().dialect(Arc::new(store)).build().unwrap();
    (folder, client.bucket("disk://b/").unwrap())
}

#[test]
fn a_folder_keeps_objects_as_files() {
    let (folder, bucket) = folder_bucket();
    let written = bucket.put("a/b.txt", "bytes").call().unwrap();
    assert_eq!(std::fs::read(folder.path().join("a/b.txt")).unwrap(), b"bytes");
    let meta = bucket.head("a/b.txt").call().unwrap();
    assert_eq!((meta.size, meta.version.as_ref()), (5, written.version.as_ref()));
    assert_eq!(meta.content_type.as_deref(), Some("text/plain"));
    let ranges = bucket.get_ranges("/a/b.txt", [1..3, 4..5]).call().unwrap();
    assert_eq!(ranges, ["yt", "s"]);
    bucket.copy("a/b.txt", "c").call().unwrap();
    assert_eq!(std::fs::read(folder.path().join("c")).unwrap(), b"bytes");
    bucket.delete("a/b.txt").call().unwrap();
    assert!(!folder.path().join("a").exists(), "the empty directory is gone");
    assert!(bucket.delete("a/b.txt").call().unwrap_err().is_not_found());
    assert!(bucket.get("c/d").call().unwrap_err().is_not_found());
}

#[test]
fn a_folder_takes_large_objects_in_parts() {
    let (folder, bucket) = folder_bucket();
    let content = noise(40 * MIB);
    bucket.put("large", content.clone()).call().unwrap();
    assert!(std::fs::read(folder.path().join("large")).unwrap() == content);
    assert!(bucket.get("large").call().unwrap().bytes_blocking().unwrap() == content);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "no parts and no temporary files are left"
    );
}

#[tokio::test]
async fn uploads_of_two_stores_into_one_folder_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let store = || InFolder::new("disk").unwrap().bucket("b", folder.path());
    let (one, other) = (store(), store());
    let id = ObjectId::new("b", "k");
    let options = PutOptions::default();
    let (first, second) =
        (one.begin(&id, &options).await.unwrap(), other.begin(&id, &options).await.unwrap());
    assert_ne!(first.upload_id, second.upload_id);
    let own = one.part(&first, 1, Body::from("one"), 0x2a94_b2e9).await.unwrap();
    let foreign = other.part(&second, 1, Body::from("two"), 0x52d8_b3a3).await.unwrap();
    other.abort(&second).await.unwrap();
    let none = Checksums::default();
    let mixed = one.complete(&first, std::slice::from_ref(&foreign), &none, &Condition::None).await;
    assert_eq!(mixed.unwrap_err().kind(), ErrorKind::Integrity);
    one.complete(&first, &[own], &none, &Condition::None).await.unwrap();
    assert_eq!(std::fs::read(folder.path().join("k")).unwrap(), b"one");
}

#[tokio::test]
async fn a_folder_refuses_upload_ids_that_it_has_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = InFolder::new("disk").unwrap().bucket("b", folder.path().join("inside"));
    std::fs::create_dir(folder.path().join("other")).unwrap();
    let id = ObjectId::new("b", "k");
    let made = store.begin(&id, &PutOptions::default()).await.unwrap();
    let absolute = folder.path().join("other").display().to_string();
    for upload_id in ["", ".", "../../other", &absolute] {
        let foreign = Multipart { upload_id: upload_id.to_owned(), ..made.clone() };
        assert!(store.abort(&foreign).await.unwrap_err().is_not_found(), "{upload_id}");
    }
    let of_other_key = Multipart { id: ObjectId::new("b", "other"), ..made.clone() };
    assert!(store.abort(&of_other_key).await.unwrap_err().is_not_found());
    assert!(folder.path().join("other").exists());
    store.abort(&made).await.unwrap();
}

#[test]
fn a_folder_keeps_the_conditions_it_can_and_refuses_others() {
    let (folder, bucket) = folder_bucket();
    let written = bucket.put("k", "first").if_absent().call().unwrap();
    let again = bucket.put("k", "second").if_absent().call().unwrap_err();
    assert_eq!(again.kind(), laneway::ErrorKind::AlreadyExists);
    let version = written.version.unwrap();
    let replaced = bucket.put("k", "second").if_version(&version).call().unwrap_err();
    assert_eq!(replaced.kind(), laneway::ErrorKind::Unsupported);
    let described = bucket.put("k", "second").metadata("a", "b").call().unwrap_err();
    assert_eq!(described.kind(), laneway::ErrorKind::Unsupported);
    assert_eq!(std::fs::read(folder.path().join("k")).unwrap(), b"first");
    std::fs::write(folder.path().join("k"), "changed").unwrap();
    assert!(bucket.get("k").if_version(&version).call().unwrap_err().is_precondition());
}

#[test]
fn a_folder_refuses_keys_that_are_no_path_below_it() {
    let (folder, bucket) = folder_bucket();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    for key in ["../k", "a/../../k", "a//b", "a/", "//k", "./k", ".laneway-uploads/k"] {
        assert!(bucket.put(key, "bytes").call().is_err(), "{key}");
        assert!(bucket.get(key).call().is_err(), "{key}");
    }
    assert!(bucket.get("sub").call().unwrap_err().is_not_found(), "a directory isn't an object");
    // A link could lead a write out of the folder.
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    assert!(bucket.put("link/k", "bytes").call().is_err());
    std::fs::write(outside.path().join("kept"), "bytes").unwrap();
    assert!(bucket.delete("link/kept").call().is_err());
    assert!(outside.path().join("kept").exists());
    assert!(
        bucket.put(".x.laneway-0123abcd.part/k", "bytes").call().is_err(),
        "a listing would leave it out"
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_is_listed_in_the_order_of_the_keys() {
    let (folder, bucket) = folder_bucket();
    let keys = ["a-b", "a/1", "a/2/x", "a0", "b/c/d", "e"];
    for key in keys.iter().rev() {
        bucket.put(key, "").call().unwrap();
    }
    std::fs::create_dir_all(folder.path().join("empty/deeper")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("a/loop")).unwrap();
    std::os::unix::fs::symlink("nothing", folder.path().join("dangling")).unwrap();
    let listed = |mut list: laneway::List| {
        std::iter::from_fn(|| list.next_blocking()).map(|meta| meta.unwrap().id.key).collect::<Vec<_>>()
    };
    assert_eq!(listed(bucket.list("")), keys);
    assert_eq!(listed(bucket.list("a")), keys[..4]);
    assert_eq!(listed(bucket.list("a/")), ["a/1", "a/2/x"]);
    assert_eq!(listed(bucket.list("").start_after("a/1")), keys[2..]);
    assert_eq!(listed(bucket.list("").start_after("a/2")), keys[2..]);
    assert_eq!(listed(bucket.list("").limit(2)), keys[..2]);
    let below = |prefix: &str| {
        let mut list = bucket.list_dir(prefix);
        let entry = |entry: Result<laneway::Listed, _>| match entry.unwrap() {
            laneway::Listed::Object(meta) => meta.id.key,
            laneway::Listed::Prefix(prefix) => prefix,
            _ => unreachable!(),
        };
        let mut entries: Vec<_> = std::iter::from_fn(|| list.next_blocking()).map(entry).collect();
        entries.sort();
        entries
    };
    assert_eq!(below(""), ["a-b", "a/", "a0", "b/", "e"]);
    assert_eq!(below("a/"), ["a/1", "a/2/"]);
    assert_eq!(below("b/c"), ["b/c/"]);
}

#[test]
fn a_listing_of_a_folder_has_pages() {
    let (folder, bucket) = folder_bucket();
    for number in 0..2500 {
        let directory = folder.path().join(format!("{:02}", number % 50));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("{number:04}")), "").unwrap();
    }
    let mut list = bucket.list("");
    let keys: Vec<_> = std::iter::from_fn(|| list.next_blocking()).map(|meta| meta.unwrap().id.key).collect();
    assert!(keys.len() == 2500 && keys.is_sorted());
}
