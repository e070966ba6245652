//! Compresses files during upload, and stores them with `Content-Encoding: gzip`.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use flate2::read::GzEncoder;
use flate2::{Compression, GzBuilder};
use laneway_store::PutOptions;

use crate::Error;

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
pub(crate) fn described(mut put: PutOptions) -> PutOptions {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(described(asked).cache_control.as_deref(), Some("max-age=60"));
        let plain = described(PutOptions::default());
        assert_eq!(plain.cache_control.as_deref(), Some("no-transform"));
        assert_eq!(plain.content_encoding.as_deref(), Some("gzip"));
    }
}
