//! Writes a thumbnail beside a picture: `thumbnail gs://bucket/pictures/ cat.ppm`. If another program has changed the thumbnail
//! meanwhile, the write fails and that change stays. Pictures are binary netpbm files (P6), which need no other crate.

use std::error::Error;

const LARGEST: usize = 256;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [at, key] = <[String; 2]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "usage: thumbnail BUCKET_URL KEY")?;
    let bucket = laneway::Client::from_env()?.bucket(&at)?;
    let small_key = format!("{}.small.ppm", key.trim_end_matches(".ppm"));

    let picture = bucket.get(&key).await?.bytes().await?;
    let put = match bucket.head(&small_key).await {
        Ok(there) => {
            let version = there.version.ok_or("the store reports no version")?;
            bucket.put(&small_key, thumbnail(&picture)?).if_version(&version)
        }
        Err(error) if error.is_not_found() => bucket.put(&small_key, thumbnail(&picture)?).if_absent(),
        Err(error) => return Err(error.into()),
    };
    let written = put.content_type("image/x-portable-pixmap").await?;
    println!("{small_key}: {} bytes, verified by {}", written.size, written.verified);
    Ok(())
}

fn thumbnail(picture: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut fields = picture.splitn(4, |byte| byte.is_ascii_whitespace());
    let mut field = || fields.next().ok_or("the picture's header is cut off");
    let (magic, width, height, rest) = (field()?, number(field()?)?, number(field()?)?, field()?);
    let pixels = rest.strip_prefix(b"255\n").ok_or("not 8 bits a colour")?;
    if magic != b"P6" || width.checked_mul(height).and_then(|n| n.checked_mul(3)) != Some(pixels.len()) {
        return Err("not a whole P6 picture");
    }
    let step = width.max(height).div_ceil(LARGEST).max(1);
    let (wide, high) = (width.div_ceil(step), height.div_ceil(step));
    let mut small = format!("P6\n{wide} {high}\n255\n").into_bytes();
    for y in (0..height).step_by(step) {
        for x in (0..width).step_by(step) {
            small.extend_from_slice(&pixels[(y * width + x) * 3..][..3]);
        }
    }
    Ok(small)
}

fn number(text: &[u8]) -> Result<usize, &'static str> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or("not a number")
}
