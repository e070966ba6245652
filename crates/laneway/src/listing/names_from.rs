//! Reads names, one per line, from a file or standard input. The names replace a listing or a walk.

use std::fs::File;
use std::io::{BufReader, Read};

use tokio::sync::mpsc;

use crate::location::lines::Lines;
use crate::{Error, Location};

const BATCH_MAX: usize = 256;
/// The number of batches that may wait for the receiver. Beyond this number, the reading thread waits.
const BATCHES_WAITING_MAX: usize = 4;

/// The rules for reading lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineRules {
    /// Like rclone: strips whitespace around a name and a slash before the name.
    Rclone,
    /// Refuses a line that rclone's rules would strip, because a removal must name exactly what it removes.
    Exact,
}

/// A name, and the line that holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListedName {
    pub(crate) name: String,
    /// The line, as `FILE:LINE`.
    pub(crate) line: Box<str>,
}

/// Names from a file. Dropping it ends the reading.
#[derive(Debug)]
pub(crate) struct NameList(mpsc::Receiver<Result<Vec<ListedName>, Error>>);

impl NameList {
    /// Begins to read a file, or standard input.
    ///
    /// # Errors
    /// If no thread can be started. [`next`](Self::next) returns errors of opening and reading the file.
    pub(crate) fn start(at: &Location, reading: LineRules) -> Result<Self, Error> {
        let target = at.to_string();
        let (out, batches) = mpsc::channel(BATCHES_WAITING_MAX);
        let (from, named) = (at.clone(), target.clone());
        let read = move || {
            let opened: Result<Box<dyn Read>, Error> = match &from {
                Location::Standard => Ok(Box::new(std::io::stdin())),
                Location::Local(path) => match File::open(path) {
                    Ok(file) => Ok(Box::new(file)),
                    Err(e) => Err(Error::local(path, "can't be read", e)),
                },
                Location::Object { .. } | Location::Version { .. } => Err(Error::usage(
                    &named,
                    "the list of names must be a local file, or - for standard input; it can't be an object",
                )),
            };
            // Sending the error fails only if the job has ended.
            let _ = opened
                .and_then(|input| hand_on(&named, input, reading, &out))
                .map_err(|e| out.blocking_send(Err(e)));
        };
        std::thread::Builder::new()
            .name("laneway-names".into())
            .spawn(read)
            .map_err(|e| Error::local(&target, "can't be read, because no thread could be started", e))?;
        Ok(Self(batches))
    }

    /// Returns the next names, or `None` at the end.
    ///
    /// # Errors
    /// If the file can't be read, or a line isn't a valid name. After an error, no more names follow.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<ListedName>>, Error> {
        self.0.recv().await.transpose()
    }
}

fn hand_on(
    target: &str,
    input: impl Read,
    reading: LineRules,
    out: &mpsc::Sender<Result<Vec<ListedName>, Error>>,
) -> Result<(), Error> {
    let mut lines = Lines::new(BufReader::new(input));
    let mut batch = Vec::new();
    let unreadable = |e| Error::local(target, "can't be read", e);
    while let Some(line) = lines.next().map_err(unreadable)? {
        match name(&line.bytes, reading, line.number == 1) {
            Ok(None) => continue,
            Ok(Some(name)) => {
                batch.push(ListedName { name, line: format!("{target}:{}", line.number).into() })
            }
            Err(why) => {
                // Hand on the names before the bad line.
                let _ = out.blocking_send(Ok(std::mem::take(&mut batch)));
                return Err(Error::refused(format!("{target}:{}", line.number), why));
            }
        }
        if batch.len() >= BATCH_MAX && out.blocking_send(Ok(std::mem::take(&mut batch))).is_err() {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = out.blocking_send(Ok(batch));
    }
    Ok(())
}

/// Returns the name in a line, by the rules of rclone's `--files-from`. Strips whitespace around the name and
/// a slash before the name. Ignores lines that begin with `#` or `;`.
/// # Errors
/// If the line can't be a name.
pub(crate) fn name(line: &[u8], reading: LineRules, is_first: bool) -> Result<Option<String>, &'static str> {
    let line = if is_first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    let whole = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8")?;
    let text = whole.trim();
    if text.is_empty() || text.starts_with(['#', ';']) {
        return Ok(None);
    }
    let name = text.trim_start_matches('/');
    match reading {
        _ if name.is_empty() => Err("the line has only slashes, and no name"),
        LineRules::Exact if name != whole => {
            Err("the line begins or ends with a space, or begins with a slash; names to remove must be exact")
        }
        LineRules::Exact | LineRules::Rclone => Ok(Some(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_rclone_reads_them() {
        let read = |line: &str| name(line.as_bytes(), LineRules::Rclone, false);
        let some = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(read("a/b c"), some("a/b c"));
        assert_eq!(read("  /a/b\t"), some("a/b"));
        for nothing in ["", "   ", "# a comment", "; another", "  # and one more"] {
            assert_eq!(read(nothing), Ok(None), "{nothing:?}");
        }
        assert_eq!(read("a # b"), some("a # b"));
        assert!(read("/").is_err() && name(b"\xff", LineRules::Rclone, false).is_err());
        assert_eq!(name(b"\xef\xbb\xbfa", LineRules::Rclone, true), some("a"));
    }

    #[test]
    fn what_is_to_be_removed_is_read_as_it_stands_or_not_at_all() {
        let read = |line: &str| name(line.as_bytes(), LineRules::Exact, false);
        assert_eq!(read("a b/c"), Ok(Some("a b/c".to_owned())));
        assert_eq!((read("  "), read("# a")), (Ok(None), Ok(None)));
        for other in [" a", "a ", "a\t", "/a", "//a"] {
            assert!(read(other).unwrap_err().contains("must be exact"), "{other:?}");
        }
    }

    #[test]
    fn what_stands_before_a_broken_line_is_named_first() {
        let (out, mut batches) = mpsc::channel(4);
        let error = hand_on("names", &b"a\n#\nb\n\xff\nc\n"[..], LineRules::Rclone, &out).unwrap_err();
        assert!(error.to_string().starts_with("names:4: "), "{error}");
        let batch = batches.blocking_recv().unwrap().unwrap();
        let lines: Vec<_> = batch.iter().map(|named| (&*named.name, &*named.line)).collect();
        assert_eq!(lines, [("a", "names:1"), ("b", "names:3")]);
    }
}
