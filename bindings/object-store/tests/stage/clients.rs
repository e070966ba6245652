//! A client of the embedded server.

use laneway::{AccessKey, Client, ClientBuilder};
use laneway_server::{AzureConfig, S3Config};

/// Returns a client for the server at a URL, which has the server's own keys in all dialects.
pub(crate) fn client(url: &str) -> Client {
    let (s3, azure) = (S3Config::default(), AzureConfig::default());
    // The library reads Azure's keys only from variables. A GCS endpoint that isn't Google's gets no credentials.
    let builder = ClientBuilder::from_variables([("AZURE_STORAGE_KEY", azure.key)])
        .gcs_endpoint(url)
        .s3_endpoint(url)
        .access_key(AccessKey::new(s3.access_key, s3.secret_key))
        .region(s3.region)
        .azure_endpoint(format!("{url}/{}", azure.account));
    builder.build().expect("a client")
}
