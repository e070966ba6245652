//! A client's settings, as `dev.laneway.Laneway.Builder` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use laneway::{AccessKey, Client, ClientBuilder, CustomerKey, SseAlgorithm};

use crate::failure::Failure;
use crate::packed::Unpacked;
use crate::provider::Asked;

/// What variables are named by.
const VARIABLE: &str = "variable:";
const HEADER: &str = "header:";

/// A client of these settings.
///
/// # Errors
/// For a setting that can't be read, which isn't repeated; as `ClientBuilder::build`.
pub(crate) fn client(from: &mut Unpacked<'_>, provider: Option<Asked>) -> Result<Client, Failure> {
    let settings = from.texts()?;
    let mut builder = if settings.contains_key("environment") {
        ClientBuilder::from_env()
    } else if settings.contains_key("variables") {
        let variable = |(name, value): (&&str, &&str)| {
            name.strip_prefix(VARIABLE).map(|name| (name.to_owned(), (*value).to_owned()))
        };
        ClientBuilder::from_variables(settings.iter().filter_map(variable).collect::<BTreeMap<_, _>>())
    } else {
        Client::builder()
    };
    for (&name, &value) in &settings {
        builder = set(builder, name, value)?;
    }
    builder = match (settings.get("access_key_id"), settings.get("secret_access_key")) {
        (Some(id), Some(secret)) => {
            let key = AccessKey::new(*id, *secret);
            builder.access_key(match settings.get("session_token") {
                Some(token) => key.session_token(*token),
                None => key,
            })
        }
        (None, None) if !settings.contains_key("session_token") => builder,
        _ => {
            return Err(Failure::usage(
                "an access key has an id and a secret, and a session token only with these",
            ));
        }
    };
    if let Some(provider) = provider {
        builder = builder.credential_provider(Arc::new(provider));
    }
    Ok(builder.build()?)
}

fn set(builder: ClientBuilder, name: &str, value: &str) -> Result<ClientBuilder, Failure> {
    let unreadable = || Failure::usage(format!("{name}: it can't be read"));
    let is = || value.parse::<bool>().map_err(|_| unreadable());
    let count = || value.parse::<usize>().map_err(|_| unreadable());
    let time = || value.parse().map(Duration::from_millis).map_err(|_| unreadable());
    Ok(match name {
        "environment" | "variables" | "access_key_id" | "secret_access_key" | "session_token" => builder,
        "anonymous" => builder.anonymous(is()?),
        "bandwidth_limit" => builder.bandwidth_limit(value.parse().map_err(|_| unreadable())?),
        "ca_file" => builder.ca_file(value),
        "connections_max" => builder.connections_max(count()?),
        "customer_key" => {
            builder.customer_key(CustomerKey::parse(value.as_bytes()).map_err(|_| unreadable())?)
        }
        "gcs_endpoint" => builder.gcs_endpoint(value),
        "http_proxy" => builder.http_proxy(value),
        "https_proxy" => builder.https_proxy(value),
        "kms_key" => builder.kms_key(value),
        "memory" => builder.memory(count()?),
        "profile" => builder.profile(value),
        "region" => builder.region(value),
        "request_payer" => builder.request_payer(is()?),
        "retry_for_ms" => builder.retry_for(time()?),
        "s3_endpoint" => builder.s3_endpoint(value),
        "s3_fips" => builder.s3_fips(is()?),
        "s3_path_style" => builder.s3_path_style(is()?),
        "service_account_file" => {
            let read = fs::read_to_string(value);
            builder.service_account_key(read.map_err(|e| Failure::usage(format!("{name}: {value}: {e}")))?)
        }
        "service_account_key" => builder.service_account_key(value),
        "sse" => builder.sse(SseAlgorithm::named(value).ok_or_else(unreadable)?),
        "stall_timeout_ms" => builder.stall_timeout(time()?),
        "user_agent_suffix" => builder.user_agent_suffix(value)?,
        "user_project" => builder.user_project(value),
        _ => match (name.strip_prefix(HEADER), name.strip_prefix(VARIABLE)) {
            (Some(header), _) => builder.header(header, value)?,
            (_, Some(_)) => builder,
            _ => return Err(Failure::of_another_version()),
        },
    })
}
