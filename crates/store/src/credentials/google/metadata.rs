//! The machine's own service account, from Google's metadata server or an agent that replaces it
//! (<https://cloud.google.com/compute/docs/access/authenticate-workloads#curl>).

use laneway_lanes::Lanes;

use super::super::failure::CredentialFailure;
use super::super::presence::{Cloud, first_answer, is_there};
use super::super::request::CredentialRequest;
use super::adc::{GOOGLE, MachineAccount};
use super::token::{Token, granted};

/// Fetches a token. If no setting names the server, Laneway treats a server that is unreachable or has no account as
/// absent. Any other failure is an error.
///
/// # Errors
/// Returns the reason why there is none.
pub(super) async fn token(
    name: &str,
    machine: &MachineAccount,
    universe: &str,
    lanes: &Lanes,
) -> Result<Token, CredentialFailure> {
    let unusable = |cause: String| CredentialFailure::unusable(name, cause);
    let nothing = |cause: &str| {
        if machine.is_asked_for {
            return CredentialFailure::unusable(format!("GCE_METADATA_HOST ({})", machine.host), cause);
        }
        let last = format!("{name} ({cause})");
        CredentialFailure::Nothing(machine.tried.iter().cloned().chain([last]).collect())
    };
    let ask = ask(machine, "instance/service-accounts/default/token").map_err(unusable)?;
    let (host, port) = ask.host();
    let answer = if machine.is_asked_for {
        ask.send(lanes).await
    } else if is_there(host, port, Cloud::Google).await {
        first_answer(&ask, lanes).await.ok_or_else(|| nothing("nothing answers in time"))?
    } else {
        return Err(nothing("nothing answers"));
    };
    let answer = answer.map_err(unusable)?;
    // On another cloud, a different server may answer at this address. Google's server sends this header.
    if !machine.is_asked_for && !answer.headers.contains_key("metadata-flavor") {
        return Err(nothing("the server that answers isn't Google's"));
    }
    if answer.status.as_u16() == 404 {
        return Err(nothing("the machine has no service account"));
    }
    let token = granted(&ask, &answer).map_err(unusable)?;
    // The machine's cloud is checked only if the settings name a cloud other than Google's own.
    if universe != GOOGLE {
        let ask = self::ask(machine, "universe/universe-domain").map_err(unusable)?;
        let answer = ask.send(lanes).await.map_err(unusable)?;
        let own = if answer.status.is_success() { answer.text() } else { String::new() };
        let own = if own.is_empty() { GOOGLE } else { &own };
        if own != universe {
            return Err(unusable(format!(
                "it belongs to {own}, but GOOGLE_CLOUD_UNIVERSE_DOMAIN is {universe}"
            )));
        }
    }
    Ok(token)
}

/// Returns the email address of the machine's service account.
///
/// # Errors
/// Returns the reason why it isn't known.
pub(super) async fn email(machine: &MachineAccount, lanes: &Lanes) -> Result<String, String> {
    let ask = ask(machine, "instance/service-accounts/default/email")?;
    let answer = ask.send(lanes).await?;
    match answer.status.is_success() {
        true => Ok(answer.text()),
        false => Err(format!("{} answered {}", ask.place(), answer.status.as_u16())),
    }
}

fn ask(machine: &MachineAccount, path: &str) -> Result<CredentialRequest, String> {
    CredentialRequest::get(&format!("http://{}/computeMetadata/v1/{path}", machine.host))?
        .header("metadata-flavor", "Google")
}
