//! The login of gcloud itself (`gcloud auth login`). Laneway asks gcloud for a token, and reads none of its files
//! (<https://cloud.google.com/sdk/gcloud/reference/auth/print-access-token>).

use std::time::{Duration, SystemTime};

use super::super::command;
use super::super::lacking::Lacking;
use super::adc::{gcloud_folder, is_absent};
use super::token::Token;
use crate::Environment;

const NAME: &str = "gcloud's own login";

/// The database of logins. It exists once somebody has logged in.
const LOGINS: &str = "credentials.db";

const COMMAND: &str = "gcloud auth print-access-token --quiet";

/// The variables that choose gcloud, its folder and its account.
const VARIABLES: [&str; 5] =
    ["PATH", "HOME", "CLOUDSDK_CONFIG", "CLOUDSDK_ACTIVE_CONFIG_NAME", "CLOUDSDK_CORE_ACCOUNT"];

/// Starting gcloud takes a second or two, and it may ask Google.
const LIMIT: Duration = Duration::from_secs(60);

/// gcloud prints a fresh token, which lasts for an hour, and doesn't print its end. A token that ends earlier is
/// replaced once the store refuses it.
const LIFETIME: Duration = Duration::from_secs(50 * 60);

/// Asks gcloud for a token.
///
/// # Errors
/// That there are no credentials if nobody has logged in with gcloud; otherwise the failure of gcloud.
pub(super) async fn token(environment: &Environment, mut tried: Vec<String>) -> Result<Token, Lacking> {
    let has_logins = gcloud_folder(environment).is_some_and(|folder| !is_absent(&folder.join(LOGINS)));
    if !has_logins {
        tried.push(NAME.to_owned());
        return Err(Lacking::Nothing(tried));
    }
    let variables = VARIABLES.into_iter().filter_map(|name| Some((name, environment.get(name)?)));
    let variables: Vec<_> = variables.collect();
    let printed = command::run(COMMAND, &variables, Some(LIMIT)).await;
    let printed = printed.map_err(|cause| Lacking::unusable(NAME, cause))?;
    let access_token = String::from_utf8_lossy(&printed).trim().to_owned();
    if access_token.is_empty() || access_token.contains(char::is_whitespace) {
        return Err(Lacking::unusable(NAME, "gcloud printed no token"));
    }
    Ok(Token { access_token, expires_at: Some(SystemTime::now() + LIFETIME) })
}
