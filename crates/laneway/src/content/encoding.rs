//! Removes the content encoding of downloaded objects.

use std::io::{self, BufRead, Write};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// The encoding of an object's bytes, as its `Content-Encoding` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ContentEncoding {
    Gzip,
    Zstd,
    /// One that Laneway can't remove, such as `br`.
    Other,
}

impl ContentEncoding {
    /// Returns the encoding that a header names, or `None` if the bytes aren't encoded.
    pub(crate) fn named(header: &str) -> Option<Self> {
        match header.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => None,
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            _ => Some(Self::Other),
        }
    }

    /// Decodes all members or frames of `from`, which follow each other without a gap.
    ///
    /// # Errors
    /// Those of reading and writing; `InvalidData` or `UnexpectedEof` for bytes that aren't so encoded.
    pub(crate) fn decode(self, mut from: impl BufRead, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Gzip => io::copy(&mut MultiGzDecoder::new(from), to).map(drop),
            Self::Zstd => {
                while !from.fill_buf()?.is_empty() {
                    let mut frame = StreamingDecoder::new(&mut from)
                        .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
                    io::copy(&mut frame, to)?;
                }
                Ok(())
            }
            Self::Other => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "only gzip and zstd can be decompressed"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::gzip::compress;

    /// Two frames of zstd: `one`, then `two`.
    const FRAMES: [&[u8]; 2] = [
        &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x03, 0x19, 0x00, 0x00, b'o', b'n', b'e'],
        &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x03, 0x19, 0x00, 0x00, b't', b'w', b'o'],
    ];

    fn decoded(encoding: ContentEncoding, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        encoding.decode(bytes, &mut plain).map(|()| plain)
    }

    #[test]
    fn all_members_and_frames_are_decoded_and_a_broken_one_is_an_error() {
        let gzip = [compress(&b"one"[..]).unwrap(), compress(&b"two"[..]).unwrap()].concat();
        for (encoding, whole) in [(ContentEncoding::Gzip, gzip), (ContentEncoding::Zstd, FRAMES.concat())] {
            assert_eq!(decoded(encoding, &whole).unwrap(), b"onetwo", "{encoding:?}");
            assert!(decoded(encoding, &whole[..whole.len() - 2]).is_err(), "{encoding:?} cut");
            assert!(decoded(encoding, b"plain text").is_err(), "{encoding:?} of something else");
        }
        assert!(decoded(ContentEncoding::Other, b"x").is_err());
    }

    #[test]
    fn an_encoding_is_known_by_its_header() {
        for (header, encoding) in [
            ("gzip", Some(ContentEncoding::Gzip)),
            ("X-GZIP", Some(ContentEncoding::Gzip)),
            ("zstd", Some(ContentEncoding::Zstd)),
            ("gzip, br", Some(ContentEncoding::Other)),
            ("identity", None),
            ("", None),
        ] {
            assert_eq!(ContentEncoding::named(header), encoding, "{header}");
        }
    }
}
