//! Customer-supplied encryption keys as GCS's headers say them, in both of its APIs
//! (<https://cloud.google.com/storage/docs/encryption/using-customer-supplied-keys>).

use http::{HeaderMap, HeaderValue};

use crate::encryption::Keyed;
use crate::{CustomerKey, Encryption};

/// The headers of a key: algorithm, key, SHA-256 of the key.
type KeyHeaders = [&'static str; 3];

const OWN: KeyHeaders =
    ["x-goog-encryption-algorithm", "x-goog-encryption-key", "x-goog-encryption-key-sha256"];

const OF_SOURCE: KeyHeaders = [
    "x-goog-copy-source-encryption-algorithm",
    "x-goog-copy-source-encryption-key",
    "x-goog-copy-source-encryption-key-sha256",
];

/// Adds the keys of what the request touches.
pub(super) fn apply(headers: &mut HeaderMap, keyed: Keyed, encryption: &Encryption) {
    let (own, of_source) = (encryption.customer_key.as_ref(), encryption.source_customer_key.as_ref());
    match keyed {
        Keyed::Nothing => {}
        Keyed::Object | Keyed::New => key(headers, OWN, own),
        Keyed::Source => key(headers, OWN, of_source),
        Keyed::Copy | Keyed::PartCopy => {
            key(headers, OWN, own);
            key(headers, OF_SOURCE, of_source);
        }
    }
}

fn key(headers: &mut HeaderMap, [algorithm, name, sha256]: KeyHeaders, key: Option<&CustomerKey>) {
    let Some(key) = key else { return };
    headers.insert(algorithm, HeaderValue::from_static("AES256"));
    if let Ok(mut value) = HeaderValue::try_from(key.base64()) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if let Ok(value) = HeaderValue::try_from(key.sha256()) {
        headers.insert(sha256, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_says_the_key_of_what_it_touches() {
        let encryption = Encryption {
            customer_key: CustomerKey::parse(&[1; 32]).ok(),
            source_customer_key: CustomerKey::parse(&[2; 32]).ok(),
            ..Encryption::default()
        };
        let (one, two) =
            ("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=");
        for (keyed, own, of_source) in [
            (Keyed::Nothing, None, None),
            (Keyed::Object, Some(one), None),
            (Keyed::Source, Some(two), None),
            (Keyed::New, Some(one), None),
            (Keyed::Copy, Some(one), Some(two)),
        ] {
            let mut headers = HeaderMap::new();
            apply(&mut headers, keyed, &encryption);
            let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            assert_eq!((said(OWN[1]), said(OF_SOURCE[1])), (own, of_source), "{keyed:?}");
            assert!(!format!("{headers:?}").contains("AQEB"), "{headers:?}");
        }
    }
}
