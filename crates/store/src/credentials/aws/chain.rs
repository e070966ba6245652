//! Carries out the plan of [`plan`](super::plan): reads files, runs programs and asks servers for access keys.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use laneway_lanes::Lanes;

use super::super::deadline::reported_when_slow;
use super::super::failure::CredentialFailure;
use super::super::request::CredentialRequest;
use super::super::{cache, caller_provider, command};
use super::plan::{PlanInput, plan};
use super::source::{AwsSource, ContainerToken, IamRole, NamedSource, StsEndpoint, answered, read_keys};
use super::{sso, sts};
use crate::aws_files::{AwsFiles, ProfileChoice};
use crate::endpoint::Partition;
use crate::settings::MfaPrompt;
use crate::{AccessKey, AssumedRole, CredentialProvider, Environment, ExpiringKey, Settings};

/// The time limit of a `credential_process`, as in AWS's SDK for Go. It is long because the program may have to ask its
/// user for input.
const PROCESS_LIMIT: Duration = Duration::from_secs(60);

/// The settings of the search for credentials.
pub(super) struct AwsChain {
    /// Keys from the caller's settings, which assume a role.
    given: Option<AccessKey>,
    /// The caller's own provider. If it is set, no other source is used.
    provider: Option<Arc<dyn CredentialProvider>>,
    assume_role: Option<AssumedRole>,
    s3_endpoint: Option<String>,
    environment: Environment,
    profile: Option<String>,
    region: Option<String>,
    mfa_prompt: Option<MfaPrompt>,
    lanes: Lanes,
}

impl std::fmt::Debug for AwsChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl cache::CredentialSource for AwsChain {
    type Credential = ExpiringKey;

    async fn load(&self) -> Result<ExpiringKey, CredentialFailure> {
        let Some(assumed) = &self.assume_role else { return self.find().await };
        let base = match &self.given {
            Some(key) => key.clone(),
            None => self.find().await?.key,
        };
        let unusable = |cause| CredentialFailure::unusable(format!("the role {}", assumed.arn), cause);
        let role = self.planned(assumed).map_err(unusable)?;
        let assuming = sts::assume_role(&role, None, &base, &self.lanes);
        reported_when_slow(&assumed.arn, assuming).await.map_err(unusable)
    }
}

impl AwsChain {
    pub(super) fn new(settings: &Settings, lanes: &Lanes) -> Self {
        Self {
            given: settings.access_key.clone(),
            provider: settings.credential_provider.clone(),
            assume_role: settings.assume_role.clone(),
            s3_endpoint: settings.s3_endpoint.clone(),
            environment: settings.environment.clone(),
            profile: settings.profile.clone(),
            region: settings.region.clone(),
            mfa_prompt: settings.mfa_prompt.clone(),
            lanes: lanes.clone(),
        }
    }

    /// Returns the request for a role from the caller's settings.
    ///
    /// # Errors
    /// Fails if the request would show AWS the keys of another service.
    fn planned(&self, assumed: &AssumedRole) -> Result<IamRole, String> {
        let region = assumed.sts_region.clone().or_else(|| self.region.clone());
        let region = region.or_else(|| self.environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
        let named = assumed.sts_endpoint.clone();
        let named = named.or_else(|| self.environment.first(&["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"]));
        let url = match (named, &region) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, _) if self.s3_endpoint.as_deref().is_some_and(|s3| !is_amazons(s3)) => {
                return Err("S3's endpoint isn't Amazon's, so STS's endpoint must be set, too".to_owned());
            }
            (None, Some(region)) => format!("https://sts.{region}.{}", Partition::of(region).suffix),
            (None, None) => "https://sts.amazonaws.com".to_owned(),
        };
        Ok(IamRole {
            arn: assumed.arn.clone(),
            session_name: assumed.session_name.clone(),
            external_id: assumed.external_id.clone(),
            duration: assumed.duration,
            policy: assumed.policy.clone(),
            mfa_serial: None,
            sts: StsEndpoint { url, region: region.unwrap_or_else(|| "us-east-1".to_owned()) },
        })
    }

    /// Finds the credentials. The files are read again each time, because the user may have logged in since the last
    /// time.
    ///
    /// # Errors
    /// Returns the reason why there are none.
    async fn find(&self) -> Result<ExpiringKey, CredentialFailure> {
        if let Some(provider) = &self.provider {
            return reported_when_slow(provider.name(), caller_provider::key(&**provider)).await;
        }
        let bad =
            |e: crate::aws_files::FilesError| CredentialFailure::unusable("the AWS profile", e.to_string());
        let files = AwsFiles::load(&self.environment).map_err(bad)?;
        let chosen = ProfileChoice::of(self.profile.as_deref(), &self.environment);
        let active = files.chosen(&chosen).map_err(bad)?;
        let land = PlanInput {
            environment: &self.environment,
            files: &files,
            active: &active,
            chosen: &chosen,
            region: self.region.as_deref(),
        };
        let planned = plan(&land)?;
        let credential = reported_when_slow(&planned.name, self.carry_out(&planned)).await?;
        tracing::debug!(source = planned.name, "credentials found");
        Ok(credential)
    }

    /// Carries out a plan. It is recursive, because a role may be assumed with the credentials of another role.
    fn carry_out<'a>(
        &'a self,
        planned: &'a NamedSource,
    ) -> Pin<Box<dyn Future<Output = Result<ExpiringKey, CredentialFailure>> + Send + 'a>> {
        Box::pin(async move {
            let outcome = match &planned.source {
                AwsSource::Keys(key) => key.clone().into_credential(),
                AwsSource::Role { role, base } => {
                    let base = self.carry_out(base).await?;
                    self.role(role, &base.key).await
                }
                AwsSource::WebIdentity { token_file, role } => match std::fs::read_to_string(token_file) {
                    Ok(token) => sts::assume_role_with_web_identity(role, token.trim(), &self.lanes).await,
                    Err(e) => Err(format!("{}: {e}", token_file.display())),
                },
                AwsSource::Sso(sso) => sso::keys(sso, &self.lanes).await,
                AwsSource::Process { command } => process(command, &self.environment).await,
                AwsSource::Login { profile } => of_login(profile, &self.environment).await,
                AwsSource::Container { url, token } => container(url, token.as_ref(), &self.lanes).await,
                AwsSource::Instance(instance) => {
                    return sts::instance_keys(&planned.name, instance, &self.lanes).await;
                }
            };
            outcome.map_err(|cause| CredentialFailure::unusable(&planned.name, cause))
        })
    }

    async fn role(&self, role: &IamRole, base: &AccessKey) -> Result<ExpiringKey, String> {
        let code = match (&role.mfa_serial, &self.mfa_prompt) {
            (None, _) => None,
            (Some(serial), Some(prompt)) => {
                let (prompt, serial) = (prompt.clone(), serial.clone());
                let (done, answer) = tokio::sync::oneshot::channel();
                // If the thread can't start, its closure is dropped together with `done`. Then waiting for `answer`
                // returns an error.
                let _ = std::thread::Builder::new().spawn(move || {
                    let _ = done.send(prompt(&serial));
                });
                let answer = answer.await.map_err(
                    |_| "Laneway can't ask for the code of its mfa_serial, because no thread can start",
                )?;
                Some(answer.map_err(|e| format!("Laneway can't ask for the code of its mfa_serial: {e}"))?)
            }
            (Some(serial), None) => {
                return Err(format!(
                    "its mfa_serial {serial} requires a code, and there is no terminal to ask for it; \
                     aws configure export-credentials asks for the code and prints temporary keys"
                ));
            }
        };
        sts::assume_role(role, code.as_deref().map(str::trim), base, &self.lanes).await
    }
}

/// Returns true if an endpoint is one of Amazon's own.
fn is_amazons(url: &str) -> bool {
    laneway_lanes::Origin::parse(url).is_ok_and(|origin| Partition::claims_host(&origin.host))
}

/// Asks the AWS CLI for the keys of a login. Only the CLI knows the format of the login's files.
/// <https://docs.aws.amazon.com/cli/latest/reference/configure/export-credentials.html>
async fn of_login(profile: &str, environment: &Environment) -> Result<ExpiringKey, String> {
    let profile =
        shlex::try_quote(profile).map_err(|_| "the profile's name can't be passed to the AWS CLI")?;
    let line = format!("aws configure export-credentials --format process --profile {profile}");
    let keys = process(&line, environment).await;
    keys.map_err(|cause| {
        format!("{cause}; to use a login made with `aws login`, Laneway needs the AWS CLI 2.32 or newer")
    })
}

async fn process(line: &str, environment: &Environment) -> Result<ExpiringKey, String> {
    let output = command::run(line, environment, &[], Some(PROCESS_LIMIT)).await?;
    let version = serde_json::from_slice::<serde_json::Value>(&output).ok();
    match version.as_ref().map(|document| &document["Version"]) {
        Some(version) if version == 1 => read_keys(&output).map_err(|cause| format!("its output: {cause}")),
        Some(serde_json::Value::Number(version)) => {
            Err(format!("its output has version {version}, which isn't known"))
        }
        Some(_) => Err("its output has no version".to_owned()),
        None => Err("its output isn't a JSON document".to_owned()),
    }
}

async fn container(url: &str, token: Option<&ContainerToken>, lanes: &Lanes) -> Result<ExpiringKey, String> {
    let mut ask = CredentialRequest::get(url)?.header("accept", "application/json")?;
    // Read the token's file each time, because its issuer replaces the token before it expires.
    let token = match token {
        None => None,
        Some(ContainerToken::Value(token)) => Some(token.clone()),
        Some(ContainerToken::File(path)) => {
            let read = std::fs::read_to_string(path);
            Some(
                read.map_err(|e| format!("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {}: {e}", path.display()))?,
            )
        }
    };
    if let Some(token) = token {
        ask = ask.header("authorization", token.trim_end_matches(['\r', '\n']))?;
    }
    answered(&ask.send(lanes).await?, &ask.place())
}
