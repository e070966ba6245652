//! Checksums of bytes that are in no store yet.

use std::io::{self, Read};

use laneway_store::Checksums;

use crate::content::checksum::{Hashing, Wanted};

/// Bytes that are read at a time.
const BUFFER: usize = 256 * 1024;

/// Returns what stores would report about an object of these bytes: its length, CRC32C, CRC64NVME and MD5.
///
/// ```
/// let (size, sums) = laneway::hash(&b"123456789"[..])?;
/// assert_eq!((size, sums.crc32c), (9, Some(0xe306_9283)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If reading fails.
pub fn hash(mut bytes: impl Read) -> io::Result<(u64, Checksums)> {
    let mut hashing = Hashing::new(Wanted { crc32c: true, crc64nvme: true, crc32: false, md5: true });
    let mut buffer = vec![0; BUFFER];
    loop {
        match bytes.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hashing.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let run = hashing.finish();
    Ok((run.len, run.checksums()))
}
