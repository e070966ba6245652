//! Helps fuzzers to check pages that arrive split at any byte.

use super::page::PageParser;
use super::{List, Page};

/// The lengths of the chunks in which a document arrives. The first one is the whole document.
pub(crate) const CHUNKS: [usize; 4] = [usize::MAX, 1, 7, 64];

/// Checks that parsing a page gives the same result for all lengths of the chunks.
pub(crate) fn page_in_any_chunks<R: PageParser>(list: &List, body: &[u8], reader: impl Fn() -> R) {
    let whole = page(list, body, CHUNKS[0], reader());
    for chunk_bytes in &CHUNKS[1..] {
        // If a page has several errors, the chunk length may decide which one is reported. So the errors themselves
        // aren't compared.
        assert_eq!(
            page(list, body, *chunk_bytes, reader()).ok(),
            whole.clone().ok(),
            "chunks of {chunk_bytes}"
        );
    }
}

pub(crate) fn page(
    list: &List,
    body: &[u8],
    chunk_bytes: usize,
    mut reader: impl PageParser,
) -> Result<Page, String> {
    let mut objects = Vec::new();
    for chunk in body.chunks(chunk_bytes) {
        objects.extend(reader.take(list, chunk)?);
    }
    let page = reader.end(list)?;
    objects.extend(page.objects);
    Ok(Page { objects, ..page })
}
