//! Answers, and the XML documents in requests and answers.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;

use super::error::BlobError;
use crate::body::ResponseBody;

/// Returns an answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::empty());
    *answer.status_mut() = status;
    if status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED {
        answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    answer
}

/// Inserts a header. If a value that a client chose can't be sent in a header, the header is left out.
pub(super) fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// A document that is written element by element.
#[derive(Debug)]
pub(super) struct XmlWriter {
    text: String,
    open: Vec<&'static str>,
}

impl XmlWriter {
    pub(super) fn new() -> XmlWriter {
        XmlWriter { text: "<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned(), open: Vec::new() }
    }

    pub(super) fn begin(&mut self, name: &'static str) {
        self.begin_with(name, &[]);
    }

    pub(super) fn begin_with(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.text.push_str(&format!("<{name}"));
        for (attribute, value) in attributes {
            self.text.push_str(&format!(" {attribute}=\"{}\"", escape(*value)));
        }
        self.text.push('>');
        self.open.push(name);
    }

    pub(super) fn end(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&format!("</{name}>"));
        }
    }

    pub(super) fn element(&mut self, name: &str, value: &str) {
        match value {
            "" => self.text.push_str(&format!("<{name} />")),
            value => self.text.push_str(&format!("<{name}>{}</{name}>", escape(value))),
        }
    }

    /// Writes an element only if there is a value.
    pub(super) fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.element(name, value);
        }
    }

    /// Writes an element whose text is already XML.
    pub(super) fn raw(&mut self, xml: &str) {
        self.text.push_str(xml);
    }

    /// Closes all open elements, and returns the document as an answer.
    pub(super) fn answer(mut self) -> Response<ResponseBody> {
        while !self.open.is_empty() {
            self.end();
        }
        let len = self.text.len();
        let mut answer = Response::new(ResponseBody::whole(self.text));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        answer.headers_mut().insert(CONTENT_LENGTH, len.into());
        answer
    }
}

/// An element of a request's document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct XmlElement {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) children: Vec<XmlElement>,
}

/// The maximum depth of a document. No document of the service is deeper than this.
const DEPTH_MAX: usize = 8;

impl XmlElement {
    /// Parses a document with this root.
    pub(super) fn parse(bytes: &[u8], root: &str) -> Result<XmlElement, BlobError> {
        let malformed = || BlobError::new("InvalidXmlDocument");
        let text = std::str::from_utf8(bytes).map_err(|_| malformed())?;
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        let mut open = vec![XmlElement::default()];
        loop {
            match reader.read_event().map_err(|_| malformed())? {
                Event::Start(start) => {
                    if open.len() > DEPTH_MAX {
                        return Err(malformed());
                    }
                    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                    open.push(XmlElement { name, ..XmlElement::default() });
                }
                Event::Empty(start) => {
                    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                    let parent = open.last_mut().ok_or_else(malformed)?;
                    parent.children.push(XmlElement { name, ..XmlElement::default() });
                }
                Event::End(_) => {
                    let mut ended = open.pop().ok_or_else(malformed)?;
                    if !ended.children.is_empty() {
                        ended.text.clear();
                    }
                    open.last_mut().ok_or_else(malformed)?.children.push(ended);
                }
                Event::Text(text) => {
                    let text = text.decode().map_err(|_| malformed())?;
                    open.last_mut().ok_or_else(malformed)?.text.push_str(&text);
                }
                Event::CData(text) => {
                    let text = text.decode().map_err(|_| malformed())?;
                    open.last_mut().ok_or_else(malformed)?.text.push_str(&text);
                }
                Event::GeneralRef(reference) => {
                    let name = reference.decode().map_err(|_| malformed())?;
                    let letter = match reference.resolve_char_ref().map_err(|_| malformed())? {
                        Some(letter) => letter.to_string(),
                        None => quick_xml::escape::resolve_predefined_entity(&name)
                            .ok_or_else(malformed)?
                            .to_owned(),
                    };
                    open.last_mut().ok_or_else(malformed)?.text.push_str(&letter);
                }
                Event::Eof => break,
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        let mut roots = open.pop().map(|document| document.children).unwrap_or_default();
        match (roots.pop(), open.is_empty() && roots.is_empty()) {
            (Some(found), true) if found.name == root => Ok(found),
            _ => Err(malformed()),
        }
    }

    /// Returns the text of the first child with this name.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }

    pub(super) fn child(&self, name: &str) -> Option<&XmlElement> {
        self.children.iter().find(|child| child.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_parsed_with_their_escapes() {
        let document = "\u{feff}<?xml version=\"1.0\"?><BlockList>\n<Latest>YQ==</Latest><A><B>&lt;&#65;&amp;</B></A><C/></BlockList>";
        let found = XmlElement::parse(document.as_bytes(), "BlockList").unwrap();
        assert_eq!(found.text_of("Latest"), Some("YQ=="));
        assert_eq!(found.child("A").and_then(|a| a.text_of("B")), Some("<A&"));
        assert_eq!(found.text_of("C"), Some(""));
    }

    #[test]
    fn malformed_documents_are_refused() {
        let deep = format!("{}{}", "<a>".repeat(20), "</a>".repeat(20));
        for text in [
            "",
            "<BlockList>",
            "<Other/>",
            "<BlockList></Other>",
            "<BlockList>&x;</BlockList>",
            &deep,
            "\u{1}",
        ] {
            assert!(XmlElement::parse(text.as_bytes(), "BlockList").is_err(), "{text}");
        }
        assert!(XmlElement::parse(&[0xff], "BlockList").is_err());
    }
}
