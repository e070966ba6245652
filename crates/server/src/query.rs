//! Parses and decodes the query of a request.

use percent_encoding::percent_decode_str;

/// The names and values of a query, in their original order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses `a=b&c`. `+` means a space, as form encoders write it.
    pub(crate) fn parse(query: Option<&str>) -> Query {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Query(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
                })
                .collect(),
        )
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all names and values in their order.
    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }

    /// Returns true for the query of a Google V4 signed URL.
    pub(crate) fn is_signed_by_google(&self) -> bool {
        self.has("X-Goog-Algorithm") || self.has("X-Goog-Signature")
    }

    /// Returns true if a parameter of the JSON API is true. Google's Python client writes `True`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

/// Decodes percent-encoding. Bytes that aren't UTF-8 are replaced. This is harmless, because keys are always UTF-8.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_decoded() {
        let query = Query::parse(Some("prefix=a%2Fb+c&uploads&x=1%2B1&x=2"));
        assert_eq!(query.value("prefix"), Some("a/b c"));
        assert_eq!(query.value("uploads"), Some(""));
        assert_eq!(query.value("x"), Some("1+1"));
        assert!(!query.has("y"));
        let flags = Query::parse(Some("a=true&b=True&c=false&d"));
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|name| flags.is_true(name)),
            [true, true, false, false, false]
        );
    }
}
