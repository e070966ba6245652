//! Writes XML documents element by element.

use quick_xml::escape::escape;

/// A document with one root element.
#[derive(Debug)]
pub(super) struct XmlDocument {
    text: String,
    open: Vec<&'static str>,
}

impl XmlDocument {
    pub(super) fn open(root: &'static str) -> XmlDocument {
        // Clients expect elements in this namespace, which GCS copied from S3. Error documents have no namespace.
        let namespace = if root == "Error" { "" } else { " xmlns='http://s3.amazonaws.com/doc/2006-03-01/'" };
        XmlDocument {
            text: format!("<?xml version='1.0' encoding='UTF-8'?><{root}{namespace}>"),
            open: vec![root],
        }
    }

    pub(super) fn begin(&mut self, name: &'static str) {
        self.text.push_str(&format!("<{name}>"));
        self.open.push(name);
    }

    pub(super) fn end(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&format!("</{name}>"));
        }
    }

    pub(super) fn element(&mut self, name: &'static str, value: &str) {
        self.text.push_str(&format!("<{name}>{}</{name}>", escape(value)));
    }

    /// Closes all open elements, and returns the bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        while !self.open.is_empty() {
            self.end();
        }
        self.text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_elements_closed() {
        let mut document = XmlDocument::open("Error");
        document.begin("B");
        document.element("C", "<&>");
        let text = String::from_utf8(document.finish()).unwrap();
        assert!(text.ends_with("<Error><B><C>&lt;&amp;&gt;</C></B></Error>"), "{text}");
    }
}
