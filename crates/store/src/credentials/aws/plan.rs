//! Decides which source of credentials the variables and profiles name, in botocore's order.
//!
//! It has no side effects and makes no requests. The result is one source with all its settings, or the reason why a
//! configured source can't be used. Unlike botocore, it never skips a source that is configured.

use std::time::Duration;

use super::super::failure::CredentialFailure;
use super::source::{
    AwsSource, ContainerToken, IamRole, InstanceRole, NamedSource, SsoRole, StsEndpoint, UnparsedKey,
};
use crate::Environment;
use crate::aws_files::{AwsFiles, Profile, ProfileChoice, ignores_endpoints};
use crate::endpoint::Partition;

/// The input of a plan.
#[derive(Debug)]
pub(super) struct PlanInput<'a> {
    pub(super) environment: &'a Environment,
    pub(super) files: &'a AwsFiles,
    /// The profile in use.
    pub(super) active: &'a Profile,
    pub(super) chosen: &'a ProfileChoice,
    /// The caller's region.
    pub(super) region: Option<&'a str>,
}

/// Chooses the source of the credentials.
///
/// # Errors
/// Returns the mistake in the configured source, or `Nothing` if no source is configured.
pub(super) fn plan(land: &PlanInput<'_>) -> Result<NamedSource, CredentialFailure> {
    let is_explicit = land.chosen.by == Some("--profile");
    if !is_explicit && let Some(keys) = land.keys_of_variables()? {
        return Ok(keys);
    }
    if let Some(planned) = land.source_of(land.active, !is_explicit)? {
        return Ok(planned);
    }
    if let Some(missing) = land.files.missing() {
        return Err(CredentialFailure::unusable("the AWS profile", missing));
    }
    let profile = land.active.named("");
    if is_explicit {
        return Err(CredentialFailure::unusable(
            profile,
            "it holds no credentials and names no source of them",
        ));
    }
    if let Some(planned) = land.container()? {
        return Ok(planned);
    }
    let tried = vec!["AWS_ACCESS_KEY_ID".to_owned(), profile, "container".to_owned()];
    if land.environment.switch("AWS_EC2_METADATA_DISABLED") == Some(true) {
        return Err(CredentialFailure::Nothing(tried));
    }
    land.instance(land.environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").is_some(), tried)
}

impl PlanInput<'_> {
    /// Returns the source of a profile's credentials, including roles to assume. If `with_variables` is true, variables
    /// that name a web identity have precedence.
    fn source_of(
        &self,
        profile: &Profile,
        with_variables: bool,
    ) -> Result<Option<NamedSource>, CredentialFailure> {
        let mut visited = vec![profile.name.clone()];
        if is_role(profile) {
            return self.role(profile, &mut visited).map(Some);
        }
        self.own_source(profile, with_variables)
    }

    /// Returns the profile's own credential source, ignoring any role to assume.
    fn own_source(
        &self,
        profile: &Profile,
        with_variables: bool,
    ) -> Result<Option<NamedSource>, CredentialFailure> {
        if let Some(planned) = self.web_identity(profile, with_variables)? {
            return Ok(Some(planned));
        }
        if let Some(planned) = self.sso(profile)? {
            return Ok(Some(planned));
        }
        if let Some(planned) = keys_of(profile)? {
            return Ok(Some(planned));
        }
        if profile.value("login_session").is_some() {
            let name = format!("login_session of {}", profile.named("login_session"));
            let source = AwsSource::Login { profile: profile.name.clone() };
            return Ok(Some(NamedSource { name, source }));
        }
        Ok(profile.value("credential_process").map(|command| NamedSource {
            name: format!("credential_process of {}", profile.named("credential_process")),
            source: AwsSource::Process { command: command.to_owned() },
        }))
    }

    fn keys_of_variables(&self) -> Result<Option<NamedSource>, CredentialFailure> {
        let get = |name| self.environment.get(name);
        let keys = match (get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")) {
            (None, None) => return Ok(None),
            (Some(_), None) => {
                return Err(CredentialFailure::unusable(
                    "AWS_ACCESS_KEY_ID",
                    "AWS_SECRET_ACCESS_KEY is not set",
                ));
            }
            (None, Some(_)) => {
                return Err(CredentialFailure::unusable(
                    "AWS_SECRET_ACCESS_KEY",
                    "AWS_ACCESS_KEY_ID is not set",
                ));
            }
            (Some(id), Some(secret)) => UnparsedKey {
                id,
                secret,
                token: self.environment.first(&["AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"]),
                ends: get("AWS_CREDENTIAL_EXPIRATION"),
            },
        };
        Ok(Some(NamedSource { name: "AWS_ACCESS_KEY_ID".to_owned(), source: AwsSource::Keys(keys) }))
    }

    fn role(&self, profile: &Profile, visited: &mut Vec<String>) -> Result<NamedSource, CredentialFailure> {
        let name = format!("role_arn of {}", profile.named("role_arn"));
        let bad = |cause: String| CredentialFailure::unusable(name.clone(), cause);
        let arn = profile.value("role_arn").unwrap_or_default().to_owned();
        let base = match (profile.value("source_profile"), profile.value("credential_source")) {
            (Some(_), Some(_)) => {
                return Err(bad("the profile has both a source_profile and a credential_source".to_owned()));
            }
            (None, None) => {
                return Err(bad(
                    "the profile has neither a source_profile nor a credential_source".to_owned()
                ));
            }
            (None, Some(source)) => self.credential_source(source, &name)?,
            (Some(source), None) => {
                let Some(found) = self.files.profile(source) else {
                    return Err(bad(format!("its source_profile {source:?} doesn't exist")));
                };
                let has_keys = has_keys(found);
                if visited.iter().any(|name| name == source) && !(source == profile.name && has_keys) {
                    return Err(bad(format!("source_profile leads in a circle, back to {source:?}")));
                }
                visited.push(source.to_owned());
                let planned = if is_role(found) && !has_keys {
                    Some(self.role(found, visited)?)
                } else {
                    self.own_source(found, false)?
                };
                planned.ok_or_else(|| {
                    bad(format!(
                        "its source_profile {source:?} holds no credentials and names no source of them"
                    ))
                })?
            }
        };
        let duration = match profile.value("duration_seconds") {
            None => None,
            Some(text) => {
                let seconds = text
                    .parse()
                    .map_err(|_| bad(format!("duration_seconds is {text:?}, which isn't a number")))?;
                Some(Duration::from_secs(seconds))
            }
        };
        let owned = |name| profile.value(name).map(str::to_owned);
        let role = IamRole {
            arn,
            session_name: owned("role_session_name"),
            external_id: owned("external_id"),
            duration,
            policy: None,
            mfa_serial: owned("mfa_serial"),
            sts: self.sts(profile),
        };
        Ok(NamedSource { name, source: AwsSource::Role { role, base: Box::new(base) } })
    }

    fn credential_source(&self, source: &str, name: &str) -> Result<NamedSource, CredentialFailure> {
        let unset = |what: &str| {
            CredentialFailure::unusable(name, format!("its credential_source is {source}, but {what}"))
        };
        match source {
            "Environment" => self.keys_of_variables()?.ok_or_else(|| unset("AWS_ACCESS_KEY_ID is not set")),
            "EcsContainer" => self.container()?.ok_or_else(|| {
                unset("neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set")
            }),
            "Ec2InstanceMetadata" => self.instance(true, Vec::new()),
            _ => Err(CredentialFailure::unusable(
                name,
                format!("credential_source is {source:?}: it must be Environment, Ec2InstanceMetadata or EcsContainer"),
            )),
        }
    }

    fn web_identity(
        &self,
        profile: &Profile,
        with_variables: bool,
    ) -> Result<Option<NamedSource>, CredentialFailure> {
        let said = |variable: &str, setting: &str| {
            let by_variable = with_variables.then(|| self.environment.get(variable)).flatten();
            by_variable.or_else(|| profile.value(setting).map(str::to_owned))
        };
        let by_variable = with_variables && self.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE").is_some();
        let Some(token_file) = said("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file") else {
            return Ok(None);
        };
        let name = if by_variable {
            "AWS_WEB_IDENTITY_TOKEN_FILE".to_owned()
        } else {
            format!("web_identity_token_file of {}", profile.named("web_identity_token_file"))
        };
        let Some(arn) = said("AWS_ROLE_ARN", "role_arn") else {
            let what = if by_variable { "AWS_ROLE_ARN is not set" } else { "the profile has no role_arn" };
            return Err(CredentialFailure::unusable(name, what));
        };
        let role = IamRole {
            arn,
            session_name: said("AWS_ROLE_SESSION_NAME", "role_session_name"),
            external_id: None,
            duration: None,
            policy: None,
            mfa_serial: None,
            sts: self.sts(profile),
        };
        let token_file = self.environment.path(&token_file);
        Ok(Some(NamedSource { name, source: AwsSource::WebIdentity { token_file, role } }))
    }

    fn sso(&self, profile: &Profile) -> Result<Option<NamedSource>, CredentialFailure> {
        let asked = ["sso_session", "sso_account_id", "sso_role_name"];
        let Some(setting) = asked.into_iter().find(|name| profile.value(name).is_some()) else {
            return Ok(None);
        };
        let name = format!("SSO of {}", profile.named(setting));
        let bad = |cause: String| CredentialFailure::unusable(name.clone(), cause);
        let session = match profile.value("sso_session") {
            None => None,
            Some(session) => {
                let found = self.files.session(session);
                Some((
                    session,
                    found.ok_or_else(|| bad(format!("there is no section [sso-session {session}]")))?,
                ))
            }
        };
        let value = |name: &str| -> Result<String, CredentialFailure> {
            let own = profile.value(name);
            let shared = session.and_then(|(_, values)| values.get(name)).filter(|value| !value.is_empty());
            match (own, shared) {
                (Some(own), Some(shared)) if own != shared => {
                    Err(bad(format!("{name} isn't the same in the profile and in its sso_session")))
                }
                (None, None) => Err(bad(format!("{name} is not set"))),
                (own, shared) => Ok(own.or(shared.map(String::as_str)).unwrap_or_default().to_owned()),
            }
        };
        let region = value("sso_region")?;
        let suffix = Partition::of(&region).suffix;
        let service = |variable: &str, service: &str, host: &str| {
            let configured = self.endpoint(variable, service);
            configured.unwrap_or_else(|| format!("https://{host}.{region}.{suffix}"))
        };
        let sso = SsoRole {
            profile: profile.name.clone(),
            session: session.map(|(name, _)| name.to_owned()),
            start_url: value("sso_start_url")?,
            account_id: value("sso_account_id")?,
            role_name: value("sso_role_name")?,
            portal: service("AWS_ENDPOINT_URL_SSO", "sso", "portal.sso"),
            oidc: service("AWS_ENDPOINT_URL_SSO_OIDC", "sso_oidc", "oidc"),
            logins: self.environment.path("~/.aws/sso/cache"),
        };
        Ok(Some(NamedSource { name: name.clone(), source: AwsSource::Sso(sso) }))
    }

    fn container(&self) -> Result<Option<NamedSource>, CredentialFailure> {
        let get = |name| self.environment.get(name);
        let relative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
        let full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
        let (name, url) = match (get(relative), get(full)) {
            (Some(path), _) => (relative, format!("http://169.254.170.2{path}")),
            (None, Some(url)) => (full, url),
            (None, None) => return Ok(None),
        };
        may_see_tokens(&url).map_err(|cause| CredentialFailure::unusable(name, cause))?;
        let file =
            get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map(|path| ContainerToken::File(path.into()));
        let token = file.or_else(|| get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(ContainerToken::Value));
        Ok(Some(NamedSource { name: name.to_owned(), source: AwsSource::Container { url, token } }))
    }

    fn instance(&self, is_asked_for: bool, tried: Vec<String>) -> Result<NamedSource, CredentialFailure> {
        let said = |variable: &str, setting: &str| {
            self.environment.get(variable).or_else(|| self.active.value(setting).map(str::to_owned))
        };
        let name = "instance metadata".to_owned();
        let mode = said("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ec2_metadata_service_endpoint_mode")
            .unwrap_or_default();
        let endpoint = said("AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint");
        let endpoint = match (endpoint, mode.to_ascii_lowercase().as_str()) {
            (Some(endpoint), _) => endpoint.trim_end_matches('/').to_owned(),
            (None, "ipv6") => "http://[fd00:ec2::254]".to_owned(),
            (None, "" | "ipv4") => "http://169.254.169.254".to_owned(),
            (None, _) => {
                let cause =
                    format!("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE is {mode:?}: it must be IPv4 or IPv6");
                return Err(CredentialFailure::unusable(name, cause));
            }
        };
        Ok(NamedSource { name, source: AwsSource::Instance(InstanceRole { endpoint, is_asked_for, tried }) })
    }

    /// Returns the STS endpoint, from variables or profiles if they set one. A profile's `endpoint_url` also applies to
    /// STS. The keys of such a profile may belong to another service, and AWS's STS must not see them.
    fn sts(&self, profile: &Profile) -> StsEndpoint {
        let region = self.region.map(str::to_owned);
        let region = region.or_else(|| self.environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
        let bases = self.files.with_bases(profile);
        let mut profiles = std::iter::once(self.active).chain(bases);
        let region = region.or_else(|| profiles.find_map(|p| p.value("region").map(str::to_owned)));
        let url = self.endpoint("AWS_ENDPOINT_URL_STS", "sts");
        let url = url.unwrap_or_else(|| match &region {
            Some(region) => format!("https://sts.{region}.{}", Partition::of(region).suffix),
            None => "https://sts.amazonaws.com".to_owned(),
        });
        StsEndpoint { url, region: region.unwrap_or_else(|| "us-east-1".to_owned()) }
    }

    /// Returns a service's endpoint, if a variable or a file sets one.
    fn endpoint(&self, variable: &str, service: &str) -> Option<String> {
        if ignores_endpoints(self.environment, self.active) {
            return None;
        }
        let by_variable = self.environment.first(&[variable, "AWS_ENDPOINT_URL"]);
        let url = by_variable.or_else(|| self.files.endpoint(self.active, service))?;
        Some(url.trim_end_matches('/').to_owned())
    }
}

fn is_role(profile: &Profile) -> bool {
    profile.value("role_arn").is_some() && profile.value("web_identity_token_file").is_none()
}

fn has_keys(profile: &Profile) -> bool {
    profile.value("aws_access_key_id").is_some() || profile.value("aws_secret_access_key").is_some()
}

fn keys_of(profile: &Profile) -> Result<Option<NamedSource>, CredentialFailure> {
    let lacks = |has: &str, lacks: &str| {
        Err(CredentialFailure::unusable(
            format!("{has} of {}", profile.named(has)),
            format!("the profile has no {lacks}"),
        ))
    };
    match (profile.value("aws_access_key_id"), profile.value("aws_secret_access_key")) {
        (None, None) => Ok(None),
        (Some(_), None) => lacks("aws_access_key_id", "aws_secret_access_key"),
        (None, Some(_)) => lacks("aws_secret_access_key", "aws_access_key_id"),
        (Some(id), Some(secret)) => {
            let token = profile.value("aws_session_token").map(str::to_owned);
            let keys = UnparsedKey { id: id.to_owned(), secret: secret.to_owned(), token, ends: None };
            Ok(Some(NamedSource { name: profile.named("aws_access_key_id"), source: AwsSource::Keys(keys) }))
        }
    }
}

/// Checks the endpoint that receives a container's token. The endpoint must use TLS, be on this machine, or have an
/// address of ECS or EKS.
fn may_see_tokens(url: &str) -> Result<(), String> {
    let origin = laneway_lanes::Origin::parse(url).map_err(|_| format!("{url:?} isn't a URL"))?;
    let is_local = origin.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        || matches!(&*origin.host, "localhost" | "169.254.170.2" | "169.254.170.23" | "fd00:ec2::23");
    if origin.scheme == laneway_lanes::Scheme::Https || is_local {
        return Ok(());
    }
    Err(format!("{} is neither this machine nor reached over TLS", origin.host))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the plan for these files and variables.
    fn planned(config: &str, variables: &[(&str, &str)]) -> Result<NamedSource, CredentialFailure> {
        asked(None, config, variables)
    }

    fn asked(
        profile: Option<&str>,
        config: &str,
        variables: &[(&str, &str)],
    ) -> Result<NamedSource, CredentialFailure> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        std::fs::write(&path, config).expect("a file");
        let path = path.display().to_string();
        let own = [("AWS_CONFIG_FILE", path.as_str()), ("HOME", "/nowhere")];
        let environment = Environment::of(own.into_iter().chain(variables.iter().copied()));
        let files = AwsFiles::load(&environment).expect("files");
        let chosen = ProfileChoice::of(profile, &environment);
        let active = files.chosen(&chosen).expect("a profile");
        plan(&PlanInput {
            environment: &environment,
            files: &files,
            active: &active,
            chosen: &chosen,
            region: None,
        })
    }

    fn cause(outcome: Result<NamedSource, CredentialFailure>) -> String {
        match outcome {
            Err(CredentialFailure::Unusable { source, cause }) => format!("{source}: {cause}"),
            other => panic!("expected an unusable source, got {other:?}"),
        }
    }

    const KEYS: &str = "aws_access_key_id = A\naws_secret_access_key = S\n";

    #[test]
    fn a_chain_of_roles_ends_at_keys() {
        let config = format!(
            "[default]\nrole_arn = arn:1\nsource_profile = middle\nexternal_id = e\nduration_seconds = 900\n\
             [profile middle]\nrole_arn = arn:2\nsource_profile = keys\n[profile keys]\nregion = eu-west-1\n{KEYS}"
        );
        let AwsSource::Role { role, base } = planned(&config, &[]).expect("a plan").source else {
            panic!("no role")
        };
        assert_eq!((role.arn.as_str(), role.external_id.as_deref()), ("arn:1", Some("e")));
        assert_eq!(role.duration, Some(Duration::from_secs(900)));
        let AwsSource::Role { role, base } = base.source else { panic!("no role") };
        assert_eq!(
            (role.arn.as_str(), role.sts.url.as_str()),
            ("arn:2", "https://sts.eu-west-1.amazonaws.com")
        );
        assert!(matches!(base.source, AwsSource::Keys(UnparsedKey { id, .. }) if id == "A"));
    }

    #[test]
    fn a_profile_may_be_its_own_source_and_no_other_circle_is_followed() {
        let own = format!("[default]\nrole_arn = arn:1\nsource_profile = default\n{KEYS}");
        assert!(matches!(planned(&own, &[]).expect("a plan").source, AwsSource::Role { .. }));
        let circle = "[default]\nrole_arn = arn:1\nsource_profile = b\n[profile b]\nrole_arn = arn:2\nsource_profile = default\n";
        assert!(cause(planned(circle, &[])).contains("circle"));
    }

    #[test]
    fn a_role_that_is_set_up_badly_says_how() {
        for (settings, word) in [
            ("", "neither"),
            ("source_profile = gone\n", "\"gone\" doesn't exist"),
            ("source_profile = empty\n", "\"empty\" holds no credentials"),
            ("source_profile = empty\ncredential_source = Environment\n", "both"),
            ("credential_source = Elsewhere\n", "Elsewhere"),
            ("credential_source = Environment\n", "AWS_ACCESS_KEY_ID is not set"),
            ("credential_source = EcsContainer\n", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        ] {
            let config = format!("[default]\nrole_arn = arn:1\n{settings}[profile empty]\nregion = x\n");
            let cause = cause(planned(&config, &[]));
            assert!(cause.contains(word) && cause.contains("role_arn of profile \"default\""), "{cause}");
        }
    }

    #[test]
    fn keys_of_a_profile_with_an_endpoint_are_not_shown_to_amazons_sts() {
        let config = format!(
            "[default]\nrole_arn = arn:1\nsource_profile = minio\n[profile minio]\nendpoint_url = http://minio:9000/\n{KEYS}"
        );
        let AwsSource::Role { role, .. } = planned(&config, &[]).expect("a plan").source else {
            panic!("no role")
        };
        assert_eq!(role.sts.url, "http://minio:9000");
    }

    #[test]
    fn variables_go_before_the_profile_unless_it_was_asked_for_by_name() {
        let config = format!("[profile p]\n{KEYS}");
        let variables = [("AWS_ACCESS_KEY_ID", "B"), ("AWS_SECRET_ACCESS_KEY", "T"), ("AWS_PROFILE", "p")];
        let id = |planned: NamedSource| match planned.source {
            AwsSource::Keys(keys) => keys.id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id(planned(&config, &variables).expect("keys")), "B");
        assert_eq!(id(asked(Some("p"), &config, &variables).expect("keys")), "A");
        let empty = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", ""), ("AWS_PROFILE", "p")];
        assert_eq!(id(planned(&config, &empty).expect("keys")), "A");
    }

    #[test]
    fn half_of_a_key_is_no_key_and_not_passed_over() {
        assert!(
            cause(planned("", &[("AWS_ACCESS_KEY_ID", "A")])).contains("AWS_SECRET_ACCESS_KEY is not set")
        );
        assert!(
            cause(planned("", &[("AWS_SECRET_ACCESS_KEY", "S")])).contains("AWS_ACCESS_KEY_ID is not set")
        );
        let cause = cause(planned("[default]\naws_access_key_id = A\n", &[]));
        assert!(cause.contains("no aws_secret_access_key"), "{cause}");
    }

    #[test]
    fn a_web_identity_is_that_of_variables_or_of_the_profile() {
        let variables = [
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
            ("AWS_ROLE_ARN", "arn:1"),
            ("AWS_REGION", "cn-north-1"),
        ];
        let AwsSource::WebIdentity { role, token_file } =
            planned(KEYS_OF_DEFAULT, &variables).expect("a plan").source
        else {
            panic!("no web identity")
        };
        assert_eq!(
            (role.sts.url.as_str(), token_file.to_str()),
            ("https://sts.cn-north-1.amazonaws.com.cn", Some("/token"))
        );
        assert!(cause(planned("", &variables[..1])).contains("AWS_ROLE_ARN is not set"));
        let config = "[profile p]\nweb_identity_token_file = ~/t\nrole_arn = arn:2\nrole_session_name = n\n";
        let AwsSource::WebIdentity { role, token_file } =
            asked(Some("p"), config, &variables).expect("a plan").source
        else {
            panic!("no web identity")
        };
        assert_eq!((role.arn.as_str(), role.session_name.as_deref()), ("arn:2", Some("n")));
        assert_eq!(token_file.to_str(), Some("/nowhere/t"));
    }

    const KEYS_OF_DEFAULT: &str = "[default]\naws_access_key_id = A\naws_secret_access_key = S\n";

    #[test]
    fn sso_is_set_up_by_a_session_or_in_the_profile() {
        let session = "[default]\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n\
                       [sso-session s]\nsso_start_url = https://start\nsso_region = eu-west-1\n";
        let AwsSource::Sso(sso) = planned(session, &[]).expect("a plan").source else { panic!("no SSO") };
        assert_eq!(
            (sso.session.as_deref(), sso.portal.as_str()),
            (Some("s"), "https://portal.sso.eu-west-1.amazonaws.com")
        );
        let legacy = "[default]\nsso_start_url = https://start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = r\n";
        let AwsSource::Sso(sso) = planned(legacy, &[]).expect("a plan").source else { panic!("no SSO") };
        assert_eq!((sso.session, sso.start_url.as_str()), (None, "https://start"));
        for (config, word) in [
            ("[default]\nsso_session = gone\nsso_account_id = 1\nsso_role_name = r\n", "[sso-session gone]"),
            ("[default]\nsso_account_id = 1\nsso_role_name = r\n", "sso_region is not set"),
            (
                "[default]\nsso_session = s\n[sso-session s]\nsso_start_url = u\nsso_region = r\n",
                "sso_account_id is not set",
            ),
            (
                "[default]\nsso_session = s\nsso_region = other\nsso_account_id = 1\nsso_role_name = r\n\
                 [sso-session s]\nsso_start_url = u\nsso_region = r\n",
                "sso_region isn't the same",
            ),
        ] {
            let cause = cause(planned(config, &[]));
            assert!(cause.contains(word), "{cause}");
        }
    }

    #[test]
    fn falls_back_to_container_and_instance_unless_a_profile_is_requested() {
        let relative = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")];
        let AwsSource::Container { url, .. } = planned("", &relative).expect("a plan").source else {
            panic!("no container")
        };
        assert_eq!(url, "http://169.254.170.2/v2/x");
        assert!(
            cause(asked(Some("p"), "[profile p]\nregion = x\n", &relative)).contains("holds no credentials")
        );
        let abroad = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/x")];
        assert!(cause(planned("", &abroad)).contains("neither this machine nor reached over TLS"));
        let AwsSource::Instance(instance) = planned("", &[]).expect("a plan").source else {
            panic!("no instance")
        };
        assert_eq!((instance.endpoint.as_str(), instance.is_asked_for), ("http://169.254.169.254", false));
        assert!(matches!(
            planned("", &[("AWS_EC2_METADATA_DISABLED", "true")]),
            Err(CredentialFailure::Nothing(_))
        ));
    }

    #[test]
    fn a_file_that_a_variable_names_is_missed_before_the_machine_is_asked() {
        let missing = [("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials")];
        assert!(
            cause(planned("", &missing)).contains("AWS_SHARED_CREDENTIALS_FILE names /nowhere/credentials")
        );
        let keys = [missing[0], ("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "S")];
        assert!(planned("", &keys).is_ok());
    }
}
