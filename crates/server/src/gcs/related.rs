//! `multipart/related` uploads: JSON metadata, then media of any length as the last part.

/// The maximum number of bytes of the metadata and the part headers together. An object's custom metadata has at most 8
/// KiB.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// The maximum number of bytes after the closing delimiter.
const EPILOGUE_BYTES_MAX: usize = 16;

/// Reads the body as it arrives and passes the media on. Only bytes that may be the beginning of the closing delimiter
/// are kept back.
///
/// Lines may end with CRLF, as in the standard, or with LF alone, as `gcsfs` and `gcloud` send them and GCS accepts
/// them. The media isn't changed in either case. It ends before the line break in front of the closing boundary line.
/// This line break must be of the same kind as the one at the end of the boundary line before the media part.
#[derive(Debug)]
pub(crate) struct RelatedParser {
    /// `--`, followed by the boundary.
    dashes: Vec<u8>,
    head: Vec<u8>,
    /// The head is parsed again only when it has this length. Otherwise a body that arrives byte by byte would be
    /// parsed again for each byte.
    look_at: usize,
    found: Option<RelatedParts>,
    tail: Vec<u8>,
}

#[derive(Debug)]
struct RelatedParts {
    head: RelatedHead,
    /// The end of the media: a line break, the dashes, the boundary and two more dashes.
    closing: Vec<u8>,
}

/// The part of the body before the media.
#[derive(Debug)]
pub(crate) struct RelatedHead {
    pub(crate) metadata: Vec<u8>,
    pub(crate) media_type: Option<String>,
}

/// The reason why a body doesn't match its `Content-Type`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RelatedError(pub(crate) &'static str);

impl RelatedParser {
    /// Returns a reader for the body of a request with this `Content-Type`.
    pub(crate) fn new(content_type: &str) -> Result<RelatedParser, RelatedError> {
        let boundary =
            boundary(content_type).ok_or(RelatedError("the Content-Type has no boundary parameter"))?;
        let dashes = [b"--", boundary.as_bytes()].concat();
        Ok(RelatedParser { dashes, head: Vec::new(), look_at: 0, found: None, tail: Vec::new() })
    }

    /// Reads the next bytes. `media` is called with the bytes that certainly belong to the media, and with the head.
    pub(crate) fn push<E: From<RelatedError>>(
        &mut self,
        bytes: &[u8],
        media: &mut impl FnMut(&RelatedHead, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(found) = &self.found {
            return pass(&mut self.tail, found, bytes, media);
        }
        self.head.extend_from_slice(bytes);
        if self.head.len() < self.look_at {
            return Ok(());
        }
        self.look_at = self.head.len() + self.head.len() / 8;
        self.look(media)
    }

    fn look<E: From<RelatedError>>(
        &mut self,
        media: &mut impl FnMut(&RelatedHead, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match parse_head(&self.head, &self.dashes)? {
            Some((found, media_start)) => {
                let rest = std::mem::take(&mut self.head);
                let found = self.found.insert(found);
                pass(&mut self.tail, found, &rest[media_start..], media)
            }
            None if self.head.len() > HEAD_BYTES_MAX => {
                Err(RelatedError("the metadata is larger than 128 KiB").into())
            }
            None => Ok(()),
        }
    }

    /// Passes the rest of the media on, and checks the closing delimiter.
    pub(crate) fn finish<E: From<RelatedError>>(
        mut self,
        media: &mut impl FnMut(&RelatedHead, &[u8]) -> Result<(), E>,
    ) -> Result<RelatedHead, E> {
        if self.found.is_none() {
            self.look(media)?;
        }
        let RelatedParts { head, closing } =
            self.found.ok_or(RelatedError("the body ended before the media part"))?;
        let end =
            find(&self.tail, &closing).ok_or(RelatedError("the media part is not closed by its boundary"))?;
        media(&head, &self.tail[..end])?;
        Ok(head)
    }
}

fn pass<E>(
    tail: &mut Vec<u8>,
    found: &RelatedParts,
    bytes: &[u8],
    media: &mut impl FnMut(&RelatedHead, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (head, keep) = (&found.head, found.closing.len() + EPILOGUE_BYTES_MAX);
    if bytes.len() < keep {
        tail.extend_from_slice(bytes);
        let surplus = tail.len().saturating_sub(keep);
        if surplus > 0 {
            media(head, &tail[..surplus])?;
            tail.drain(..surplus);
        }
        return Ok(());
    }
    if !tail.is_empty() {
        media(head, tail)?;
        tail.clear();
    }
    let (through, kept) = bytes.split_at(bytes.len() - keep);
    if !through.is_empty() {
        media(head, through)?;
    }
    tail.extend_from_slice(kept);
    Ok(())
}

/// Parses both part heads and the metadata, and returns the position of the media. Returns `None` if more bytes are
/// needed.
fn parse_head(bytes: &[u8], dashes: &[u8]) -> Result<Option<(RelatedParts, usize)>, RelatedError> {
    let Some(opening) = opening(bytes, dashes)? else { return Ok(None) };
    let Some((_, metadata_head)) = rest_of_line(bytes, opening + dashes.len())? else { return Ok(None) };
    let Some(metadata_start) = after_blank_line(bytes, metadata_head) else { return Ok(None) };
    // If the metadata is empty, the line break before the next boundary may be the one that ends the blank line.
    let Some(metadata_end) = next_delimiter(bytes, metadata_start, dashes) else { return Ok(None) };
    let boundary_end = metadata_end + 1 + dashes.len();
    if bytes[boundary_end..].starts_with(b"--") {
        return Err(RelatedError("there is no media part"));
    }
    let Some((line_end, media_head)) = rest_of_line(bytes, boundary_end)? else { return Ok(None) };
    let Some(media_start) = after_blank_line(bytes, media_head) else { return Ok(None) };
    let headers = String::from_utf8_lossy(&bytes[media_head..media_start]);
    let media_type = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-type").then(|| value.trim().to_owned())
    });
    let metadata = bytes.get(metadata_start..metadata_end).unwrap_or_default();
    let metadata = metadata.strip_suffix(b"\r").unwrap_or(metadata).to_vec();
    let closing = [line_end, dashes, b"--"].concat();
    Ok(Some((RelatedParts { head: RelatedHead { metadata, media_type }, closing }, media_start)))
}

/// Returns the position of the first boundary line. Empty lines may precede it.
fn opening(bytes: &[u8], dashes: &[u8]) -> Result<Option<usize>, RelatedError> {
    let start = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let rest = &bytes[start..];
    if rest.starts_with(dashes) {
        Ok(Some(start))
    } else if dashes.starts_with(rest) {
        Ok(None)
    } else {
        Err(RelatedError("the body does not begin with its boundary"))
    }
}

/// Returns the line break that ends a boundary line, and the position after it. Spaces and tabs may stand before the
/// line break.
fn rest_of_line(bytes: &[u8], from: usize) -> Result<Option<(&'static [u8], usize)>, RelatedError> {
    let blanks = bytes[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match &bytes[from + blanks..] {
        [b'\n', ..] => Ok(Some((b"\n", from + blanks + 1))),
        [b'\r', b'\n', ..] => Ok(Some((b"\r\n", from + blanks + 2))),
        [] | [b'\r'] => Ok(None),
        _ => Err(RelatedError("there are other characters after the boundary on its line")),
    }
}

/// Returns the position after the next empty line, if it has arrived.
fn after_blank_line(bytes: &[u8], from: usize) -> Option<usize> {
    let mut line = from;
    loop {
        let end = line + bytes.get(line..)?.iter().position(|byte| *byte == b'\n')?;
        if matches!(&bytes[line..end], [] | [b'\r']) {
            return Some(end + 1);
        }
        line = end + 1;
    }
}

/// Returns the position of the line break before the next boundary line, once two bytes after the boundary have
/// arrived.
fn next_delimiter(bytes: &[u8], from: usize, dashes: &[u8]) -> Option<usize> {
    let delimiter = [b"\n", dashes].concat();
    let from = from.checked_sub(1)?;
    let at = from + find(&bytes[from..], &delimiter)?;
    (bytes.len() >= at + delimiter.len() + 2).then_some(at)
}

/// Returns the boundary of a multipart content type. A quoted boundary may contain anything, with `\` before a quote.
/// `gcloud` quotes it with apostrophes.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let mut rest = content_type;
    loop {
        rest = rest.split_once(';')?.1.trim_start();
        let (name, value) = rest.split_once('=')?;
        let (value, after) = parameter_value(value.trim_start());
        if name.trim().eq_ignore_ascii_case("boundary") {
            return Some(value).filter(|value| !value.is_empty());
        }
        rest = after;
    }
}

/// Returns a parameter's value, and the text after it.
fn parameter_value(text: &str) -> (String, &str) {
    let quote = match text.as_bytes().first() {
        Some(quote @ (b'"' | b'\'')) => char::from(*quote),
        _ => {
            let end = text.find(';').unwrap_or(text.len());
            return (text[..end].trim_end().to_owned(), &text[end..]);
        }
    };
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

/// Returns the first position of the needle.
pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = haystack[from..].iter().position(|byte| *byte == first).map(|at| from + at) {
        if haystack[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(media: &str) -> String {
        format!(
            "--xyz\r\nContent-Type: application/json\r\n\r\n{{\"name\":\"k\"}}\r\n--xyz\r\ncontent-type: text/css\r\n\r\n\
             {media}\r\n--xyz--\r\n"
        )
    }

    fn lf(body: &str) -> String {
        body.replace("\r\n", "\n")
    }

    fn parse(body: &str, step: usize) -> Result<(RelatedHead, Vec<u8>), RelatedError> {
        let mut related = RelatedParser::new("multipart/related; boundary=\"xyz\"")?;
        let mut media = Vec::new();
        let mut sink = |_: &RelatedHead, bytes: &[u8]| {
            media.extend_from_slice(bytes);
            Ok::<(), RelatedError>(())
        };
        for chunk in body.as_bytes().chunks(step) {
            related.push(chunk, &mut sink)?;
        }
        let head = related.finish(&mut sink)?;
        Ok((head, media))
    }

    #[test]
    fn metadata_and_media_come_apart_however_the_body_is_cut() {
        let long = "0123456789\r\n-".repeat(50);
        for media in ["", "a", "\r\n--xy", "\r\n", long.as_str()] {
            let body = body(media);
            for step in [1, 2, 3, 7, 40, 100, body.len()] {
                let (head, found) = parse(&body, step).unwrap();
                assert_eq!(String::from_utf8(found).unwrap(), media, "step {step}");
                assert_eq!(head.metadata, b"{\"name\":\"k\"}");
                assert_eq!(head.media_type.as_deref(), Some("text/css"));
            }
        }
    }

    #[test]
    fn bare_line_feeds_do_as_well_and_leave_the_media_as_it_is() {
        for media in ["", "a", "\r", "a\r\n", "\n--xy", "\n", "\r\n--xyz"] {
            let head = lf(&body("")).replace("\n\n\n--xyz--\n", "\n\n");
            let body = format!("{head}{media}\n--xyz--");
            for step in [1, 2, 3, 7, body.len()] {
                let (head, found) = parse(&body, step).unwrap();
                assert_eq!(String::from_utf8(found).unwrap(), media, "step {step}");
                assert_eq!(head.metadata, b"{\"name\":\"k\"}");
            }
        }
    }

    #[test]
    fn a_boundary_is_found_however_it_is_written() {
        for (written, expected) in [
            ("multipart/related; boundary=xyz", "xyz"),
            ("multipart/related;boundary=\"==0==\"", "==0=="),
            ("multipart/related; type=\"a; boundary=no\"; BOUNDARY = \"a b;c\"", "a b;c"),
            ("multipart/related; boundary='==1=='; type=x", "==1=="),
            (r#"multipart/related; boundary="a\"b""#, "a\"b"),
        ] {
            assert_eq!(boundary(written).as_deref(), Some(expected), "{written}");
        }
        assert_eq!(boundary("multipart/related; boundary="), None);
        assert_eq!(boundary("multipart/related"), None);
    }

    #[test]
    fn a_body_that_is_cut_off_is_refused() {
        let whole = body("media");
        for len in [0, 5, 40, 70, whole.len() - 6] {
            assert!(parse(&whole[..len], 1000).is_err(), "{len}");
        }
        assert!(parse("nothing of the kind", 5).is_err());
        assert!(RelatedParser::new("multipart/related").is_err());
    }
}
