//! The headers of customer-supplied encryption keys, in both of GCS's APIs
//! (<https://cloud.google.com/storage/docs/encryption/using-customer-supplied-keys>).

use http::HeaderMap;

use crate::encryption::{KeyHeaders, Keyed};
use crate::{CustomerKey, Encryption};

const OWN: KeyHeaders =
    ["x-goog-encryption-algorithm", "x-goog-encryption-key", "x-goog-encryption-key-sha256"];

const OF_SOURCE: KeyHeaders = [
    "x-goog-copy-source-encryption-algorithm",
    "x-goog-copy-source-encryption-key",
    "x-goog-copy-source-encryption-key-sha256",
];

/// Adds the headers with the customer's keys for the objects that the request reads or writes.
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
