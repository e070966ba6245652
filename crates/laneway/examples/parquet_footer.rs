//! Prints how large the metadata of each Parquet file below a prefix is: `parquet_footer s3://lake/table/`. Most files take one
//! request, because opening a file also brings its last bytes, where the metadata lies.

use std::error::Error;

use futures_util::StreamExt as _;
use laneway::{Bucket, ObjectMeta};

/// Last bytes of a file that are fetched with the opening request. Larger metadata takes a second request.
const FOOTER: u64 = 64 << 10;

/// The size of what follows the metadata: its length (4 bytes) and the magic number.
const TRAILER: usize = 8;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let at = std::env::args().nth(1).ok_or("usage: parquet_footer BUCKET_URL")?;
    let bucket = laneway::Client::from_env()?.bucket(&at)?;
    let mut indexes = bucket.list("").map(|meta| index(&bucket, meta)).buffer_unordered(64);
    while let Some(index) = indexes.next().await {
        match index {
            Ok(Some((key, len))) => println!("{key}: {len} bytes of metadata"),
            Ok(None) => {}
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}

/// Reads a file's metadata, and returns the key and the metadata's length. Returns `None` for a file in another format.
async fn index(
    bucket: &Bucket,
    meta: Result<ObjectMeta, laneway::Error>,
) -> Result<Option<(String, usize)>, laneway::Error> {
    let meta = meta?;
    let file = bucket.open(&meta.id.key).footer(FOOTER).await?;
    let Some((_, trailer)) = file.footer().split_last_chunk::<TRAILER>() else { return Ok(None) };
    let [a, b, c, d, magic @ ..] = *trailer;
    if &magic != b"PAR1" {
        return Ok(None);
    }
    let len = u64::from(u32::from_le_bytes([a, b, c, d]));
    let end = file.size() - TRAILER as u64;
    let index = file.read_range(end.saturating_sub(len)..end).await?;
    Ok(Some((meta.id.key, index.len())))
}
