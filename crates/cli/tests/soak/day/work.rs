//! The workers. Each runs the program on its own keys.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use laneway_testkit::{Endpoint, Program, Running, differences};

use super::DayStore;
use super::Tokens;
use super::{TICK, Times};
use crate::LANEWAY;
use crate::model::Content;

const TREE_FILES: usize = 24;
const SYNCED_FILES: usize = 12;
/// A size that needs several requests, and several slices.
const LARGE_BYTES: usize = 17 << 20;
const SMALL_BYTES: usize = 30_000;
const SLOW_BYTES: usize = 64 << 10;
/// Number of concurrent readers of the hot object. The credential server hangs at every third request. With three or four readers, one
/// reader could send two requests at which the server hangs.
const READERS: usize = 2;

/// A kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WorkKind {
    /// Uploads, downloads, moves and removes trees.
    Trees,
    /// Keeps a folder, the store and another folder in sync.
    Sync,
    /// Uploads, downloads, moves and removes large objects.
    Large,
    /// Writes one object in one dialect while several readers read it in the other.
    Hot,
    /// Uploads and downloads one tree, which takes longer than credentials last.
    Slow,
}

impl WorkKind {
    pub(super) const ALL: [Self; 5] = [Self::Trees, Self::Sync, Self::Large, Self::Hot, Self::Slow];

    fn name(self) -> &'static str {
        match self {
            Self::Trees => "trees",
            Self::Sync => "sync",
            Self::Large => "large",
            Self::Hot => "hot",
            Self::Slow => "slow",
        }
    }
}

/// A write to a key.
#[derive(Debug)]
pub(super) struct Write {
    /// `None` is a removal.
    pub(super) content: Option<Content>,
    /// The write requires that no object exists, so that a retry doesn't write it twice.
    pub(super) once: bool,
}

pub(super) struct Worker {
    kind: WorkKind,
    program: Program,
    /// The worker's own credential server. The server hangs at every third request, so it hangs at most once during a command.
    tokens: Tokens,
    folder: PathBuf,
    retry_for: &'static str,
    /// The writes to each key, in order.
    writes: BTreeMap<String, Vec<Write>>,
    /// The number of contents made so far. It is added to each content's size, so no two versions of a file have the same size.
    made: usize,
    rounds: usize,
    commands: usize,
    longest: Duration,
}

impl Worker {
    pub(super) fn new(kind: WorkKind, times: &Times, store: &DayStore, port: u16) -> Self {
        let (url, tokens) = (format!("http://127.0.0.1:{port}"), Tokens::serve());
        let program = Program::new(LANEWAY, store.folder(&format!("home-{}", kind.name())))
            .with("STORAGE_EMULATOR_HOST", &url)
            .with("AWS_ENDPOINT_URL_S3", &url)
            .with("AWS_REGION", laneway_server::S3Config::default().region)
            .with("AWS_CONTAINER_CREDENTIALS_FULL_URI", tokens.url())
            .with_time_max(times.command);
        Self {
            kind,
            program,
            tokens,
            folder: store.folder(kind.name()),
            retry_for: times.retry_for,
            writes: BTreeMap::new(),
            made: 0,
            rounds: 0,
            commands: 0,
            longest: Duration::ZERO,
        }
    }

    /// Works until the day is over, or until another worker fails.
    pub(super) fn work(mut self, times: &Times, began: Instant, over: &AtomicBool) -> Self {
        let until = began + times.lasts;
        while Instant::now() < until && !over.load(Relaxed) {
            let next = (Instant::now() + times.round).min(until);
            match self.kind {
                WorkKind::Trees => self.trees(),
                WorkKind::Sync => self.sync(),
                WorkKind::Large => self.large(),
                WorkKind::Hot => self.hot(),
                WorkKind::Slow if self.rounds == 0 => self.slow(times),
                WorkKind::Slow => {}
            }
            self.rounds += 1;
            while Instant::now() < next && !over.load(Relaxed) {
                thread::sleep(TICK);
            }
        }
        self
    }

    /// Returns how often the worker's credential server hung.
    pub(super) fn hung(&self) -> usize {
        self.tokens.hung()
    }

    /// Returns the writes to the worker's keys.
    pub(super) fn writes(&self) -> impl Iterator<Item = (&String, &Vec<Write>)> {
        self.writes.iter()
    }

    fn trees(&mut self) {
        let (round, up, down) = (self.rounds, self.folder.join("up"), self.folder.join("down"));
        let tree = self.tree(&up, TREE_FILES, SMALL_BYTES);
        let (there, moved) = (format!("trees/{round}/"), format!("moved/{round}/"));
        self.run(&["cp", "-r", "-n", &contents(&up), &s3(&there)]);
        self.wrote(&there, &tree, true);
        self.download(&there, &down);
        same(&up, &down);
        // With a slash at its end, the destination would contain the tree's own folder.
        self.run(&["mv", "-r", &s3(&there), s3(&moved).trim_end_matches('/')]);
        self.wrote(&moved, &tree, false);
        self.removed(&there, tree.keys());
        if round.is_multiple_of(2) {
            self.run(&["rm", "-r", "--yes", &s3(&moved)]);
            self.removed(&moved, tree.keys());
        }
        remove([&up, &down]);
    }

    /// Each round replaces a third of the files and removes one.
    fn sync(&mut self) {
        let (round, up, down) = (self.rounds, self.folder.join("up"), self.folder.join("down"));
        for name in (0..SYNCED_FILES).filter(|n| (n + round).is_multiple_of(3)) {
            let content = self.file(&up.join(name.to_string()), SMALL_BYTES);
            self.wrote("sync/", &[(name.to_string(), content)].into(), false);
        }
        // A file that this round doesn't replace.
        let gone = ((2 * round + 1) % SYNCED_FILES).to_string();
        if fs::remove_file(up.join(&gone)).is_ok() {
            self.removed("sync/", [&gone]);
        }
        fs::create_dir_all(&down).expect("made");
        self.run(&["sync", "--delete", text(&up), &s3("sync/")]);
        self.run(&["sync", "--delete", &s3("sync/"), text(&down)]);
        same(&up, &down);
    }

    fn large(&mut self) {
        let (round, up, down) = (self.rounds, self.folder.join("up"), self.folder.join("down"));
        let file = BTreeMap::from([(round.to_string(), self.file(&up.join("file"), LARGE_BYTES))]);
        let (there, moved) = (format!("large/{round}"), format!("moved-large/{round}"));
        self.run(&["cp", "-n", text(&up.join("file")), &s3(&there)]);
        self.wrote("large/", &file, true);
        fs::create_dir_all(&down).expect("a folder is made");
        self.run(&["cp", &s3(&there), text(&down.join("file"))]);
        same(&up, &down);
        self.run(&["mv", &s3(&there), &s3(&moved)]);
        self.wrote("moved-large/", &file, false);
        self.removed("large/", file.keys());
        if round.is_multiple_of(2) {
            self.run(&["rm", &s3(&moved)]);
            self.removed("moved-large/", file.keys());
        }
        remove([&up, &down]);
    }

    fn hot(&mut self) {
        let file = self.folder.join("file");
        let content = self.file(&file, SMALL_BYTES);
        self.run(&["cp", text(&file), &format!("gs://{}/hot/object", Endpoint::BUCKET)]);
        self.wrote("hot/", &[("object".to_owned(), content)].into(), false);
        let readers = [(); READERS].map(|()| self.start(&["cat", &s3("hot/object")]));
        for reader in readers {
            assert!(content.is(&self.ended("cat", reader)), "the hot object has other bytes");
        }
    }

    fn slow(&mut self, times: &Times) {
        let (up, down) = (self.folder.join("up"), self.folder.join("down"));
        let tree = self.tree(&up, times.slow_files, SLOW_BYTES);
        let rate = (times.slow_files * SLOW_BYTES) as u64 / (times.lasts / 3).as_secs();
        let limit = format!("{rate}B/s");
        self.run(&["cp", "-r", "-n", "--bandwidth-limit", &limit, &contents(&up), &s3("slow/")]);
        self.wrote("slow/", &tree, true);
        self.run(&["cp", "-r", "--bandwidth-limit", &limit, &s3("slow/"), text(&down)]);
        same(&up, &down);
    }

    fn download(&mut self, prefix: &str, folder: &Path) {
        self.run(&["cp", "-r", &s3(prefix), text(folder)]);
    }

    fn start(&self, arguments: &[&str]) -> (Instant, Running) {
        let running = self.program.start(arguments.iter().chain(&["--retry-for", self.retry_for]));
        (Instant::now(), running)
    }

    /// Runs a command and returns its standard output.
    ///
    /// # Panics
    ///
    /// If the command fails.
    #[track_caller]
    fn ended(&mut self, what: &str, (began, running): (Instant, Running)) -> Vec<u8> {
        let run = running.end();
        let took = began.elapsed();
        assert!(
            run.status == Some(0),
            "{} {what} ended with {:?} after {took:?}: {}",
            self.kind.name(),
            run.status,
            run.stderr
        );
        self.commands += 1;
        self.longest = self.longest.max(took);
        run.stdout
    }

    #[track_caller]
    fn run(&mut self, arguments: &[&str]) {
        let running = self.start(arguments);
        self.ended(&arguments.join(" "), running);
    }

    /// Writes a file with new content.
    fn file(&mut self, path: &Path, bytes: usize) -> Content {
        self.made += 1;
        let content = Content::new((self.kind as u64) << 48 | self.made as u64, bytes + self.made);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content.bytes()).expect("written");
        content
    }

    /// Creates a tree in nested folders, and returns its names and contents.
    fn tree(&mut self, folder: &Path, files: usize, bytes: usize) -> BTreeMap<String, Content> {
        let names = (0..files).map(|n| format!("{}/é {n}", n % 5));
        names.map(|name| (name.clone(), self.file(&folder.join(name), bytes))).collect()
    }

    fn wrote(&mut self, prefix: &str, tree: &BTreeMap<String, Content>, once: bool) {
        for (name, content) in tree {
            self.note(format!("{prefix}{name}"), Write { content: Some(*content), once });
        }
    }

    fn removed<'n>(&mut self, prefix: &str, names: impl IntoIterator<Item = &'n String>) {
        for name in names {
            self.note(format!("{prefix}{name}"), Write { content: None, once: false });
        }
    }

    fn note(&mut self, key: String, write: Write) {
        self.writes.entry(key).or_default().push(write);
    }
}

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, tokens, rounds, commands, longest, .. } = self;
        let name = kind.name();
        write!(f, "{name}: {rounds} rounds, {commands} commands, the longest took {longest:.1?}; {tokens}")
    }
}

fn s3(key: &str) -> String {
    format!("s3://{}/{key}", Endpoint::BUCKET)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

/// Returns a folder's path with `/.` appended, which stands for its contents.
fn contents(folder: &Path) -> String {
    format!("{}/.", text(folder))
}

#[track_caller]
fn same(expected: &Path, found: &Path) {
    assert_eq!(differences(expected, found), Vec::<String>::new());
}

fn remove(folders: [&Path; 2]) {
    for folder in folders {
        fs::remove_dir_all(folder).expect("removed");
    }
}
