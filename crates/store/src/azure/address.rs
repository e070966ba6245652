//! The accounts and containers that requests go to.
//!
//! A bucket's name is a container's name, or `container@host` if a URL names the account. So one client can reach
//! several accounts.

use std::fmt;

use laneway_lanes::Origin;

use crate::credentials::AzureAccount;
use crate::credentials::azure_hosts::{DOMAINS, ONELAKE, account_of, is_below, is_known};
use crate::endpoint::Endpoint;
use crate::{Error, ErrorKind, Operation};

/// The length of a container's name, in characters
/// (<https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata>).
const CONTAINER_LEN: std::ops::RangeInclusive<usize> = 3..=63;

/// Containers whose names break the rules, because the service itself uses them.
const SPECIAL: [&str; 4] = ["$root", "$web", "$logs", "$blobchangefeed"];

/// The base URL of the requests for a container.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) endpoint: Endpoint,
    /// The account's name.
    pub(super) account: String,
    /// The container's name, empty for requests about the account.
    pub(super) container: &'a str,
}

/// The account that requests go to unless their bucket names another.
#[derive(Clone, Debug)]
pub(super) struct AccountAddress {
    endpoint: Option<Endpoint>,
    account: Option<String>,
}

impl AccountAddress {
    /// Returns the address of the account in the settings. Without an account, each URL must name one.
    ///
    /// # Errors
    /// `Invalid` if the endpoint isn't a URL.
    pub(super) fn new(account: &AzureAccount) -> Result<Self, Error> {
        let endpoint = match (&account.endpoint, &account.name) {
            (Some((url, by)), _) => {
                let parsed = Endpoint::check_with_scheme(url)
                    .and_then(|()| Endpoint::parse(url).map_err(|error| error.message().to_owned()));
                Some(parsed.map_err(|why| invalid(format!("{by}: {why}")))?)
            }
            (None, Some(name)) => Some(Endpoint::parse(&format!("https://{name}.{}", DOMAINS[0]))?),
            (None, None) => None,
        };
        let account = account.name.clone().or_else(|| account_of(endpoint.as_ref()?));
        Ok(Self { endpoint, account })
    }

    /// Returns the base URL for a bucket.
    ///
    /// # Errors
    /// `Invalid` if no account is known, or if the service can't have such a container.
    pub(super) fn place<'a>(&self, bucket: &'a str) -> Result<Place<'a>, Error> {
        let (container, host) = match bucket.split_once('@') {
            Some((container, host)) => (container, Some(host)),
            None => (bucket, None),
        };
        check_container(container)?;
        if let Some(host) = host {
            return match &self.endpoint {
                Some(own) if *own.origin.host == *host => {
                    let account = self.account.clone().unwrap_or_default();
                    Ok(Place { endpoint: own.clone(), account, container })
                }
                // Secrets go only to hosts of the service.
                _ if is_known(host) => {
                    let endpoint = Endpoint::parse(&format!("https://{host}"))?;
                    let account = host.split('.').next().unwrap_or(host).to_owned();
                    Ok(Place { endpoint, account, container })
                }
                _ => Err(invalid(format!("{host} isn't a host of Azure Blob Storage"))),
            };
        }
        let endpoint = self.endpoint.clone().ok_or_else(|| invalid(NO_ACCOUNT.to_owned()))?;
        Ok(Place { endpoint, account: self.account.clone().unwrap_or_default(), container })
    }

    /// Returns the origin of a bucket's requests, if it is known.
    pub(super) fn origin(&self, bucket: &str) -> Option<Origin> {
        Some(self.place(bucket).ok()?.endpoint.origin)
    }

    /// Returns true if requests for this bucket go to OneLake.
    pub(super) fn is_onelake(&self, bucket: &str) -> bool {
        self.origin(bucket).is_some_and(|origin| is_below(&origin.host, ONELAKE))
    }
}

impl fmt::Display for AccountAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => endpoint.fmt(f),
            None => write!(f, "https://{}", DOMAINS[0]),
        }
    }
}

const NO_ACCOUNT: &str = "no storage account is set: set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING, give \
                          --azure-endpoint, or name the account in the URL (az://container@account.blob.core.windows.net/)";

fn invalid(why: String) -> Error {
    Error::new(ErrorKind::Invalid, Operation::Open, why)
}

/// Checks a container's name, because the service answers a wrong name with a message that doesn't say what is wrong.
fn check_container(name: &str) -> Result<(), Error> {
    if name.is_empty() || SPECIAL.contains(&name) {
        return Ok(());
    }
    let is_usual = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_valid = CONTAINER_LEN.contains(&name.len())
        && name.bytes().all(is_usual)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    match is_valid {
        true => Ok(()),
        false => Err(invalid(format!(
            "{name:?} can't be a container: a name has 3 to 63 lower-case letters, digits and single hyphens"
        ))),
    }
}

/// Returns the bucket of a container in an account that a URL names by the host of its Blob or DFS service. The two
/// services have the same objects, so Laneway uses the Blob service for both. Returns `None` for any other host.
pub fn bucket_at(container: &str, host: &str) -> Option<String> {
    let host = host.to_ascii_lowercase();
    let host = match host.split_once(".dfs.") {
        Some((account, domain)) => format!("{account}.blob.{domain}"),
        None => host,
    };
    is_known(&host).then(|| format!("{container}@{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(endpoint: Option<&str>, name: Option<&str>) -> AccountAddress {
        let endpoint = endpoint.map(|url| (url.to_owned(), "--azure-endpoint"));
        let account = AzureAccount { endpoint, name: name.map(str::to_owned) };
        AccountAddress::new(&account).expect("an address")
    }

    #[test]
    fn an_account_has_a_host_of_its_own_at_azure() {
        let own = address(None, Some("mine"));
        let place = own.place("photos").expect("a place");
        assert_eq!(place.endpoint.to_string(), "https://mine.blob.core.windows.net");
        assert_eq!((place.account.as_str(), place.container), ("mine", "photos"));
    }

    #[test]
    fn an_emulator_has_the_account_in_its_path() {
        let own = address(Some("http://127.0.0.1:10000/devstoreaccount1"), None);
        let place = own.place("photos").expect("a place");
        assert_eq!(place.endpoint.base, "/devstoreaccount1");
        assert_eq!(place.account, "devstoreaccount1");
    }

    #[test]
    fn a_bucket_can_name_another_account() {
        let own = address(None, Some("mine"));
        let place = own.place("photos@theirs.blob.core.windows.net").expect("a place");
        assert_eq!(place.endpoint.to_string(), "https://theirs.blob.core.windows.net");
        assert_eq!((place.account.as_str(), place.container), ("theirs", "photos"));
    }

    #[test]
    fn a_url_with_the_configured_host_names_the_configured_account() {
        let own = address(Some("https://files.example.com"), Some("mine"));
        assert_eq!(own.place("photos@files.example.com").expect("a place").account, "mine");
    }

    #[test]
    fn a_container_that_cannot_exist_is_refused_by_name() {
        let own = address(None, Some("mine"));
        for name in ["ab", "Photos", "a_b", "-ab", "ab-", "a--b"] {
            let error = own.place(name).expect_err("refused");
            assert!(error.is_invalid() && error.message().contains(name), "{error}");
        }
        for name in ["abc", "a-1", "$root", ""] {
            assert!(own.place(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn without_an_account_the_error_says_how_to_name_one() {
        let error = address(None, None).place("photos").expect_err("no account");
        assert!(error.message().contains("AZURE_STORAGE_ACCOUNT"), "{error}");
    }

    #[test]
    fn a_dfs_host_becomes_the_blob_host_of_the_same_account() {
        let bucket = |host| bucket_at("photos", host);
        assert_eq!(bucket("mine.dfs.core.windows.net").as_deref(), Some("photos@mine.blob.core.windows.net"));
        assert_eq!(
            bucket("Mine.blob.core.windows.net").as_deref(),
            Some("photos@mine.blob.core.windows.net")
        );
        assert_eq!(bucket("example.com"), None);
        assert_eq!(bucket("blob.core.windows.net"), None);
    }
}
