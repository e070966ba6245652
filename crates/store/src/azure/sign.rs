//! `sign`: makes URLs with a shared access signature (SAS) for one blob
//! (<https://learn.microsoft.com/rest/api/storageservices/create-service-sas>).

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Method as HttpMethod;
use laneway_lanes::Body;
use serde::Deserialize;

use super::headers::blob_target;
use super::{Azure, VERSION};
use crate::credentials::{SasSigner, sas_signature};
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::timestamp::to_rfc3339;
use crate::{Error, ErrorKind, Method, ObjectId, Operation, SignOptions, SignedUrl, xml};

/// The query parameters with which a SAS overrides headers of the answer, in the order in which they are signed.
const OVERRIDES: [&str; 5] = ["rscc", "rscd", "rsce", "rscl", "rsct"];

/// The difference between the clocks of Laneway and the service that a signature tolerates. Microsoft's documentation of
/// SAS tokens recommends 15 minutes.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// The longest life of a user delegation key, from its start
/// (<https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key>).
const DELEGATION_LASTS_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The rights that a SAS grants on one blob.
pub(super) struct SasGrant<'a> {
    pub(super) permissions: &'a str,
    pub(super) container: &'a str,
    pub(super) key: &'a str,
    pub(super) ends: SystemTime,
    /// Names and values of [`OVERRIDES`].
    pub(super) overrides: &'a [(String, String)],
}

/// A key that the service issued for SAS tokens of a user of Microsoft Entra ID.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UserDelegationKey {
    signed_oid: String,
    signed_tid: String,
    signed_start: String,
    signed_expiry: String,
    signed_service: String,
    signed_version: String,
    value: String,
}

impl SasGrant<'_> {
    /// Returns the query of a SAS that the account's key signs.
    pub(super) fn signed_by_key(&self, account: &str, key: &[u8]) -> String {
        let mut fields = vec![self.permissions.to_owned(), String::new(), to_rfc3339(self.ends)];
        // The policy of the container, which the SAS doesn't use.
        fields.extend([self.resource(account), String::new()]);
        fields.extend(self.end_of_text());
        self.query(&[], &sas_signature(key, &fields.join("\n")))
    }

    /// Returns the query of a SAS that a user delegation key signs.
    fn signed_by_user(&self, account: &str, user: &UserDelegationKey) -> Result<String, String> {
        use base64::Engine as _;
        let key = base64::engine::general_purpose::STANDARD.decode(&user.value);
        let key = key.map_err(|_| "the user delegation key isn't base64".to_owned())?;
        let own = [
            ("skoid", &user.signed_oid),
            ("sktid", &user.signed_tid),
            ("skt", &user.signed_start),
            ("ske", &user.signed_expiry),
            ("sks", &user.signed_service),
            ("skv", &user.signed_version),
        ];
        let mut fields = vec![self.permissions.to_owned(), String::new(), to_rfc3339(self.ends)];
        fields.push(self.resource(account));
        fields.extend(own.iter().map(|(_, value)| value.to_string()));
        // The ids of users to whom the SAS is bound, and of a correlation.
        fields.extend([const { String::new() }; 3]);
        fields.extend(self.end_of_text());
        Ok(self.query(&own, &sas_signature(&key, &fields.join("\n"))))
    }

    fn resource(&self, account: &str) -> String {
        format!("/blob/{account}/{}/{}", self.container, self.key)
    }

    /// Returns the last fields of the text to sign: address, protocol, version, kind of resource, snapshot, encryption
    /// scope and overrides.
    fn end_of_text(&self) -> Vec<String> {
        let mut fields = vec![String::new(), String::new(), VERSION.to_owned(), "b".to_owned()];
        fields.extend([String::new(), String::new()]);
        let value = |name: &str| self.overrides.iter().find(|(own, _)| own == name);
        fields.extend(OVERRIDES.map(|name| value(name).map(|(_, value)| value.clone()).unwrap_or_default()));
        fields
    }

    fn query(&self, own: &[(&str, &String)], signature: &str) -> String {
        let mut query = QueryString::new()
            .and("sv", VERSION)
            .and("sr", "b")
            .and("sp", self.permissions)
            .and("se", &to_rfc3339(self.ends));
        for (name, value) in own {
            query = query.and(name, value);
        }
        for (name, value) in self.overrides {
            query = query.and(name, value);
        }
        query.and("sig", signature).to_string().trim_start_matches('?').to_owned()
    }
}

/// Returns the start of a user delegation key: a little before `now`, but not so early that the key would be valid for
/// longer than the service permits.
fn delegation_start(now: SystemTime, ends: SystemTime) -> SystemTime {
    (now - CLOCK_SKEW_MAX).max(ends - DELEGATION_LASTS_MAX).min(now)
}

/// Returns the permissions that a method needs.
fn permissions(method: Method) -> Result<&'static str, String> {
    match method {
        Method::Get | Method::Head => Ok("r"),
        Method::Put => Ok("cw"),
        Method::Delete => Ok("d"),
        Method::Post => Err("a signed URL of Azure permits GET, HEAD, PUT or DELETE".to_owned()),
    }
}

/// Returns the caller's query, with the names that Azure uses for overrides of the answer's headers.
fn overrides(options: &SignOptions) -> Result<Vec<(String, String)>, String> {
    let renamed = |name: &str| match name {
        "response-cache-control" => "rscc".to_owned(),
        "response-content-disposition" => "rscd".to_owned(),
        "response-content-encoding" => "rsce".to_owned(),
        "response-content-language" => "rscl".to_owned(),
        "response-content-type" => "rsct".to_owned(),
        name => name.to_owned(),
    };
    let pairs: Vec<_> = options.query.iter().map(|(name, value)| (renamed(name), value.clone())).collect();
    match pairs.iter().find(|(name, _)| !OVERRIDES.contains(&name.as_str())) {
        Some((name, _)) => Err(format!("a signed URL of Azure can't have the query parameter {name}")),
        None => Ok(pairs),
    }
}

impl Azure {
    /// Returns a URL of an object, signed at `now`. The account's key signs a service SAS. With a token, Laneway requests a
    /// user delegation key, which signs the SAS.
    pub(super) async fn sign_url(
        &self,
        id: &ObjectId,
        options: &SignOptions,
        now: SystemTime,
    ) -> Result<SignedUrl, Error> {
        let exchange = Exchange::object(self, Operation::Sign, id);
        let invalid = |why: String| exchange.error(ErrorKind::Invalid, why);
        let expires_s = options.expires_s().map_err(invalid)?;
        if !options.headers.is_empty() {
            return Err(exchange.error(ErrorKind::Unsupported, "a signed URL of Azure can't bind headers"));
        }
        if id.version.is_some() {
            let message = "Laneway can't sign URLs of versions on Azure yet";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        let place = self.address.place(&id.bucket).map_err(|e| e.on_object(crate::Provider::Azure, id))?;
        let overrides = overrides(options).map_err(invalid)?;
        let grant = SasGrant {
            permissions: permissions(options.method).map_err(invalid)?,
            container: place.container,
            key: &id.key,
            ends: now + Duration::from_secs(expires_s),
            overrides: &overrides,
        };
        let query = match self.credentials.sas_signer() {
            SasSigner::Key(key) => grant.signed_by_key(&place.account, key),
            SasSigner::Token => {
                let key = self.delegation_key(&exchange, now, grant.ends).await?;
                grant.signed_by_user(&place.account, &key).map_err(invalid)?
            }
            SasSigner::Sas(_) => {
                let message = "a SAS token can't sign URLs: use the account's key or a login";
                return Err(exchange.error(ErrorKind::Unauthenticated, message));
            }
            SasSigner::Anonymous => {
                return Err(exchange.error(ErrorKind::Unauthenticated, "an anonymous client can't sign URLs"));
            }
        };
        let url = format!("{}{}?{query}", place.endpoint, blob_target(id, QueryString::new()));
        let mut signed = SignedUrl::new(url, grant.ends);
        if options.method == Method::Put {
            signed.headers.push(("x-ms-blob-type".to_owned(), "BlockBlob".to_owned()));
        }
        Ok(signed)
    }

    /// Requests a key for user delegation SAS tokens. It begins before `now`, because the service's clock may be behind.
    async fn delegation_key(
        &self,
        exchange: &Exchange<'_, Self>,
        now: SystemTime,
        ends: SystemTime,
    ) -> Result<UserDelegationKey, Error> {
        let query = QueryString::new().and("restype", "service").and("comp", "userdelegationkey");
        let document = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo><Start>{}</Start><Expiry>{}</Expiry></KeyInfo>",
            to_rfc3339(delegation_start(now, ends)),
            to_rfc3339(ends)
        );
        let outgoing = Outgoing::new(HttpMethod::POST, format!("/{query}"))
            .header("content-type", "application/xml")
            .map_err(|e| exchange.unsendable(&e))?;
        let outgoing = Outgoing { body: Body::from(Bytes::from(document)), ..outgoing };
        let sent = exchange.send(&outgoing).await?;
        xml::answer(&sent.response.body, &["UserDelegationKey"])
            .map_err(|_| exchange.nonsense(&sent, "the answer isn't a user delegation key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(overrides: &[(String, String)]) -> SasGrant<'_> {
        let ends = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        SasGrant { permissions: "r", container: "abc", key: "a b", ends, overrides }
    }

    #[test]
    fn a_service_sas_names_version_right_end_and_signature() {
        let query = grant(&[]).signed_by_key("mine", b"key");
        assert!(query.starts_with("sv=2021-12-02&sr=b&sp=r&se=2027-01-15T08%3A00%3A00Z&sig="), "{query}");
    }

    #[test]
    fn a_delegation_key_starts_early_but_lasts_at_most_a_week() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let start = |lasts| now.duration_since(delegation_start(now, now + lasts)).expect("not later");
        assert_eq!(start(Duration::from_secs(3600)), CLOCK_SKEW_MAX);
        assert_eq!(start(DELEGATION_LASTS_MAX), Duration::ZERO);
        assert_eq!(start(DELEGATION_LASTS_MAX - Duration::from_secs(60)), Duration::from_secs(60));
    }

    #[test]
    fn an_override_is_a_part_of_the_signature() {
        let shown = [("rscd".to_owned(), "attachment".to_owned())];
        let (plain, shown) =
            (grant(&[]).signed_by_key("mine", b"key"), grant(&shown).signed_by_key("mine", b"key"));
        let signature = |query: &str| query.split("sig=").nth(1).map(str::to_owned);
        assert_ne!(signature(&plain), signature(&shown));
        assert!(shown.contains("rscd=attachment"), "{shown}");
    }

    #[test]
    fn parameters_that_a_sas_cannot_bind_are_refused() {
        let with = |name: &str| SignOptions {
            query: vec![(name.to_owned(), "x".to_owned())],
            ..SignOptions::default()
        };
        assert!(overrides(&with("response-content-type")).is_ok_and(|pairs| pairs[0].0 == "rsct"));
        assert!(overrides(&with("generation")).is_err_and(|why| why.contains("generation")));
        assert!(permissions(Method::Post).is_err());
    }
}
