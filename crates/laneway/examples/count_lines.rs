//! Counts the lines of all objects below a prefix: `count_lines gs://logs/2026/`. It reads up to 64 objects at once, in bounded
//! memory.

use std::error::Error;

use futures_util::{StreamExt as _, TryStreamExt as _};
use laneway::{Bucket, ObjectMeta};

const AT_ONCE: usize = 64;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let at = std::env::args().nth(1).ok_or("usage: count_lines BUCKET_URL")?;
    let bucket = laneway::Client::from_env()?.bucket(&at)?;
    let mut counts = bucket.list("").map(|meta| lines(&bucket, meta)).buffer_unordered(AT_ONCE);
    let mut total = 0;
    while let Some((key, lines)) = counts.try_next().await? {
        println!("{lines:>12} {key}");
        total += lines;
    }
    println!("{total:>12} total");
    Ok(())
}

async fn lines(
    bucket: &Bucket,
    meta: Result<ObjectMeta, laneway::Error>,
) -> Result<(String, usize), laneway::Error> {
    let key = meta?.id.key;
    let mut object = bucket.get(&key).await?;
    let mut lines = 0;
    while let Some(chunk) = object.chunk().await? {
        lines += chunk.iter().filter(|byte| **byte == b'\n').count();
    }
    Ok((key, lines))
}
