//! The XML that both dialects share.

use serde::Deserialize;

/// An `<Error>` document.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ErrorDocument {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
    /// GCS: what exactly.
    pub(crate) details: Option<String>,
    /// S3: where the bucket is.
    pub(crate) region: Option<String>,
    /// S3: in which class an archived object is.
    pub(crate) storage_class: Option<String>,
    /// S3: in which archive an intelligently tiered object is.
    pub(crate) access_tier: Option<String>,
}

/// The body as an `<Error>` document, if that is what it is.
pub(crate) fn error(body: &[u8]) -> Option<ErrorDocument> {
    let text = std::str::from_utf8(body).ok()?.trim_start();
    if root(text)? != "Error" {
        return None;
    }
    quick_xml::de::from_str(text).ok()
}

/// Reads a document.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(body).map_err(|e| e.to_string())?;
    quick_xml::de::from_str(text.trim_start()).map_err(|e| e.to_string())
}

/// The name of the root element.
fn root(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while rest.starts_with("<?") || rest.starts_with("<!") {
        rest = rest.split_once('>')?.1.trim_start();
    }
    let name = rest.strip_prefix('<')?;
    name.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next()
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

    #[test]
    fn the_white_space_that_keeps_a_connection_alive_is_skipped() {
        assert!(error(b"   \n <Error><Code>SlowDown</Code></Error>").is_some());
        let document: ErrorDocument =
            read(b" \n <?xml version=\"1.0\"?>\n \n<Error><Code>c</Code></Error>").expect("it");
        assert_eq!(document.code, "c");
    }
}
