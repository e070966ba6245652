//! The content types of objects, and their content encodings: compression of uploads and decompression of
//! downloads.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use flate2::bufread::MultiGzDecoder;
use flate2::read::GzEncoder;
use flate2::{Compression, GzBuilder};
use laneway_store::PutOptions;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::Error;

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
            Self::Zstd => io::copy(&mut ZstdFrames::new(from)?, to).map(drop),
            Self::Other => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "only gzip and zstd can be decompressed"))
            }
        }
    }
}

/// Decodes all frames of a zstd file.
pub(crate) struct ZstdFrames<R> {
    input: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    /// Returns a reader of the decoded bytes.
    ///
    /// # Errors
    /// Never fails. The error is that of the decoder's first frame, which is a constant.
    pub(crate) fn new(input: R) -> io::Result<Self> {
        let mut decoder = FrameDecoder::new();
        // The decoder refuses a window above 100 MiB, except in its first frame. So give it an empty frame first.
        // Otherwise the first real frame could make it hold terabytes.
        decoder.init(&EMPTY_FRAME[..]).map_err(broken_frame)?;
        Ok(Self { input, decoder, is_in_frame: false })
    }

    /// Reads the header of the next frame. Returns false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(broken_frame(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            while self.is_in_frame && self.decoder.can_collect() < buffer.len() && !self.decoder.is_finished()
            {
                let missing = BlockDecodingStrategy::UptoBytes(buffer.len() - self.decoder.can_collect());
                self.decoder.decode_blocks(&mut self.input, missing).map_err(broken_frame)?;
            }
            let read = if self.is_in_frame { self.decoder.read(buffer)? } else { 0 };
            if read > 0 {
                return Ok(read);
            }
            self.is_in_frame = self.next_frame()?;
            if !self.is_in_frame {
                break;
            }
        }
        Ok(0)
    }
}

fn broken_frame(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// The first bytes of gzip and zstd files.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns the decompressed bytes of a file that is compressed with gzip or zstd, or not at all. The file's
/// first bytes say which.
///
/// # Errors
/// The error of reading these bytes.
pub(crate) fn decompressed(file: File) -> io::Result<Box<dyn BufRead>> {
    let mut input = BufReader::new(file);
    let start = input.fill_buf()?;
    if start.starts_with(&GZIP_MAGIC) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(input))));
    }
    if start.starts_with(&ZSTD_MAGIC) {
        return Ok(Box::new(BufReader::with_capacity(DECODED_LEN, ZstdFrames::new(input)?)));
    }
    Ok(Box::new(input))
}

/// The number of bytes that are decoded from zstd at a time. A block of a frame has at most as many.
const DECODED_LEN: usize = 128 << 10;

/// Without `no-transform`, GCS and caches decompress an object for clients that don't accept gzip. `gcloud
/// storage cp --gzip-local` sets the same value.
const CACHE_CONTROL: &str = "no-transform";

/// Chooses the local files that Laneway compresses with gzip before it uploads them. It chooses a file if the
/// file's name ends in a dot and one of the given extensions, in the same case. Without extensions it chooses
/// no file.
///
/// A compressed object has `Content-Encoding: gzip` and the content type of its uncompressed name. It has
/// `Cache-Control: no-transform` unless the caller sets another value. The object's size and checksums
/// describe the compressed bytes. Compressing the same file always gives the same bytes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Gzip {
    /// The endings of names, such as `.html`.
    endings: Vec<String>,
}

impl Gzip {
    /// Returns the endings of the names of files that Laneway compresses, each with its leading dot.
    pub(crate) fn endings(&self) -> &[String] {
        &self.endings
    }

    /// Chooses files with these extensions, each with or without its leading dot: `html`, `.txt`, `tar.old`.
    ///
    /// # Errors
    /// `ErrorKind::Usage` for an extension that is empty or holds a `/`.
    pub fn extensions<T: AsRef<str>>(extensions: impl IntoIterator<Item = T>) -> Result<Self, Error> {
        let ending = |extension: T| {
            let plain = extension.as_ref().trim().trim_start_matches('.');
            match plain {
                "" => Err(Error::usage("", "the list of extensions to compress contains an empty one")),
                _ if plain.contains('/') => Err(Error::usage(plain, "is not a file extension")),
                _ => Ok(format!(".{plain}")),
            }
        };
        Ok(Self { endings: extensions.into_iter().map(ending).collect::<Result<_, _>>()? })
    }

    /// Returns whether this chooses no file.
    pub fn is_empty(&self) -> bool {
        self.endings.is_empty()
    }

    /// Returns whether Laneway compresses the file at `path`.
    pub fn takes(&self, path: &Path) -> bool {
        let name = path.file_name().map_or(&[][..], OsStr::as_bytes);
        self.endings.iter().any(|ending| name.ends_with(ending.as_bytes()))
    }
}

impl FromStr for Gzip {
    type Err = Error;

    /// Parses extensions that are separated by commas, such as `html,txt`.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::extensions(text.split(','))
    }
}

/// Returns `put` with the additional fields of an object whose file was compressed.
pub(crate) fn described_as_gzip(mut put: PutOptions) -> PutOptions {
    put.content_encoding = Some("gzip".to_owned());
    put.cache_control.get_or_insert_with(|| CACHE_CONTROL.to_owned());
    put
}

/// Compresses the bytes of `input` as they are read. The gzip header contains neither a file name nor a time,
/// so equal files become equal objects.
pub(crate) fn compressed<R: Read>(input: R) -> GzEncoder<R> {
    GzBuilder::new().mtime(0).read(input, Compression::default())
}

/// Compresses all bytes of `input`. Only the compressed bytes are held in memory.
///
/// # Errors
/// An error of reading `input`.
pub(crate) fn compress(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    compressed(input).read_to_end(&mut bytes)?;
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// Guesses the content type from the extension, as other tools do. Returns `None` for an unknown extension.
/// In that case Laneway sends no content type, and the store chooses one.
pub(crate) fn content_type(name: &str) -> Option<&'static str> {
    let base = name.rsplit('/').next().unwrap_or(name);
    // The dot of a hidden file such as `.profile` doesn't begin an extension.
    let (stem, extension) = base.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    mime_guess::from_ext(extension).first_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_end_of_the_name_decides_dot_or_no_dot() {
        let gzip: Gzip = "html,.txt, tar.old".parse().unwrap();
        for name in ["a.html", "d/b.txt", ".html", "x.tar.old", "a.b.html"] {
            assert!(gzip.takes(Path::new(name)), "{name}");
        }
        for name in ["html", "a.HTML", "a.htm", "a.html.gz", "a.html/b", "x.old", "ahtml", "/", ""] {
            assert!(!gzip.takes(Path::new(name)), "{name}");
        }
        assert!(!Gzip::default().takes(Path::new("a.html")) && Gzip::default().is_empty());
    }

    #[test]
    fn an_empty_extension_is_refused() {
        for text in ["", ".", "html,", ",", " ", "a/b"] {
            assert_eq!(text.parse::<Gzip>().unwrap_err().kind(), crate::ErrorKind::Usage, "{text:?}");
        }
    }

    #[test]
    fn equal_bytes_become_equal_bytes_without_a_name_or_a_time() {
        let text = b"laneway ".repeat(1000);
        let bytes = compress(&*text).unwrap();
        assert_eq!(bytes, compress(&*text).unwrap());
        // RFC 1952: magic, deflate, no flags, time 0.
        assert_eq!(bytes[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut back).unwrap();
        assert!(back == text && bytes.len() < text.len() / 10);
    }

    #[test]
    fn a_cache_control_that_was_asked_for_is_kept() {
        let asked = PutOptions::default().cache_control("max-age=60");
        assert_eq!(described_as_gzip(asked).cache_control.as_deref(), Some("max-age=60"));
        let plain = described_as_gzip(PutOptions::default());
        assert_eq!(plain.cache_control.as_deref(), Some("no-transform"));
        assert_eq!(plain.content_encoding.as_deref(), Some("gzip"));
    }

    #[test]
    fn the_last_extension_decides_whatever_its_case() {
        assert_eq!(content_type("a/b.html"), Some("text/html"));
        assert_eq!(content_type("B.JPG"), Some("image/jpeg"));
        assert_eq!(content_type("x.json"), Some("application/json"));
    }

    #[test]
    fn names_without_an_extension_are_left_to_the_store() {
        assert_eq!(content_type("Makefile"), None);
        assert_eq!(content_type("dir.html/plain"), None);
        assert_eq!(content_type(".html"), None);
    }
}
