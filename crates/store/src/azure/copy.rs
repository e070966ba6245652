//! `copy`: copies an object inside the service. Copy Blob takes objects of any size, and may be pending when it answers
//! (<https://learn.microsoft.com/rest/api/storageservices/copy-blob>). Put Blob From URL can also set properties
//! (<https://learn.microsoft.com/rest/api/storageservices/put-blob-from-url>).

use std::future::{pending, ready};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method};
use laneway_lanes::ResponseHead;

use super::Azure;
use super::headers::{
    blob_target, check_options, check_target, describe, meta, metadata, on_source, on_write, tags_header,
};
use super::put::written;
use super::sign::SasGrant;
use crate::credentials::{SasSigner, within};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::unread;
use crate::{Condition, Error, ErrorKind, ObjectId, ObjectMeta, Operation, PutOptions, Version};

/// The largest blob that Put Blob From URL copies: 5000 MiB.
const FROM_URL_BYTES_MAX: u64 = 5000 << 20;

/// The pauses between two looks at a pending copy: from the first one, doubled each time, to the last one. A copy within
/// an account usually succeeds at once, and one between accounts may take hours.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(5);

/// The time after which Laneway stops waiting for a pending copy that makes no progress. A copy between accounts can wait
/// in the service's queue for many minutes before its first byte.
const NO_PROGRESS_MAX: Duration = Duration::from_secs(3600);

/// The number of attempts to copy an object that another writer replaces meanwhile.
const REPLACED_MAX: u32 = 3;

/// The lifetime of the signature with which the service reads the source of a copy.
const SOURCE_SAS_LASTS: Duration = Duration::from_secs(3600);

/// The state of a copy, as an answer's headers tell it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum CopyState {
    Done,
    Pending,
    Failed(String),
}

impl CopyState {
    fn of(head: &ResponseHead) -> Self {
        match head.header("x-ms-copy-status") {
            Some("pending") => Self::Pending,
            Some(status @ ("failed" | "aborted")) => {
                let why = head.header("x-ms-copy-status-description").unwrap_or("no reason given");
                Self::Failed(format!("the copy {status}: {why}"))
            }
            // Put Blob From URL answers only when the copy is done, and without this header.
            Some("success") | None => Self::Done,
            Some(other) => Self::Failed(format!("the copy has the unknown status {other:?}")),
        }
    }
}

/// The progress of a pending copy, as far as Laneway has seen it.
#[derive(Default)]
struct CopyProgress {
    copied: Option<String>,
    still: Duration,
}

impl CopyProgress {
    /// Takes the progress after another pause. Returns true if it has stood still for too long.
    fn is_stuck(&mut self, copied: Option<&str>, pause: Duration) -> bool {
        match self.copied.as_deref() == copied {
            true => self.still += pause,
            false => (self.copied, self.still) = (copied.map(str::to_owned), Duration::ZERO),
        }
        self.still >= NO_PROGRESS_MAX
    }
}

/// Returns true if a blob's last copy has the source of this request. The service leaves signatures out.
fn has_source(head: &ResponseHead, outgoing: &Outgoing) -> bool {
    let path = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
    let asked = outgoing.headers.get("x-ms-copy-source").and_then(|url| url.to_str().ok()).map(path);
    asked.is_some() && head.header("x-ms-copy-source").map(path) == asked
}

/// Returns the request of Copy Blob. Without metadata of its own, the copy keeps the source's.
fn copy_request(to: &ObjectId, options: &PutOptions, condition: &Condition) -> Result<Outgoing, String> {
    let outgoing = Outgoing::new(Method::PUT, blob_target(to, QueryString::new())).key_use(KeyUse::Copy);
    let outgoing = outgoing
        .header_some("x-ms-access-tier", options.storage_class.as_deref())
        .and_then(|outgoing| outgoing.header_some("x-ms-tags", tags_header(&options.tags).as_deref()))
        .and_then(|outgoing| metadata(outgoing, &options.metadata))
        .map_err(|e| e.to_string())?;
    on_source(on_write(outgoing, &options.condition)?, condition)
}

/// Returns the request of Put Blob From URL, which sets all properties of the copy.
fn from_url_request(to: &ObjectId, options: &PutOptions, condition: &Condition) -> Result<Outgoing, String> {
    let outgoing = Outgoing::new(Method::PUT, blob_target(to, QueryString::new())).key_use(KeyUse::Copy);
    let outgoing = outgoing
        .header("x-ms-blob-type", "BlockBlob")
        .and_then(|outgoing| outgoing.header("x-ms-copy-source-blob-properties", "false"))
        .and_then(|outgoing| describe(outgoing, options))
        .map_err(|e| e.to_string())?;
    on_source(on_write(outgoing, &options.condition)?, condition)
}

/// Returns true if the options set properties, which Copy Blob always takes from the source.
fn sets_properties(options: &PutOptions) -> bool {
    options.content_type.is_some()
        || options.content_encoding.is_some()
        || options.cache_control.is_some()
        || options.content_disposition.is_some()
        || options.content_language.is_some()
}

impl Azure {
    /// Adds the source of a copy to a request, with an authorization if the service reads the source as any client
    /// would. The operations "from URL" do so.
    pub(super) async fn with_source(
        &self,
        exchange: &Exchange<'_, Self>,
        mut outgoing: Outgoing,
        from: &ObjectId,
        is_from_url: bool,
    ) -> Result<Outgoing, Error> {
        let place = self.address.place(&from.bucket)?;
        self.check_source(exchange, &place.account, is_from_url)?;
        let target = blob_target(from, QueryString::new());
        check_target(&target).map_err(|why| exchange.error(ErrorKind::Invalid, why))?;
        let mut url = format!("{}{target}", place.endpoint);
        let separator = if target.contains('?') { '&' } else { '?' };
        match self.credentials.sas_signer() {
            SasSigner::Sas(query) => url = format!("{url}{separator}{query}"),
            SasSigner::Key(key) if is_from_url => {
                let grant = SasGrant {
                    permissions: "r",
                    container: place.container,
                    key: &from.key,
                    ends: SystemTime::now() + SOURCE_SAS_LASTS,
                    overrides: &[],
                };
                url = format!("{url}{separator}{}", grant.signed_by_key(&place.account, key));
            }
            SasSigner::Token if is_from_url => {
                if let Some(bearer) = self.credentials.bearer().await? {
                    outgoing.headers.insert("x-ms-copy-source-authorization", bearer);
                }
            }
            SasSigner::Key(_) | SasSigner::Token | SasSigner::Anonymous => {}
        }
        let mut url = HeaderValue::try_from(url)
            .map_err(|_| exchange.error(ErrorKind::Invalid, "the source's URL can't be sent in a header"))?;
        url.set_sensitive(true);
        outgoing.headers.insert("x-ms-copy-source", url);
        Ok(outgoing)
    }

    /// Checks that Laneway may send an authorization for the account of a copy's source. The request itself checks the
    /// account of the destination.
    fn check_source(
        &self,
        exchange: &Exchange<'_, Self>,
        account: &str,
        is_from_url: bool,
    ) -> Result<(), Error> {
        let is_sent = match self.credentials.sas_signer() {
            SasSigner::Sas(_) => true,
            SasSigner::Key(_) => is_from_url,
            SasSigner::Token | SasSigner::Anonymous => false,
        };
        if !is_sent {
            return Ok(());
        }
        self.credentials.check_account(account)?;
        // The account of a key may be unknown. Then the key belongs to the account of the destination.
        match self.address.place(exchange.bucket)?.account == account {
            true => Ok(()),
            false => {
                let message =
                    format!("the key or SAS token of another account can't read a source in {account}");
                Err(exchange.error(ErrorKind::Unauthenticated, message))
            }
        }
    }

    pub(super) async fn copy_object(
        &self,
        from: &ObjectId,
        known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Copy, to);
        check_options(options).map_err(|why| exchange.error(ErrorKind::Invalid, why))?;
        let mut source = match known {
            Some(known) if known.metadata.is_some() => known.clone(),
            _ => Box::pin(self.head_as(from, None, None, KeyUse::Source)).await?,
        };
        // The answer doesn't describe the bytes, so the copy is bound to the state of the source that is known.
        let mut attempts = 0;
        loop {
            attempts += 1;
            let bound = match condition {
                Condition::None => still(source.version.as_ref()),
                condition => condition.clone(),
            };
            match self.copy_state(&exchange, from, &source, to, options, &bound).await {
                Err(error)
                    if condition.is_none()
                        && attempts < REPLACED_MAX
                        && error.code() == Some("SourceConditionNotMet") =>
                {
                    source = Box::pin(self.head_as(from, None, None, KeyUse::Source)).await?;
                }
                copied => return copied,
            }
        }
    }

    /// Copies an object that is in the state of `source`.
    async fn copy_state(
        &self,
        exchange: &Exchange<'_, Self>,
        from: &ObjectId,
        source: &ObjectMeta,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let invalid = |why: String| exchange.error(ErrorKind::Invalid, why);
        let mut options = self.with_scope(options);
        if options.tags.is_empty() && source.tags.is_some_and(|count| count > 0) {
            options.tags = Box::pin(self.read_tags(from)).await?;
        }
        let sets_properties = sets_properties(&options);
        let scope = options.kms_key.clone();
        // Copy Blob can't choose an encryption scope.
        let unscoped = |scope: &str, why: &str| {
            let message = format!("the copy can't get the encryption scope {scope}, because {why}");
            exchange.error(ErrorKind::Unsupported, message)
        };
        if let Some(scope) = scope.as_deref().filter(|_| source.size > FROM_URL_BYTES_MAX) {
            return Err(unscoped(scope, "the object is larger than 5000 MiB"));
        }
        if (sets_properties || scope.is_some())
            && source.size <= FROM_URL_BYTES_MAX
            && !self.lacks_put_from_url.load(Ordering::Relaxed)
        {
            let described = options.described_like(source);
            let outgoing = from_url_request(to, &described, condition).map_err(invalid)?;
            let outgoing = self.with_source(exchange, outgoing, from, true).await?;
            match self.send_copy(exchange, &outgoing, source, to).await {
                Err(error) if error.is_unsupported() => {
                    self.lacks_put_from_url.store(true, Ordering::Relaxed);
                }
                copied => return copied,
            }
        }
        if let Some(scope) = &scope {
            return Err(unscoped(scope, "the endpoint lacks Put Blob From URL"));
        }
        let outgoing = copy_request(to, &options, condition).map_err(invalid)?;
        let outgoing = self.with_source(exchange, outgoing, from, false).await?;
        let copied = self.send_copy(exchange, &outgoing, source, to).await?;
        if !sets_properties {
            return Ok(copied);
        }
        // The copy has the source's properties now, so set the new ones in a second request.
        let described = options.described_like(source);
        let state = copied.version.clone().map_or(Condition::None, Condition::Matches);
        Box::pin(self.set_properties(exchange, to, &described, copied.checksums.md5, &state)).await?;
        Box::pin(self.head_of(to, None)).await
    }

    /// Sends a copy, waits for its end, and returns the new object's metadata.
    async fn send_copy(
        &self,
        exchange: &Exchange<'_, Self>,
        outgoing: &Outgoing,
        source: &ObjectMeta,
        to: &ObjectId,
    ) -> Result<ObjectMeta, Error> {
        let sent = match exchange.send(outgoing).await {
            Ok(sent) => sent,
            Err(error) => {
                // An earlier attempt, whose answer was lost, may have begun the copy or ended it.
                let is_refused = error.is_precondition()
                    || error.is_not_found()
                    || error.code() == Some("PendingCopyOperation");
                return match error.is_uncertain() && is_refused {
                    true => self.find_copy(exchange, error, outgoing, source, to).await,
                    false => Err(error),
                };
            }
        };
        match CopyState::of(&sent.response.head) {
            // A success without an ETag doesn't come from the service, but from a proxy.
            CopyState::Done if sent.response.head.header("etag").is_none() => {
                let error = exchange.nonsense(&sent, "the answer to the copy has no ETag");
                self.find_copy(exchange, error, outgoing, source, to).await
            }
            CopyState::Done => {
                let mut copied = written(to, &sent.response.head, source.size, &PutOptions::default());
                copied.checksums.md5 = source.checksums.md5;
                copied.content_type = source.content_type.clone();
                Ok(copied)
            }
            CopyState::Failed(why) => Err(exchange.error(ErrorKind::Server, self.credentials.cleared(why))),
            CopyState::Pending => {
                let id = sent.response.head.header("x-ms-copy-id").map(str::to_owned);
                Box::pin(self.wait_for_copy(exchange, to, id.as_deref())).await
            }
        }
    }

    /// Looks for a copy whose answer was lost or can't be read, and waits for its end if it is pending. Returns the error
    /// unless the destination has the bytes of the source.
    async fn find_copy(
        &self,
        exchange: &Exchange<'_, Self>,
        error: Error,
        outgoing: &Outgoing,
        source: &ObjectMeta,
        to: &ObjectId,
    ) -> Result<ObjectMeta, Error> {
        let head = Outgoing::new(Method::HEAD, blob_target(to, QueryString::new())).key_use(KeyUse::Object);
        let Ok(sent) = Box::pin(exchange.send(&head)).await else { return Err(error) };
        let head = &sent.response.head;
        let found = match CopyState::of(head) {
            CopyState::Done => meta(to, head),
            // The destination already has the size and the MD5 of the source, but not its bytes.
            CopyState::Pending if has_source(head, outgoing) => {
                let id = head.header("x-ms-copy-id").map(str::to_owned);
                Box::pin(self.wait_for_copy(exchange, to, id.as_deref())).await?
            }
            CopyState::Pending | CopyState::Failed(_) => return Err(error),
        };
        unread(error, ready(Ok(found)), source.size, &source.checksums).await
    }

    /// Reads the destination of a pending copy until the copy has ended.
    async fn wait_for_copy(
        &self,
        exchange: &Exchange<'_, Self>,
        to: &ObjectId,
        copy_id: Option<&str>,
    ) -> Result<ObjectMeta, Error> {
        let (mut pause, mut progress) = (PAUSE_FIRST, CopyProgress::default());
        loop {
            let _ = within(pause, pending::<()>()).await;
            let paused = pause;
            pause = (pause * 2).min(PAUSE_LAST);
            let head =
                Outgoing::new(Method::HEAD, blob_target(to, QueryString::new())).key_use(KeyUse::Object);
            let sent = exchange.send(&head).await?;
            let head = &sent.response.head;
            if copy_id.is_some() && head.header("x-ms-copy-id") != copy_id {
                let message = "another writer has replaced the object before its copy was done";
                return Err(exchange.error(ErrorKind::Precondition, message));
            }
            match CopyState::of(head) {
                CopyState::Done => return Ok(meta(to, head)),
                CopyState::Failed(why) => {
                    return Err(exchange.error(ErrorKind::Server, self.credentials.cleared(why)));
                }
                CopyState::Pending if progress.is_stuck(head.header("x-ms-copy-progress"), paused) => {
                    let minutes = NO_PROGRESS_MAX.as_secs() / 60;
                    let message =
                        format!("the copy is pending and has made no progress for {minutes} minutes");
                    return Err(exchange.error(ErrorKind::Server, message));
                }
                CopyState::Pending => {}
            }
        }
    }
}

/// Returns the condition that a blob is still in this state.
pub(super) fn still(version: Option<&Version>) -> Condition {
    version.map_or(Condition::None, |version| Condition::Matches(version.clone()))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, StatusCode};

    use super::*;

    fn state(headers: &[(&'static str, &'static str)]) -> CopyState {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        CopyState::of(&ResponseHead { status: StatusCode::ACCEPTED, headers: map })
    }

    #[test]
    fn a_copy_can_be_pending_or_have_failed_although_it_was_accepted() {
        assert_eq!(state(&[("x-ms-copy-status", "success")]), CopyState::Done);
        assert_eq!(state(&[]), CopyState::Done);
        assert_eq!(state(&[("x-ms-copy-status", "pending")]), CopyState::Pending);
        let failed = [("x-ms-copy-status", "failed"), ("x-ms-copy-status-description", "404 gone")];
        assert!(matches!(state(&failed), CopyState::Failed(why) if why.contains("404 gone")));
    }

    #[test]
    fn a_copy_with_an_unknown_status_is_not_done() {
        let unknown = state(&[("x-ms-copy-status", "queued")]);
        assert!(matches!(unknown, CopyState::Failed(why) if why.contains("queued")));
    }

    #[test]
    fn a_pending_copy_is_stuck_after_an_hour_without_progress() {
        let mut progress = CopyProgress::default();
        let half = NO_PROGRESS_MAX / 2;
        assert!(!progress.is_stuck(Some("0/9"), half));
        assert!(!progress.is_stuck(Some("0/9"), half));
        assert!(!progress.is_stuck(Some("5/9"), half), "progress");
        assert!(!progress.is_stuck(Some("5/9"), half));
        assert!(progress.is_stuck(Some("5/9"), half));
    }

    #[test]
    fn a_plain_copy_names_no_properties_and_both_conditions() {
        let options = PutOptions::default().condition(Condition::Absent).storage_class("Cool");
        let source = Condition::Matches(Version::ETag("0x1".to_owned()));
        let copy = copy_request(&ObjectId::new("abc", "k"), &options, &source).expect("a request");
        assert_eq!(copy.headers["if-none-match"], "*");
        assert_eq!(copy.headers["x-ms-source-if-match"], "\"0x1\"");
        assert_eq!(copy.headers["x-ms-access-tier"], "Cool");
        assert!(!copy.headers.contains_key("x-ms-blob-type"), "that would make it another operation");
    }

    #[test]
    fn a_copy_from_a_url_names_its_encryption_scope() {
        let options = PutOptions { kms_key: Some("team".to_owned()), ..PutOptions::default() };
        let copy = from_url_request(&ObjectId::new("abc", "k"), &options, &Condition::None);
        assert_eq!(copy.expect("a request").headers["x-ms-encryption-scope"], "team");
    }

    #[test]
    fn only_options_that_copy_blob_cannot_set_need_the_other_operation() {
        assert!(!sets_properties(&PutOptions::default().metadata("a", "b").storage_class("Cool")));
        assert!(sets_properties(&PutOptions::default().cache_control("no-store")));
    }
}
