//! The encryption headers of an S3 request, and the choice between a customer's keys
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html>).

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::encryption::{KeyHeaders, KeyUse};
use crate::{CustomerKey, Encryption};

const ALGORITHM: HeaderName = HeaderName::from_static("x-amz-server-side-encryption");
const BUCKET_KEY: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-bucket-key-enabled");
const CONTEXT: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-context");
const KMS_KEY: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-aws-kms-key-id");

const OWN: KeyHeaders = [
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
];

const OF_SOURCE: KeyHeaders = [
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-copy-source-server-side-encryption-customer-key-md5",
];

/// Adds the request's encryption headers.
pub(super) fn apply(headers: &mut HeaderMap, key_use: KeyUse, encryption: &Encryption) {
    let Encryption { customer_key: own, source_customer_key: of_source, .. } = encryption;
    match key_use {
        KeyUse::Nothing => {}
        KeyUse::Object => key(headers, OWN, own.as_ref()),
        KeyUse::Source => key(headers, OWN, of_source.as_ref()),
        KeyUse::New => {
            key(headers, OWN, own.as_ref());
            managed(headers, encryption);
        }
        KeyUse::Copy => {
            key(headers, OWN, own.as_ref());
            key(headers, OF_SOURCE, of_source.as_ref());
            managed(headers, encryption);
        }
        KeyUse::PartCopy => {
            key(headers, OWN, own.as_ref());
            key(headers, OF_SOURCE, of_source.as_ref());
        }
    }
}

fn key(headers: &mut HeaderMap, names: KeyHeaders, key: Option<&CustomerKey>) {
    Encryption::insert_key(headers, names, key, CustomerKey::md5);
}

/// Adds headers that encrypt a new object with keys of the store. The KMS key's header is already there.
pub(super) fn managed(headers: &mut HeaderMap, encryption: &Encryption) {
    if let Some(algorithm) = encryption.algorithm {
        headers.insert(ALGORITHM, HeaderValue::from_static(algorithm.name()));
    }
    if let Some(enabled) = encryption.bucket_key {
        headers.insert(BUCKET_KEY, HeaderValue::from_static(if enabled { "true" } else { "false" }));
    }
    if let Some(context) = encryption.context_header()
        && let Ok(context) = HeaderValue::try_from(context)
    {
        headers.insert(CONTEXT, context);
    }
}

/// Adds the headers that make S3 encrypt a new object with this KMS key.
pub(super) fn with_kms_key(headers: &mut HeaderMap, key: &HeaderValue) {
    headers.insert(ALGORITHM, HeaderValue::from_static("aws:kms"));
    headers.insert(KMS_KEY, key.clone());
}

/// Removes the encryption headers that, in a directory bucket, only the request for a session may carry.
pub(super) fn without_managed(headers: &mut HeaderMap) {
    for name in [ALGORITHM, BUCKET_KEY, CONTEXT, KMS_KEY] {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SseAlgorithm;

    fn encryption() -> Encryption {
        Encryption {
            customer_key: CustomerKey::parse(&[1; 32]).ok(),
            source_customer_key: CustomerKey::parse(&[2; 32]).ok(),
            ..Encryption::default()
        }
    }

    fn applied(key_use: KeyUse, encryption: &Encryption) -> HeaderMap {
        let mut headers = HeaderMap::new();
        apply(&mut headers, key_use, encryption);
        headers
    }

    #[test]
    fn each_request_says_the_key_of_what_it_touches() {
        let (one, two) =
            ("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=");
        for (key_use, own, of_source) in [
            (KeyUse::Nothing, None, None),
            (KeyUse::Object, Some(one), None),
            (KeyUse::Source, Some(two), None),
            (KeyUse::New, Some(one), None),
            (KeyUse::Copy, Some(one), Some(two)),
            (KeyUse::PartCopy, Some(one), Some(two)),
        ] {
            let headers = applied(key_use, &encryption());
            let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            assert_eq!((said(OWN[1]), said(OF_SOURCE[1])), (own, of_source), "{key_use:?}");
            assert_eq!(headers.contains_key(OWN[2]), own.is_some(), "{key_use:?}");
        }
    }

    #[test]
    fn a_key_is_marked_as_a_secret() {
        let headers = applied(KeyUse::Object, &encryption());
        assert!(headers[OWN[1]].is_sensitive());
        assert!(!format!("{headers:?}").contains("AQEB"), "{headers:?}");
    }

    #[test]
    fn managed_encryption_is_for_new_objects_only() {
        let dsse = Encryption {
            algorithm: Some(SseAlgorithm::KmsDsse),
            bucket_key: Some(false),
            context: [("team".to_owned(), "a".to_owned())].into(),
            ..Encryption::default()
        };
        let new = applied(KeyUse::New, &dsse);
        assert_eq!(new[ALGORITHM], "aws:kms:dsse");
        assert_eq!(new[BUCKET_KEY], "false");
        assert_eq!(new[CONTEXT], "eyJ0ZWFtIjoiYSJ9");
        assert!(applied(KeyUse::Object, &dsse).is_empty() && applied(KeyUse::PartCopy, &dsse).is_empty());
    }
}
