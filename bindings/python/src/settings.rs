//! A client's settings by their names, which are those of the library's `ClientBuilder`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laneway::{
    AccessKey, BearerToken, Client, ClientBuilder, CredentialProvider, CustomerKey, ErrorKind, Provided,
    SseAlgorithm,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::provider::Asked;
use crate::{error, log};

/// A client of what the environment says and of these settings, which go before it.
///
/// # Errors
/// For a setting that there isn't, or that can't be read; as `ClientBuilder::build`.
pub(crate) fn client(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Client> {
    log::attend(py, true);
    let mut key = (None, None, None);
    let mut builder = match settings.get_item("variables")? {
        // The process's variables, of which the caller's configuration has replaced some.
        Some(variables) => ClientBuilder::from_variables(variables.extract::<BTreeMap<String, String>>()?),
        None => ClientBuilder::from_env(),
    };
    for (name, value) in settings {
        let name: String = name.extract()?;
        let text = || value.extract::<String>();
        let is = || value.extract::<bool>();
        let seconds = || {
            value
                .extract::<f64>()
                .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
        };
        let unreadable = |what: &str| error::own(py, ErrorKind::Usage, &format!("{name}: {what}"));
        let library = |error: laneway::Error| error::raised(py, &error);
        builder = match name.as_str() {
            "variables" => builder,
            "access_key_id" => {
                key.0 = Some(text()?);
                builder
            }
            "secret_access_key" => {
                key.1 = Some(text()?);
                builder
            }
            "session_token" => {
                key.2 = Some(text()?);
                builder
            }
            "anonymous" => builder.anonymous(is()?),
            "bearer_token" => builder.credential_provider(Arc::new(Token(BearerToken::new(text()?)))),
            "bandwidth_limit" => builder.bandwidth_limit(value.extract()?),
            "ca_file" => builder.ca_file(text()?),
            "connections_max" => builder.connections_max(value.extract()?),
            "credential_provider" => builder.credential_provider(Arc::new(Asked::new(value.clone()))),
            "customer_key" => {
                let key =
                    CustomerKey::parse(text()?.as_bytes()).map_err(|error| unreadable(&error.to_string()))?;
                builder.customer_key(key)
            }
            "gcs_endpoint" => builder.gcs_endpoint(text()?),
            "headers" => {
                let headers: BTreeMap<String, String> = value.extract()?;
                headers
                    .iter()
                    .try_fold(builder, |builder, (name, value)| builder.header(name, value))
                    .map_err(library)?
            }
            "http_proxy" => builder.http_proxy(text()?),
            "https_proxy" => builder.https_proxy(text()?),
            "kms_bucket_key" => builder.kms_bucket_key(is()?),
            "kms_key" => builder.kms_key(text()?),
            "memory" => builder.memory(value.extract()?),
            "no_proxy" => builder.no_proxy(value.extract::<Vec<String>>()?),
            "profile" => builder.profile(text()?),
            "project" => builder.project(text()?),
            "region" => builder.region(text()?),
            "request_payer" => builder.request_payer(is()?),
            "retry_for" => builder.retry_for(seconds()?),
            "s3_accelerate" => builder.s3_accelerate(is()?),
            "s3_dualstack" => builder.s3_dualstack(is()?),
            "s3_endpoint" => builder.s3_endpoint(text()?),
            "s3_fips" => builder.s3_fips(is()?),
            "s3_path_style" => builder.s3_path_style(is()?),
            "sse" => {
                let none = || unreadable("there is no such algorithm: AES256, aws:kms or aws:kms:dsse");
                builder.sse(SseAlgorithm::named(&text()?).ok_or_else(none)?)
            }
            "service_account_key" => builder.service_account_key(text()?),
            "stall_timeout" => builder.stall_timeout(seconds()?),
            "user_agent_suffix" => builder.user_agent_suffix(&text()?).map_err(library)?,
            "user_project" => builder.user_project(text()?),
            _ => return Err(unreadable("there is no such setting")),
        };
    }
    builder = match key {
        (Some(id), Some(secret), token) => {
            let key = AccessKey::new(id, secret);
            builder.access_key(match token {
                Some(token) => key.session_token(token),
                None => key,
            })
        }
        (None, None, None) => builder,
        _ => {
            let message = "access_key_id and secret_access_key belong together";
            return Err(error::own(py, ErrorKind::Usage, message));
        }
    };
    py.detach(|| builder.build()).map_err(|error| error::raised(py, &error))
}

/// A token that somebody else has got, for as long as it lasts.
struct Token(BearerToken);

impl CredentialProvider for Token {
    fn name(&self) -> &str {
        "bearer_token"
    }

    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        let token = self.0.clone();
        Box::pin(async { Ok(token) })
    }
}
