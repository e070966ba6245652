//! Entry points for the fuzzers of multipart request bodies: batches and uploads.

use bytes::Bytes;

use super::batch;
use super::related::{RelatedError, RelatedParser, boundary};

/// Splits the input into its first line, which is the content type, and the body.
fn split(input: &[u8]) -> Option<(&str, &[u8])> {
    let at = input.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&input[..at]).ok()?, &input[at + 1..]))
}

/// Parses the calls of a batch.
pub fn batch(input: &[u8]) {
    let Some((content_type, body)) = split(input) else { return };
    if let Some(boundary) = boundary(content_type) {
        let _ = batch::parse(&Bytes::copy_from_slice(body), &boundary);
    }
}

/// Reads metadata and media of an upload. The result must be the same for every length of the chunks in which they
/// arrive.
pub fn related(input: &[u8]) {
    let Some((content_type, body)) = split(input) else { return };
    let whole = read(content_type, body, body.len().max(1)).ok();
    for step in [1, 2, 50] {
        assert_eq!(read(content_type, body, step).ok(), whole, "in chunks of {step}");
    }
}

fn read(content_type: &str, body: &[u8], step: usize) -> Result<(Vec<u8>, Vec<u8>), RelatedError> {
    let mut related = RelatedParser::new(content_type)?;
    let mut content = Vec::new();
    let mut media = |_: &super::related::RelatedHead, bytes: &[u8]| {
        content.extend_from_slice(bytes);
        Ok::<_, RelatedError>(())
    };
    for chunk in body.chunks(step) {
        related.push(chunk, &mut media)?;
    }
    let head = related.finish(&mut media)?;
    Ok((head.metadata, content))
}
