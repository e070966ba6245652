//! Options about encryption. Keys come out of files and variables, because what stands on a command line is everybody's to
//! see.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use laneway::{CustomerKey, Encryption, SseAlgorithm};

use super::key_value;
use super::relevance::NEW_OBJECTS;
use crate::exit::BadUsage;

/// Variables that hold a customer's keys.
const KEY: &str = "LANEWAY_CUSTOMER_KEY";
const SOURCE_KEY: &str = "LANEWAY_SOURCE_CUSTOMER_KEY";

/// How new objects are encrypted, and with which keys encrypted ones are read.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct EncryptionOptions {
    /// How S3 encrypts new objects: AES256, aws:kms or aws:kms:dsse
    #[arg(long, value_name = "ALGORITHM", value_parser = algorithm, global = true, help_heading = NEW_OBJECTS)]
    sse: Option<SseAlgorithm>,
    /// Whether S3 puts a key of the bucket between objects and KMS key, which spares requests to KMS
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true, global = true, help_heading = NEW_OBJECTS)]
    kms_bucket_key: Option<bool>,
    /// Encryption context of the KMS key; may be given several times
    #[arg(long, value_name = "K=V", value_parser = key_value, global = true, help_heading = NEW_OBJECTS)]
    kms_context: Vec<(String, String)>,
    /// Encrypt and read objects with the key of your own in this file, 32 bytes or their base64, which the store doesn't
    /// keep (SSE-C, customer-supplied keys); LANEWAY_CUSTOMER_KEY may hold it instead
    #[arg(long, value_name = "FILE", global = true, help_heading = "Store")]
    customer_key_file: Option<PathBuf>,
    /// Read the sources of copies inside and between stores with this key; LANEWAY_SOURCE_CUSTOMER_KEY may hold it
    /// instead
    #[arg(long, value_name = "FILE", global = true, help_heading = "Store")]
    source_customer_key_file: Option<PathBuf>,
}

impl EncryptionOptions {
    /// What the options and, below them, the variables say.
    ///
    /// # Errors
    /// Bad usage for a file or a variable that holds no key. What it holds isn't told.
    pub(crate) fn encryption(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Encryption, BadUsage> {
        Ok(Encryption {
            algorithm: self.sse,
            bucket_key: self.kms_bucket_key,
            context: self.kms_context.iter().cloned().collect(),
            customer_key: key(self.customer_key_file.as_deref(), KEY, &variable)?,
            source_customer_key: key(self.source_customer_key_file.as_deref(), SOURCE_KEY, &variable)?,
        })
    }
}

fn key(
    file: Option<&Path>,
    name: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<CustomerKey>, BadUsage> {
    let (place, bytes) = match (file, variable(name).filter(|value| !value.is_empty())) {
        (Some(path), _) => {
            let place = path.display().to_string();
            let bytes = std::fs::read(path)
                .map_err(|e| BadUsage::of(&place, format_args!("it can't be read: {e}")))?;
            (place, bytes)
        }
        (None, Some(value)) => (name.to_owned(), value.into_encoded_bytes()),
        (None, None) => return Ok(None),
    };
    CustomerKey::parse(&bytes).map(Some).map_err(|e| BadUsage::of(place, e))
}

fn algorithm(text: &str) -> Result<SseAlgorithm, String> {
    SseAlgorithm::named(text).ok_or_else(|| "there are AES256, aws:kms and aws:kms:dsse".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn a_key_comes_from_a_file_or_else_from_a_variable() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [7; 32]).expect("written");
        let variable = |name: &str| (name == KEY).then(|| OsString::from(BASE64));
        let options =
            EncryptionOptions { customer_key_file: Some(file.path().into()), ..EncryptionOptions::default() };
        let found = options.encryption(variable).expect("a key");
        assert_eq!(found.customer_key, CustomerKey::parse(&[7; 32]).ok());
        let found = EncryptionOptions::default().encryption(variable).expect("a key");
        assert_eq!(found.customer_key, CustomerKey::parse(BASE64.as_bytes()).ok());
        assert_eq!(found.source_customer_key, None);
    }

    #[test]
    fn what_is_no_key_is_bad_usage_and_not_repeated() {
        let error = EncryptionOptions::default().encryption(|_| Some(OsString::from("hunter2")));
        let error = error.expect_err("no key").to_string();
        assert!(error.contains(KEY) && !error.contains("hunter2"), "{error}");
    }
}
