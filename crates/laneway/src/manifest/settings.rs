//! The settings that affect the objects or files that a job writes.

use std::time::{SystemTime, UNIX_EPOCH};

use laneway_store::PutOptions;
use md5::{Digest as _, Md5};

use crate::Gzip;

/// The properties of new objects or files, besides their content.
#[derive(Debug)]
pub(crate) struct ObjectSettings<'a> {
    pub(crate) put: &'a PutOptions,
    pub(crate) gzip: Option<&'a Gzip>,
    /// True if downloaded objects are decompressed.
    pub(crate) decompress: bool,
    /// True if times, modes and owners are kept.
    pub(crate) preserve: bool,
    /// A digest of the properties that the destination's store adds by itself.
    pub(crate) added: &'a str,
}

impl ObjectSettings<'_> {
    /// Returns a digest that doesn't reveal the settings. The digest leaves out the condition, which decides
    /// whether an object is written but doesn't change the object.
    pub(crate) fn digest(&self) -> String {
        let put = self.put;
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let until = put.retention.map(|retention| (retention.mode.name(), seconds(retention.until)));
        let mut gzip = self.gzip.map(|gzip| gzip.endings().to_vec()).unwrap_or_default();
        gzip.sort_unstable();
        let value = serde_json::json!({
            "content_type": put.content_type,
            "content_encoding": put.content_encoding,
            "cache_control": put.cache_control,
            "content_disposition": put.content_disposition,
            "content_language": put.content_language,
            "expires": put.expires.map(seconds),
            "custom_time": put.custom_time.map(seconds),
            "storage_class": put.storage_class,
            "metadata": put.metadata,
            "kms_key": put.kms_key,
            "acl": put.acl,
            "tags": put.tags,
            "retention": until,
            "legal_hold": put.legal_hold,
            "gzip": gzip,
            "decompress": self.decompress,
            "preserve": self.preserve,
            "added": self.added,
        });
        Md5::digest(value.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_makes_another_object_makes_another_digest() {
        let digest = |put: &PutOptions, gzip: Option<&Gzip>, preserve, added| {
            ObjectSettings { put, gzip, decompress: false, preserve, added }.digest()
        };
        let plain = PutOptions::default();
        let gzip = Gzip::extensions(["html"]).unwrap();
        let digests = [
            digest(&plain, None, false, ""),
            digest(&PutOptions::default().storage_class("GLACIER"), None, false, ""),
            digest(&PutOptions::default().content_type("GLACIER"), None, false, ""),
            digest(&PutOptions::default().kms_key("k"), None, false, ""),
            digest(&plain, Some(&gzip), false, ""),
            digest(&plain, None, true, ""),
            digest(&plain, None, false, "headers"),
        ];
        let distinct: std::collections::HashSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
        assert_eq!(digests[0], digest(&PutOptions::default(), Some(&Gzip::default()), false, ""));
    }
}
