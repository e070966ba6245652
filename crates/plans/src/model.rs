//! A model of many runners that work on one plan while runners die, leases expire and answers get lost. All time is
//! virtual, and a seed decides every step.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use laneway::{Error, ErrorKind, Version};

use crate::claim::{ATTEMPTS_MAX, Claim, ClaimOutcome, Lease, StoreClock, check_conditions};
use crate::files::{FileState, PlanFiles};
use crate::format::{FORMAT, ResultSummary, VERSION};
use crate::runner::conclude;

const TERM: Duration = Duration::from_secs(60);
const PARTS: usize = 12;
const ROWS: u64 = 5;
/// This part kills every runner.
const DEADLY: usize = 3;

/// A stream of random numbers: splitmix64.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// A store in memory, whose clock the test sets.
#[derive(Debug)]
struct MemoryFiles {
    state: Mutex<MemoryState>,
    /// True if the store ignores the conditions of writes.
    is_lax: bool,
}

#[derive(Debug)]
struct MemoryState {
    files: BTreeMap<String, (Vec<u8>, u64, SystemTime)>,
    now: SystemTime,
    writes: u64,
    random: Random,
    /// One of so many writes is carried out, but its answer gets lost. 0 for none.
    lost_one_in: u64,
}

impl MemoryFiles {
    fn new(seed: u64, lost_one_in: u64) -> Self {
        let state = MemoryState {
            files: BTreeMap::new(),
            now: UNIX_EPOCH + Duration::from_secs(1_000_000),
            writes: 0,
            random: Random(seed),
            lost_one_in,
        };
        Self { state: Mutex::new(state), is_lax: false }
    }

    fn pass(&self, time: Duration) {
        self.state.lock().unwrap().now += time;
    }

    fn write(
        &self,
        name: &str,
        bytes: &[u8],
        if_version: Option<Option<u64>>,
    ) -> Result<Option<Version>, Error> {
        let mut state = self.state.lock().unwrap();
        let there = state.files.get(name).map(|(_, version, _)| *version);
        if if_version.is_some_and(|wanted| wanted != there) && !self.is_lax {
            return Ok(None);
        }
        state.writes += 1;
        let (version, now) = (state.writes, state.now);
        state.files.insert(name.to_owned(), (bytes.to_vec(), version, now));
        let lost = state.lost_one_in;
        if lost > 0 && state.random.one_in(lost) {
            return Err(laneway::internal::error(ErrorKind::Transport, name, "the answer was lost"));
        }
        Ok(Some(Version::Generation(version)))
    }
}

impl PlanFiles for MemoryFiles {
    fn read(&self, name: &str) -> Result<Option<FileState>, Error> {
        let state = self.state.lock().unwrap();
        Ok(state.files.get(name).map(|(bytes, version, changed)| FileState {
            bytes: bytes.clone(),
            version: Version::Generation(*version),
            changed: *changed,
        }))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Option<Version>, Error> {
        self.write(name, bytes, Some(None))
    }

    fn replace(&self, name: &str, bytes: &[u8], version: &Version) -> Result<Option<Version>, Error> {
        let Version::Generation(version) = version else { panic!("a generation") };
        self.write(name, bytes, Some(Some(*version)))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write(name, bytes, None).map(drop)
    }

    fn put_file(&self, name: &str, from: &Path) -> Result<(), Error> {
        let mut bytes = Vec::new();
        File::open(from).and_then(|mut file| file.read_to_end(&mut bytes)).unwrap();
        self.put(name, &bytes)
    }

    fn fetch(&self, name: &str, to: &mut File) -> Result<bool, Error> {
        let Some(file) = self.read(name)? else { return Ok(false) };
        to.write_all(&file.bytes).unwrap();
        Ok(true)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let state = self.state.lock().unwrap();
        Ok(state.files.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.state.lock().unwrap().files.remove(name);
        Ok(())
    }

    fn shown(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// A runner between two steps.
enum ModelRunner {
    Idle,
    /// Holds a part's lease, and has this many rows left.
    Busy {
        part: usize,
        lease: Lease,
        left: u64,
    },
}

fn claim_of(part: usize) -> String {
    format!("claims/{part}.json")
}

fn result_of(part: usize) -> String {
    format!("results/{part}.json")
}

fn summary(part: usize, runner: &str, attempt: u32) -> ResultSummary {
    ResultSummary {
        format: FORMAT.to_owned(),
        version: VERSION,
        part: part.to_string(),
        part_crc32c: String::new(),
        data: format!("results/{part}-{runner}-{attempt}"),
        data_size: 0,
        data_crc32c: String::new(),
        runner: runner.to_owned(),
        attempt,
        rows: ROWS,
        done: ROWS,
        skipped: 0,
        failed: 0,
        unverified: 0,
        bytes: 0,
        requests: 0,
        seconds: 0.0,
        failures: BTreeMap::new(),
    }
}

/// One step of a runner. Returns the runner's next state, or `None` if it dies.
fn step(
    files: &MemoryFiles,
    (name, runner): (&str, ModelRunner),
    random: &mut Random,
    copied: &mut BTreeSet<(usize, u64)>,
) -> Option<ModelRunner> {
    match runner {
        ModelRunner::Idle => {
            let part = random.below(PARTS as u64) as usize;
            if files.read(&result_of(part)).unwrap().is_some() {
                return Some(ModelRunner::Idle);
            }
            match Lease::take(&StoreClock::new(files, name), &claim_of(part), (name, TERM), false) {
                Ok(ClaimOutcome::Taken(lease)) => Some(ModelRunner::Busy { part, lease, left: ROWS }),
                _ => Some(ModelRunner::Idle),
            }
        }
        ModelRunner::Busy { part, .. } if part == DEADLY => None,
        ModelRunner::Busy { .. } if random.one_in(40) => None,
        ModelRunner::Busy { lease, .. } if random.one_in(15) => {
            // A runner that was stopped gives its lease up.
            let _ = lease.give_up(files);
            Some(ModelRunner::Idle)
        }
        ModelRunner::Busy { part, mut lease, left } if random.one_in(3) => match lease.renew(files) {
            Ok(true) | Err(_) => Some(ModelRunner::Busy { part, lease, left }),
            Ok(false) => Some(ModelRunner::Idle),
        },
        ModelRunner::Busy { part, lease, left: 0 } => {
            let ended = summary(part, name, lease.attempt());
            if files.put(&ended.data, name.as_bytes()).is_ok() {
                let _ = conclude(files, &result_of(part), &ended, false);
            }
            Some(ModelRunner::Idle)
        }
        ModelRunner::Busy { part, lease, left } => {
            copied.insert((part, left));
            Some(ModelRunner::Busy { part, lease, left: left - 1 })
        }
    }
}

#[test]
fn whatever_happens_each_part_ends_once_and_whole() {
    for seed in 0..300 {
        let files = MemoryFiles::new(seed, [0, 200, 60][seed as usize % 3]);
        let mut random = Random(seed ^ 0x5eed);
        let mut copied = BTreeSet::new();
        let mut born = 4;
        let mut runners: Vec<_> = (0..4).map(|n| (format!("r{n}"), ModelRunner::Idle)).collect();
        let has_ended = |part: usize| files.read(&result_of(part)).unwrap().is_some();
        let is_given_up = || {
            let claim = files.read(&claim_of(DEADLY)).unwrap();
            claim.is_some_and(|there| {
                let claim: Claim = serde_json::from_slice(&there.bytes).unwrap();
                claim.attempt == ATTEMPTS_MAX
            })
        };
        let mut steps = 0;
        while !((0..PARTS).all(|part| part == DEADLY || has_ended(part)) && is_given_up()) {
            steps += 1;
            assert!(steps < 100_000, "seed {seed}: the plan doesn't end");
            // Sometimes all runners are suspended for longer than a term.
            let pause = if random.one_in(200) { 100 } else { random.below(5) };
            files.pass(Duration::from_secs(pause));
            let place = random.below(runners.len() as u64) as usize;
            let (name, runner) = runners.swap_remove(place);
            match step(&files, (&name, runner), &mut random, &mut copied) {
                Some(next) => runners.push((name, next)),
                None => {
                    runners.push((format!("r{born}"), ModelRunner::Idle));
                    born += 1;
                }
            }
        }
        // Runners that still work on a part that has ended must not spoil its result.
        for _ in 0..100 {
            let Some((name, runner)) = runners.pop() else { break };
            if let Some(next @ ModelRunner::Busy { .. }) =
                step(&files, (&name, runner), &mut random, &mut copied)
            {
                runners.push((name, next));
            }
        }
        for part in (0..PARTS).filter(|part| *part != DEADLY) {
            let result = files.read(&result_of(part)).unwrap().expect("it has ended");
            let result: ResultSummary = serde_json::from_slice(&result.bytes).unwrap();
            let data = files.read(&result.data).unwrap().map(|file| file.bytes);
            assert_eq!(data, Some(result.runner.into_bytes()), "seed {seed}, part {part}");
            for row in 1..=ROWS {
                assert!(copied.contains(&(part, row)), "seed {seed}: row {row} of part {part} wasn't copied");
            }
        }
        assert!(!has_ended(DEADLY), "seed {seed}");
    }
}

#[test]
fn a_store_that_ignores_conditions_is_found_out() {
    let strict = MemoryFiles::new(1, 0);
    check_conditions(&strict, "r").expect("it keeps conditions");
    assert!(strict.list("").unwrap().is_empty(), "nothing is left behind");
    let lax = MemoryFiles { is_lax: true, ..MemoryFiles::new(1, 0) };
    let error = check_conditions(&lax, "r").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("--single-runner"), "{error}");
}

fn take(files: &MemoryFiles, runner: &str) -> Result<ClaimOutcome, Error> {
    Lease::take(&StoreClock::new(files, runner), "claims/0.json", (runner, TERM), false)
}

#[test]
fn of_two_runners_that_take_a_lease_at_once_one_gets_it() {
    let files = MemoryFiles::new(7, 0);
    let first = take(&files, "a").unwrap();
    let ClaimOutcome::Taken(mut first) = first else { panic!("{first:?}") };
    assert!(matches!(take(&files, "b"), Ok(ClaimOutcome::Held)));
    files.pass(TERM * 2);
    let second = take(&files, "b").unwrap();
    let ClaimOutcome::Taken(second) = second else { panic!("{second:?}") };
    assert_eq!(second.attempt(), 2);
    assert!(!first.renew(&files).unwrap(), "it was taken over");
    second.give_up(&files).unwrap();
    let third = take(&files, "c").unwrap();
    assert!(matches!(third, ClaimOutcome::Taken(lease) if lease.attempt() == 2));
}
