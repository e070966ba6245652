//! The hosts of Azure's Blob service, and the accounts that they name.

use crate::endpoint::Endpoint;

/// The domains of the Blob service, below which each account has a host. The first one is Azure's public cloud, and the
/// others are its national clouds (<https://learn.microsoft.com/azure/storage/common/storage-account-overview>).
pub(crate) const DOMAINS: [&str; 4] = [
    "blob.core.windows.net",
    "blob.core.usgovcloudapi.net",
    "blob.core.chinacloudapi.cn",
    "blob.storage.azure.net",
];

/// The domain of OneLake, which speaks a part of the Blob service's protocol.
pub(crate) const ONELAKE: &str = "blob.fabric.microsoft.com";

pub(crate) fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|account| account.ends_with('.'))
}

pub(crate) fn is_known(host: &str) -> bool {
    DOMAINS.iter().chain([&ONELAKE]).any(|domain| is_below(host, domain))
}

/// Returns the account of an endpoint: the host's first label at Azure, or the path of an emulator.
pub(crate) fn account_of(endpoint: &Endpoint) -> Option<String> {
    let path = endpoint.base.trim_start_matches('/');
    let name = if path.is_empty() { endpoint.origin.host.split('.').next()? } else { path };
    Some(name.to_owned())
}

/// Returns the account of an endpoint's URL, if it is known.
pub(super) fn account_at(url: &str) -> Option<String> {
    account_of(&Endpoint::parse(url).ok()?)
}

/// Returns the account of an endpoint's URL if its host is one of the service, whose first label always names the account.
/// The host of the account's copy in another region has a suffix.
pub(super) fn certain_account_at(url: &str) -> Option<String> {
    let endpoint = Endpoint::parse(url).ok().filter(|endpoint| is_known(&endpoint.origin.host))?;
    let account = account_of(&endpoint).filter(|_| !is_below(&endpoint.origin.host, ONELAKE))?;
    Some(account.strip_suffix("-secondary").unwrap_or(&account).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_only_looks_like_one_of_the_service_is_unknown() {
        for host in [
            "mine.blob.core.windows.net",
            "mine.blob.core.chinacloudapi.cn",
            "onelake.blob.fabric.microsoft.com",
        ] {
            assert!(is_known(host), "{host}");
        }
        for host in
            ["blob.core.windows.net", "evilblob.core.windows.net", "mine.blob.core.windows.net.example.com"]
        {
            assert!(!is_known(host), "{host}");
        }
    }

    #[test]
    fn only_a_host_of_the_service_names_its_account_for_certain() {
        assert_eq!(certain_account_at("https://mine.blob.core.windows.net").as_deref(), Some("mine"));
        let secondary = certain_account_at("https://mine-secondary.blob.core.windows.net");
        assert_eq!(secondary.as_deref(), Some("mine"));
        assert_eq!(certain_account_at("https://files.example.com"), None);
        assert_eq!(certain_account_at("http://127.0.0.1:10000/devstoreaccount1"), None);
    }
}
