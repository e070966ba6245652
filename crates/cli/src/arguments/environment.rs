//! The environment variables that the program reads, as its long help and its manual list them.

/// The names of variables, and their meaning.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    (
        "AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE",
        "AWS profile for s3://, and the files that profiles are read from",
    ),
    ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", "Credentials for s3://"),
    ("AWS_REGION, AWS_DEFAULT_REGION", "Region for s3://, as --region"),
    ("AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL", "Server for s3://, as --s3-endpoint"),
    ("AWS_CA_BUNDLE, SSL_CERT_FILE", "Certificates to trust, as --ca-cert"),
    ("AWS_USE_DUALSTACK_ENDPOINT, AWS_USE_FIPS_ENDPOINT", "`true` selects these endpoints of Amazon's"),
    (
        "LANEWAY_CUSTOMER_KEY, LANEWAY_SOURCE_CUSTOMER_KEY",
        "Keys, instead of --customer-key-file and --source-customer-key-file",
    ),
    ("GOOGLE_APPLICATION_CREDENTIALS", "File with credentials for gs://"),
    ("CLOUDSDK_CONFIG", "Folder of gcloud's login"),
    ("GOOGLE_CLOUD_PROJECT", "Google Cloud project, as --project"),
    ("STORAGE_EMULATOR_HOST", "Server for gs://, as --gcs-endpoint"),
    (
        "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
        "Proxies (HTTP, HTTPS, SOCKS5), and hosts to reach without one",
    ),
    ("LANEWAY_RETRY_FOR", "Time to retry, as --retry-for"),
    ("LANEWAY_LOG", "Log level for stderr, or target=level,..."),
    ("XDG_STATE_HOME", "Folder for the records of unfinished uploads, instead of ~/.local/state"),
];

/// Returns the list as long help prints it.
pub(crate) fn help() -> String {
    let rows = VARIABLES.iter().map(|(names, meaning)| format!("\n  {names}\n          {meaning}"));
    format!("Environment:{}", rows.collect::<String>())
}
