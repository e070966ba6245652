//! Removes the content encoding of downloaded objects.

use std::io::{self, BufRead, Read as _, Write};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// The header of an empty zstd frame.
const EMPTY_FRAME: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00];

/// The encoding of an object's bytes, as its `Content-Encoding` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ContentEncoding {
    Gzip,
    Zstd,
    /// An encoding that Laneway can't decode, such as `br`.
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

    /// Decodes all members of a gzip file, or all frames of a zstd file. The members or frames follow each
    /// other without a gap.
    ///
    /// # Errors
    /// The errors of reading and writing. If the bytes aren't in this encoding, `InvalidData`, `InvalidInput`
    /// or `UnexpectedEof`.
    pub(crate) fn decode(self, from: impl BufRead, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Gzip => io::copy(&mut MultiGzDecoder::new(from), to).map(drop),
            Self::Zstd => decode_zstd(from, to),
            Self::Other => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "only gzip and zstd can be decompressed"))
            }
        }
    }
}

fn decode_zstd(mut from: impl BufRead, to: &mut impl Write) -> io::Result<()> {
    let broken = |e: FrameDecoderError| io::Error::new(io::ErrorKind::InvalidData, e.to_string());
    let mut decoder = FrameDecoder::new();
    // The decoder refuses a window above 100 MiB, except in its first frame. So give it an empty frame first. Otherwise
    // the first real frame could make it hold terabytes.
    decoder.init(&EMPTY_FRAME[..]).map_err(broken)?;
    while !from.fill_buf()?.is_empty() {
        match StreamingDecoder::new_with_decoder(&mut from, &mut decoder) {
            Ok(mut frame) => drop(io::copy(&mut frame, to)?),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let skipped = io::copy(&mut (&mut from).take(length.into()), &mut io::sink())?;
                if skipped < length.into() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(broken(error)),
        }
    }
    Ok(())
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
    fn skippable_frames_are_skipped() {
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let whole = [&skippable[..], FRAMES[0], &skippable, FRAMES[1]].concat();
        assert_eq!(decoded(ContentEncoding::Zstd, &whole).unwrap(), b"onetwo");
        assert!(decoded(ContentEncoding::Zstd, &skippable[..10]).is_err(), "cut");
    }

    #[test]
    fn a_frame_with_a_huge_window_is_refused() {
        // The window descriptor asks for 1 TiB. A block of one repeated byte follows.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf0, 0x03, 0x00, 0x10, b'x'];
        let error = decoded(ContentEncoding::Zstd, &frame).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains("window"), "{error}");
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
