//! Azure's credentials: an account's key, a shared access signature (SAS), or a token of Microsoft Entra ID.

mod connection;
mod entra;
pub(crate) mod hosts;
pub(crate) mod shared_key;

use std::sync::Arc;
use std::time::SystemTime;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use laneway_lanes::{Lanes, Origin};

pub(crate) use self::connection::AzureAccount;
use self::connection::{StaticSecret, configured};
use self::entra::EntraChain;
use self::shared_key::RequestToSign;
use super::cache::{Cache, IdentifiedCredential};
use crate::endpoint::is_private;
use crate::secrets::LEFT_OUT;
use crate::unless::http_date;
use crate::{Error, ErrorKind, Operation, Settings};

/// Authorizes requests.
#[derive(Debug)]
pub(crate) struct AzureCredentials(AzureIdentity);

#[derive(Debug)]
enum AzureIdentity {
    Anonymous,
    Static(StaticSecret),
    Entra(Arc<Cache<EntraChain>>),
}

/// A key that can sign SAS tokens, or the reason why there is none.
pub(crate) enum SasSigner<'a> {
    Key(&'a [u8]),
    /// Requests carry this SAS themselves. No other can be made from it.
    Sas(&'a str),
    /// A user delegation key must be requested with the token.
    Token,
    Anonymous,
}

impl AzureCredentials {
    /// Returns the account and the credentials that these settings choose. Laneway requests no token before a request
    /// needs it.
    ///
    /// # Errors
    /// `Unauthenticated` if a variable is set but can't be used.
    pub(crate) fn new(settings: &Settings, lanes: &Lanes) -> Result<(AzureAccount, Self), Error> {
        let found = configured(settings, SystemTime::now());
        let (account, secret) = found.map_err(|failure| failure.into_error())?;
        let identity = match (secret, &settings.credential_provider) {
            _ if settings.anonymous => AzureIdentity::Anonymous,
            (Some(secret), None) => AzureIdentity::Static(secret),
            (_, provider) => AzureIdentity::Entra(Cache::new(EntraChain {
                provider: provider.clone(),
                environment: settings.environment.clone(),
                lanes: lanes.clone(),
            })),
        };
        Ok((account, Self(identity)))
    }

    /// Adds the authorization to a request for an account, and returns the target to send and the credential's number.
    ///
    /// # Errors
    /// `Unauthenticated` if there are no credentials for the account; `Invalid` if a secret would be sent unencrypted.
    pub(crate) async fn authorize(
        &self,
        account: &str,
        origin: &Origin,
        request: &RequestToSign<'_>,
        headers: &mut HeaderMap,
    ) -> Result<(String, u64), Error> {
        let target = request.target.to_owned();
        match &self.0 {
            AzureIdentity::Anonymous => Ok((target, 0)),
            AzureIdentity::Static(StaticSecret::Key { key, .. }) => {
                self.check_account(account)?;
                headers.insert(AUTHORIZATION, shared_key(account, key, request)?);
                Ok((target, 0))
            }
            AzureIdentity::Static(StaticSecret::Sas { query, .. }) => {
                self.check_account(account)?;
                check_private(origin, "a SAS token")?;
                let separator = if target.contains('?') { '&' } else { '?' };
                Ok((format!("{target}{separator}{query}"), 0))
            }
            AzureIdentity::Entra(found) => {
                check_private(origin, "an access token")?;
                let IdentifiedCredential { credential, number } = found.obtain().await?;
                headers.insert(AUTHORIZATION, credential.authorization.clone());
                Ok((target, number))
            }
        }
    }

    /// Checks that the key or SAS token belongs to an account, as far as that is known.
    ///
    /// # Errors
    /// `Unauthenticated` if it belongs to another account.
    pub(crate) fn check_account(&self, account: &str) -> Result<(), Error> {
        let AzureIdentity::Static(secret) = &self.0 else { return Ok(()) };
        let (name, own) = match secret {
            StaticSecret::Key { account, .. } => ("account key", account),
            StaticSecret::Sas { account, .. } => ("SAS token", account),
        };
        match own.as_deref().filter(|own| *own != account) {
            None => Ok(()),
            Some(own) => {
                let message = format!("the {name} belongs to {own}, but the URL names the account {account}");
                Err(Error::new(ErrorKind::Unauthenticated, Operation::Open, message))
            }
        }
    }

    /// Authorizes a request again that has waited. A SAS stays as it is. Returns the credential's number, or `None` if
    /// the request keeps its old authorization.
    pub(crate) fn authorize_again(
        &self,
        account: &str,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
        len: u64,
    ) -> Option<u64> {
        match &self.0 {
            AzureIdentity::Static(StaticSecret::Key { key, .. }) => {
                stamp(headers);
                headers.remove(AUTHORIZATION);
                let value = shared_key(account, key, &RequestToSign { method, target, headers, len }).ok()?;
                headers.insert(AUTHORIZATION, value);
                Some(0)
            }
            AzureIdentity::Entra(found) => {
                let IdentifiedCredential { credential, number } = found.held()?;
                headers.insert(AUTHORIZATION, credential.authorization.clone());
                Some(number)
            }
            _ => None,
        }
    }

    /// Returns the source of signatures for SAS tokens.
    pub(crate) fn sas_signer(&self) -> SasSigner<'_> {
        match &self.0 {
            AzureIdentity::Anonymous => SasSigner::Anonymous,
            AzureIdentity::Static(StaticSecret::Key { key, .. }) => SasSigner::Key(key),
            AzureIdentity::Static(StaticSecret::Sas { query, .. }) => SasSigner::Sas(query),
            AzureIdentity::Entra(_) => SasSigner::Token,
        }
    }

    /// Returns true if requests carry a SAS token of the account, and not of one container or blob.
    pub(crate) fn has_account_sas(&self) -> bool {
        let AzureIdentity::Static(StaticSecret::Sas { query, .. }) = &self.0 else { return false };
        query.split('&').any(|pair| pair.starts_with("srt="))
    }

    /// Returns the value of `Authorization` with the current token, for a request that reads the source of a copy.
    ///
    /// # Errors
    /// `Unauthenticated` if there is none.
    pub(crate) async fn bearer(&self) -> Result<Option<HeaderValue>, Error> {
        match &self.0 {
            AzureIdentity::Entra(found) => Ok(Some(found.obtain().await?.credential.authorization.clone())),
            _ => Ok(None),
        }
    }

    /// Discards the token of this number, because the service refused it. Returns true if the request can be repeated
    /// with a newer token.
    pub(crate) fn replaces(&self, number: u64) -> bool {
        matches!(&self.0, AzureIdentity::Entra(found) if found.replaces(number))
    }

    /// Returns a server's message, unless it repeats the SAS token's signature.
    pub(crate) fn cleared(&self, message: String) -> String {
        let AzureIdentity::Static(StaticSecret::Sas { query, .. }) = &self.0 else { return message };
        let signature = query.split('&').find_map(|pair| pair.strip_prefix("sig=")).unwrap_or_default();
        let plain = |text: &str| {
            let text = percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
            text.chars().filter(char::is_ascii_alphanumeric).collect::<String>()
        };
        let signature = plain(signature);
        let beginning = signature.get(..8).unwrap_or(&signature);
        match !beginning.is_empty() && plain(&message).contains(beginning) {
            true => LEFT_OUT.to_owned(),
            false => message,
        }
    }
}

/// Sets the time of a request, which each signature covers.
pub(crate) fn stamp(headers: &mut HeaderMap) {
    // The text of a date is always a valid header value.
    if let Ok(date) = HeaderValue::try_from(http_date(SystemTime::now())) {
        headers.insert("x-ms-date", date);
    }
}

fn shared_key(account: &str, key: &[u8], request: &RequestToSign<'_>) -> Result<HeaderValue, Error> {
    let value = shared_key::authorization(account, key, request);
    HeaderValue::try_from(value).map_err(|_| {
        let message = format!("{account:?} can't be an account's name");
        Error::new(ErrorKind::Invalid, Operation::Open, message)
    })
}

/// Checks that a secret isn't sent over a network unencrypted.
fn check_private(origin: &Origin, secret: &str) -> Result<(), Error> {
    match is_private(origin) {
        true => Ok(()),
        false => {
            let message = format!("{secret} would go to {origin} unencrypted: use https://");
            Err(Error::new(ErrorKind::Invalid, Operation::Open, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_repeats_the_sas_is_left_out() {
        let query = "sv=2021&sig=hunter2hunter2%2Bx".to_owned();
        let credentials = AzureCredentials(AzureIdentity::Static(StaticSecret::Sas { account: None, query }));
        let cleared = |text: &str| credentials.cleared(text.to_owned());
        assert_eq!(cleared("sig=hunter2hunter2+x is wrong"), LEFT_OUT);
        assert_eq!(cleared("sig=hunter2hunter2%2Bx is wrong"), LEFT_OUT);
        assert_eq!(cleared("the token has expired"), "the token has expired");
    }

    #[test]
    fn a_sas_is_sent_only_to_its_own_account() {
        let secret = StaticSecret::Sas { account: Some("mine".to_owned()), query: "sig=a".to_owned() };
        let credentials = AzureCredentials(AzureIdentity::Static(secret));
        assert!(credentials.check_account("mine").is_ok());
        let error = credentials.check_account("theirs").expect_err("another account");
        assert!(error.is_unauthenticated() && error.message().contains("theirs"), "{error}");
    }

    #[test]
    fn a_sas_is_never_sent_unencrypted_over_a_network() {
        let origin = |url: &str| Origin::parse(url).expect("an origin");
        assert!(check_private(&origin("http://example.com"), "a SAS token").is_err_and(|e| e.is_invalid()));
        assert!(check_private(&origin("https://example.com"), "a SAS token").is_ok());
        assert!(check_private(&origin("http://127.0.0.1:10000"), "a SAS token").is_ok());
    }
}
