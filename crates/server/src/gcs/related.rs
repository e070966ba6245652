//! `multipart/related` as uploads use it: JSON metadata, then the media, of any length, as the last part.

/// Metadata and part headers beyond this are refused.
const HEAD_BYTES_MAX: usize = 1 << 20;
/// Bytes after the closing delimiter that are tolerated.
const EPILOGUE_BYTES_MAX: usize = 16;

/// Takes the body as it comes and lets the media through, holding back only what may be the closing delimiter.
#[derive(Debug)]
pub(crate) struct Related {
    delimiter: Vec<u8>,
    head: Vec<u8>,
    found: Option<Head>,
    tail: Vec<u8>,
}

/// What comes before the media.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) metadata: Vec<u8>,
    pub(crate) media_type: Option<String>,
}

/// Why a body is not what it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl Related {
    /// `content_type` is the header of the request.
    pub(crate) fn new(content_type: &str) -> Result<Related, Malformed> {
        let boundary = boundary(content_type).ok_or(Malformed("the Content-Type names no boundary"))?;
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        Ok(Related { delimiter, head: Vec::new(), found: None, tail: Vec::new() })
    }

    /// Takes the next bytes; `media` gets what is certainly media, with the head that came before it.
    pub(crate) fn push<E: From<Malformed>>(
        &mut self,
        bytes: &[u8],
        media: &mut impl FnMut(&Head, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(head) = &self.found {
            return pass(&mut self.tail, self.delimiter.len() + 4 + EPILOGUE_BYTES_MAX, head, bytes, media);
        }
        self.head.extend_from_slice(bytes);
        match parse_head(&self.head, &self.delimiter)? {
            Some((head, media_start)) => {
                let rest = std::mem::take(&mut self.head);
                let head = self.found.insert(head);
                let keep = self.delimiter.len() + 4 + EPILOGUE_BYTES_MAX;
                pass(&mut self.tail, keep, head, &rest[media_start..], media)
            }
            None if self.head.len() > HEAD_BYTES_MAX => {
                Err(Malformed("the metadata is larger than 1 MiB").into())
            }
            None => Ok(()),
        }
    }

    /// Lets the rest of the media through and checks that it was closed.
    pub(crate) fn finish<E: From<Malformed>>(
        self,
        media: &mut impl FnMut(&Head, &[u8]) -> Result<(), E>,
    ) -> Result<Head, E> {
        let head = self.found.ok_or(Malformed("the body ended before the media part"))?;
        let closing = [&self.delimiter[..], b"--"].concat();
        let end =
            find(&self.tail, &closing).ok_or(Malformed("the media part is not closed by its boundary"))?;
        media(&head, &self.tail[..end])?;
        Ok(head)
    }
}

fn pass<E>(
    tail: &mut Vec<u8>,
    keep: usize,
    head: &Head,
    bytes: &[u8],
    media: &mut impl FnMut(&Head, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
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

/// The two heads and the metadata, and where the media begins; `None` if more bytes are needed.
fn parse_head(bytes: &[u8], delimiter: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
    // The first delimiter has no line before it, unless there is a preamble.
    let opening = &delimiter[2..];
    let start = if bytes.starts_with(opening) {
        opening.len()
    } else if bytes.len() < opening.len() {
        return Ok(None);
    } else {
        match find(bytes, delimiter) {
            Some(at) => at + delimiter.len(),
            None if opening.starts_with(&bytes[..bytes.len().min(2)]) || bytes.starts_with(b"\r\n") => {
                return Ok(None);
            }
            None => return Err(Malformed("the body does not begin with its boundary")),
        }
    };
    let Some(metadata_start) = find(&bytes[start..], b"\r\n\r\n").map(|at| start + at + 4) else {
        return Ok(None);
    };
    let Some(metadata_end) = find(&bytes[metadata_start..], delimiter).map(|at| metadata_start + at) else {
        return Ok(None);
    };
    let media_head = metadata_end + delimiter.len();
    if bytes[media_head..].starts_with(b"--") {
        return Err(Malformed("there is no media part"));
    }
    let Some(media_start) = find(&bytes[media_head..], b"\r\n\r\n").map(|at| media_head + at + 4) else {
        return Ok(None);
    };
    let headers = String::from_utf8_lossy(&bytes[media_head..media_start]);
    let media_type = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-type").then(|| value.trim().to_owned())
    });
    Ok(Some((Head { metadata: bytes[metadata_start..metadata_end].to_vec(), media_type }, media_start)))
}

/// The boundary parameter of a multipart content type, unquoted.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    let at = content_type.to_ascii_lowercase().find("boundary=")? + "boundary=".len();
    let value = content_type[at..].split(';').next()?.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then_some(value)
}

/// Where the needle first stands.
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

    fn parse(body: &str, step: usize) -> Result<(Head, Vec<u8>), Malformed> {
        let mut related = Related::new("multipart/related; boundary=\"xyz\"")?;
        let mut media = Vec::new();
        let mut sink = |_: &Head, bytes: &[u8]| {
            media.extend_from_slice(bytes);
            Ok::<(), Malformed>(())
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
    fn a_body_that_is_cut_off_is_refused() {
        let whole = body("media");
        for len in [0, 5, 40, 70, whole.len() - 6] {
            assert!(parse(&whole[..len], 1000).is_err(), "{len}");
        }
        assert!(parse("nothing of the kind", 5).is_err());
        assert!(Related::new("multipart/related").is_err());
    }
}
