//! The parts of XML that both dialects share.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};
use serde::Deserialize;

/// The maximum number of characters of an unexpected root element's name that an error repeats.
const ROOT_SHOWN_MAX: usize = 40;

/// An `<Error>` document.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ErrorDocument {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
    /// GCS: the details of the error.
    pub(crate) details: Option<String>,
    /// S3: the bucket's region.
    pub(crate) region: Option<String>,
    /// S3: the storage class of an archived object.
    pub(crate) storage_class: Option<String>,
    /// S3: the archive tier of an object of the class INTELLIGENT_TIERING.
    pub(crate) access_tier: Option<String>,
}

/// Returns the `<Error>` document in the body, if it is one.
pub(crate) fn error(body: &[u8]) -> Option<ErrorDocument> {
    let text = std::str::from_utf8(body).ok()?.trim_start();
    if root(text)? != "Error" {
        return None;
    }
    quick_xml::de::from_str(text).ok()
}

/// Reads an answer whose root element has one of these names, and rejects any other document. The check is necessary
/// because most elements of an answer are optional. Without it, an error or a web page with status 200 would be read as
/// an empty listing, or as the deletion of all keys.
///
/// # Errors
/// Returns the reason why the document can't be read.
pub(crate) fn answer<T: for<'de> Deserialize<'de>>(body: &[u8], roots: &[&str]) -> Result<T, String> {
    let text = std::str::from_utf8(body).map_err(|e| e.to_string())?;
    match root(text) {
        Some(found) if roots.contains(&found) => read(body),
        Some(found) => {
            Err(format!("it begins with <{}>", found.chars().take(ROOT_SHOWN_MAX).collect::<String>()))
        }
        None => Err("it isn't XML".to_owned()),
    }
}

/// Reads the content of an element with any name.
///
/// # Errors
/// Returns the reason why it can't be read.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(body).map_err(|e| e.to_string())?;
    quick_xml::de::from_str(text.trim_start()).map_err(|e| e.to_string())
}

/// Calls `leaf` for each element inside this one that holds only text, with its depth (counted from 1), its name and
/// its text. It is twice as fast as [`read`], which matters for a million elements.
///
/// # Errors
/// Returns the reason why it can't be read, or the error of `leaf`.
pub(crate) fn leaves(
    element: &[u8],
    mut leaf: impl FnMut(usize, &str, String) -> Result<(), String>,
) -> Result<(), String> {
    let text = std::str::from_utf8(element).map_err(|e| e.to_string())?;
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut depth, mut is_leaf, mut content) = (0, false, String::new());
    loop {
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Start(_) => {
                depth += 1;
                is_leaf = true;
                content.clear();
            }
            Event::End(end) => {
                depth -= 1;
                if std::mem::take(&mut is_leaf) {
                    leaf(depth, end.local_name().as_ref(), std::mem::take(&mut content))?;
                }
            }
            Event::Empty(empty) => {
                is_leaf = false;
                leaf(depth, empty.local_name().as_ref(), String::new())?;
            }
            Event::Text(text) => content.push_str(&text.xml_content(XmlVersion::Implicit1_0)),
            Event::CData(text) => content.push_str(&text.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(reference) => push(&mut content, &reference)?,
            Event::Eof if depth == 0 => return Ok(()),
            Event::Eof => return Err("an element doesn't end".to_owned()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// A step through a document.
pub(crate) enum XmlStep<'a> {
    /// An element of this name begins.
    Begin(&'a str),
    /// The innermost element ends. Holds the element's text, which is meaningless if the element contains other
    /// elements.
    End(&'a str),
}

/// Calls `step` for the beginning and the end of each element, in order.
///
/// # Errors
/// Returns the reason why it can't be read, or the error of `step`.
pub(crate) fn elements(
    body: &[u8],
    mut step: impl FnMut(XmlStep<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let text = std::str::from_utf8(body).map_err(|e| e.to_string())?;
    let mut reader = quick_xml::Reader::from_str(text);
    let mut content = String::new();
    loop {
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Start(start) => {
                content.clear();
                step(XmlStep::Begin(start.local_name().as_ref()))?;
            }
            Event::End(_) => step(XmlStep::End(&std::mem::take(&mut content)))?,
            Event::Empty(empty) => {
                step(XmlStep::Begin(empty.local_name().as_ref()))?;
                step(XmlStep::End(""))?;
            }
            Event::Text(text) => content.push_str(&text.xml_content(XmlVersion::Implicit1_0)),
            Event::CData(text) => content.push_str(&text.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(reference) => push(&mut content, &reference)?,
            Event::Eof => return Ok(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// Adds the character that `&name;` stands for.
fn push(content: &mut String, reference: &BytesRef<'_>) -> Result<(), String> {
    match reference.resolve_char_ref().map_err(|e| e.to_string())? {
        Some(char) => content.push(char),
        None => {
            let name: &str = reference;
            let known = resolve_predefined_entity(name).ok_or_else(|| format!("&{name}; is not known"))?;
            content.push_str(known);
        }
    }
    Ok(())
}

/// Returns the name of the root element.
fn root(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while rest.starts_with("<?") || rest.starts_with("<!") {
        // A comment may contain `>`, so it ends only at `-->`.
        let (from, end) = if rest.starts_with("<!--") { ("<!--".len(), "-->") } else { (0, ">") };
        rest = rest[from..].split_once(end)?.1.trim_start();
    }
    let name = rest.strip_prefix('<')?;
    let name = name.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next()?;
    name.rsplit(':').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_document_is_told_from_others_by_its_root() {
        let text = b"<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code><Message>We encountered</Message><Extra>1</Extra></Error>";
        assert_eq!(
            error(text).map(|e| (e.code, e.message)),
            Some(("InternalError".into(), "We encountered".into()))
        );
        assert_eq!(
            error(b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"),
            None
        );
        assert_eq!(error(b"<html>"), None);
        assert_eq!(error(b""), None);
    }

    #[derive(Deserialize, Debug, Default, PartialEq)]
    #[serde(default)]
    struct Nothing {
        #[serde(rename = "Key")]
        keys: Vec<String>,
    }

    #[test]
    fn an_answer_is_one_only_where_its_root_says_so() {
        let read = |body: &[u8]| answer::<Nothing>(body, &["DeleteResult", "Other"]);
        for body in [
            &b"<DeleteResult/>"[..],
            b" \n<?xml version=\"1.0\"?><s3:Other xmlns:s3='u'></s3:Other>",
            b"<!-- a > b --><DeleteResult/>",
            b"<?xml version=\"1.0\"?><!-- <Error> --> <!----><DeleteResult/>",
        ] {
            assert_eq!(read(body), Ok(Nothing::default()));
        }
        for body in [
            &b"<Error><Code>InternalError</Code></Error>"[..],
            b"<!DOCTYPE html><html></html>",
            b"<!-- <DeleteResult/> ",
            b"<!--><DeleteResult/>",
            b"",
            b"{}",
            b"\xff<DeleteResult/>",
        ] {
            assert!(read(body).is_err(), "{}", String::from_utf8_lossy(body));
        }
        let long = format!("<{}/>", "n".repeat(10_000));
        assert!(read(long.as_bytes()).expect_err("another root").len() < 100);
    }

    #[test]
    fn the_white_space_that_keeps_a_connection_alive_is_skipped() {
        assert!(error(b"   \n <Error><Code>SlowDown</Code></Error>").is_some());
        let document: ErrorDocument =
            read(b" \n <?xml version=\"1.0\"?>\n \n<Error><Code>c</Code></Error>").expect("it");
        assert_eq!(document.code, "c");
    }
}
