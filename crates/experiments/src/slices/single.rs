//! Downloads in one stream and computes the checksum while bytes arrive. A careful program that uses no ranges does
//! this.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crc_fast::{CrcAlgorithm, Digest};

use super::Found;
use crate::Failure;
use crate::rival::{Protocol, Rival};
use crate::site::Site;

pub(super) async fn download(site: &Arc<Site>, key: &str, to: &Path) -> Result<Found, Failure> {
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
