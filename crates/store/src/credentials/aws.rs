//! AWS's chain: variables, profile, SSO, credential process, web identity, container, instance.

use std::sync::Arc;
use std::time::SystemTime;

use laneway_lanes::Lanes;
use reqsign_aws_v4::{
    AssumeRoleWithWebIdentityCredentialProvider, Credential, ECSCredentialProvider, EnvCredentialProvider,
    IMDSv2CredentialProvider, ProcessCredentialProvider, ProfileCredentialProvider, SSOCredentialProvider,
    StaticCredentialProvider,
};
use reqsign_core::Context;

use super::cache::Cache;
use super::context::context;
use super::sigv4;
use super::source::{Source, first};
use crate::{AccessKey, Error, ErrorKind, Operation};

/// Signs requests with SigV4.
#[derive(Debug)]
pub(crate) struct Aws(Option<Chain>);

#[derive(Debug)]
struct Chain {
    context: Context,
    sources: Vec<Source<Credential>>,
    cache: Cache<Credential>,
}

impl Aws {
    /// No credentials: requests stay unsigned.
    pub(crate) fn anonymous() -> Self {
        Self(None)
    }

    /// The default chain, or only what a profile says when one was asked for by name. Nothing is read before the
    /// first request.
    pub(crate) fn chain(profile: Option<&str>, lanes: &Lanes) -> Self {
        Self(Some(Chain { context: context(lanes), sources: sources(profile), cache: Cache::new() }))
    }

    /// Keys that the caller has.
    pub(crate) fn keys(key: &AccessKey, lanes: &Lanes) -> Self {
        let mut provider = StaticCredentialProvider::new(&key.id, &key.secret);
        if let Some(token) = &key.session_token {
            provider = provider.with_session_token(token);
        }
        let sources = vec![Source::binding("the given access key", provider)];
        Self(Some(Chain { context: context(lanes), sources, cache: Cache::new() }))
    }

    /// Signs a request for a service in `region`, where it is `now`; an anonymous one is left as it is.
    ///
    /// # Errors
    /// `Unauthenticated` where the chain has nothing, `Invalid` for headers that can't be signed.
    pub(crate) async fn sign(
        &self,
        service: &str,
        region: &str,
        now: SystemTime,
        request: &mut http::request::Parts,
    ) -> Result<(), Error> {
        let Some(chain) = &self.0 else { return Ok(()) };
        let credential: Arc<Credential> =
            chain.cache.obtain(|| first(&chain.sources, &chain.context)).await?;
        sigv4::sign(request, &credential, (region, service), now).map_err(|e| {
            Error::new(ErrorKind::Invalid, Operation::Open, format!("the request can't be signed: {e}"))
        })
    }

    /// Gives up credentials that the store refused; whether others can be had.
    pub(crate) fn forget(&self) -> bool {
        self.0.as_ref().is_some_and(|chain| chain.cache.forget())
    }
}

fn sources(profile: Option<&str>) -> Vec<Source<Credential>> {
    if let Some(name) = profile {
        return vec![
            Source::binding("profile", ProfileCredentialProvider::new().with_profile(name)),
            Source::binding("SSO of the profile", SSOCredentialProvider::new().with_profile(name)),
            Source::binding(
                "credential_process of the profile",
                ProcessCredentialProvider::new().with_profile(name),
            ),
        ];
    }
    let mut sources = vec![
        Source::optional("AWS_ACCESS_KEY_ID", EnvCredentialProvider::new()),
        Source::optional("AWS profile", ProfileCredentialProvider::new()),
        Source::binding("SSO", SSOCredentialProvider::new()),
        Source::binding("web identity", AssumeRoleWithWebIdentityCredentialProvider::new()),
        Source::binding("credential_process", ProcessCredentialProvider::new()),
        Source::optional("container", ECSCredentialProvider::new()),
    ];
    let off =
        std::env::var("AWS_EC2_METADATA_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    if !off {
        sources.push(Source::optional("instance metadata", IMDSv2CredentialProvider::new()));
    }
    sources
}
