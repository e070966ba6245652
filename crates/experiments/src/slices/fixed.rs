//! The program of 2021: slices of equal size, at least 64 MiB each, two threads a core, a connection for each slice; the
//! file is truncated and written in place, and read back for its checksum at the end.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crc_fast::{CrcAlgorithm, Digest};
use http::header::CONTENT_LENGTH;
use laneway::Provider;
use tokio::sync::oneshot;

use super::Found;
use crate::Failure;
use crate::rival::{Error, Protocol, Rival, Tag};
use crate::site::Site;
use crate::trace::Role;

const SLICE_MIN: u64 = 64 << 20;
const THREADS_A_CORE: usize = 2;
/// How much of the file is read at a time for its checksum.
const BLOCK: usize = 1 << 20;

pub(super) async fn download(site: &Arc<Site>, key: &str, to: &Path) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    let head = connection.send(site.head(key).await?).await?.succeeded()?;
    let (size, crc32c) = (size(site, &head), site.crc32c(&head));
    let size =
        size.ok_or_else(|| Failure::Different("the store doesn't tell the object's size".to_owned()))?;
    drop(connection);

    let file = Arc::new(File::create(to).map_err(Failure::File)?);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<_> = slices(size, cores * THREADS_A_CORE)
        .into_iter()
        .map(|slice| Slice {
            site: Arc::clone(site),
            rival: rival.clone(),
            file: Arc::clone(&file),
            key: key.to_owned(),
            slice,
        })
        .map(Slice::start)
        .collect();
    for thread in threads {
        thread.await.map_err(|_| Failure::Unfinished)??;
    }
    let transfer_s = started.elapsed().as_secs_f64();
    let read_back = to.to_owned();
    let summed = tokio::task::spawn_blocking(move || checksum(&read_back)).await;
    let sum = summed.map_err(|_| Failure::Unfinished)?.map_err(Failure::File)?;
    if crc32c.is_some_and(|crc32c| crc32c != sum) {
        return Err(Failure::Different("the file's checksum is not the object's".to_owned()));
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Found { seconds, transfer_s, tally: rival.tally(), verified: crc32c.is_some(), trace: rival.trace() })
}

pub(super) fn size(site: &Site, head: &crate::rival::Answer) -> Option<u64> {
    match site.provider {
        Provider::Gcs => {
            let resource: serde_json::Value = serde_json::from_slice(&head.body).ok()?;
            resource.get("size")?.as_str()?.parse().ok()
        }
        Provider::S3 => head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok(),
    }
}

/// Equal slices of at least 64 MiB, at most one a thread.
fn slices(size: u64, threads: usize) -> Vec<Range<u64>> {
    let count = (size / SLICE_MIN).clamp(1, threads.max(1) as u64);
    let len = size.div_ceil(count).max(1);
    (0..count).map(|n| n * len..((n + 1) * len).min(size)).filter(|slice| !slice.is_empty()).collect()
}

struct Slice {
    site: Arc<Site>,
    rival: Rival,
    file: Arc<File>,
    key: String,
    slice: Range<u64>,
}

impl Slice {
    /// Downloads it on a thread of its own. When nobody waits any more, it ends at its next bytes.
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
        let mut request = self.site.get(&self.key, Some(&self.slice)).await?;
        let label = format!("bytes {}-{}", self.slice.start, self.slice.end - 1);
        request.extensions_mut().insert(Tag(Role::Freight, label));
        let mut at = self.slice.start;
        let take = |bytes: &[u8]| {
            self.file.write_all_at(bytes, at)?;
            at += bytes.len() as u64;
            Ok(())
        };
        connection.fetch(request, take).await?;
        if at != self.slice.end {
            let short = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(Error::Sink(short).into());
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
    fn slices_cover_the_object_and_are_not_small() {
        assert_eq!(slices(1, 8), vec![0..1; 1]);
        assert_eq!(slices(SLICE_MIN * 2 - 1, 8).len(), 1);
        assert_eq!(slices(SLICE_MIN * 2, 8).len(), 2);
        let many = slices((32 << 30) + 7, 8);
        assert_eq!(many.len(), 8);
        assert!(many.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((many[0].start, many[7].end), (0, (32 << 30) + 7));
    }
}
