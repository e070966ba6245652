//! The operations of the matrix: their set-up, their calls and the state that each must leave.

mod trees;

use std::path::Path;

use Operation::*;
use Way::*;
use futures_util::{StreamExt as _, TryStreamExt as _};
use laneway::{
    Client, CopyRequest, Error, Event, Job, Location, MetaChange, Outcome, Provider, ReadRequest,
    SetMetaRequest, SyncRequest,
};
use laneway_testkit::{Endpoint, inverted};

use crate::faults::Class;
use crate::rig::{LARGE_BYTES, RANGED, RANGED_BYTES, Rig, SMALL, SMALL_BYTES, other};
pub(crate) use trees::Tree;

/// The subject of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum About {
    /// The answer holds the bytes of a whole object.
    Content,
    /// The answer holds one slice of a large object. Its version must match the other slices.
    Slice,
    /// The answer holds a range. Only Azure sends checksums of ranges.
    Range,
    /// The answer holds a document that Laneway parses.
    Document,
    /// The answer consists of headers.
    Headers,
    /// The request writes, and the answer describes the object written.
    Write,
    /// The request begins an upload, and the answer names it.
    Begin,
    /// The request removes objects.
    Removal,
}

/// A request that a fault hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Strike {
    pub(crate) operation: Operation,
    pub(crate) verb: &'static str,
    /// The request's number among those of its verb, from 1.
    pub(crate) nth: u32,
    pub(crate) about: About,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    GetFile,
    GetLargeFile,
    GetBytes,
    GetRange,
    GetRanges,
    ReadLarge,
    PutFile,
    PutBytes,
    PutLargeFile,
    PutNewLargeFile,
    List,
    Head,
    Copy,
    Delete,
    DeleteMany,
    SetMeta,
    SyncUp,
    SyncDown,
    /// Copies a large object from one dialect to another.
    CopyLargeAcross,
    Move(Way),
    Of(Tree),
}

const fn strike(operation: Operation, verb: &'static str, nth: u32, about: About) -> Strike {
    Strike { operation, verb, nth, about }
}

/// The requests to hit in every dialect.
pub(crate) const STRIKES: [Strike; 38] = [
    strike(GetFile, "get", 1, About::Content),
    strike(GetLargeFile, "get", 1, About::Slice),
    strike(GetLargeFile, "get", 2, About::Slice),
    strike(GetBytes, "get", 1, About::Content),
    strike(GetRange, "get", 1, About::Range),
    strike(GetRanges, "get", 2, About::Range),
    strike(ReadLarge, "get", 1, About::Slice),
    strike(ReadLarge, "get", 2, About::Slice),
    strike(PutFile, "put", 1, About::Write),
    strike(PutBytes, "put", 1, About::Write),
    strike(PutLargeFile, "begin", 1, About::Begin),
    strike(PutLargeFile, "part", 1, About::Write),
    strike(PutLargeFile, "complete", 1, About::Write),
    strike(PutNewLargeFile, "part", 1, About::Write),
    strike(List, "list", 1, About::Document),
    strike(Head, "head", 1, About::Headers),
    strike(Copy, "copy", 1, About::Write),
    strike(Delete, "delete", 1, About::Removal),
    strike(SyncUp, "list", 1, About::Document),
    strike(SyncUp, "put", 1, About::Write),
    strike(SyncDown, "get", 1, About::Content),
    strike(CopyLargeAcross, "get", 2, About::Slice),
    strike(CopyLargeAcross, "begin", 1, About::Begin),
    strike(CopyLargeAcross, "part", 1, About::Write),
    strike(CopyLargeAcross, "complete", 1, About::Write),
    strike(Move(Way::Up), "put", 1, About::Write),
    strike(Move(Way::Down), "get", 1, About::Content),
    strike(Move(Way::Down), "delete", 1, About::Removal),
    strike(Move(Way::Within), "copy", 1, About::Write),
    strike(Move(Way::Across), "head", 1, About::Headers),
    strike(Move(Way::Across), "get", 1, About::Content),
    strike(Move(Way::Across), "put", 1, About::Write),
    strike(Move(Way::Across), "delete", 1, About::Removal),
    strike(Of(Tree::Remove), "list", 1, About::Document),
    strike(Of(Tree::Verify), "list", 1, About::Document),
    strike(Of(Tree::SyncAcross), "list", 1, About::Document),
    strike(Of(Tree::SyncAcross), "get", 1, About::Content),
    strike(Of(Tree::SyncAcross), "put", 1, About::Write),
];

/// Returns the requests that not every dialect sends.
pub(crate) fn strikes_of(provider: Provider) -> Vec<Strike> {
    // A sync between the dialects removes objects in the other dialect. On GCS, the sync removes them one by one, each
    // with its generation.
    let (batch, removal_across, description) = match provider {
        Provider::Gcs => ("batch", "delete-many", "patch"),
        Provider::Azure => ("batch", "delete", "patch"),
        _ => ("delete-many", "batch", "copy"),
    };
    // GCS moves an object by one request. Before that, Laneway looks the object up.
    let (moving, of_move) = match provider {
        Provider::Gcs => ("head", About::Headers),
        _ => ("delete", About::Removal),
    };
    // Azure binds a copy to the state of its source, so Laneway looks the source up.
    let of_copy = (provider == Provider::Azure).then(|| strike(Copy, "head", 1, About::Headers));
    let all = [
        strike(Move(Way::Within), moving, 1, of_move),
        strike(DeleteMany, batch, 1, About::Removal),
        strike(Of(Tree::Remove), batch, 1, About::Removal),
        strike(Of(Tree::SyncAcross), removal_across, 1, About::Removal),
        strike(SetMeta, description, 1, About::Write),
    ];
    all.into_iter().chain(of_copy).collect()
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            GetFile => "get-file",
            GetLargeFile => "get-large-file",
            GetBytes => "get-bytes",
            GetRange => "get-range",
            GetRanges => "get-ranges",
            ReadLarge => "read-large",
            PutFile => "put-file",
            PutBytes => "put-bytes",
            PutLargeFile => "put-large-file",
            PutNewLargeFile => "put-new-large-file",
            List => "list",
            Head => "head",
            Copy => "copy",
            Delete => "delete",
            DeleteMany => "delete-many",
            SetMeta => "set-meta",
            SyncUp => "sync-up",
            SyncDown => "sync-down",
            CopyLargeAcross => "copy-large-across",
            Move(way) => way.name(),
            Of(tree) => tree.name(),
        }
    }

    /// Returns the maximum number of requests that the operation needs without faults.
    pub(crate) fn requests_max(self) -> u64 {
        match self {
            GetFile | GetBytes | GetRange | PutFile | PutBytes | List | Head | Delete | DeleteMany => 1,
            Copy => 2,
            SetMeta => 3,
            GetRanges => 3,
            GetLargeFile | ReadLarge => 6,
            PutLargeFile | PutNewLargeFile => 6,
            SyncUp | SyncDown => 4,
            CopyLargeAcross => 10,
            Move(way) => way.requests_max(),
            Of(tree) => tree.requests_max(),
        }
    }

    /// Returns true if a failed operation keeps its partial file for the next run.
    pub(crate) fn keeps_partial_file(self) -> bool {
        self == GetLargeFile
    }

    /// Creates the objects and files that the operation reads or replaces.
    pub(crate) fn prepare(self, rig: &Rig) {
        let old = |name: &str| std::fs::write(rig.work().join(name), "old").unwrap();
        match self {
            GetFile => {
                rig.endpoint.put("k", &SMALL_BYTES);
                old("k");
            }
            GetLargeFile => {
                rig.endpoint.put("k", &LARGE_BYTES);
                old("k");
            }
            GetBytes | Head | Copy | Delete | SetMeta => rig.endpoint.put("k", &SMALL_BYTES),
            GetRange | GetRanges => rig.endpoint.put("k", &RANGED_BYTES),
            ReadLarge | CopyLargeAcross => rig.endpoint.put("k", &LARGE_BYTES),
            PutFile | PutBytes => rig.endpoint.put("k", b"old"),
            PutLargeFile => rig.endpoint.put("k", b"old"),
            PutNewLargeFile => {}
            List | DeleteMany => {
                for i in 0..5 {
                    rig.endpoint.put(&format!("k{i}"), b"x");
                }
            }
            SyncUp => {
                for name in ["a", "b"] {
                    std::fs::write(rig.work().join(name), &*SMALL_BYTES).unwrap();
                }
            }
            SyncDown => {
                for name in ["a", "b"] {
                    rig.endpoint.put(&format!("t/{name}"), &SMALL_BYTES);
                }
            }
            Move(way) => way.prepare(rig),
            Of(tree) => tree.prepare(rig),
        }
    }

    /// Runs the operation under a fault of this class and compares its result with the stored bytes.
    pub(crate) fn carry_out(self, rig: &Rig, client: &Client, fault: Class) -> Result<(), Ended> {
        let bucket = rig.bucket(client);
        match self {
            GetFile | GetLargeFile => {
                one(client.copy(CopyRequest::new(vec![rig.url("k")], rig.work().join("k").as_path().into())))
            }
            GetBytes => same(&bucket.get("k").call()?.bytes_blocking()?, &SMALL_BYTES),
            GetRange => {
                same(&bucket.get("k").range(1000..1900).call()?.bytes_blocking()?, &RANGED_BYTES[1000..1900])
            }
            GetRanges => {
                let ranges = RANGES.map(|at| at..at + 900);
                let read = bucket
                    .get_ranges("k", ranges.map(|range| range.start as u64..range.end as u64))
                    .call()?;
                let all: Vec<u8> = read.concat();
                let there: Vec<u8> =
                    RANGES.iter().flat_map(|at| RANGED_BYTES[*at..at + 900].to_vec()).collect();
                same(&all, &there)
            }
            ReadLarge => {
                let mut read = Vec::new();
                let outcome = client.read(&ReadRequest::new(rig.url("k")), &mut read);
                let is_right = LARGE_BYTES.starts_with(&read) || inverted(&LARGE_BYTES).starts_with(&read);
                // Laneway verifies a slice's checksum after it has delivered the slice's bytes, so a flipped bit may be delivered.
                // Laneway detects all other faults earlier.
                if !is_right && fault != Class::Corruption {
                    return Err(Ended::Wrong("what was written before is wrong".into()));
                }
                outcome?;
                same(&read, &LARGE_BYTES)
            }
            PutFile => {
                one(client.copy(CopyRequest::new(vec![Location::Local(rig.source("small"))], rig.url("k"))))
            }
            PutBytes => bucket.put("k", SMALL_BYTES.clone()).call().map(drop).map_err(Ended::from),
            PutLargeFile => {
                one(client.copy(CopyRequest::new(vec![Location::Local(rig.source("large"))], rig.url("k"))))
            }
            PutNewLargeFile => {
                let request = CopyRequest::new(vec![Location::Local(rig.source("large"))], rig.url("k"));
                one(client.copy(request.no_clobber(true)))
            }
            List => {
                let found: Vec<_> = pollster::block_on(bucket.list("").try_collect())?;
                let found: Vec<_> = found.iter().map(|meta| (meta.id.key.as_str(), meta.size)).collect();
                let there = [("k0", 1), ("k1", 1), ("k2", 1), ("k3", 1), ("k4", 1)];
                if found == there { Ok(()) } else { Err(Ended::Wrong(format!("{found:?}"))) }
            }
            Head => {
                let meta = bucket.head("k").call()?;
                if meta.size == SMALL as u64 { Ok(()) } else { Err(Ended::Wrong(format!("{meta:?}"))) }
            }
            Copy => bucket.copy("k", "copied").call().map(drop).map_err(Ended::from),
            Delete => bucket.delete("k").call().map_err(Ended::from),
            DeleteMany => {
                let keys = futures_util::stream::iter((0..5).map(|i| format!("k{i}")));
                let ends: Vec<_> = pollster::block_on(bucket.delete_many(keys).collect());
                if ends.len() != 5 {
                    return Err(Ended::Wrong(format!("{} keys have ended", ends.len())));
                }
                ends.into_iter().try_for_each(|(_, end)| end).map_err(Ended::from)
            }
            SetMeta => {
                let change = MetaChange::default().content_type("text/x");
                one(client.set_meta(SetMetaRequest::new(vec![rig.url("k")], change)))
            }
            SyncUp => one(client.sync(SyncRequest::new(rig.work().as_path().into(), rig.url("t")))),
            SyncDown => one(client.sync(SyncRequest::new(rig.url("t"), rig.work().as_path().into()))),
            CopyLargeAcross => {
                one(client.copy(CopyRequest::new(vec![rig.url("k")], rig.url_across("copied"))))
            }
            Move(way) => way.carry_out(rig, client),
            Of(tree) => tree.carry_out(rig, client),
        }
    }

    /// Checks the state of bucket and folder after the operation, and describes what is wrong.
    pub(crate) fn leftover(self, rig: &Rig, succeeded: bool) -> Result<(), String> {
        let file = |name: &str| std::fs::read(rig.work().join(name)).ok();
        match self {
            GetFile | GetLargeFile => {
                let bytes: &[u8] = if self == GetFile { &SMALL_BYTES } else { &LARGE_BYTES };
                let there = file("k").unwrap_or_default();
                match succeeded {
                    true => demand(there == bytes || there == inverted(bytes), "the file is not the object"),
                    false => demand(there == b"old", "the old file is gone"),
                }
            }
            GetBytes | GetRange | GetRanges | ReadLarge | List | Head => Ok(()),
            PutFile | PutBytes | PutLargeFile | PutNewLargeFile => {
                let bytes: &[u8] =
                    if matches!(self, PutFile | PutBytes) { &SMALL_BYTES } else { &LARGE_BYTES };
                let there = rig.endpoint.stored("k");
                let is_new = there.as_deref() == Some(bytes);
                let is_old = there.as_deref() == Some(b"old") || self == PutNewLargeFile && there.is_none();
                demand(is_new || is_old && !succeeded, "the object is neither old nor new")
            }
            Copy | CopyLargeAcross => {
                let bytes: &[u8] = if self == Copy { &SMALL_BYTES } else { &LARGE_BYTES };
                let there = rig.endpoint.stored("copied");
                // A copy inside the store is one step. While a copy through this machine runs, another writer may replace the
                // object.
                let is_copied = there.as_deref().is_some_and(|there| {
                    there == bytes || self == CopyLargeAcross && there == inverted(bytes)
                });
                demand(is_copied || there.is_none() && !succeeded, "the copy is not the object")
            }
            Delete => demand(!succeeded || rig.endpoint.stored("k").is_none(), "the object is still there"),
            DeleteMany => demand(!succeeded || rig.endpoint.keys().is_empty(), "objects are still there"),
            SetMeta => {
                let object = rig
                    .endpoint
                    .server()
                    .store()
                    .object(Endpoint::BUCKET, "k")
                    .ok_or("the object is gone")?;
                let is_so = object.attributes.content_type.as_deref() == Some("text/x");
                demand(is_so || !succeeded, "the metadata is unchanged")?;
                demand(rig.endpoint.stored("k").as_deref() == Some(&SMALL_BYTES), "the bytes have changed")
            }
            SyncUp | SyncDown => {
                for name in ["a", "b"] {
                    let there =
                        if self == SyncUp { rig.endpoint.stored(&format!("t/{name}")) } else { file(name) };
                    let is_there =
                        there.as_deref() == Some(&SMALL_BYTES) || there == Some(inverted(&SMALL_BYTES));
                    demand(is_there || there.is_none() && !succeeded, name)?;
                }
                Ok(())
            }
            Move(way) => way.leftover(rig, succeeded),
            Of(tree) => tree.leftover(rig, succeeded),
        }
    }

    /// Returns the files that may be in the folder afterwards.
    pub(crate) fn files(self) -> &'static [&'static str] {
        match self {
            GetFile | GetLargeFile => &["k"],
            SyncUp | SyncDown => &["a", "b"],
            Move(way) => way.files(),
            Of(tree) => tree.files(),
            _ => &[],
        }
    }

    /// Returns the dialect of a request. A copy between dialects writes in another dialect, and a sync between them also removes
    /// objects there.
    pub(crate) fn dialect(self, about: About, provider: Provider) -> Provider {
        let is_across = match self {
            CopyLargeAcross | Move(Way::Across) => matches!(about, About::Write | About::Begin),
            Of(Tree::SyncAcross) => matches!(about, About::Write | About::Removal),
            _ => false,
        };
        if is_across { other(provider) } else { provider }
    }
}

/// Offsets of the ranges that one call reads.
const RANGES: [usize; 3] = [10, 2 << 20, 4 << 20];

const _: () = assert!(RANGES[2] + 900 < RANGED);

/// The ways in which an operation can fail.
#[derive(Debug)]
#[expect(dead_code, reason = "shown in messages")]
pub(crate) enum Ended {
    /// The operation failed with an error of this kind.
    Failed { kind: &'static str, text: String },
    /// The operation reported success, but the result is wrong.
    Wrong(String),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed { kind: error.kind().name(), text: error.to_string() }
    }
}

fn demand(is_so: bool, what: &str) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what.to_owned()) }
}

fn same(read: &[u8], bytes: &[u8]) -> Result<(), Ended> {
    if read == bytes || read == inverted(bytes) {
        return Ok(());
    }
    Err(Ended::Wrong(format!("{} other bytes instead of {}", read.len(), bytes.len())))
}

/// Runs a job to its end and returns its first failure.
fn one(mut job: Job) -> Result<(), Ended> {
    let mut ended = Ok(());
    while let Some(event) = job.next_blocking() {
        match event {
            Event::Item(item) => {
                if let Outcome::Failed(error) = item.outcome {
                    ended = ended.and(Err(Ended::from(error)));
                }
            }
            Event::Done(summary) if summary.failed > 0 && ended.is_ok() => {
                ended = Err(Ended::Wrong(format!("it failed without an error: {summary:?}")));
            }
            _ => {}
        }
    }
    ended
}

/// Returns true for a file that an unfinished download leaves behind.
pub(crate) fn is_partial(name: &str) -> bool {
    name.contains(".laneway-")
        && Path::new(name).extension().is_some_and(|end| end == "part" || end == "journal")
}

/// The direction of a move of one object or file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// From the folder to the store.
    Up,
    Down,
    /// Inside the store.
    Within,
    /// From one dialect to another.
    Across,
}

const SOURCE: &str = "source";
const DESTINATION: &str = "destination";

impl Way {
    fn name(self) -> &'static str {
        match self {
            Up => "move-up",
            Down => "move-down",
            Within => "move-within",
            Across => "move-across",
        }
    }

    fn requests_max(self) -> u64 {
        match self {
            Up => 1,
            Down => 2,
            Within => 3,
            Across => 5,
        }
    }

    fn prepare(self, rig: &Rig) {
        let file = |name: &str, bytes: &[u8]| std::fs::write(rig.work().join(name), bytes).unwrap();
        match self {
            Up => file(SOURCE, &SMALL_BYTES),
            Down | Within | Across => rig.endpoint.put(SOURCE, &SMALL_BYTES),
        }
        match self {
            Down => file(DESTINATION, b"old"),
            Up | Within | Across => rig.endpoint.put(DESTINATION, b"old"),
        }
    }

    fn carry_out(self, rig: &Rig, client: &Client) -> Result<(), Ended> {
        let file = |name: &str| Location::Local(rig.work().join(name));
        let source = if self == Up { file(SOURCE) } else { rig.url(SOURCE) };
        let destination = match self {
            Down => file(DESTINATION),
            Up | Within => rig.url(DESTINATION),
            Across => rig.url_across(DESTINATION),
        };
        one(client.copy(CopyRequest::new(vec![source], destination).remove_source(true)))
    }

    fn leftover(self, rig: &Rig, succeeded: bool) -> Result<(), String> {
        let file = |name: &str| std::fs::read(rig.work().join(name)).ok();
        let source = if self == Up { file(SOURCE) } else { rig.endpoint.stored(SOURCE) };
        let destination = if self == Down { file(DESTINATION) } else { rig.endpoint.stored(DESTINATION) };
        let is_whole = |there: &[u8]| there == *SMALL_BYTES || there == inverted(&SMALL_BYTES);
        let has_arrived = destination.as_deref().is_some_and(is_whole);
        let is_old = destination.as_deref() == Some(b"old");
        demand(has_arrived || is_old && !succeeded, "the destination is neither old nor the source")?;
        demand(source.is_some() || has_arrived, "the source is gone, and its copy is not there")?;
        demand(source.as_deref().is_none_or(is_whole), "the source has other bytes")?;
        demand(source.is_none() || !succeeded, "the source is still there")
    }

    /// Returns true if the object that another writer put in the source's place is still there.
    pub(crate) fn has_kept_replacement(rig: &Rig) -> bool {
        rig.endpoint.stored(SOURCE) == Some(inverted(&SMALL_BYTES))
    }

    fn files(self) -> &'static [&'static str] {
        match self {
            Up => &[SOURCE],
            Down => &[DESTINATION],
            Within | Across => &[],
        }
    }
}
