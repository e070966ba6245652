//! The download of one object: in one stream, in five fixed parts in parallel, and with Laneway.
//!
//! On a link without loss, one stream is enough. Parts are faster if the store limits the rate of each connection, or
//! if one stream can't fill the link.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crc_fast::{CrcAlgorithm, Digest};
use http::header::CONTENT_LENGTH;
use laneway::{CopyRequest, Location, Outcome, Provider, Verified};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::errand::{self, Measured};
use crate::place::{Imitated, Target};
use crate::program::{Chore, Job, Took, Way, versions, with_programs};
use crate::random::Random;
use crate::rival::{self, Protocol, Rival, Tally};
use crate::site::Site;
use crate::stage::{Stage, Supply, on_stage};
use crate::table::{self, Table};
use crate::turns::{Compared, Event, Measure, Repeats, Row, Rung, turns};
use crate::{Error, Failure, Stop, Workers};

/// The seed of the object's bytes.
const SEED: u64 = 1;

/// The links that are simulated by default. The first has a deep queue, and the second a long round trip and a short queue. The third
/// limits each connection to two fifths of the link's rate.
pub const LINKS: [Imitated; 3] = [
    Imitated { queue: Some(2560 << 10), ..Imitated::USUAL },
    Imitated {
        rtt: Duration::from_millis(80),
        bandwidth: Some(37_500_000),
        queue: Some(1 << 20),
        ..Imitated::USUAL
    },
    Imitated { queue: Some(2560 << 10), connection_bandwidth: Some(50_000_000), ..Imitated::USUAL },
];

const GIB: f64 = (1u64 << 30) as f64;

/// The object to download, its destination and its store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Size of the object in bytes.
    pub size: u64,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// The folder for the file. `None` uses memory if there is enough, else the folder for temporary files.
    pub folder: Option<PathBuf>,
    /// `true` lets installed programs take part if the store is embedded in this process.
    pub programs: bool,
    /// The store.
    pub target: Target,
}

/// The result of the experiment.
#[derive(Debug)]
pub struct Slices {
    /// The store's URL.
    pub store: String,
    /// The conditions that the embedded store simulated, if the store was embedded.
    pub link: Option<Imitated>,
    /// Names and versions of the other vendors' programs that took part.
    pub programs: Vec<String>,
    /// The path's round trip in seconds.
    pub rtt_s: f64,
    /// The shortest time that the path permits, in seconds. This time covers the handshakes, one request, and the bytes if the bandwidth is
    /// known.
    pub floor_s: f64,
    /// Size of the object in bytes.
    pub size: u64,
    /// One row per method.
    pub rows: Vec<Row<Figures>>,
}

/// The cost of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Seconds from the client's start to a verified file.
    pub seconds: f64,
    /// Seconds until the last byte was written to the file. Reading the file back for its checksum comes after that.
    pub transfer_s: f64,
    /// MiB per second over the whole time.
    pub mib_s: f64,
    /// Processor seconds per GiB, or `None` for a run without its own process.
    pub cpu_s_per_gib: Option<f64>,
    /// Connections opened.
    pub connections: u64,
    /// Segments that the simulated link lost and sent again, or `None` for an external store.
    pub resent_segments: Option<u64>,
    /// Requests sent.
    pub requests: u64,
    /// Peak resident memory in bytes, or `None` for a run without its own process.
    pub peak_bytes: Option<u64>,
    /// `true` if the checksum was compared with the store's.
    pub verified: bool,
    /// The time divided by [`Slices::floor_s`].
    pub floor_ratio: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Strategy {
    Single,
    Fixed,
    Laneway,
}

const RUNGS: [Rung<Strategy>; 3] = [
    rung(Strategy::Single, "single", "one stream, checked as it arrives"),
    rung(Strategy::Fixed, "fixed", "five fixed parts, checked by reading back"),
    rung(Strategy::Laneway, "laneway", "Laneway"),
];

const fn rung(method: Strategy, name: &'static str, description: &'static str) -> Rung<Strategy> {
    Rung { method, name, description, group: "" }
}

impl Compared for Figures {
    const MEASURES: &'static [Measure<Self>] = &[Measure {
        name: "seconds",
        short: "",
        heads: ["range s", "Laneway"],
        value: |figures| figures.seconds,
    }];

    fn lasted_s(&self) -> f64 {
        self.seconds
    }
}

/// The input of one download, as it is sent to the process that executes it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    strategy: Strategy,
    key: String,
    to: PathBuf,
}

/// The result of one download.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Found {
    seconds: f64,
    transfer_s: f64,
    tally: Tally,
    verified: bool,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "slices";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        match self.strategy {
            Strategy::Single => download_in_one_stream(&site, &self.key, &self.to).await,
            Strategy::Fixed => download_in_parts(&site, &self.key, &self.to).await,
            Strategy::Laneway => download_by_laneway(&site, &self.key, &self.to).await,
        }
    }
}

/// Downloads the object with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Slices, Error> {
    if plan.size == 0 || plan.runs.least == 0 {
        return Err(Error::Plan("the plan needs at least one byte and one run".to_owned()));
    }
    on_stage((&plan.target, plan.folder.as_deref(), plan.size), (workers, stop), tell, |stage, tell| {
        climb(plan, stage, tell)
    })
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Slices, Error> {
    stage.stock(&[Supply { name: "object".to_owned(), seed: SEED, size: plan.size }])?;
    tell(Event::Begun { bench: "slices", store: stage.store(), rtt: stage.rtt });
    let rtt_s = stage.rtt.as_secs_f64();
    let floor_s = floor_s(stage, plan.size, &plan.target);
    let to = stage.folder().join("object");
    let key = stage.key("object");
    let one = |way, _| {
        let lost = stage.segments_lost();
        let ran = match way {
            Way::Own(strategy) => stage.carry(Errand { strategy, key: key.clone(), to: to.clone() })?,
            Way::Program(program) => {
                let ran = stage.run(program, &Job::Down { key: &key, file: &to })?;
                // Some programs don't report whether they verified the bytes.
                ran.and_then(|(took, tally)| {
                    same(&to, plan.size)?;
                    let Took { seconds, .. } = took;
                    let found = Found { seconds, transfer_s: seconds, tally, verified: false };
                    Ok(Measured { found, usage: None })
                })
            }
        };
        let resent = stage.segments_lost().zip(lost).map(|(after, before)| after - before);
        let ran = ran.and_then(|measured| figures(measured, resent, plan.size, floor_s, &to));
        // Remove the file. Otherwise the next method would find the file's pages in the page cache.
        let _ = std::fs::remove_file(&to);
        Ok(ran)
    };
    let rungs = with_programs(&RUNGS, Chore::Copy, &stage.programs(plan.programs));
    let rows = turns(&rungs, plan.runs, tell, one)?;
    let (store, programs) = (stage.store().to_owned(), versions(&rungs));
    Ok(Slices { store, link: stage.link, programs, rtt_s, floor_s, size: plan.size, rows })
}

/// Checks that a file has the bytes of the object.
///
/// # Errors
/// Returns [`Failure::Different`] if the bytes differ, or the file system's error.
fn same(file: &Path, size: u64) -> Result<(), Failure> {
    let mut file = File::open(file).map_err(Failure::File)?;
    let mut block = vec![0; 1 << 20];
    let mut at = 0;
    while at < size {
        let end = size.min(at + block.len() as u64);
        let found = &mut block[..(end - at) as usize];
        file.read_exact(found).map_err(Failure::File)?;
        if *found != Random::content_at(SEED, &(at..end)) {
            return Err(Failure::Different(format!(
                "the bytes {at} to {end} differ from those that were stored"
            )));
        }
        at = end;
    }
    Ok(())
}

/// Returns the shortest time that the path permits. It is a round trip each for TCP, TLS and one request, and the time
/// for the bytes if the bandwidth is known.
pub(crate) fn floor_s(stage: &Stage<'_>, bytes: u64, target: &Target) -> f64 {
    let bandwidth = target.imitated().and_then(|imitated| imitated.bandwidth);
    let trips = if stage.tls() { 3.0 } else { 2.0 };
    trips * stage.rtt.as_secs_f64() + bandwidth.map_or(0.0, |rate| bytes as f64 / rate as f64)
}

fn figures(
    measured: Measured<Found>,
    resent_segments: Option<u64>,
    size: u64,
    floor_s: f64,
    file: &Path,
) -> Result<Figures, Failure> {
    let Measured { found, usage } = measured;
    let len = std::fs::metadata(file).map_err(Failure::File)?.len();
    if len != size {
        return Err(Failure::Different(format!("the file has {len} bytes, but the object has {size}")));
    }
    Ok(Figures {
        seconds: found.seconds,
        transfer_s: found.transfer_s,
        mib_s: size as f64 / f64::from(1 << 20) / found.seconds.max(f64::MIN_POSITIVE),
        cpu_s_per_gib: usage.map(|usage| usage.cpu_s / (size as f64 / GIB)),
        connections: found.tally.connections,
        resent_segments,
        requests: found.tally.requests,
        peak_bytes: usage.and_then(|usage| usage.peak_bytes),
        verified: found.verified,
        floor_ratio: found.seconds / floor_s.max(f64::MIN_POSITIVE),
    })
}

impl Slices {
    /// Returns the size of the object and the path to the store, as human-readable text.
    pub fn name(&self) -> String {
        let size = laneway_quantity::readable_size(self.size);
        format!("{size} over {}", self.path())
    }

    /// Returns a human-readable description of the path to the store.
    pub fn path(&self) -> String {
        crate::report::path(self.link, &self.store, self.rtt_s)
    }

    /// Formats resent segments as a share of the object's segments.
    fn resent(&self, segments: u64) -> String {
        let all = self.size as f64 / f64::from(Imitated::SEGMENT);
        format!("{:.1} %", segments as f64 / all * 1e2)
    }

    /// Returns the human-readable table.
    pub fn table(&self) -> Table {
        let head = [
            "method",
            "seconds",
            "checking s",
            "MiB/s",
            "CPU s/GiB",
            "connections",
            "sent again",
            "peak MiB",
            "time / shortest",
        ];
        Table::compared(&head, &self.rows, |f| {
            vec![
                table::seconds(f.seconds),
                if f.verified { table::seconds(f.seconds - f.transfer_s) } else { "-".to_owned() },
                format!("{:.0}", f.mib_s),
                f.cpu_s_per_gib.map_or("-".to_owned(), |s| format!("{s:.2}")),
                f.connections.to_string(),
                f.resent_segments.map_or("-".to_owned(), |segments| self.resent(segments)),
                table::mib(f.peak_bytes),
                format!("{:.2}", f.floor_ratio),
            ]
        })
    }
}

/// Downloads in one stream and computes the checksum while bytes arrive. A careful program that uses no ranges does
/// this.
async fn download_in_one_stream(site: &Arc<Site>, key: &str, to: &Path) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    let head = connection.send(site.head(key).await?).await?.succeeded()?;
    let crc32c = site.crc32c(&head);
    let mut file = File::create(to).map_err(Failure::File)?;
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    let request = site.get(key, None).await?;
    let take = |bytes: &[u8]| {
        digest.update(bytes);
        file.write_all(bytes)
    };
    connection.fetch(request, take).await?;
    if crc32c.is_some_and(|crc32c| crc32c != digest.finalize() as u32) {
        return Err(Failure::Different("the file's checksum differs from the object's".to_owned()));
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Found { seconds, transfer_s: seconds, tally: rival.tally(), verified: crc32c.is_some() })
}

/// Downloads with Laneway's library, as a program that has just started does.
async fn download_by_laneway(site: &Site, key: &str, to: &Path) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway_by_tls()?;
    let source = Location::object(site.provider, site.bucket.clone(), key);
    let mut job = client.copy(CopyRequest::new(vec![source], Location::from(to)));
    let (mut checked, mut tally) = (None, Tally::default());
    while let Some(event) = job.next().await {
        match event {
            laneway::Event::Item(item) => match item.outcome {
                Outcome::Done { verified } => checked = Some(verified != Verified::Unverified),
                Outcome::Failed(error) => return Err(error.into()),
                _ => {}
            },
            laneway::Event::Done(summary) => {
                tally = Tally { requests: summary.requests, connections: summary.connections };
            }
            _ => {}
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let verified = checked.ok_or(Failure::Unfinished)?;
    // Laneway computes the checksum while bytes arrive, so it needs no time after the transfer.
    Ok(Found { seconds, transfer_s: seconds, tally, verified })
}

/// s5cmd downloads one object with this many parts in parallel by default. boto3 uses ten.
const PARTS: u64 = 5;
/// Bytes of the file that are read at a time for its checksum.
const BLOCK: usize = 1 << 20;

/// Downloads five equal parts in parallel, as transfer managers do. Each part has a thread and a connection, and writes
/// into the same file. At the end, the file is read back to compute its checksum.
async fn download_in_parts(site: &Arc<Site>, key: &str, to: &Path) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    let head = connection.send(site.head(key).await?).await?.succeeded()?;
    let (size, crc32c) = (object_size(site, &head), site.crc32c(&head));
    let size =
        size.ok_or_else(|| Failure::Different("the store doesn't report the object's size".to_owned()))?;
    drop(connection);

    let file = Arc::new(File::create(to).map_err(Failure::File)?);
    let threads: Vec<_> = parts(size)
        .into_iter()
        .map(|range| Part {
            site: Arc::clone(site),
            rival: rival.clone(),
            file: Arc::clone(&file),
            key: key.to_owned(),
            range,
        })
        .map(Part::start)
        .collect();
    for thread in threads {
        thread.await.map_err(|_| Failure::Unfinished)??;
    }
    let transfer_s = started.elapsed().as_secs_f64();
    let read_back = to.to_owned();
    let summed = tokio::task::spawn_blocking(move || checksum(&read_back)).await;
    let sum = summed.map_err(|_| Failure::Unfinished)?.map_err(Failure::File)?;
    if crc32c.is_some_and(|crc32c| crc32c != sum) {
        return Err(Failure::Different("the file's checksum differs from the object's".to_owned()));
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Found { seconds, transfer_s, tally: rival.tally(), verified: crc32c.is_some() })
}

fn object_size(site: &Site, head: &rival::Answer) -> Option<u64> {
    match site.provider {
        Provider::Gcs => {
            let resource: serde_json::Value = serde_json::from_slice(&head.body).ok()?;
            resource.get("size")?.as_str()?.parse().ok()
        }
        _ => head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok(),
    }
}

/// Splits an object into equal parts, or into fewer if it has fewer bytes than parts.
fn parts(size: u64) -> Vec<Range<u64>> {
    let len = size.div_ceil(PARTS).max(1);
    (0..PARTS)
        .map(|n| (n * len).min(size)..((n + 1) * len).min(size))
        .filter(|part| !part.is_empty())
        .collect()
}

struct Part {
    site: Arc<Site>,
    rival: Rival,
    file: Arc<File>,
    key: String,
    range: Range<u64>,
}

impl Part {
    /// Downloads the part on a new thread. If the returned receiver is dropped, the thread stops.
    fn start(self) -> oneshot::Receiver<Result<(), Failure>> {
        let (mut done, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let result = match runtime {
                Err(error) => Err(Failure::File(error)),
                Ok(runtime) => runtime.block_on(async {
                    tokio::select! {
                        result = self.download() => result,
                        () = done.closed() => Err(Failure::Unfinished),
                    }
                }),
            };
            let _ = done.send(result);
        });
        ended
    }

    async fn download(&self) -> Result<(), Failure> {
        let mut connection = self.rival.connect_h1().await?;
        let request = self.site.get(&self.key, Some(&self.range)).await?;
        let mut at = self.range.start;
        let take = |bytes: &[u8]| {
            self.file.write_all_at(bytes, at)?;
            at += bytes.len() as u64;
            Ok(())
        };
        connection.fetch(request, take).await?;
        if at != self.range.end {
            let short = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(rival::Error::Sink(short).into());
        }
        Ok(())
    }
}

fn checksum(path: &Path) -> std::io::Result<u32> {
    let mut file = File::open(path)?;
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(digest.finalize() as u32),
            n => digest.update(&block[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_object() {
        assert_eq!(parts(1), vec![0..1; 1]);
        assert_eq!(parts(6), [0..2, 2..4, 4..6]);
        let parts = parts((32 << 30) + 7);
        assert_eq!(parts.len(), 5);
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((parts[0].start, parts[4].end), (0, (32 << 30) + 7));
    }
}
