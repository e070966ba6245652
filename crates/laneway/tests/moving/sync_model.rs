//! Random trees and random flags: in every direction, a sync must match a naive model.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use laneway::{Entry, Filter, ListRequest, Location, Provider, SyncRequest};
use laneway_server::Attributes;

use crate::stage::{BUCKET, DIALECTS, Report, Stage};

/// The names for both sides. They include siblings of folders that sort before and after the folder's content, other
/// alphabets, and hidden files. No file is also a folder.
const NAMES: [&str; 14] = [
    "a-b",
    "a.d",
    "a/b",
    "a/b.tmp",
    "a/c/d",
    "a0",
    "A",
    "b/x.tmp/y",
    "b/z",
    ".hidden",
    "é/ü",
    "z",
    "z/",
    "d d/%2F",
];
/// Returns true if a filter includes a name.
type Meaning = fn(&str) -> bool;
/// Filters and their meanings.
const FILTERS: [(&str, Meaning); 5] = [
    ("", |_| true),
    ("*.tmp", |name| !name.split('/').any(|part| part.ends_with(".tmp"))),
    ("/a/", |name| !name.starts_with("a/")),
    ("+ a/b\n- a", |name| name == "a/b" || !name.split('/').any(|part| part == "a")),
    ("+ z", |name| name.split('/').any(|part| part == "z")),
];
const ROUNDS: u64 = 40;
/// The largest file that the size limit includes.
const SIZE_MAX: u64 = 3;

/// A source of deterministic pseudo-random numbers.
struct Random(Vec<u8>);

impl Random {
    fn new(seed: u64) -> Self {
        Self(laneway_testkit::random_bytes(seed, 4096))
    }

    fn below(&mut self, n: u8) -> u8 {
        self.0.pop().unwrap() % n
    }

    fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == 0
    }
}

/// One side's information about a name.
#[derive(Clone, PartialEq, Debug)]
struct Seen {
    bytes: Vec<u8>,
    changed: SystemTime,
    /// The file's time in the listing or in the file system.
    mtime: Option<u64>,
    /// The file's time in the object's metadata, which only a HEAD returns.
    kept: Option<u64>,
}

type Tree = BTreeMap<String, Seen>;

#[derive(Clone, Copy, Debug)]
struct End {
    /// A store, or `None` for this machine.
    store: Option<Provider>,
    name: &'static str,
}

impl End {
    fn location(self, stage: &Stage, round: u64) -> Location {
        let name = format!("{}-{round}", self.name);
        match self.store {
            Some(provider) => Location::object(provider, BUCKET, name),
            None => Location::Local(stage.path(&name)),
        }
    }

    fn write(self, stage: &Stage, round: u64, name: &str, random: &mut Random) {
        if name.ends_with('/') {
            return;
        }
        let bytes = vec![b'0' + random.below(2); usize::from(1 + random.below(5))];
        let hours = u64::from(random.below(3));
        let time = SystemTime::now() + Duration::from_secs(3600 * hours) - Duration::from_secs(3600);
        let full = format!("{}-{round}/{name}", self.name);
        if self.store.is_none() {
            let path = stage.file(&full, bytes);
            return std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        let mut attributes = Attributes::default();
        if random.one_in(3) {
            let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
            attributes.metadata.insert("goog-reserved-file-mtime".to_owned(), seconds.to_string());
        }
        stage.server.store().put_with(BUCKET, &full, &bytes, attributes).unwrap();
    }

    fn read(self, stage: &Stage, round: u64) -> Tree {
        let mut tree = Tree::new();
        match self.location(stage, round) {
            Location::Local(root) => read_folder(&root, "", &mut tree),
            at => {
                let prefix = format!("{}-{round}/", self.name);
                let at = match at {
                    Location::Object { provider, .. } => Location::object(provider, BUCKET, prefix.as_str()),
                    other => other,
                };
                let mut listing = stage.client.list(ListRequest::new(at).recursive(true));
                while let Some(entry) = listing.next_blocking() {
                    let meta = match entry {
                        Ok(Entry::Object(meta)) => meta,
                        Ok(_) => continue,
                        Err(error) if error.is_not_found() => break,
                        Err(error) => panic!("{error}"),
                    };
                    if meta.id.key == prefix {
                        continue;
                    }
                    let kept = meta.metadata.as_ref().and_then(|m| m.get("goog-reserved-file-mtime"));
                    let seen = Seen {
                        bytes: stage.stored(&meta.id.key),
                        changed: meta.updated.unwrap(),
                        mtime: kept.map(|seconds| seconds.parse().unwrap()),
                        kept: stage.server.store().object(BUCKET, &meta.id.key).and_then(|object| {
                            let kept = object.attributes.metadata.get("goog-reserved-file-mtime")?;
                            Some(kept.parse().unwrap())
                        }),
                    };
                    tree.insert(meta.id.key[prefix.len()..].to_owned(), seen);
                }
            }
        }
        tree
    }
}

fn read_folder(folder: &Path, below: &str, tree: &mut Tree) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            read_folder(&entry.path(), &format!("{name}/"), tree);
            continue;
        }
        let changed = entry.metadata().unwrap().modified().unwrap();
        let mtime = Some(changed.duration_since(UNIX_EPOCH).unwrap().as_secs());
        tree.insert(name, Seen { bytes: std::fs::read(entry.path()).unwrap(), changed, mtime, kept: None });
    }
}

#[derive(Debug)]
struct Flags {
    delete: bool,
    allow_empty: bool,
    max_delete: Option<u64>,
    dry_run: bool,
    checksum: bool,
    existing: bool,
    ignore_existing: bool,
    preserve: bool,
    small: bool,
    filter: usize,
}

impl Flags {
    fn drawn(random: &mut Random) -> Self {
        let existing = random.one_in(5);
        Self {
            delete: !random.one_in(3),
            allow_empty: random.one_in(2),
            max_delete: random.one_in(3).then(|| u64::from(random.below(4))),
            dry_run: random.one_in(6),
            checksum: random.one_in(3),
            existing,
            ignore_existing: !existing && random.one_in(5),
            preserve: random.one_in(3),
            small: random.one_in(4),
            filter: if random.one_in(2) { 0 } else { usize::from(random.below(FILTERS.len() as u8)) },
        }
    }

    fn request(&self, source: Location, destination: Location) -> SyncRequest {
        let mut filter = Filter::default().lines(FILTERS[self.filter].0).unwrap();
        if self.small {
            filter = filter.max_size(SIZE_MAX);
        }
        let request = SyncRequest::new(source, destination)
            .delete(self.delete)
            .allow_empty(self.allow_empty)
            .dry_run(self.dry_run)
            .checksum(self.checksum)
            .existing(self.existing)
            .ignore_existing(self.ignore_existing)
            .preserve(self.preserve)
            .filter(filter);
        match self.max_delete {
            Some(max) => request.max_delete(max),
            None => request,
        }
    }

    fn takes(&self, name: &str, seen: &Seen) -> bool {
        FILTERS[self.filter].1(name) && (!self.small || seen.bytes.len() as u64 <= SIZE_MAX)
    }
}

/// Returns true if `time` is before `other`. Both are compared at the resolution in which `time` is stored.
fn is_older(time: SystemTime, other: SystemTime) -> bool {
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let (time, other) = (nanos(time), nanos(other));
    let unit = [1_000_000_000, 1_000_000, 1_000, 1].into_iter().find(|unit| time % unit == 0).unwrap();
    time / unit < other / unit
}

/// The expected tree and the expected report.
struct Expected {
    tree: BTreeMap<String, Vec<u8>>,
    copied: u64,
    removed: u64,
    unchanged: u64,
    refused: bool,
}

fn model(source: &Tree, destination: &Tree, flags: &Flags, to_disk: bool) -> Expected {
    let contents = |tree: &Tree| tree.iter().map(|(name, seen)| (name.clone(), seen.bytes.clone())).collect();
    let mut expected =
        Expected { tree: contents(destination), copied: 0, removed: 0, unchanged: 0, refused: false };
    let taken: Tree = source
        .iter()
        .filter(|(name, seen)| flags.takes(name, seen))
        .map(|(n, s)| (n.clone(), s.clone()))
        .collect();
    for (name, seen) in &taken {
        let there = destination.get(name);
        let is_copied = match there {
            None => !flags.existing,
            Some(_) if flags.ignore_existing => false,
            Some(there) if flags.checksum => there.bytes != seen.bytes,
            Some(there) if there.bytes.len() != seen.bytes.len() => true,
            Some(there) => {
                let is_newer = match (seen.mtime, there.mtime) {
                    (Some(a), Some(b)) => a != b,
                    // S3's listings don't contain the file's time. The time in the metadata counts only if the sync
                    // gives files their objects' times.
                    (None, Some(mtime)) if to_disk && flags.preserve && seen.kept == Some(mtime) => false,
                    _ => is_older(there.changed, seen.changed),
                };
                let gets_time =
                    (flags.preserve || to_disk) && (seen.mtime.is_some() || flags.preserve && to_disk);
                is_newer && (gets_time || there.bytes != seen.bytes)
            }
        };
        if is_copied {
            expected.copied += 1;
            expected.tree.insert(name.clone(), seen.bytes.clone());
        } else if there.is_some() && !flags.ignore_existing {
            expected.unchanged += 1;
        }
    }
    let extra = |(name, there): &(&String, &Seen)| !source.contains_key(*name) && flags.takes(name, there);
    let extra: Vec<&String> = destination.iter().filter(extra).map(|(name, _)| name).collect();
    if flags.delete && !extra.is_empty() {
        let is_emptying = taken.is_empty() && !flags.allow_empty;
        if is_emptying || flags.max_delete.is_some_and(|max| extra.len() as u64 > max) {
            expected.refused = true;
        } else {
            expected.removed = extra.len() as u64;
            extra.into_iter().for_each(|name| drop(expected.tree.remove(name)));
        }
    }
    if flags.dry_run {
        expected.tree = contents(destination);
    }
    expected
}

fn rounds(stage: &Stage, source: End, destination: End, seed: u64) {
    for round in 0..ROUNDS {
        let mut random = Random::new(seed * 1000 + round);
        let empty = random.one_in(12);
        // Create the source even if it is empty.
        match source.store {
            None => std::fs::create_dir_all(stage.path(&format!("{}-{round}", source.name))).unwrap(),
            Some(_) => stage.object(&format!("{}-{round}/", source.name), b""),
        }
        for name in NAMES {
            let (mut here, mut there) = (!empty && random.below(3) > 0, random.below(3) > 0);
            // Write in a random order, because stores report the time of each write.
            while here || there {
                if here && random.one_in(2) {
                    source.write(stage, round, name, &mut random);
                    here = false;
                } else if there && random.one_in(2) {
                    destination.write(stage, round, name, &mut random);
                    there = false;
                }
            }
        }
        let flags = Flags::drawn(&mut random);
        let (from, to) = (source.read(stage, round), destination.read(stage, round));
        let expected = model(&from, &to, &flags, destination.store.is_none());
        let request = flags.request(source.location(stage, round), destination.location(stage, round));
        let report = Report::of(stage.client.sync(request.clone()));
        let what =
            format!("{source:?} -> {destination:?}, round {round}, {flags:?}\n{from:?}\n{to:?}\n{report:?}");
        let summary = &report.summary;
        let counted = (summary.files, summary.removed, summary.unchanged, summary.failed);
        let refused = u64::from(expected.refused);
        assert_eq!(counted, (expected.copied, expected.removed, expected.unchanged, refused), "{what}");
        let now = destination.read(stage, round);
        let contents: BTreeMap<_, _> = now.into_iter().map(|(name, seen)| (name, seen.bytes)).collect();
        assert_eq!(contents, expected.tree, "{what}");
        assert_eq!(source.read(stage, round), from, "{what}");
        let from_the_future = from.values().any(|seen| seen.changed > SystemTime::now());
        if !flags.dry_run && !from_the_future && !expected.refused {
            let again = Report::of(stage.client.sync(request));
            assert_eq!((again.summary.files, again.summary.removed), (0, 0), "{what}\nagain: {again:?}");
        }
    }
}

#[test]
fn whatever_differs_and_is_asked_for_the_outcome_is_the_models() {
    let stage = Stage::new(DIALECTS[0]);
    let end = |store, name| End { store, name };
    let [gcs, s3] = [Some(Provider::Gcs), Some(Provider::S3)];
    for (seed, (source, destination)) in (1..).zip([
        (end(None, "up-gcs-from"), end(gcs, "up-gcs")),
        (end(None, "up-s3-from"), end(s3, "up-s3")),
        (end(gcs, "down-gcs"), end(None, "down-gcs-to")),
        (end(s3, "down-s3"), end(None, "down-s3-to")),
        (end(gcs, "over"), end(s3, "over-to")),
        (end(s3, "back"), end(gcs, "back-to")),
        (end(gcs, "within-gcs"), end(gcs, "within-gcs-to")),
        (end(s3, "within-s3"), end(s3, "within-s3-to")),
    ]) {
        rounds(&stage, source, destination, seed);
    }
}
