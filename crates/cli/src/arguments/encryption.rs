//! Options about encryption. Keys come out of files and variables, because what stands on a command line is everybody's to
//! see.

use std::path::{Path, PathBuf};

use clap::Args;
use laneway::{ClientBuilder, CustomerKey, SseAlgorithm};

use super::key_value;
use super::relevance::NEW_OBJECTS;
use crate::exit::BadUsage;

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
    /// Sets what the options say, above what the environment does.
    ///
    /// # Errors
    /// Bad usage for a file that holds no key. The message doesn't show what it holds.
    pub(crate) fn add_to(&self, mut client: ClientBuilder) -> Result<ClientBuilder, BadUsage> {
        if let Some(algorithm) = self.sse {
            client = client.sse(algorithm);
        }
        if let Some(enabled) = self.kms_bucket_key {
            client = client.kms_bucket_key(enabled);
        }
        for (name, value) in &self.kms_context {
            client = client.kms_context(name, value);
        }
        if let Some(file) = &self.customer_key_file {
            client = client.customer_key(key(file)?);
        }
        if let Some(file) = &self.source_customer_key_file {
            client = client.source_customer_key(key(file)?);
        }
        Ok(client)
    }
}

fn key(file: &Path) -> Result<CustomerKey, BadUsage> {
    let place = file.display().to_string();
    let bytes =
        std::fs::read(file).map_err(|e| BadUsage::of(&place, format_args!("it can't be read: {e}")))?;
    CustomerKey::parse(&bytes).map_err(|e| BadUsage::of(place, e))
}

fn algorithm(text: &str) -> Result<SseAlgorithm, String> {
    SseAlgorithm::named(text).ok_or_else(|| "there are AES256, aws:kms and aws:kms:dsse".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_bad_usage_and_not_repeated() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "hunter2").expect("written");
        let name = file.path().display().to_string();
        let options =
            EncryptionOptions { customer_key_file: Some(file.path().into()), ..EncryptionOptions::default() };
        let error = options.add_to(ClientBuilder::default()).expect_err("no key").to_string();
        assert!(error.contains(&name) && !error.contains("hunter2"), "{error}");
    }
}
