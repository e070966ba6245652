//! The environment's variables that the program reads, as its long help and its manual list them.

/// Names, and what they are for.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    (
        "AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE",
        "The profile for s3://, and the files that it stands in",
    ),
    ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", "Credentials for s3://"),
    ("AWS_REGION, AWS_DEFAULT_REGION", "Region of S3's buckets"),
    ("AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL", "Where s3:// leads"),
    ("AWS_CA_BUNDLE, SSL_CERT_FILE", "Certificates that are trusted too"),
    ("AWS_USE_DUALSTACK_ENDPOINT, AWS_USE_FIPS_ENDPOINT", "`true` for such endpoints of Amazon's"),
    (
        "LANEWAY_CUSTOMER_KEY, LANEWAY_SOURCE_CUSTOMER_KEY",
        "Keys of --customer-key-file and --source-customer-key-file",
    ),
    ("GOOGLE_APPLICATION_CREDENTIALS", "File with credentials for gs://"),
    ("CLOUDSDK_CONFIG", "Folder of gcloud's login"),
    ("GOOGLE_CLOUD_PROJECT", "Project whose buckets `ls gs://` lists"),
    ("STORAGE_EMULATOR_HOST", "Where gs:// leads"),
    ("HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY", "Proxies, and hosts that are reached without"),
    ("LANEWAY_RETRY_FOR", "As --retry-for"),
    ("LANEWAY_LOG", "What is logged: a level, or target=level,..."),
    ("XDG_STATE_HOME", "Where journals of unfinished uploads are kept, instead of ~/.local/state"),
];

/// The list as long help prints it.
pub(crate) fn help() -> String {
    let rows = VARIABLES.iter().map(|(names, meaning)| format!("\n  {names}\n          {meaning}"));
    format!("Environment:{}", rows.collect::<String>())
}
