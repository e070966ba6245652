//! Azure Blob Storage (<https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api>).

mod address;
mod blocks;
mod containers;
mod copy;
mod delete;
mod dialect;
mod failure;
mod get;
mod headers;
mod list;
mod put;
mod set_meta;
mod sign;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderValue};
use laneway_lanes::{Lanes, Protocol, Request, Response};

use self::address::AccountAddress;
pub use self::address::bucket_at;
use self::blocks::BlockForms;
pub(crate) use self::dialect::CAPABILITIES;
use crate::credentials::{AzureCredentials, RequestToSign, stamp};
use crate::encryption::{KeyHeaders, KeyUse};
use crate::exchange::{HttpDialect, Outgoing, RequestSigner};
use crate::judge::ErrorResponse;
use crate::requests::RequestTally;
use crate::{CustomerKey, Encryption, Error, ErrorKind, Operation, Provider, Settings};

/// The version of the protocol. It is the first one in which listings can name every blob and a blob can be copied in one
/// request, so old emulators know it too.
const VERSION: &str = "2021-12-02";

/// The version of requests for [structured bodies](crate::delivery::structured_body). It is the first one that has them
/// (<https://github.com/Azure/azure-rest-api-specs/pull/30174>).
const STRUCTURED_BODY_VERSION: &str = "2025-01-05";

/// The header that asks for a structured body, and that says that an answer has one.
const STRUCTURED_BODY: &str = "x-ms-structured-body";

const CUSTOMER_KEY: KeyHeaders =
    ["x-ms-encryption-algorithm", "x-ms-encryption-key", "x-ms-encryption-key-sha256"];

/// The Azure dialect with its account and credentials.
#[derive(Debug)]
pub(crate) struct Azure {
    lanes: Lanes,
    tally: RequestTally,
    address: AccountAddress,
    credentials: Arc<AzureCredentials>,
    /// The headers that every request carries.
    headers: HeaderMap,
    added_headers: HeaderMap,
    kms_key: Option<String>,
    encryption: Encryption,
    /// The checksum of blocks that the endpoint accepts, as far as it is known.
    blocks: BlockForms,
    /// True after a listing has ignored `startFrom`, as older emulators do.
    ignores_start: AtomicBool,
    /// True after the endpoint has refused Put Blob From URL, which emulators lack.
    lacks_put_from_url: AtomicBool,
    /// True after the endpoint has refused a request for a structured body. Older emulators refuse the version of the
    /// protocol. Others ignore the request.
    refuses_structured_bodies: AtomicBool,
    /// True if the latest answer had no structured body although the request asked for one.
    lacks_structured_bodies: AtomicBool,
}

impl Azure {
    pub(crate) fn new(settings: &Settings, lanes: Lanes) -> Result<Arc<Self>, Error> {
        let (account, credentials) = AzureCredentials::new(settings, &lanes)?;
        let address = AccountAddress::new(&account)?;
        if let Some(origin) = address.origin("") {
            lanes.expect(&origin, Protocol::H1);
        }
        check(settings, &address)?;
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static("x-ms-version"),
            HeaderValue::from_static(VERSION),
        )]);
        Ok(Arc::new(Self {
            lanes,
            tally: RequestTally::default(),
            address,
            credentials: Arc::new(credentials),
            headers,
            added_headers: settings.added_headers()?,
            kms_key: settings.kms_key.clone(),
            encryption: settings.encryption.clone(),
            blocks: BlockForms::default(),
            ignores_start: AtomicBool::new(false),
            lacks_put_from_url: AtomicBool::new(false),
            refuses_structured_bodies: AtomicBool::new(false),
            lacks_structured_bodies: AtomicBool::new(false),
        }))
    }
}

/// Returns an error for settings that Azure doesn't support, and for a customer's key that would be sent unencrypted.
fn check(settings: &Settings, address: &AccountAddress) -> Result<(), Error> {
    let Encryption { algorithm, customer_key, source_customer_key, .. } = &settings.encryption;
    let invalid = |why: String| Err(Error::new(ErrorKind::Invalid, Operation::Open, why));
    if let Some(algorithm) = algorithm {
        return invalid(format!(
            "{} is an algorithm of S3; Azure supports an encryption scope or a customer's key",
            algorithm.name()
        ));
    }
    if let Some(why) = settings.encryption.contradiction(settings.kms_key.as_deref()) {
        return invalid(why.to_owned());
    }
    let is_exposed = address.origin("").is_some_and(|origin| !crate::endpoint::is_private(&origin));
    if (customer_key.is_some() || source_customer_key.is_some()) && is_exposed {
        return invalid(format!("a customer's key would go to {address} unencrypted: use https://"));
    }
    Ok(())
}

/// Signs a request to an account again.
pub(crate) struct AzureSigner {
    credentials: Arc<AzureCredentials>,
    account: String,
}

impl RequestSigner for AzureSigner {
    fn sign_again(&self, request: &mut Request) {
        let (target, len) = (request.target.to_string(), request.body.len());
        let method = request.method.clone();
        let renewed =
            self.credentials.authorize_again(&self.account, &method, &target, &mut request.headers, len);
        request.credential = renewed.unwrap_or(request.credential);
    }
}

impl HttpDialect for Azure {
    const PROVIDER: Provider = Provider::Azure;

    const SERVICE: &'static str = "Azure Blob Storage";

    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    fn tally(&self) -> &RequestTally {
        &self.tally
    }

    fn endpoint(&self) -> String {
        self.address.to_string()
    }

    fn added_headers(&self) -> &HeaderMap {
        &self.added_headers
    }

    type Signer = AzureSigner;

    async fn request(&self, bucket: &str, outgoing: &Outgoing) -> Result<(Request, AzureSigner), Error> {
        let place = self.address.place(bucket)?;
        headers::check_target(&outgoing.target)
            .map_err(|why| Error::new(ErrorKind::Invalid, Operation::Open, why))?;
        let mut headers = self.headers.clone();
        headers.extend(outgoing.headers.clone());
        if headers.contains_key(STRUCTURED_BODY) {
            match self.refuses_structured_bodies.load(Ordering::Acquire) {
                true => drop(headers.remove(STRUCTURED_BODY)),
                false => {
                    drop(headers.insert("x-ms-version", HeaderValue::from_static(STRUCTURED_BODY_VERSION)))
                }
            }
        }
        match outgoing.key_use {
            KeyUse::Nothing => {}
            KeyUse::Source => key(&mut headers, self.encryption.source_customer_key.as_ref()),
            _ => key(&mut headers, self.encryption.customer_key.as_ref()),
        }
        stamp(&mut headers);
        let target = format!("{}{}", place.endpoint.base, outgoing.target);
        let len = outgoing.body.len();
        let signed = headers.clone();
        let request = RequestToSign { method: &outgoing.method, target: &target, headers: &signed, len };
        let origin = &place.endpoint.origin;
        let (target, credential) =
            self.credentials.authorize(&place.account, origin, &request, &mut headers).await?;
        // The message doesn't repeat the target, which may have a SAS token.
        let target = target.parse().map_err(|_| {
            let message = "the request's path and query can't be sent";
            Error::new(ErrorKind::Invalid, Operation::Open, message)
        })?;
        let mut request = Request::new(origin.clone(), outgoing.method.clone(), target);
        request.headers = headers;
        request.body = outgoing.body.clone();
        request.expected = outgoing.expected;
        request.no_progress = outgoing.no_progress;
        request.credential = credential;
        let signer = AzureSigner { credentials: Arc::clone(&self.credentials), account: place.account };
        Ok((request, signer))
    }

    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<ErrorResponse> {
        let status = response.head.status;
        if status.is_success() || outgoing.also == Some(status) {
            return None;
        }
        let failure = failure::read(&response.head, &response.body);
        let message = self.credentials.cleared(failure.message);
        Some(ErrorResponse { message, ..failure })
    }

    fn kind(&self, failure: &ErrorResponse) -> ErrorKind {
        failure::kind(failure)
    }

    fn learn(&self, _bucket: &str, outgoing: &Outgoing, failure: &ErrorResponse, credential: u64) -> bool {
        if outgoing.headers.contains_key(STRUCTURED_BODY) && failure::refuses_header(failure) {
            self.refuses_structured_bodies.store(true, Ordering::Release);
            return true;
        }
        failure::is_stale(failure) && self.credentials.replaces(credential)
    }
}

fn key(headers: &mut HeaderMap, key: Option<&CustomerKey>) {
    Encryption::insert_key(headers, CUSTOMER_KEY, key, CustomerKey::sha256);
}
