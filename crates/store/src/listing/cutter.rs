//! Splits a listing into its entries while it arrives.

use memchr::memchr2;
use memchr::memmem::{Finder, find};

/// A listing's document while it arrives. Each entry is taken out as soon as it is complete. The rest is the same
/// document without the entries.
#[derive(Debug)]
pub(crate) enum Cutter {
    Xml(Box<XmlCutter>),
    Json(JsonCutter),
}

impl Cutter {
    /// Returns a cutter whose entries are XML elements, given their opening and closing tags, such as `<Contents>`.
    /// Stores escape `<` in text, so a tag can't occur inside text. An entry may contain elements of the same name.
    pub(crate) fn xml(open: &'static str, close: &'static str) -> Self {
        let tags = (Finder::new(open), Finder::new(close));
        Self::Xml(Box::new(XmlCutter { tags, ahead: Vec::new(), depth: 0, counted: 0, rest: Vec::new() }))
    }

    /// Returns a cutter whose entries are the objects in the array of this name, which is a field of a JSON object.
    pub(crate) fn json(array: &'static str) -> Self {
        Self::Json(JsonCutter { array, ..JsonCutter::default() })
    }

    /// Adds bytes, and returns the entries that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        match self {
            Self::Xml(xml) => xml.take(bytes),
            Self::Json(json) => json.take(bytes),
        }
    }

    /// Returns the bytes outside entries so far, except a few at the end that may begin an entry.
    pub(crate) fn rest(&self) -> &[u8] {
        match self {
            Self::Xml(xml) => &xml.rest,
            Self::Json(json) => &json.rest,
        }
    }

    /// Returns all bytes outside entries. If the last entry isn't complete, its bytes are included, so the document
    /// can't be parsed.
    pub(crate) fn into_rest(self) -> Vec<u8> {
        match self {
            Self::Xml(xml) => [xml.rest, xml.ahead].concat(),
            Self::Json(json) => [json.rest, json.entry].concat(),
        }
    }
}

/// A search for a text outside the entries. It remembers the searched part. Otherwise the whole document would be
/// searched again after each chunk.
#[derive(Debug)]
pub(crate) struct TextSearch {
    text: &'static [u8],
    looked_at: usize,
    is_found: bool,
}

impl TextSearch {
    pub(crate) fn new(text: &'static [u8]) -> Self {
        Self { text, looked_at: 0, is_found: false }
    }

    /// Returns true once the text has arrived. From one call to the next, `rest` may only grow.
    pub(crate) fn has_come(&mut self, rest: &[u8]) -> bool {
        // The text may begin in the bytes of an earlier call.
        let from = self.looked_at.saturating_sub(self.text.len());
        self.is_found = self.is_found || find(&rest[from..], self.text).is_some();
        self.looked_at = rest.len();
        self.is_found
    }
}

#[derive(Debug)]
pub(crate) struct XmlCutter {
    tags: (Finder<'static>, Finder<'static>),
    /// Bytes that have been received but not assigned yet: an incomplete entry, or the beginning of a tag.
    ahead: Vec<u8>,
    /// The number of elements of the entry's name that are open. It is 0 between entries. Opening tags inside the entry
    /// are counted only when a closing tag arrives.
    depth: usize,
    /// The position in `ahead` up to which the opening tags are counted.
    counted: usize,
    rest: Vec<u8>,
}

impl XmlCutter {
    fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let (open, close) = &self.tags;
        let (open_bytes, close_bytes) = (open.needle().len(), close.needle().len());
        let mut entries = Vec::new();
        // A tag may begin in the bytes of an earlier call.
        let search = self.ahead.len().saturating_sub(open_bytes.max(close_bytes));
        self.ahead.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let is_inside = self.depth > 0;
            let tag = if is_inside { close } else { open };
            let from = search.max(at).max(self.counted);
            let Some(found) = tag.find(&self.ahead[from..]).map(|i| i + from) else { break };
            if is_inside {
                let end = found + close_bytes;
                self.depth += open.find_iter(&self.ahead[self.counted..found]).count();
                self.depth -= 1;
                self.counted = end;
                if self.depth == 0 {
                    entries.push(self.ahead[at..end].to_vec());
                    at = end;
                }
            } else {
                self.rest.extend_from_slice(&self.ahead[at..found]);
                at = found;
                self.depth = 1;
                self.counted = found + open_bytes;
            }
        }
        if self.depth == 0 {
            let sure = self.ahead.len().saturating_sub(open_bytes - 1).max(at);
            self.rest.extend_from_slice(&self.ahead[at..sure]);
            at = sure;
        }
        self.ahead.drain(..at);
        self.counted = self.counted.saturating_sub(at);
        entries
    }
}

#[derive(Debug, Default)]
pub(crate) struct JsonCutter {
    array: &'static str,
    depth: usize,
    is_string: bool,
    is_escaped: bool,
    /// The latest string at the top level of the document: a field's name or value.
    name: Vec<u8>,
    /// True inside the array.
    is_array: bool,
    entry: Vec<u8>,
    rest: Vec<u8>,
}

impl JsonCutter {
    /// The nesting depth inside the array. The array's objects are at a greater depth.
    const IN_ARRAY: usize = 2;

    fn take(&mut self, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            let (was_entry, was_string) = (self.is_entry(), self.is_string);
            let (run, rest) = bytes.split_at(self.follow(bytes));
            bytes = rest;
            if was_entry || self.is_entry() {
                self.entry.extend_from_slice(run);
                if !self.is_entry() {
                    entries.push(std::mem::take(&mut self.entry));
                }
            } else if was_string || !(self.is_array && run == b",") {
                self.rest.extend_from_slice(run);
            }
        }
        entries
    }

    fn is_entry(&self) -> bool {
        self.is_array && self.depth > Self::IN_ARRAY
    }

    /// Returns how many of the next bytes (at least one) belong to the same token.
    fn follow(&mut self, bytes: &[u8]) -> usize {
        if self.is_string {
            return self.follow_string(bytes);
        }
        let is_mark = |byte: &u8| matches!(byte, b'"' | b'[' | b']' | b'{' | b'}' | b',');
        match bytes.iter().position(is_mark) {
            None => return bytes.len(),
            Some(0) => {}
            Some(plain) => return plain,
        }
        match bytes[0] {
            b'"' => {
                self.is_string = true;
                if self.depth == 1 {
                    self.name.clear();
                }
                return 1 + self.follow_string(&bytes[1..]);
            }
            b'[' => {
                // At the top level, the string just before an array is the array's name.
                self.is_array |= self.depth == 1 && self.name == self.array.as_bytes();
                self.depth += 1;
            }
            b'{' => self.depth += 1,
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_array &= self.depth >= Self::IN_ARRAY;
            }
            _ => {}
        }
        1
    }

    /// Returns how many of the next bytes belong to a string. The function stops after the closing quote, after a
    /// backslash, and after the one character that follows a backslash.
    fn follow_string(&mut self, bytes: &[u8]) -> usize {
        if self.is_escaped && !bytes.is_empty() {
            self.is_escaped = false;
            return 1;
        }
        let plain = memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        if self.depth == 1 {
            self.name.extend_from_slice(&bytes[..plain]);
        }
        let Some(mark) = bytes.get(plain) else { return plain };
        self.is_string = *mark != b'"';
        self.is_escaped = self.is_string;
        plain + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a document that arrives in chunks of this length.
    fn cut(mut cutter: Cutter, document: &str, chunk_bytes: usize) -> (Vec<String>, String) {
        let chunks = document.as_bytes().chunks(chunk_bytes);
        let entries: Vec<_> = chunks.flat_map(|chunk| cutter.take(chunk)).collect();
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (entries.into_iter().map(text).collect(), text(cutter.into_rest()))
    }

    #[test]
    fn xml_entries_come_out_whatever_the_chunks() {
        let document = "<R><A>1</A><E><K>a</K></E><P/><E><K>b&lt;E></K></E><Z/></R>";
        for chunk_bytes in 1..=document.len() {
            let (entries, rest) = cut(Cutter::xml("<E>", "</E>"), document, chunk_bytes);
            assert_eq!(entries, ["<E><K>a</K></E>", "<E><K>b&lt;E></K></E>"], "{chunk_bytes}");
            assert_eq!(rest, "<R><A>1</A><P/><Z/></R>", "{chunk_bytes}");
        }
    }

    #[test]
    fn an_entry_may_contain_elements_of_its_own_name() {
        let document = "<R><E><K>a</K><E>1</E><E /><E><E>2</E></E></E><E>b</E><Z/></R>";
        for chunk_bytes in 1..=document.len() {
            let (entries, rest) = cut(Cutter::xml("<E>", "</E>"), document, chunk_bytes);
            assert_eq!(entries, ["<E><K>a</K><E>1</E><E /><E><E>2</E></E></E>", "<E>b</E>"], "{chunk_bytes}");
            assert_eq!(rest, "<R><Z/></R>", "{chunk_bytes}");
        }
    }

    #[test]
    fn json_entries_come_out_whatever_the_chunks() {
        let document = r#"{"kind":"items","p":["items","[{"],"items":[{"n":"a]}\"","m":{"x":[1]}}, {"n":"b"}],"next":"t"}"#;
        for chunk_bytes in 1..=document.len() {
            let (entries, rest) = cut(Cutter::json("items"), document, chunk_bytes);
            assert_eq!(entries, [r#"{"n":"a]}\"","m":{"x":[1]}}"#, r#"{"n":"b"}"#], "{chunk_bytes}");
            assert_eq!(
                rest, r#"{"kind":"items","p":["items","[{"],"items":[ ],"next":"t"}"#,
                "{chunk_bytes}"
            );
        }
    }

    #[test]
    fn an_entry_is_had_before_the_document_has_ended() {
        let mut cutter = Cutter::json("items");
        assert_eq!(cutter.take(br#"{"items":[{"n":1},{"n"#), [br#"{"n":1}"#.to_vec()]);
        let mut cutter = Cutter::xml("<E>", "</E>");
        assert_eq!(cutter.take(b"<R><E>1</E><E>2</"), [b"<E>1</E>".to_vec()]);
    }

    #[test]
    fn what_is_sought_is_found_wherever_it_is_cut() {
        let document = b"<R><EncodingType>url</EncodingType></R>";
        for chunk_bytes in 1..document.len() {
            let mut sought = TextSearch::new(b">url<");
            let ends: Vec<_> = (0..document.len()).step_by(chunk_bytes).chain([document.len()]).collect();
            let found: Vec<_> = ends.iter().map(|end| sought.has_come(&document[..*end])).collect();
            assert!(found.is_sorted() && !found[0] && found.ends_with(&[true]), "{chunk_bytes}: {found:?}");
        }
        assert!(!TextSearch::new(b"url").has_come(b"<R>UR</R>"));
    }

    #[test]
    fn an_entry_without_end_spoils_what_remains() {
        let (entries, rest) = cut(Cutter::json("items"), r#"{"items":[{"n":1"#, 3);
        assert_eq!((entries.len(), rest.as_str()), (0, r#"{"items":[{"n":1"#));
        let (entries, rest) = cut(Cutter::xml("<E>", "</E>"), "<R><E>1</R>", 3);
        assert_eq!((entries.len(), rest.as_str()), (0, "<R><E>1</R>"));
    }
}
