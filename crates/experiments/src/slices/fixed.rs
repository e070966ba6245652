//! Downloads five equal parts in parallel, as transfer managers do. Each part has a thread and a connection, and writes
//! into the same file. At the end, the file is read back to compute its checksum.

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
use crate::rival::{Error, Protocol, Rival};
use crate::site::Site;

/// s5cmd downloads one object with this many parts in parallel by default. boto3 uses ten.
const PARTS: u64 = 5;
/// Bytes of the file that are read at a time for its checksum.
const BLOCK: usize = 1 << 20;

pub(super) async fn download(site: &Arc<Site>, key: &str, to: &Path) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    let head = connection.send(site.head(key).await?).await?.succeeded()?;
    let (size, crc32c) = (size(site, &head), site.crc32c(&head));
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

pub(super) fn size(site: &Site, head: &crate::rival::Answer) -> Option<u64> {
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
    fn parts_cover_the_object() {
        assert_eq!(parts(1), vec![0..1; 1]);
        assert_eq!(parts(6), [0..2, 2..4, 4..6]);
        let parts = parts((32 << 30) + 7);
        assert_eq!(parts.len(), 5);
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((parts[0].start, parts[4].end), (0, (32 << 30) + 7));
    }
}
