//! Reads an object in order, as the `cat` command does.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use laneway_lanes::attempts::{counted, most};
use laneway_store::{ObjectId, ObjectMeta, Store};

use crate::event::Verified;
use crate::job::CommonBuckets;
use crate::job::running::{ActiveItem, JobState, Purpose, ResultObject, TransferOutcome};
use crate::location::url;
use crate::transfer::download::in_order::{self, Chunks, FetchRequest, ReservedChunk};
use crate::{Bucket, ByteRange, Client, Error, Item, Job, Op, Outcome, ReadRequest};

/// The maximum number of bytes in ranges that are fetched together, before any of them is written. Laneway
/// streams a longer range instead.
const TOGETHER_MAX: u64 = 16 << 20;

impl Client {
    /// Reads an object, or ranges of it, and writes the bytes to `to` in order. All ranges are read from the
    /// same version of the object. If the object is replaced during the call, the call fails. If one of the
    /// ranges lies outside the object, nothing is written. Blocks the thread, and writes to `to` on this
    /// thread. Don't call it on a thread that runs async tasks.
    ///
    /// # Errors
    /// The store's error, or an error of writing to `to`. Bytes may have been written before the error,
    /// because Laneway compares the checksum at the end.
    pub fn read(&self, request: &ReadRequest, to: impl Write) -> Result<Item, Error> {
        let (_job, ends) = Job::unheard();
        let worker = self.worker()?;
        let job = JobState::new(Arc::clone(&worker.state), ends, Purpose::Plain, CommonBuckets::default());
        let begun = begin(&job, request);
        let (chunks, taken) = in_order::chunks();
        let (ended, end) = std::sync::mpsc::sync_channel(1);
        let (inside, client, request) = (Arc::clone(&job), self.clone(), request.clone());
        worker.spawn(async move {
            // Sending fails if the calling thread has dropped the receiver, because writing to `to` failed.
            // Ignore this error.
            let read = async { read(&inside, &client, request, chunks).await.map(|moved| (moved, most())) };
            let _ = ended.send(counted(read).await);
        });
        in_order::write_all(taken, to, "the output")?;
        let (moved, attempts) = end.recv().map_err(|_| Error::cancelled(&begun.source))??;
        Ok(item(&job, begun, moved, attempts))
    }
}

async fn read(
    job: &JobState,
    client: &Client,
    request: ReadRequest,
    out: Chunks,
) -> Result<TransferOutcome, Error> {
    let Some((provider, id)) = request.at.as_object() else {
        return Err(Error::usage(request.at.to_string(), "is not an object in a store"));
    };
    if id.key.is_empty() {
        return Err(Error::usage(request.at.to_string(), "names a bucket, not an object"));
    }
    let store = job.store(provider)?;
    let range = match request.ranges.as_slice() {
        [] => None,
        [range] => Some(*range),
        ranges => {
            let bucket = client.bucket(&url(provider, &ObjectId::new(&id.bucket, "")))?;
            return RangesReader { job, store, id: &id, bucket, out }.read(ranges).await;
        }
    };
    Ok(in_order::fetch(job, store, &id, FetchRequest { range, ..FetchRequest::default() }, out).await?.moved)
}

struct RangesReader<'a> {
    job: &'a JobState,
    store: &'a Store,
    id: &'a ObjectId,
    bucket: Bucket,
    out: Chunks,
}

impl RangesReader<'_> {
    async fn read(&self, ranges: &[ByteRange]) -> Result<TransferOutcome, Error> {
        let is_version = self.id.version.is_some();
        // If the request names no version, gives all ranges as offsets, and asks for at most `TOGETHER_MAX`
        // bytes, read the ranges without requesting the object's metadata.
        if !is_version
            && let Some(offsets) = ranges.iter().map(|range| range.offsets()).collect::<Option<Vec<_>>>()
            && let [ReadStep::Together(ranges)] = steps(offsets).as_slice()
        {
            let bytes = self.together(ranges, None).await?;
            return Ok(moved(bytes));
        }
        let meta = self.store.head(self.id, None).await?;
        let within = |range: &ByteRange| {
            range.within(meta.size).ok_or_else(|| {
                let message = format!("the range {range} lies outside the object's {} bytes", meta.size);
                Error::invalid_range(self.url(), message)
            })
        };
        let ranges: Vec<_> = ranges.iter().map(within).collect::<Result<_, _>>()?;
        let steps = match is_version {
            // `get_ranges` takes no version id, so read the ranges one by one.
            true => ranges.into_iter().filter(|range| !range.is_empty()).map(ReadStep::Long).collect(),
            false => steps(ranges),
        };
        if meta.version.is_none() && steps.len() > 1 {
            let message = "the store reports no version of the object, so Laneway could mix bytes of different versions";
            return Err(Error::integrity(self.url(), message));
        }
        let mut bytes = 0;
        for step in steps {
            bytes += match step {
                ReadStep::Together(ranges) => self.together(&ranges, Some(&meta)).await?,
                ReadStep::Long(range) => {
                    let (range, version) = (Some(ByteRange::between(range)?), meta.version.clone());
                    let wish = FetchRequest { range, version, ..FetchRequest::default() };
                    in_order::fetch(self.job, self.store, self.id, wish, self.out.clone()).await?.moved.bytes
                }
            };
        }
        Ok(moved(bytes))
    }

    /// Fetches ranges in one call, and then sends them to the output.
    async fn together(&self, ranges: &[Range<u64>], known: Option<&ObjectMeta>) -> Result<u64, Error> {
        let call = self.bucket.get_ranges(&self.id.key, ranges.iter().cloned());
        let read = match known {
            Some(meta) => call.known(meta).await?,
            None => call.await?,
        };
        let mut sent = 0;
        for bytes in read.into_iter().filter(|bytes| !bytes.is_empty()) {
            sent += bytes.len() as u64;
            self.send(bytes).await?;
        }
        Ok(sent)
    }

    async fn send(&self, bytes: Bytes) -> Result<(), Error> {
        self.out.send(ReservedChunk::of(bytes)).await.map_err(|_| Error::cancelled(self.url()))
    }

    fn url(&self) -> String {
        url(self.store.provider(), self.id)
    }
}

/// A step of a read: ranges that are fetched at the same time. The steps follow the order of the request.
#[derive(Clone, PartialEq, Eq, Debug)]
enum ReadStep {
    /// Ranges with at most [`TOGETHER_MAX`] bytes in total.
    Together(Vec<Range<u64>>),
    /// A range of more than [`TOGETHER_MAX`] bytes.
    Long(Range<u64>),
}

fn steps(ranges: Vec<Range<u64>>) -> Vec<ReadStep> {
    let (mut steps, mut room) = (Vec::new(), 0);
    for range in ranges {
        let len = range.end - range.start;
        if len > TOGETHER_MAX {
            steps.push(ReadStep::Long(range));
            continue;
        }
        match steps.last_mut() {
            Some(ReadStep::Together(ranges)) if len <= room => {
                ranges.push(range);
                room -= len;
            }
            _ => {
                steps.push(ReadStep::Together(vec![range]));
                room = TOGETHER_MAX - len;
            }
        }
    }
    steps
}

/// Returns the result of a read of several ranges. The result is unverified, because most stores report no
/// checksum of a range.
fn moved(bytes: u64) -> TransferOutcome {
    TransferOutcome { bytes, verified: Verified::Unverified, atomic: true, made: ResultObject::default() }
}

fn begin(job: &JobState, request: &ReadRequest) -> ActiveItem {
    let source = match request.at.as_object() {
        Some((provider, id)) => url(provider, &id),
        None => request.at.to_string(),
    };
    job.begin(Op::Read, source, None)
}

/// Returns the item of a read that succeeded.
fn item(job: &JobState, begun: ActiveItem, moved: TransferOutcome, attempts: u32) -> Item {
    // If the ranges were read together, `attempts` is 0, because other tasks made and counted the attempts.
    let attempts = attempts.max(1);
    let ActiveItem { op, source, destination, start, .. } = begun;
    let TransferOutcome { bytes, verified, atomic, .. } = moved;
    let end = job.engine.now();
    let outcome = Outcome::Done { verified };
    Item { op, source, destination, bytes, start, end, attempts, atomic, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_keep_their_order_and_few_bytes_are_held_at_a_time() {
        const MIB: u64 = 1 << 20;
        let together = |ranges: &[Range<u64>]| ReadStep::Together(ranges.to_vec());
        let alone = |range: Range<u64>| together(&[range]);
        assert_eq!(steps(vec![]), []);
        assert_eq!(steps(vec![7..9, 7..9, 0..0, 1..2]), [together(&[7..9, 7..9, 0..0, 1..2])]);
        let long = 5..5 + 17 * MIB;
        assert_eq!(
            steps(vec![1..2, long.clone(), 3..4, 0..16 * MIB, 0..10 * MIB, 0..6 * MIB, 9..10]),
            [
                alone(1..2),
                ReadStep::Long(long),
                alone(3..4),
                alone(0..16 * MIB),
                together(&[0..10 * MIB, 0..6 * MIB]),
                alone(9..10),
            ]
        );
    }
}
