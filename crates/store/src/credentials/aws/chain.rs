//! Carries out the plan of [`plan`](super::plan): reads files, runs programs and asks servers for access keys.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use laneway_lanes::Lanes;

use super::super::ask::Ask;
use super::super::cache;
use super::super::command;
use super::super::deadline::reported_when_slow;
use super::super::lacking::Lacking;
use super::super::provided;
use super::plan::{Landscape, plan};
use super::source::{ContainerToken, Keys, Login, Planned, Role, Source};
use super::temporary::{Temporary, answered, read};
use super::{instance, sso, sts};
use crate::aws_files::{AwsFiles, Chosen};
use crate::settings::MfaPrompt;
use crate::{AccessKey, CredentialProvider, Environment, ExpiringKey, Settings};

/// The time limit of a `credential_process`, as in AWS's SDK for Go. It is long because the program may have to ask its
/// user for input.
const PROCESS_LIMIT: Duration = Duration::from_secs(60);

/// The settings of the search for credentials.
pub(super) struct Chain {
    /// The caller's own provider. If it is set, no other source is used.
    provider: Option<Arc<dyn CredentialProvider>>,
    environment: Environment,
    profile: Option<String>,
    region: Option<String>,
    mfa_prompt: Option<MfaPrompt>,
    lanes: Lanes,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl cache::Source for Chain {
    type Credential = ExpiringKey;

    async fn load(&self) -> Result<ExpiringKey, Lacking> {
        self.find().await
    }
}

impl Chain {
    pub(super) fn new(settings: &Settings, lanes: &Lanes) -> Self {
        Self {
            provider: settings.credential_provider.clone(),
            environment: settings.environment.clone(),
            profile: settings.profile.clone(),
            region: settings.region.clone(),
            mfa_prompt: settings.mfa_prompt.clone(),
            lanes: lanes.clone(),
        }
    }

    /// Finds the credentials. The files are read again each time, because the user may have logged in since the last
    /// time.
    ///
    /// # Errors
    /// Returns the reason why there are none.
    async fn find(&self) -> Result<ExpiringKey, Lacking> {
        if let Some(provider) = &self.provider {
            return reported_when_slow(provider.name(), provided::key(&**provider)).await;
        }
        let bad = |e: crate::aws_files::FilesError| Lacking::unusable("the AWS profile", e.to_string());
        let files = AwsFiles::load(&self.environment).map_err(bad)?;
        let chosen = Chosen::of(self.profile.as_deref(), &self.environment);
        let active = files.chosen(&chosen).map_err(bad)?;
        let land = Landscape {
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
        planned: &'a Planned,
    ) -> Pin<Box<dyn Future<Output = Result<ExpiringKey, Lacking>> + Send + 'a>> {
        Box::pin(async move {
            let outcome = match &planned.source {
                Source::Keys(keys) => given(keys),
                Source::Role { role, base } => {
                    let base = self.carry_out(base).await?;
                    self.role(role, &base.key).await
                }
                Source::WebIdentity { token_file, role } => match std::fs::read_to_string(token_file) {
                    Ok(token) => sts::assume_role_with_web_identity(role, token.trim(), &self.lanes).await,
                    Err(e) => Err(format!("{}: {e}", token_file.display())),
                },
                Source::Sso(sso) => sso::keys(sso, &self.lanes).await,
                Source::Process { command } => process(command, &[]).await,
                Source::Login(login) => of_login(login).await,
                Source::Container { url, token } => container(url, token.as_ref(), &self.lanes).await,
                Source::Instance(instance) => {
                    return instance::keys(&planned.name, instance, &self.lanes).await;
                }
            };
            outcome.map_err(|cause| Lacking::unusable(&planned.name, cause))
        })
    }

    async fn role(&self, role: &Role, base: &AccessKey) -> Result<ExpiringKey, String> {
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
                    |_| "the code of its mfa_serial can't be asked for, because no thread can start",
                )?;
                Some(answer.map_err(|e| format!("the code of its mfa_serial can't be asked for: {e}"))?)
            }
            (Some(serial), None) => {
                return Err(format!(
                    "its mfa_serial {serial} wants a code, and there is no terminal to ask for one; \
                     aws configure export-credentials asks for it and prints temporary keys"
                ));
            }
        };
        sts::assume_role(role, code.as_deref().map(str::trim), base, &self.lanes).await
    }
}

fn given(keys: &Keys) -> Result<ExpiringKey, String> {
    let Keys { id, secret, token, ends } = keys.clone();
    Temporary { id, secret, token, ends }.into_credential()
}

/// Asks the AWS CLI for the keys of a login. Its files are private to it.
/// <https://docs.aws.amazon.com/cli/latest/reference/configure/export-credentials.html>
async fn of_login(login: &Login) -> Result<ExpiringKey, String> {
    let profile = shlex::try_quote(&login.profile).map_err(|_| "the profile's name can't be an argument")?;
    let line = format!("aws configure export-credentials --format process --profile {profile}");
    let keys = process(&line, &login.variables).await;
    keys.map_err(|cause| format!("{cause}; the AWS CLI 2.32 or newer reads logins of `aws login`"))
}

async fn process(line: &str, variables: &[(&str, String)]) -> Result<ExpiringKey, String> {
    let output = command::run(line, variables, Some(PROCESS_LIMIT)).await?;
    let version = serde_json::from_slice::<serde_json::Value>(&output).ok();
    match version.as_ref().map(|document| &document["Version"]) {
        Some(version) if version == 1 => read(&output).map_err(|cause| format!("its output: {cause}")),
        Some(serde_json::Value::Number(version)) => {
            Err(format!("its output has version {version}, which isn't known"))
        }
        Some(_) => Err("its output has no version".to_owned()),
        None => Err("its output isn't a JSON document".to_owned()),
    }
}

async fn container(url: &str, token: Option<&ContainerToken>, lanes: &Lanes) -> Result<ExpiringKey, String> {
    let mut ask = Ask::get(url)?.header("accept", "application/json")?;
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
