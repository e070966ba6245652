//! The settings of a store, from flags and variables. For S3 requests, the caller's settings come first, then
//! environment variables, then the profile.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::aws_files::{AwsFiles, FilesError, Profile, ProfileChoice};
use crate::digest::hex_sha256;
use crate::endpoint::Endpoint;
use crate::{AccessKey, CredentialProvider, Encryption, Environment, Error, ErrorKind, Operation};

/// Headers that frame a message, route it, choose its coding or manage its connection. Only Laneway's HTTP client can
/// set them correctly (RFC 9110 section 7.6.1, RFC 9112 section 6).
const FRAMING: [&str; 16] = [
    "accept-encoding",
    "connection",
    "content-length",
    "content-range",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// All settings of a [`Store`](crate::Store) other than its provider. [`Settings::default`] stands for the public
/// service with the environment's credentials. If the environment or AWS's shared files name another S3 endpoint, the
/// default is that endpoint. So keys of another service are never sent to AWS. [`Settings::from_env`] adds the other
/// variables.
#[derive(Clone, Default)]
pub struct Settings {
    /// If true, requests carry no credentials, and Laneway doesn't search for any.
    pub anonymous: bool,
    /// Base URL of the GCS dialect instead of `https://storage.googleapis.com`.
    pub gcs_endpoint: Option<String>,
    /// Base URL of the S3 dialect, in place of the variables (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`) and the
    /// profile (`services`, `endpoint_url`). If none of them is set, requests go to AWS.
    pub s3_endpoint: Option<String>,
    /// Base URL of the Azure dialect: the Blob service of the storage account, with the account's name in the path if it is
    /// an emulator's. It replaces the variables and `https://ACCOUNT.blob.core.windows.net`.
    pub azure_endpoint: Option<String>,
    /// The storage account of Azure URLs that name none, in place of the variables.
    pub azure_account: Option<String>,
    /// The AWS profile to use. Laneway then uses the credentials of this profile and no others. Don't copy
    /// `AWS_PROFILE` into this field: Laneway reads the variable itself, and the variable only selects a profile within
    /// the default chain of sources.
    pub profile: Option<String>,
    /// AWS keys. If they are set, Laneway searches for no others.
    pub access_key: Option<AccessKey>,
    /// Supplies tokens for GCS and keys for S3. If it is set, Laneway doesn't search for them. [`Self::access_key`] has
    /// precedence.
    pub credential_provider: Option<Arc<dyn CredentialProvider>>,
    /// The key of a Google service account, in the format of its file. If it is set, Laneway doesn't search for GCS
    /// credentials. [`Self::credential_provider`] has precedence.
    pub service_account_key: Option<String>,
    /// The role to assume with the AWS keys. The keys may be in these settings, or Laneway finds them. The role's
    /// temporary keys then sign the requests.
    pub assume_role: Option<AssumedRole>,
    /// Email addresses of Google service accounts to impersonate. Requests act as the last account. The accounts before
    /// it are delegates. Laneway's own identity must be permitted to impersonate the first account, and each account
    /// must be permitted to impersonate the next.
    pub impersonate: Vec<String>,
    /// AWS region, in place of the variables and the profile.
    pub region: Option<String>,
    /// The project that GCS bills for the requests, sent as `x-goog-user-project`.
    pub user_project: Option<String>,
    /// The project whose GCS buckets are listed, and in which new ones are created.
    pub project: Option<String>,
    /// If true, requests to S3 declare that the caller pays for them (`x-amz-request-payer`).
    pub request_payer: bool,
    /// Customer-managed key that encrypts new objects.
    pub kms_key: Option<String>,
    /// The encryption of new objects, and the customer's own key for reading objects.
    pub encryption: Encryption,
    /// Headers to add to each request for objects, listings, batches of deletes or buckets. They are added before the
    /// request is signed. A header that [frames](crate::may_be_added) a request is an error.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// If true, S3 buckets are named in the path instead of the host. `None` leaves it to the profile
    /// (`s3.addressing_style`), then to the endpoint.
    pub s3_path_style: Option<bool>,
    /// If true, requests use Amazon's endpoints that have both IPv4 and IPv6 addresses. `None` leaves it to
    /// `AWS_USE_DUALSTACK_ENDPOINT` and the profile (`use_dualstack_endpoint`).
    pub s3_dualstack: Option<bool>,
    /// If true, requests use Amazon's endpoints with cryptography validated under FIPS 140. `None` leaves it to
    /// `AWS_USE_FIPS_ENDPOINT` and the profile (`use_fips_endpoint`).
    pub s3_fips: Option<bool>,
    /// If true, requests use Amazon's endpoints for Transfer Acceleration. `None` leaves it to the profile
    /// (`s3.use_accelerate_endpoint`).
    pub s3_accelerate: Option<bool>,
    /// The requests that carry checksums on S3. `None` leaves it to `AWS_REQUEST_CHECKSUM_CALCULATION` and the profile
    /// (`request_checksum_calculation`).
    pub request_checksums: Option<RequestChecksums>,
    /// The checksum that S3 compares with each upload, and keeps.
    pub checksum_algorithm: ChecksumAlgorithm,
    /// The environment variables.
    pub environment: Environment,
    /// A function that asks the user for the code of the named MFA device. Without it, profiles with an `mfa_serial`
    /// can't be used.
    pub mfa_prompt: Option<MfaPrompt>,
}

/// A role of AWS that a key may assume
/// (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct AssumedRole {
    /// The role's ARN.
    pub arn: String,
    /// The session's name in logs. `None` makes one from the time.
    pub session_name: Option<String>,
    /// The ID that the role's owner gave to a third party.
    pub external_id: Option<String>,
    /// The lifetime of the session's keys. With `None`, STS grants an hour.
    pub duration: Option<Duration>,
    /// A policy in JSON that limits the session further than the role.
    pub policy: Option<String>,
    /// The URL of STS. `None` means `AWS_ENDPOINT_URL_STS`, then `AWS_ENDPOINT_URL`, then AWS. If S3's endpoint isn't
    /// Amazon's, this field or one of the variables must be set, because AWS must not see the keys of another service.
    pub sts_endpoint: Option<String>,
    /// The region that signs the request to STS. `None` means S3's region.
    pub sts_region: Option<String>,
}

impl AssumedRole {
    /// Returns the role of an ARN.
    pub fn new(arn: impl Into<String>) -> Self {
        Self { arn: arn.into(), ..Self::default() }
    }
}

/// Asks the user for the code of the MFA device with this name. It may block.
pub type MfaPrompt = Arc<dyn Fn(&str) -> io::Result<String> + Send + Sync>;

/// The choice of requests that carry checksums for S3 to check. The names are those of the AWS SDKs
/// (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-dataintegrity.html>).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum RequestChecksums {
    /// Every request that can carry a checksum.
    #[default]
    WhenSupported,
    /// Only requests that S3 rejects without a checksum.
    WhenRequired,
}

/// A checksum that S3 compares with an upload, and keeps with the object.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum ChecksumAlgorithm {
    /// CRC32C. If the service refuses it, Laneway sends `Content-MD5` with a single-request upload, and no checksum
    /// with the parts of a multipart upload.
    #[default]
    Crc32c,
    /// CRC64/NVME, which S3 computes when an upload names no checksum.
    Crc64nvme,
    /// SHA-256. For a multipart upload, S3 keeps the SHA-256 of the parts' SHA-256s.
    Sha256,
}

impl ChecksumAlgorithm {
    /// Returns its name on S3: `CRC32C`, `CRC64NVME`, `SHA256`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32c => "CRC32C",
            Self::Crc64nvme => "CRC64NVME",
            Self::Sha256 => "SHA256",
        }
    }

    /// Returns the algorithm with this [`name`](Self::name), in any case.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = [Self::Crc32c, Self::Crc64nvme, Self::Sha256].into_iter();
        all.find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }
}

impl RequestChecksums {
    /// Reads `when_supported` or `when_required`, in any case.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "when_supported" => Some(Self::WhenSupported),
            "when_required" => Some(Self::WhenRequired),
            _ => None,
        }
    }
}

impl Settings {
    /// Returns the settings from the process's variables: `STORAGE_EMULATOR_HOST` (a URL, or `host:port` for plain
    /// HTTP) and `GOOGLE_CLOUD_PROJECT`. Empty variables count as unset. S3's variables apply with or without this
    /// method.
    pub fn from_env() -> Self {
        Self::from_environment(Environment::process())
    }

    /// Returns the settings from these variables.
    pub fn from_environment(environment: Environment) -> Self {
        Self {
            gcs_endpoint: environment.get("STORAGE_EMULATOR_HOST"),
            project: environment.first(&["GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GCLOUD_PROJECT"]),
            environment,
            ..Self::default()
        }
    }

    /// Returns the PEM file of certificates that the AWS profile in use (`ca_bundle`) trusts in addition to the
    /// platform's. If `AWS_CA_BUNDLE` is set, it returns `None`. The file is for [`Trust`](laneway_lanes::Trust).
    pub fn profile_ca_bundle(&self) -> Option<PathBuf> {
        ca_bundle(self)
    }
}

impl Settings {
    /// Returns the caller's headers.
    ///
    /// # Errors
    /// `Invalid` if a header frames a request.
    pub(crate) fn added_headers(&self) -> Result<HeaderMap, Error> {
        if let Some((name, _)) = self.headers.iter().find(|(name, _)| !may_be_added(name)) {
            let message = format!("the header {name} can't be added, because only Laneway may set it");
            return Err(Error::new(ErrorKind::Invalid, Operation::Open, message));
        }
        // Append the headers one by one, so that two values of one name become two headers.
        let mut added = HeaderMap::new();
        for (name, value) in &self.headers {
            let mut value = value.clone();
            value.set_sensitive(true);
            added.append(name, value);
        }
        Ok(added)
    }
}

impl std::fmt::Debug for Settings {
    /// Leaves out the values of headers, because they may be credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("anonymous", &self.anonymous)
            .field("gcs_endpoint", &self.gcs_endpoint)
            .field("s3_endpoint", &self.s3_endpoint)
            .field("azure_endpoint", &self.azure_endpoint)
            .field("azure_account", &self.azure_account)
            .field("profile", &self.profile)
            .field("credential_provider", &self.credential_provider.as_ref().map(|provider| provider.name()))
            .field("region", &self.region)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Returns a SHA-256 of the settings that a store adds to each upload. It is a strong hash because a header's value may
/// be a secret. The credentials aren't part of it, so a new token doesn't change it.
pub(crate) fn fingerprint<'a>(
    headers: impl IntoIterator<Item = &'a HeaderMap>,
    kms_key: Option<&str>,
    encryption: &Encryption,
    algorithm: ChecksumAlgorithm,
) -> String {
    let added = headers.into_iter().flatten().filter(|(name, _)| **name != AUTHORIZATION);
    let mut added: Vec<_> = added.map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    added.sort_unstable();
    hex_sha256(format!("{kms_key:?} {added:?} {} {algorithm:?}", encryption.trace()).as_bytes())
}

/// Returns true if a caller may add this header. Headers that frame the request can't be added.
pub fn may_be_added(name: &HeaderName) -> bool {
    !FRAMING.contains(&name.as_str())
}

/// Returns the caller's settings, completed with S3's variables and the profile.
///
/// # Errors
/// Fails if a file or a setting can't be read, or if the profile doesn't exist.
pub(crate) fn completed(settings: &Settings) -> Result<Settings, Error> {
    let failed = |e: FilesError| {
        let kind = match e {
            FilesError::NoProfile { .. } => ErrorKind::Unauthenticated,
            _ => ErrorKind::Invalid,
        };
        Error::new(kind, Operation::Open, e.to_string())
    };
    let files = AwsFiles::load(&settings.environment).map_err(failed)?;
    let chosen = ProfileChoice::of(settings.profile.as_deref(), &settings.environment);
    let profile = files.chosen(&chosen).map_err(failed)?;
    if let Some(path) = profile_ca_bundle(settings, &profile)
        && let Err(e) = std::fs::File::open(&path)
    {
        let message = format!("ca_bundle of {}: {}: {e}", profile.named("ca_bundle"), path.display());
        return Err(Error::new(ErrorKind::Invalid, Operation::Open, message));
    }
    resolve(settings, &files, &profile).map_err(|why| Error::new(ErrorKind::Invalid, Operation::Open, why))
}

/// Returns the PEM file of certificates that the profile in use trusts in addition to the platform's, unless a variable
/// names another file. AWS files that can't be read are ignored here, because requests to S3 report them.
fn ca_bundle(settings: &Settings) -> Option<PathBuf> {
    let files = AwsFiles::load(&settings.environment).ok()?;
    let chosen = ProfileChoice::of(settings.profile.as_deref(), &settings.environment);
    let bundle = profile_ca_bundle(settings, &files.chosen(&chosen).ok()?)?;
    bundle.is_file().then_some(bundle)
}

fn profile_ca_bundle(settings: &Settings, profile: &Profile) -> Option<PathBuf> {
    if settings.environment.get("AWS_CA_BUNDLE").is_some() {
        return None;
    }
    profile.value("ca_bundle").map(|path| settings.environment.path(path))
}

fn resolve(settings: &Settings, files: &AwsFiles, profile: &Profile) -> Result<Settings, String> {
    let environment = &settings.environment;
    let region = settings.region.clone();
    let region = region.or_else(|| environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
    let region = region.or_else(|| profile.value("region").map(str::to_owned));

    let given = settings.s3_endpoint.clone().map(|url| (url, "--s3-endpoint"));
    let endpoint = match given.or_else(|| endpoint(settings, files, profile)) {
        Some((url, by)) => {
            Endpoint::check_with_scheme(&url).map_err(|why| format!("{by}: {why}"))?;
            Some(url)
        }
        None => None,
    };

    let path_style = match (settings.s3_path_style, profile.nested("s3", "addressing_style")) {
        (Some(style), _) => Some(style),
        (None, Some("path")) => Some(true),
        (None, Some("virtual")) => Some(false),
        (None, Some("auto") | None) => None,
        (None, Some(other)) => {
            return Err(format!(
                "s3.addressing_style of {} is {other:?}: it must be path, virtual or auto",
                profile.named("s3")
            ));
        }
    };

    let variable = "AWS_REQUEST_CHECKSUM_CALCULATION";
    let said = match (environment.get(variable), profile.value("request_checksum_calculation")) {
        (Some(value), _) => Some((value, variable.to_owned())),
        (None, Some(value)) => {
            let setting = "request_checksum_calculation";
            Some((value.to_owned(), format!("{setting} of {}", profile.named(setting))))
        }
        (None, None) => None,
    };
    let request_checksums = match (settings.request_checksums, said) {
        (Some(given), _) => given,
        (None, None) => RequestChecksums::default(),
        (None, Some((value, by))) => RequestChecksums::read(&value)
            .ok_or_else(|| format!("{by} is {value:?}: it must be when_supported or when_required"))?,
    };
    let nested = |name: &str| profile.nested("s3", name).map(|value| value.eq_ignore_ascii_case("true"));
    let switch = |given: Option<bool>, variable: &str, setting: &str| {
        given.or_else(|| environment.switch(variable)).or_else(|| profile.switch(setting))
    };
    let dualstack = switch(settings.s3_dualstack, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint");
    Ok(Settings {
        region,
        s3_endpoint: endpoint,
        s3_path_style: path_style,
        s3_dualstack: dualstack.or_else(|| nested("use_dualstack_endpoint")),
        s3_fips: switch(settings.s3_fips, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint"),
        s3_accelerate: settings.s3_accelerate.or_else(|| nested("use_accelerate_endpoint")),
        request_checksums: Some(request_checksums),
        ..settings.clone()
    })
}

/// Returns the endpoint from variables or the profile, in botocore's order, and the name of its source. Returns `None`
/// if there is none, or if the user's settings say to ignore such endpoints.
fn endpoint(settings: &Settings, files: &AwsFiles, profile: &Profile) -> Option<(String, &'static str)> {
    if crate::aws_files::ignores_endpoints(&settings.environment, profile) {
        return None;
    }
    let variables = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
    let mut named = variables.iter().filter_map(|name| Some((settings.environment.get(name)?, *name)));
    named.next().or_else(|| Some((files.endpoint(profile, "s3")?, "the profile's endpoint_url")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    #[test]
    fn a_fingerprint_tells_apart_what_makes_another_object_and_not_who_asks() {
        let headers = |lines: &[(&'static str, &'static str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            lines.iter().map(pair).collect()
        };
        let fingerprint = |headers: [&HeaderMap; 1], kms_key| {
            fingerprint(headers, kms_key, &Encryption::default(), ChecksumAlgorithm::default())
        };
        let plain = fingerprint([&headers(&[])], None);
        let others = [
            fingerprint([&headers(&[])], Some("k")),
            fingerprint([&headers(&[])], Some("l")),
            fingerprint([&headers(&[("a", "1"), ("b", "2")])], None),
            fingerprint([&headers(&[("a", "1"), ("b", "3")])], None),
            fingerprint([&headers(&[("a", "1")])], None),
        ];
        for (n, other) in others.iter().enumerate() {
            assert!(*other != plain && !others[..n].contains(other), "{n}");
        }
        assert_eq!(fingerprint([&headers(&[("b", "2"), ("a", "1")])], None), others[2]);
        assert_eq!(fingerprint([&headers(&[("authorization", "Bearer t")])], None), plain);
    }

    #[test]
    fn a_fingerprint_tells_apart_another_key_of_the_customers() {
        let of = |byte: u8| {
            let customer_key = crate::CustomerKey::parse(&[byte; 32]).ok();
            let encryption = Encryption { customer_key, ..Encryption::default() };
            super::fingerprint([&HeaderMap::new()], None, &encryption, ChecksumAlgorithm::default())
        };
        assert!(of(1) == of(1) && of(1) != of(2));
    }

    #[test]
    fn the_values_of_added_headers_are_marked_as_secrets() {
        let header = (AUTHORIZATION, HeaderValue::from_static("Bearer hush"));
        let settings = Settings { headers: vec![header], ..Settings::default() };
        let added = settings.added_headers().expect("headers");
        assert_eq!(added[AUTHORIZATION], "Bearer hush");
        assert!(!format!("{settings:?} {added:?}").contains("hush"));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let variables =
            [("STORAGE_EMULATOR_HOST", ""), ("GOOGLE_CLOUD_PROJECT", ""), ("GCLOUD_PROJECT", "p")];
        let settings = Settings::from_environment(Environment::of(variables));
        assert_eq!((settings.gcs_endpoint, settings.project.as_deref()), (None, Some("p")));
    }

    #[test]
    fn framing_is_nothing_that_can_be_added() {
        for name in FRAMING {
            assert!(!may_be_added(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["x-amz-acl", "authorization", "cache-control", "x-goog-meta-a"] {
            assert!(may_be_added(&HeaderName::from_static(name)), "{name}");
        }
    }

    /// Returns the settings with these files and variables, after the caller set `extra`.
    fn seen(
        config: &str,
        variables: &[(&str, &str)],
        extra: impl FnOnce(&mut Settings),
    ) -> Result<Settings, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        std::fs::write(&path, config).expect("a file");
        let path = path.display().to_string();
        let mut settings = Settings {
            environment: Environment::of(
                [("AWS_CONFIG_FILE", path.as_str())].into_iter().chain(variables.iter().copied()),
            ),
            ..Settings::default()
        };
        extra(&mut settings);
        completed(&settings)
    }

    const CONFIG: &str = "[default]\nregion = eu-west-1\nendpoint_url = http://profile\nrequest_checksum_calculation = WHEN_REQUIRED\n\
                          s3 =\n  addressing_style = virtual\n[profile plain]\nregion = us-west-2\n";

    #[test]
    fn a_profile_says_what_nobody_else_does() {
        let configured = seen(CONFIG, &[], |_| ()).expect("settings");
        assert_eq!(configured.region.as_deref(), Some("eu-west-1"));
        assert_eq!(configured.s3_endpoint.as_deref(), Some("http://profile"));
        assert_eq!((configured.s3_path_style, configured.s3_accelerate), (Some(false), None));
        assert_eq!(configured.request_checksums, Some(RequestChecksums::WhenRequired));
        let other = seen(CONFIG, &[("AWS_PROFILE", "plain")], |_| ()).expect("settings");
        assert_eq!((other.region.as_deref(), other.s3_endpoint), (Some("us-west-2"), None));
        let switches = "[default]\nuse_fips_endpoint = true\ns3 =\n  use_accelerate_endpoint = true\n  use_dualstack_endpoint = true\n";
        let switches = seen(switches, &[("AWS_USE_FIPS_ENDPOINT", "false")], |_| ()).expect("settings");
        let on = (switches.s3_fips, switches.s3_accelerate, switches.s3_dualstack);
        assert_eq!(on, (Some(false), Some(true), Some(true)));
    }

    #[test]
    fn dualstack_and_fips_endpoints_are_asked_for_by_variables() {
        let variables = [("AWS_USE_DUALSTACK_ENDPOINT", "True"), ("AWS_USE_FIPS_ENDPOINT", "false")];
        let asked = seen("", &variables, |_| ()).expect("settings");
        assert_eq!((asked.s3_dualstack, asked.s3_fips), (Some(true), Some(false)));
        let variables = [("AWS_USE_FIPS_ENDPOINT", "")];
        assert_eq!(seen("", &variables, |_| ()).expect("settings").s3_fips, None);
        let given = seen("", &[("AWS_USE_FIPS_ENDPOINT", "true")], |settings| settings.s3_fips = Some(false));
        assert_eq!(given.expect("settings").s3_fips, Some(false));
    }

    #[test]
    fn the_caller_goes_before_variables_and_they_before_the_profile() {
        let both = [("AWS_ENDPOINT_URL", "http://all"), ("AWS_ENDPOINT_URL_S3", "http://s3")];
        assert_eq!(seen(CONFIG, &both, |_| ()).expect("settings").s3_endpoint.as_deref(), Some("http://s3"));
        assert_eq!(
            seen(CONFIG, &both[..1], |_| ()).expect("settings").s3_endpoint.as_deref(),
            Some("http://all")
        );
        let given = seen(CONFIG, &both, |settings| {
            settings.s3_endpoint = Some("http://given".into());
            settings.s3_path_style = Some(true);
            settings.region = Some("given".into());
        });
        let given = given.expect("settings");
        assert_eq!(given.s3_endpoint.as_deref(), Some("http://given"));
        assert_eq!((given.s3_path_style, given.region.as_deref()), (Some(true), Some("given")));
        let regions = [("AWS_REGION", ""), ("AWS_DEFAULT_REGION", "second")];
        assert_eq!(seen(CONFIG, &regions, |_| ()).expect("settings").region.as_deref(), Some("second"));
    }

    #[test]
    fn endpoints_that_are_to_be_ignored_are_unless_the_caller_gave_them() {
        let both = [("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"), ("AWS_ENDPOINT_URL", "http://all")];
        assert_eq!(seen(CONFIG, &both, |_| ()).expect("settings").s3_endpoint, None);
        let given = seen(CONFIG, &both, |settings| settings.s3_endpoint = Some("http://given".into()));
        assert_eq!(given.expect("settings").s3_endpoint.as_deref(), Some("http://given"));
        let ignoring = format!("{CONFIG}ignore_configured_endpoint_urls = true\n");
        let plain = [("AWS_PROFILE", "plain"), ("AWS_ENDPOINT_URL", "http://all")];
        assert_eq!(seen(&ignoring, &plain, |_| ()).expect("settings").s3_endpoint, None);
    }

    #[test]
    fn what_no_setting_can_be_is_refused_by_name() {
        let refused = |config: &str, variables: &[(&str, &str)]| {
            seen(config, variables, |_| ()).expect_err("refused").to_string()
        };
        let style = refused("[default]\ns3 =\n  addressing_style = pathh\n", &[]);
        assert!(style.contains("addressing_style") && style.contains("pathh"), "{style}");
        let sums = refused("", &[("AWS_REQUEST_CHECKSUM_CALCULATION", "never")]);
        assert!(sums.contains("AWS_REQUEST_CHECKSUM_CALCULATION") && sums.contains("never"), "{sums}");
        let bundle = refused("[default]\nca_bundle = /nowhere/ca.pem\n", &[]);
        assert!(bundle.contains("ca_bundle") && bundle.contains("/nowhere/ca.pem"), "{bundle}");
        let profile = refused("", &[("AWS_PROFILE", "typo")]);
        assert!(profile.contains("AWS_PROFILE") && profile.contains("typo"), "{profile}");
    }
}
