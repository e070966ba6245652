//! The headers of customer-supplied encryption keys, in both of GCS's APIs
//! (<https://cloud.google.com/storage/docs/encryption/using-customer-supplied-keys>).

use http::HeaderMap;

use crate::encryption::{KeyHeaders, KeyUse};
use crate::{CustomerKey, Encryption};

const OWN: KeyHeaders =
    ["x-goog-encryption-algorithm", "x-goog-encryption-key", "x-goog-encryption-key-sha256"];

const OF_SOURCE: KeyHeaders = [
    "x-goog-copy-source-encryption-algorithm",
    "x-goog-copy-source-encryption-key",
    "x-goog-copy-source-encryption-key-sha256",
];

/// Adds the headers with the customer's keys for the objects that the request reads or writes.
pub(super) fn apply(headers: &mut HeaderMap, key_use: KeyUse, encryption: &Encryption) {
    let (own, of_source) = (encryption.customer_key.as_ref(), encryption.source_customer_key.as_ref());
    match key_use {
        KeyUse::Nothing => {}
        KeyUse::Object | KeyUse::New => key(headers, OWN, own),
        KeyUse::Source => key(headers, OWN, of_source),
        KeyUse::Copy | KeyUse::PartCopy => {
            key(headers, OWN, own);
            key(headers, OF_SOURCE, of_source);
        }
    }
}

fn key(headers: &mut HeaderMap, names: KeyHeaders, key: Option<&CustomerKey>) {
    Encryption::insert_key(headers, names, key, CustomerKey::sha256);
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
        for (key_use, own, of_source) in [
            (KeyUse::Nothing, None, None),
            (KeyUse::Object, Some(one), None),
            (KeyUse::Source, Some(two), None),
            (KeyUse::New, Some(one), None),
            (KeyUse::Copy, Some(one), Some(two)),
        ] {
            let mut headers = HeaderMap::new();
            apply(&mut headers, key_use, &encryption);
            let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            assert_eq!((said(OWN[1]), said(OF_SOURCE[1])), (own, of_source), "{key_use:?}");
            assert!(!format!("{headers:?}").contains("AQEB"), "{headers:?}");
        }
    }
}
