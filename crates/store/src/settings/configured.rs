//! Combines the settings of S3 requests. The caller's settings come first, then environment variables, then the
//! profile.

use std::path::PathBuf;

use crate::aws_files::{AwsFiles, FilesError, Profile, ProfileChoice};
use crate::endpoint::Endpoint;
use crate::{Error, ErrorKind, Operation, RequestChecksums, Settings};

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
pub(super) fn ca_bundle(settings: &Settings) -> Option<PathBuf> {
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
