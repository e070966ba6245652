//! Assembles the parts of an upload: checks the parts that a client names, and joins them. The code has no side
//! effects, and both dialects use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::Content;
use super::uploads::UploadPart;
use super::writer::WrittenContent;
use crate::checksum::{concatenated, hex, md5};

/// A part in a request that completes an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPart {
    pub(crate) number: u32,
    /// The part's entity tag without quotes, or `None` if the client left it out.
    pub(crate) etag: Option<String>,
}

/// The reason why the named parts can't form an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AssemblyError {
    Empty,
    Order,
    Unknown { number: u32 },
    TooSmall { number: u32, size: u64 },
    Unequal { number: u32 },
}

/// Returns the named parts in order, or the reason why they can't form an object. `part_size_min` applies to all parts
/// but the last.
pub(crate) fn select(
    parts: &BTreeMap<u32, Arc<UploadPart>>,
    named: &[NamedPart],
    part_size_min: u64,
) -> Result<Vec<Arc<UploadPart>>, AssemblyError> {
    if named.is_empty() {
        return Err(AssemblyError::Empty);
    }
    if !named.is_sorted_by(|a, b| a.number < b.number) {
        return Err(AssemblyError::Order);
    }
    let mut selected = Vec::with_capacity(named.len());
    for (index, name) in named.iter().enumerate() {
        let part =
            parts.get(&name.number).filter(|part| name.etag.as_ref().is_none_or(|etag| *etag == part.etag));
        let part = part.ok_or(AssemblyError::Unknown { number: name.number })?;
        let size = part.written.sums.size;
        if index + 1 < named.len() && size < part_size_min {
            return Err(AssemblyError::TooSmall { number: name.number, size });
        }
        selected.push(part.clone());
    }
    Ok(selected)
}

/// Checks that all parts but the last have the same size, and that the last isn't larger. Some services require that.
pub(crate) fn equal(parts: Vec<Arc<UploadPart>>) -> Result<Vec<Arc<UploadPart>>, AssemblyError> {
    let size = |part: &Arc<UploadPart>| part.written.sums.size;
    let first = parts.first().map_or(0, size);
    let odd = parts.iter().enumerate().find(|(index, part)| {
        let last = index + 1 == parts.len();
        if last { size(part) > first } else { size(part) != first }
    });
    match odd {
        Some((_, part)) => Err(AssemblyError::Unequal { number: part.number }),
        None => Ok(parts),
    }
}

/// Joins the parts end to end. The result has no MD5, because an MD5 can't be combined from those of the parts.
pub(crate) fn join(parts: &[Arc<UploadPart>]) -> WrittenContent {
    let mut content = Content::default();
    let mut sums = None;
    for part in parts {
        content.extents.extend(part.written.content.extents.iter().cloned());
        sums = Some(match sums {
            Some(before) => concatenated(&before, &part.written.sums),
            None => part.written.sums.clone(),
        });
    }
    let mut sums = sums.unwrap_or_default();
    sums.md5 = None;
    WrittenContent { content, sums }
}

/// Returns the ETag of the object: the MD5 of the N parts' MD5s, a dash, and N. If a part's MD5 isn't known, the parts'
/// ETags are used instead.
pub(crate) fn etag(parts: &[Arc<UploadPart>]) -> String {
    let mut digests = Vec::with_capacity(parts.len() * 16);
    for part in parts {
        match part.written.sums.md5 {
            Some(md5) => digests.extend_from_slice(&md5),
            None => digests.extend_from_slice(part.etag.as_bytes()),
        }
    }
    format!("{}-{}", hex(&md5(&digests)), parts.len())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::content::Extent;
    use super::*;
    use crate::checksum::{Hasher, WantedChecksums};

    fn part(number: u32, bytes: &'static [u8]) -> (u32, Arc<UploadPart>) {
        let mut hasher =
            Hasher::new(WantedChecksums { md5_bytes_max: u64::MAX, crc64nvme: true, extra: None });
        hasher.update(bytes);
        let content = Content { extents: vec![Extent::Memory(Bytes::from_static(bytes))] };
        let written = WrittenContent { content, sums: hasher.finish() };
        (number, Arc::new(UploadPart { number, etag: format!("e{number}"), written, modified_us: 0 }))
    }

    fn named(numbers: &[u32]) -> Vec<NamedPart> {
        numbers.iter().map(|number| NamedPart { number: *number, etag: Some(format!("e{number}")) }).collect()
    }

    #[test]
    fn the_named_parts_are_taken_in_order_and_others_left() {
        let parts = BTreeMap::from([part(1, b"ab"), part(3, b"cd"), part(7, b"e")]);
        let selected = select(&parts, &named(&[1, 7]), 0).unwrap();
        let whole = join(&selected);
        assert_eq!((whole.content.size(), whole.sums.size), (3, 3));
        let mut hasher = Hasher::new(WantedChecksums { md5_bytes_max: 0, crc64nvme: false, extra: None });
        hasher.update(b"abe");
        assert_eq!(whole.sums.crc32c, hasher.finish().crc32c);
        assert!(etag(&selected).ends_with("-2"));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let parts = BTreeMap::from([part(1, b"ab"), part(2, b"c")]);
        assert_eq!(select(&parts, &[], 0).unwrap_err(), AssemblyError::Empty);
        assert_eq!(select(&parts, &named(&[2, 1]), 0).unwrap_err(), AssemblyError::Order);
        assert_eq!(select(&parts, &named(&[1, 1]), 0).unwrap_err(), AssemblyError::Order);
        assert_eq!(select(&parts, &named(&[1, 3]), 0).unwrap_err(), AssemblyError::Unknown { number: 3 });
        let wrong = [NamedPart { number: 1, etag: Some("other".to_owned()) }];
        assert_eq!(select(&parts, &wrong, 0).unwrap_err(), AssemblyError::Unknown { number: 1 });
        assert_eq!(
            select(&parts, &named(&[1, 2]), 5).unwrap_err(),
            AssemblyError::TooSmall { number: 1, size: 2 }
        );
        // The last part may have any size.
        assert!(select(&parts, &named(&[2]), 5).is_ok());
    }

    #[test]
    fn the_etag_is_the_md5_of_the_md5s() {
        // The output of printf hello | md5, decoded and hashed again.
        let parts = BTreeMap::from([part(1, b"hello")]);
        let selected = select(&parts, &named(&[1]), 0).unwrap();
        assert_eq!(etag(&selected), format!("{}-1", hex(&md5(&md5(b"hello")))));
    }
}
