//! Percent-encoding of keys and names for the URLs of both dialects.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All ASCII characters except RFC 3986's unreserved ones.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same characters except `/`, which separates the segments of an S3 path.
const RESERVED_IN_PATH: &AsciiSet = &RESERVED.remove(b'/');

/// Encodes a key in the path of an S3 or GCS XML request. Slashes and dots aren't encoded. Stores treat `..` as an
/// ordinary part of a key.
pub(crate) fn path(key: &str) -> String {
    utf8_percent_encode(key, RESERVED_IN_PATH).to_string()
}

/// Encodes a key as one segment of a GCS JSON path, or as a value in a query.
pub(crate) fn component(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Decodes a key that S3 listed with `encoding-type=url`. As in HTML forms, a plus means a space.
pub(crate) fn decode_listed(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|decoded| decoded.into_owned())
}

/// A query string under construction: `?a=b&c`.
#[derive(Clone, Default)]
pub(crate) struct QueryString(String);

impl QueryString {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.separate();
        // A name without a value is written with `=`, because S3's signatures require this form. Both dialects treat
        // `uploads` and `uploads=` alike.
        let _ = write!(self.0, "{name}={}", component(value));
        self
    }

    #[must_use]
    pub(crate) fn and_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.and(name, value),
            None => self,
        }
    }

    fn separate(&mut self) {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
    }
}

impl std::fmt::Display for QueryString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Escapes text for an XML element. Returns `None` for characters that XML 1.0 can't express: most control characters
/// can't be written, not even as references.
pub(crate) fn xml_text(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // An XML parser would change these characters to spaces or line feeds if they were written literally.
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_slashes_and_encodes_everything_else_that_is_reserved() {
        assert_eq!(path("a//b/ c%+é/"), "a//b/%20c%25%2B%C3%A9/");
        assert_eq!(path("/a/../.b~_-"), "/a/../.b~_-");
        assert_eq!(path("!*'()@:$,;=&?#"), "%21%2A%27%28%29%40%3A%24%2C%3B%3D%26%3F%23");
    }

    #[test]
    fn a_component_encodes_slashes_too() {
        assert_eq!(component("a//b c+"), "a%2F%2Fb%20c%2B");
    }

    #[test]
    fn a_longest_key_of_three_byte_characters_still_makes_a_uri() {
        let key = "\u{20ac}".repeat(341);
        let uri: http::Uri = format!("/b/{}", path(&key)).parse().expect("a URI");
        assert_eq!(uri.path().len(), 3 + 341 * 9);
    }

    #[test]
    fn a_leading_slash_of_a_key_survives_in_the_request_target() {
        let uri: http::Uri = format!("/{}", path("/a//b")).parse().expect("a URI");
        assert_eq!(uri.path(), "//a//b");
        let uri: http::Uri = "/b/a/../c/./d".parse().expect("a URI");
        assert_eq!(uri.path(), "/b/a/../c/./d");
    }

    #[test]
    fn a_listed_key_is_decoded_as_a_form_is() {
        assert_eq!(decode_listed("a+b%2Bc%20d/%C3%A9%25").as_deref(), Some("a b+c d/é%"));
        assert_eq!(decode_listed("%FF"), None);
    }

    #[test]
    fn a_query_begins_with_a_question_mark_and_encodes_values() {
        let query = QueryString::new().and("prefix", "a/b c").and_some("x", None).and("uploads", "");
        assert_eq!(query.to_string(), "?prefix=a%2Fb%20c&uploads=");
        assert_eq!(QueryString::new().to_string(), "");
    }

    #[test]
    fn xml_can_write_line_breaks_but_no_other_control_characters() {
        assert_eq!(xml_text("a<&>\r\n").as_deref(), Some("a&lt;&amp;&gt;&#13;&#10;"));
        assert_eq!(xml_text("a\u{1}"), None);
    }
}
