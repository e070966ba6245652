//! Options about encryption, and about the checksum of new objects. Laneway reads keys from files and environment variables, because other
//! users of the machine can see a command line.

use std::path::{Path, PathBuf};

use clap::Args;
use laneway::{ChecksumAlgorithm, ClientBuilder, CustomerKey, SseAlgorithm};

use super::key_value;
use super::relevance::NEW_OBJECTS;
use crate::exit::BadUsage;

/// The encryption and the checksum of new objects, and the keys for reading encrypted ones.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct EncryptionOptions {
    /// Encrypt new S3 objects with this algorithm: AES256, aws:kms or aws:kms:dsse
    ///
    /// Example: laneway cp --sse aws:kms file s3://my-bucket/
    #[arg(hide_short_help = true, long, value_name = "ALGORITHM", value_parser = algorithm, global = true, help_heading = NEW_OBJECTS)]
    sse: Option<SseAlgorithm>,
    /// Use an S3 bucket key, so that S3 sends fewer requests to KMS
    ///
    /// If the bucket's settings turn bucket keys on, --kms-bucket-key=false turns them off for the new objects.
    ///
    /// Example: laneway cp --sse aws:kms photo.jpg s3://my-bucket/ --kms-bucket-key
    #[arg(hide_short_help = true, long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true, global = true, help_heading = NEW_OBJECTS)]
    kms_bucket_key: Option<bool>,
    /// Add an entry to the encryption context of the KMS key; repeat for more
    ///
    /// Example: laneway cp --sse aws:kms --kms-context team=data file s3://my-bucket/
    #[arg(hide_short_help = true, long, value_name = "K=V", value_parser = key_value, global = true, help_heading = NEW_OBJECTS)]
    kms_context: Vec<(String, String)>,
    /// Use this kind of checksum for uploads to S3: CRC32C, CRC64NVME or SHA256
    ///
    /// Laneway sends the checksum with each upload, and S3 checks and stores it. The default is CRC32C, which takes the least CPU time.
    /// Copies inside a store keep the checksum that the store computes.
    ///
    /// Example: laneway cp --checksum-algorithm SHA256 file s3://my-bucket/
    #[arg(hide_short_help = true, long, value_name = "ALGORITHM", value_parser = checksum_algorithm, global = true, help_heading = NEW_OBJECTS)]
    checksum_algorithm: Option<ChecksumAlgorithm>,
    /// Encrypt and read objects with your own key, which the store doesn't keep
    ///
    /// FILE holds a key of 32 bytes, either raw or in base64. Stores call this SSE-C or customer-supplied encryption keys. Instead of the
    /// option, you can set LANEWAY_CUSTOMER_KEY to the key.
    ///
    /// Example: laneway cp --customer-key-file my.key file gs://my-bucket/
    #[arg(hide_short_help = true, long, value_name = "FILE", global = true, help_heading = "Store")]
    customer_key_file: Option<PathBuf>,
    /// Read the source with this key, in a copy from one object to another
    ///
    /// Instead of the option, you can set LANEWAY_SOURCE_CUSTOMER_KEY to the key.
    ///
    /// Example: laneway cp --source-customer-key-file old.key --customer-key-file new.key gs://my-bucket/key gs://my-bucket/key2
    #[arg(hide_short_help = true, long, value_name = "FILE", global = true, help_heading = "Store")]
    source_customer_key_file: Option<PathBuf>,
}

impl EncryptionOptions {
    /// Applies the options, which override the environment.
    ///
    /// # Errors
    /// Returns bad usage if a file contains no key. The message doesn't show the file's content.
    pub(crate) fn add_to(&self, mut client: ClientBuilder) -> Result<ClientBuilder, BadUsage> {
        if let Some(algorithm) = self.sse {
            client = client.sse(algorithm);
        }
        if let Some(enabled) = self.kms_bucket_key {
            client = client.kms_bucket_key(enabled);
        }
        if let Some(algorithm) = self.checksum_algorithm {
            client = client.checksum_algorithm(algorithm);
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
    let bytes = std::fs::read(file)
        .map_err(|e| BadUsage::of(&place, format_args!("the key file can't be read: {e}")))?;
    CustomerKey::parse(&bytes).map_err(|e| BadUsage::of(place, e))
}

fn algorithm(text: &str) -> Result<SseAlgorithm, String> {
    SseAlgorithm::named(text).ok_or_else(|| "use AES256, aws:kms or aws:kms:dsse".to_owned())
}

fn checksum_algorithm(text: &str) -> Result<ChecksumAlgorithm, String> {
    ChecksumAlgorithm::named(text).ok_or_else(|| "use CRC32C, CRC64NVME or SHA256".to_owned())
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
