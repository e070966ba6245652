//! Decides if a request is permitted: Shared Key and Shared Key Lite signatures, SAS tokens, bearer tokens and public
//! access.
//!
//! - <https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>
//! - <https://learn.microsoft.com/rest/api/storageservices/create-service-sas>
//! - <https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas>
//! - <https://learn.microsoft.com/rest/api/storageservices/create-account-sas>

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;
use http::request::Parts;
use ring::hmac;

use super::containers::PublicAccess;
use super::error::BlobError;
use super::operation::BlobOperation;
use super::{AzureState, BlobTarget, timestamp};
use crate::checksum::{base64, from_base64};
use crate::objects::now_us;
use crate::query::{Query, decode};

/// The time by which the clock of a signature may differ from the server's.
const SKEW_US: u64 = 15 * 60 * 1_000_000;

/// The permissions of a request that was authorized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    /// The account's key or a bearer token.
    Full,
    /// A SAS token with these permissions.
    Sas(String),
    /// Public access to a container.
    Public,
}

impl Access {
    /// Returns true if a SAS token has one of these permissions, or if the request may do everything.
    pub(super) fn permits(&self, letters: &str) -> bool {
        match self {
            Access::Full => true,
            Access::Sas(permissions) => letters.chars().any(|letter| permissions.contains(letter)),
            Access::Public => false,
        }
    }
}

/// Authorizes a request, or returns the service's error.
pub(super) fn authorize(
    state: &AzureState,
    head: &Parts,
    query: &Query,
    target: &BlobTarget,
    operation: BlobOperation,
) -> Result<Access, BlobError> {
    if target.account != state.config.account {
        let missing = BlobError::unauthenticated("The account does not exist.");
        return Err(missing);
    }
    let is_bearer = authorization_scheme(head).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
    if operation == BlobOperation::GetUserDelegationKey && !is_bearer {
        return Err(BlobError::unauthenticated("Only authentication scheme Bearer is supported"));
    }
    let authorization = head.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
    let scheme = authorization.and_then(|value| value.split_once(' ')).unwrap_or_default();
    match scheme {
        ("SharedKey", credential) => {
            check_signature(state, head, target, credential, string_to_sign(head, target))?;
            Ok(Access::Full)
        }
        ("SharedKeyLite", credential) => {
            check_signature(state, head, target, credential, lite_string_to_sign(head, query, target))?;
            Ok(Access::Full)
        }
        (bearer, token) if bearer.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => {
            Ok(Access::Full)
        }
        _ if authorization.is_some() => {
            Err(BlobError::of_header("InvalidAuthenticationInfo", "Authorization", "")
                .with_header(http::header::WWW_AUTHENTICATE, "Bearer".to_owned()))
        }
        _ if query.has("sig") => sas(state, query, target, operation),
        _ => public(state, target, operation),
    }
}

/// Returns the scheme in the `Authorization` header, such as `SharedKey`.
fn authorization_scheme(head: &Parts) -> Option<&str> {
    head.headers.get(AUTHORIZATION)?.to_str().ok()?.split(' ').next()
}

/// Checks a SAS token in the URL of a copy's source.
pub(super) fn authorize_source(
    state: &AzureState,
    query: &Query,
    target: &BlobTarget,
) -> Result<Access, BlobError> {
    match query.has("sig") {
        true => sas(state, query, target, BlobOperation::GetBlob),
        false => public(state, target, BlobOperation::GetBlob),
    }
}

/// Returns the value of the key that signs user delegation SAS tokens. It depends on nothing but the account's key and
/// the fields that a token repeats, so the server keeps no list of keys.
pub(super) fn delegation_key(state: &AzureState, fields: &[&str; 6]) -> String {
    base64(&mac(&account_key(state), &fields.join("\n")))
}

fn account_key(state: &AzureState) -> Vec<u8> {
    from_base64(&state.config.key).unwrap_or_else(|| state.config.key.as_bytes().to_vec())
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn is_signed(key: &[u8], text: &str, signature: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    from_base64(signature).is_some_and(|signature| hmac::verify(&key, text.as_bytes(), &signature).is_ok())
}

fn check_signature(
    state: &AzureState,
    head: &Parts,
    target: &BlobTarget,
    credential: &str,
    to_sign: String,
) -> Result<(), BlobError> {
    let malformed = || BlobError::of_header("InvalidAuthenticationInfo", "Authorization", credential);
    let (account, signature) = credential.split_once(':').ok_or_else(malformed)?;
    let date = text(head, "x-ms-date").or_else(|| text(head, "date"));
    let date = date.and_then(timestamp::parse_http).ok_or_else(|| {
        BlobError::unauthenticated("The Date or x-ms-date header is missing or isn't an HTTP date.")
    })?;
    if date.abs_diff(now_us()) > SKEW_US {
        let date = timestamp::http(date);
        return Err(BlobError::unauthenticated(format!("Request date header too old: '{date}'")));
    }
    if account != target.account || !is_signed(&account_key(state), &to_sign, signature) {
        return Err(BlobError::unauthenticated(format!(
            "The MAC signature found in the HTTP request '{signature}' is not the same as any computed signature. \
             Server used following string to sign: '{to_sign}'."
        )));
    }
    Ok(())
}

fn text<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name).and_then(|value| value.to_str().ok())
}

fn string_to_sign(head: &Parts, target: &BlobTarget) -> String {
    let standard = [
        "content-encoding",
        "content-language",
        "content-length",
        "content-md5",
        "content-type",
        "date",
        "if-modified-since",
        "if-match",
        "if-none-match",
        "if-unmodified-since",
        "range",
    ];
    let mut to_sign = format!("{}\n", head.method);
    for name in standard {
        let value = text(head, name).unwrap_or_default();
        let is_left_out = (name == "content-length" && value == "0")
            || (name == "date" && head.headers.contains_key("x-ms-date"));
        to_sign.push_str(if is_left_out { "" } else { value });
        to_sign.push('\n');
    }
    to_sign.push_str(&canonical_headers(head));
    to_sign.push_str(&format!("/{}{}", target.account, head.uri.path()));
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parameters.entry(decode(name).to_lowercase()).or_default().push(decode(value));
    }
    for (name, mut values) in parameters {
        values.sort_unstable();
        to_sign.push_str(&format!("\n{name}:{}", values.join(",")));
    }
    to_sign
}

fn lite_string_to_sign(head: &Parts, query: &Query, target: &BlobTarget) -> String {
    let mut to_sign = format!("{}\n", head.method);
    for name in ["content-md5", "content-type", "date"] {
        let is_left_out = name == "date" && head.headers.contains_key("x-ms-date");
        to_sign.push_str(if is_left_out { "" } else { text(head, name).unwrap_or_default() });
        to_sign.push('\n');
    }
    to_sign.push_str(&canonical_headers(head));
    to_sign.push_str(&format!("/{}{}", target.account, head.uri.path()));
    if let Some(comp) = query.value("comp") {
        to_sign.push_str(&format!("?comp={comp}"));
    }
    to_sign
}

/// Returns the `x-ms-` headers in the order of their names, one a line.
fn canonical_headers(head: &Parts) -> String {
    let mut headers: BTreeMap<(String, String), (&str, Vec<String>)> = BTreeMap::new();
    for (name, value) in &head.headers {
        let name = name.as_str();
        if name.starts_with("x-ms-") {
            let value = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
            headers.entry(place(name)).or_insert_with(|| (name, Vec::new())).1.push(value);
        }
    }
    headers.into_values().map(|(name, values)| format!("{name}:{}\n", values.join(","))).collect()
}

/// Returns the place of a header's name in the service's order, which is .NET's order of English words. Underscores come
/// before digits. Hyphens only decide between names that are equal without them: then the later hyphen comes first.
/// [azure-sdk-for-net](https://github.com/Azure/azure-sdk-for-net/issues/41328)
fn place(name: &str) -> (String, String) {
    let letters = name.replace('-', "").replace('_', "!");
    (letters, name.chars().map(|c| if c == '-' { '1' } else { '0' }).collect())
}

fn sas(
    state: &AzureState,
    query: &Query,
    target: &BlobTarget,
    operation: BlobOperation,
) -> Result<Access, BlobError> {
    let field = |name: &str| query.value(name).unwrap_or_default();
    let version = field("sv");
    if version.is_empty() {
        return Err(BlobError::unauthenticated("The SAS token has no version (sv)."));
    }
    // The service refuses a token whose parameters are ambiguous.
    let names = ["sig", "sv", "sp", "se", "st", "sr", "ss", "srt", "si", "skoid"];
    if names.iter().any(|name| query.values(name).nth(1).is_some()) {
        return Err(BlobError::unauthenticated("The SAS token has a parameter twice."));
    }
    let mut limits = SasLimits { permissions: field("sp"), starts: field("st"), expires: field("se") };
    let is_of_account = query.has("srt");
    let (to_sign, key) = match (is_of_account, query.has("skoid")) {
        (true, _) => (account_string_to_sign(query, target), account_key(state)),
        (false, true) => {
            let key = delegation_key(
                state,
                &["skoid", "sktid", "skt", "ske", "sks", "skv"]
                    .map(|name| query.value(name).unwrap_or_default()),
            );
            if timestamp::parse(field("ske")).is_none_or(|end| end <= now_us()) {
                return Err(BlobError::unauthenticated("The user delegation key has expired."));
            }
            (delegated_string_to_sign(query, target), from_base64(&key).unwrap_or_default())
        }
        (false, false) => (service_string_to_sign(query, target), account_key(state)),
    };
    if !is_signed(&key, &to_sign, field("sig")) {
        return Err(BlobError::unauthenticated(format!(
            "Signature did not match. String to sign used was {to_sign}"
        )));
    }
    let policy = query.value("si").filter(|name| !name.is_empty() && !is_of_account);
    let policy = match policy {
        None => None,
        Some(name) => {
            Some(super::containers::stored_policy(state, &target.container, name).ok_or_else(|| {
                BlobError::unauthenticated("The stored access policy of the SAS token does not exist.")
            })?)
        }
    };
    if let Some(policy) = &policy {
        limits.complete(&policy.permissions, &policy.starts, &policy.expires);
    }
    limits.check_times()?;
    if field("spr") == "https" && !state.is_tls {
        return Err(BlobError::new("AuthorizationProtocolMismatch"));
    }
    let needed = operation.permission();
    if is_of_account {
        if !field("ss").contains('b') {
            return Err(BlobError::new("AuthorizationServiceMismatch"));
        }
        // The requests inside a batch are authorized by themselves.
        let is_any = matches!(operation, BlobOperation::Batch | BlobOperation::GetAccountInfo);
        if !field("srt").contains(needed.resource) && !is_any {
            return Err(BlobError::new("AuthorizationResourceTypeMismatch"));
        }
    } else if !needed.by_service_sas || target.container.is_empty() {
        return Err(BlobError::new("AuthorizationFailure"));
    }
    let is_permitted = match needed.letters {
        "*" => !limits.permissions.is_empty(),
        letters => letters.chars().any(|letter| limits.permissions.contains(letter)),
    };
    match is_permitted {
        true => Ok(Access::Sas(limits.permissions.to_owned())),
        false => Err(BlobError::new("AuthorizationPermissionMismatch")),
    }
}

/// The permissions and times of a SAS token, in itself or in its stored access policy.
struct SasLimits<'a> {
    permissions: &'a str,
    starts: &'a str,
    expires: &'a str,
}

impl<'a> SasLimits<'a> {
    /// Takes over from a policy the fields that the token itself leaves out.
    fn complete(&mut self, permissions: &'a str, starts: &'a str, expires: &'a str) {
        for (own, of_policy) in
            [(&mut self.permissions, permissions), (&mut self.starts, starts), (&mut self.expires, expires)]
        {
            if own.is_empty() {
                *own = of_policy;
            }
        }
    }

    fn check_times(&self) -> Result<(), BlobError> {
        let now = now_us();
        let outside = || {
            BlobError::unauthenticated(format!(
                "Signature not valid in the specified time frame: Start [{}] - Expiry [{}] - Current [{}]",
                self.starts,
                self.expires,
                timestamp::seconds(now)
            ))
        };
        let expires = timestamp::parse(self.expires).ok_or_else(outside)?;
        let starts = match self.starts {
            "" => 0,
            starts => timestamp::parse(starts).ok_or_else(outside)?,
        };
        if starts > now + 1_000_000 || expires <= now { Err(outside()) } else { Ok(()) }
    }
}

fn account_string_to_sign(query: &Query, target: &BlobTarget) -> String {
    let field = |name: &str| query.value(name).unwrap_or_default();
    let mut lines = vec![target.account.as_str()];
    lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(field));
    if field("sv") >= "2020-12-06" {
        lines.push(field("ses"));
    }
    lines.join("\n") + "\n"
}

/// Returns the resource that a service SAS or user delegation SAS is for.
fn canonical_resource(query: &Query, target: &BlobTarget) -> String {
    let container = format!("/blob/{}/{}", target.account, target.container);
    match query.value("sr") {
        Some("c") => container,
        _ => format!("{container}/{}", target.blob),
    }
}

/// Returns the snapshot or version that a SAS for one of them names.
fn signed_snapshot(query: &Query) -> &str {
    match query.value("sr") {
        Some("bs") => query.value("snapshot").unwrap_or_default(),
        Some("bv") => query.value("versionid").unwrap_or_default(),
        _ => "",
    }
}

fn service_string_to_sign(query: &Query, target: &BlobTarget) -> String {
    let field = |name: &str| query.value(name).unwrap_or_default();
    let resource = canonical_resource(query, target);
    let mut lines = vec![field("sp"), field("st"), field("se"), &resource];
    lines.extend(["si", "sip", "spr", "sv"].map(field));
    if field("sv") >= "2018-11-09" {
        lines.extend([field("sr"), signed_snapshot(query)]);
    }
    if field("sv") >= "2020-12-06" {
        lines.push(field("ses"));
    }
    lines.extend(["rscc", "rscd", "rsce", "rscl", "rsct"].map(field));
    lines.join("\n")
}

fn delegated_string_to_sign(query: &Query, target: &BlobTarget) -> String {
    let field = |name: &str| query.value(name).unwrap_or_default();
    let resource = canonical_resource(query, target);
    let mut lines = vec![field("sp"), field("st"), field("se"), &resource];
    lines.extend(["skoid", "sktid", "skt", "ske", "sks", "skv"].map(field));
    if field("sv") >= "2020-02-10" {
        lines.extend(["saoid", "suoid", "scid"].map(field));
    }
    if field("sv") >= "2025-07-05" {
        lines.extend(["skdutid", "sduoid"].map(field));
    }
    lines.extend(["sip", "spr", "sv", "sr"].map(field));
    lines.push(signed_snapshot(query));
    if field("sv") >= "2020-12-06" {
        lines.push(field("ses"));
    }
    if field("sv") >= "2026-04-06" {
        lines.extend(["srh", "srq"].map(field));
    }
    lines.extend(["rscc", "rscd", "rsce", "rscl", "rsct"].map(field));
    lines.join("\n")
}

/// Permits an anonymous request only if its container has public access. Otherwise, the service doesn't reveal that the
/// container exists.
fn public(state: &AzureState, target: &BlobTarget, operation: BlobOperation) -> Result<Access, BlobError> {
    let access = super::containers::public_access(state, &target.container);
    let is_permitted = match access {
        Some(PublicAccess::Container) => operation.reads_blob() || operation.reads_container(),
        Some(PublicAccess::Blob) => operation.reads_blob(),
        None => false,
    };
    let challenge = "Bearer authorization_uri=https://login.microsoftonline.com/laneway/oauth2/authorize resource_id=https://storage.azure.com";
    match (is_permitted, access) {
        (true, _) => Ok(Access::Public),
        (false, None) if operation.reads_blob() || operation.reads_container() => {
            Err(BlobError::new("ResourceNotFound"))
        }
        (false, _) => Err(BlobError::new("NoAuthenticationInformation")
            .with_header(http::header::WWW_AUTHENTICATE, challenge.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers_have_the_order_of_words() {
        let ordered = ["x-ms-meta-i_", "x-ms-meta-i-_", "x-ms-meta-i0", "x-ms-meta-ia", "x-ms-meta-i-a"];
        let mut sorted = ordered;
        sorted.sort_unstable();
        assert_ne!(sorted, ordered, "this is the order of bytes");
        sorted.sort_by_key(|name| place(name));
        assert_eq!(sorted, ordered);
    }
}
