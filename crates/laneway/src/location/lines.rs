//! Reads files line by line, and limits the length of a line.

use std::io::{self, BufRead, Read as _};

/// The maximum length of a line in bytes. A line with a key of 1 KiB in any notation and all its metadata is
/// far shorter.
pub(crate) const LINE_MAX: u64 = 1 << 20;

/// A line, without its line end.
#[derive(Debug)]
pub(crate) struct TextLine {
    /// The line's number, counted from 1.
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    /// False for a last line without a line end. Such a line may be incomplete, because its writer may have
    /// been interrupted.
    pub(crate) is_ended: bool,
    /// The line's offset in the file.
    pub(crate) start: u64,
}

#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    number: u64,
    at: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, number: 0, at: 0 }
    }

    /// Returns the next line, or `None` at the end of the file.
    ///
    /// # Errors
    /// The error of the read, or `InvalidData` for a line longer than 1 MiB.
    pub(crate) fn next(&mut self) -> io::Result<Option<TextLine>> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(LINE_MAX + 1).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let start = self.at;
        self.at += read;
        let is_ended = bytes.last() == Some(&b'\n');
        if read > LINE_MAX && !is_ended {
            let why = format!("line {} is longer than 1 MiB", self.number);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if is_ended {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        Ok(Some(TextLine { number: self.number, bytes, is_ended, start }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_with_their_numbers_and_without_their_ends() {
        let mut lines = Lines::new(&b"a\r\n\nb"[..]);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push((line.number, String::from_utf8(line.bytes).unwrap(), line.is_ended, line.start));
        }
        let line = |number, text: &str, is_ended, start| (number, text.to_owned(), is_ended, start);
        assert_eq!(seen, [line(1, "a", true, 0), line(2, "", true, 3), line(3, "b", false, 4)]);
    }

    #[test]
    fn a_line_without_end_is_not_collected() {
        let endless = vec![b'x'; 3 << 20];
        let error = Lines::new(&endless[..]).next().unwrap_err();
        assert!(error.to_string().contains("line 1 is longer"), "{error}");
    }
}
