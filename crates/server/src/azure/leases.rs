//! Leases of blobs and containers. They are in memory, so a restart of the server ends them.
//! <https://learn.microsoft.com/rest/api/storageservices/lease-blob>

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::answer::{empty, insert};
use super::conditions::ResourceState;
use super::error::{BlobError, BlobResult};
use crate::objects::now_us;

/// The leases by container and blob. The lease of a container itself has an empty blob name.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<HashMap<(String, String), Lease>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lease {
    id: String,
    /// `None` stands for a lease that never expires.
    duration_us: Option<u64>,
    expires_us: Option<u64>,
    /// The end of the break period, if the lease was broken.
    broken_us: Option<u64>,
}

/// The state of a lease at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseState {
    Available,
    Leased,
    Expired,
    Breaking,
    Broken,
}

/// A lease action with its parameters, from the headers of a request.
#[derive(Debug)]
enum LeaseAction {
    Acquire { duration_us: Option<u64>, proposed: Option<String> },
    Renew(String),
    Change { id: String, proposed: String },
    Release(String),
    Break { period_us: Option<u64> },
}

const SECOND_US: u64 = 1_000_000;

impl Lease {
    fn state(&self, now_us: u64) -> LeaseState {
        match (self.broken_us, self.expires_us) {
            (Some(broken), _) if broken <= now_us => LeaseState::Broken,
            (Some(_), _) => LeaseState::Breaking,
            (None, Some(expires)) if expires <= now_us => LeaseState::Expired,
            (None, _) => LeaseState::Leased,
        }
    }
}

impl Leases {
    fn map(&self) -> MutexGuard<'_, HashMap<(String, String), Lease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the lease of a deleted blob.
    pub(super) fn forget(&self, container: &str, blob: &str) {
        self.map().remove(&(container.to_owned(), blob.to_owned()));
    }

    /// Forgets the leases of a deleted container and its blobs.
    pub(super) fn forget_container(&self, container: &str) {
        self.map().retain(|(leased, _), _| leased != container);
    }

    pub(super) fn clear(&self) {
        self.map().clear();
    }

    /// Checks the lease id of a write.
    pub(super) fn check_write(&self, container: &str, blob: &str, id: Option<&str>) -> Result<(), BlobError> {
        self.check(container, blob, id, true)
    }

    /// Checks the lease id of a read, which needs none.
    pub(super) fn check_read(&self, container: &str, blob: &str, id: Option<&str>) -> Result<(), BlobError> {
        self.check(container, blob, id, false)
    }

    fn check(&self, container: &str, blob: &str, id: Option<&str>, is_needed: bool) -> Result<(), BlobError> {
        let (mismatch, absent) = match blob.is_empty() {
            true => ("LeaseIdMismatchWithContainerOperation", "LeaseNotPresentWithContainerOperation"),
            false => ("LeaseIdMismatchWithBlobOperation", "LeaseNotPresentWithBlobOperation"),
        };
        let lease = self.map().get(&(container.to_owned(), blob.to_owned())).cloned();
        let state = lease.as_ref().map_or(LeaseState::Available, |lease| lease.state(now_us()));
        let is_its = lease.zip(id).is_some_and(|(lease, id)| lease.id.eq_ignore_ascii_case(id));
        match (state, id) {
            (LeaseState::Leased | LeaseState::Breaking, None) if is_needed => {
                Err(BlobError::new("LeaseIdMissing"))
            }
            (LeaseState::Leased | LeaseState::Breaking, Some(_)) if !is_its => Err(BlobError::new(mismatch)),
            (LeaseState::Expired | LeaseState::Broken, Some(_)) if is_its => Err(BlobError::new("LeaseLost")),
            (LeaseState::Expired | LeaseState::Broken, Some(_)) => Err(BlobError::new(mismatch)),
            (LeaseState::Available, Some(_)) => Err(BlobError::new(absent)),
            _ => Ok(()),
        }
    }

    /// Returns status, state and duration, as listings and headers have them.
    pub(super) fn description(&self, container: &str, blob: &str) -> [Option<&'static str>; 3] {
        let map = self.map();
        let lease = map.get(&(container.to_owned(), blob.to_owned()));
        let state = lease.map_or(LeaseState::Available, |lease| lease.state(now_us()));
        let duration = match lease.and_then(|lease| lease.duration_us) {
            Some(_) => "fixed",
            None => "infinite",
        };
        match state {
            LeaseState::Available => [Some("unlocked"), Some("available"), None],
            LeaseState::Leased => [Some("locked"), Some("leased"), Some(duration)],
            LeaseState::Expired => [Some("unlocked"), Some("expired"), None],
            LeaseState::Breaking => [Some("locked"), Some("breaking"), None],
            LeaseState::Broken => [Some("unlocked"), Some("broken"), None],
        }
    }

    /// Adds the lease's headers to the properties of a blob or container.
    pub(super) fn describe(&self, headers: &mut HeaderMap, container: &str, blob: &str) {
        let names = ["x-ms-lease-status", "x-ms-lease-state", "x-ms-lease-duration"];
        for (name, value) in names.into_iter().zip(self.description(container, blob)) {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
    }

    /// Carries out Lease Blob or Lease Container.
    pub(super) fn act(
        &self,
        container: &str,
        blob: &str,
        headers: &HeaderMap,
        resource: &ResourceState,
        new_id: impl FnOnce() -> String,
    ) -> BlobResult {
        let action = LeaseAction::in_headers(headers)?;
        let now = now_us();
        let mut map = self.map();
        let key = (container.to_owned(), blob.to_owned());
        let present = map.get(&key).cloned();
        let state = present.as_ref().map_or(LeaseState::Available, |lease| lease.state(now));
        let is_its = |id: &str| present.as_ref().is_some_and(|lease| lease.id.eq_ignore_ascii_case(id));
        let mismatch = || Err(BlobError::new("LeaseIdMismatchWithLeaseOperation"));
        let (status, lease, time_s) = match action {
            LeaseAction::Acquire { duration_us, proposed } => {
                let own = proposed.as_deref().is_some_and(is_its);
                match state {
                    LeaseState::Breaking if own => {
                        return Err(BlobError::new("LeaseIsBreakingAndCannotBeAcquired"));
                    }
                    LeaseState::Leased if own => {}
                    LeaseState::Leased | LeaseState::Breaking => {
                        return Err(BlobError::new("LeaseAlreadyPresent"));
                    }
                    LeaseState::Available | LeaseState::Expired | LeaseState::Broken => {}
                }
                let id = proposed.unwrap_or_else(new_id);
                let expires_us = duration_us.map(|duration| now + duration);
                let lease = Lease { id, duration_us, expires_us, broken_us: None };
                (StatusCode::CREATED, Some(lease), None)
            }
            LeaseAction::Renew(id) if !is_its(&id) => return mismatch(),
            LeaseAction::Renew(_) if matches!(state, LeaseState::Breaking | LeaseState::Broken) => {
                return Err(BlobError::new("LeaseIsBrokenAndCannotBeRenewed"));
            }
            LeaseAction::Renew(_) => {
                let lease = present.map(|lease| Lease {
                    expires_us: lease.duration_us.map(|duration| now + duration),
                    ..lease
                });
                // A blob that was written after the lease's end has none any more.
                if state == LeaseState::Expired
                    && map
                        .get(&key)
                        .and_then(|lease| lease.expires_us)
                        .is_some_and(|end| end < resource.modified_us)
                {
                    return mismatch();
                }
                (StatusCode::OK, lease, None)
            }
            LeaseAction::Change { id, proposed } => match state {
                LeaseState::Available | LeaseState::Expired | LeaseState::Broken => {
                    return Err(BlobError::new("LeaseNotPresentWithLeaseOperation"));
                }
                _ if !is_its(&id) && !is_its(&proposed) => return mismatch(),
                LeaseState::Breaking => return Err(BlobError::new("LeaseIsBreakingAndCannotBeChanged")),
                LeaseState::Leased => {
                    (StatusCode::OK, present.map(|lease| Lease { id: proposed, ..lease }), None)
                }
            },
            LeaseAction::Release(id) if !is_its(&id) => return mismatch(),
            LeaseAction::Release(_) => (StatusCode::OK, None, None),
            LeaseAction::Break { period_us } => {
                let Some(lease) = present else {
                    return Err(BlobError::new("LeaseNotPresentWithLeaseOperation"));
                };
                let left_us = match state {
                    LeaseState::Leased => lease.expires_us.map(|end| end - now),
                    LeaseState::Breaking => lease.broken_us.map(|end| end - now),
                    _ => Some(0),
                };
                let wait_us = match (left_us, period_us) {
                    (Some(left), Some(period)) => left.min(period),
                    (Some(left), None) => left,
                    (None, Some(period)) => period,
                    (None, None) => 0,
                };
                let lease = Lease { broken_us: Some(now + wait_us), ..lease };
                (StatusCode::ACCEPTED, Some(lease), Some(wait_us / SECOND_US))
            }
        };
        let mut answer: Response<_> = empty(status);
        let headers = answer.headers_mut();
        if let (Some(lease), None) = (&lease, time_s) {
            insert(headers, "x-ms-lease-id", &lease.id);
        }
        if let Some(seconds) = time_s {
            headers.insert("x-ms-lease-time", seconds.into());
        }
        insert(headers, "etag", &resource.etag);
        insert(headers, "last-modified", &super::timestamp::http(resource.modified_us));
        match lease {
            Some(lease) => map.insert(key, lease),
            None => map.remove(&key),
        };
        Ok(answer)
    }
}

impl LeaseAction {
    fn in_headers(headers: &HeaderMap) -> Result<LeaseAction, BlobError> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let id = |name: &str| match text(name) {
            None => Ok(None),
            Some(value) if is_guid(value) => Ok(Some(value.to_owned())),
            Some(value) => Err(BlobError::of_header("InvalidHeaderValue", name, value)),
        };
        let required = |name: &str| id(name)?.ok_or_else(|| BlobError::missing_header(name));
        let action =
            text("x-ms-lease-action").ok_or_else(|| BlobError::missing_header("x-ms-lease-action"))?;
        Ok(match action.to_ascii_lowercase().as_str() {
            "acquire" => {
                let name = "x-ms-lease-duration";
                let value = text(name).ok_or_else(|| BlobError::missing_header(name))?;
                let duration_us = match value.parse::<i64>() {
                    Ok(-1) => None,
                    Ok(seconds @ 15..=60) => Some(seconds.unsigned_abs() * SECOND_US),
                    _ => return Err(BlobError::of_header("InvalidHeaderValue", name, value)),
                };
                LeaseAction::Acquire { duration_us, proposed: id("x-ms-proposed-lease-id")? }
            }
            "renew" => LeaseAction::Renew(required("x-ms-lease-id")?),
            "change" => LeaseAction::Change {
                id: required("x-ms-lease-id")?,
                proposed: required("x-ms-proposed-lease-id")?,
            },
            "release" => LeaseAction::Release(required("x-ms-lease-id")?),
            "break" => {
                let name = "x-ms-lease-break-period";
                let period_us = match text(name).map(|value| (value, value.parse::<u64>())) {
                    None => None,
                    Some((_, Ok(seconds @ 0..=60))) => Some(seconds * SECOND_US),
                    Some((value, _)) => return Err(BlobError::of_header("InvalidHeaderValue", name, value)),
                };
                LeaseAction::Break { period_us }
            }
            other => return Err(BlobError::of_header("InvalidHeaderValue", "x-ms-lease-action", other)),
        })
    }
}

/// Returns true for a GUID in one of its formats: with or without hyphens, and with or without brackets.
fn is_guid(text: &str) -> bool {
    let bare = text.trim_matches(['{', '}', '(', ')']);
    let groups: Vec<usize> = bare.split('-').map(str::len).collect();
    (groups == [8, 4, 4, 4, 12] || groups == [32])
        && bare.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
