//! Google Cloud Storage: the JSON API, and the XML API for parallel multipart uploads.

mod batch;
mod delete;
mod failure;
mod get;
mod head;
mod list;
mod multipart;
mod put;
mod resource;
mod resumable;
mod rewrite;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use laneway_lanes::{Lanes, Protocol, Request, Response};

use crate::credentials::Google;
use crate::endpoint::Endpoint;
use crate::exchange::{Dialect, Outgoing};
use crate::judge::Failure;
use crate::requests::Tally;
use crate::settings::fingerprint;
use crate::{Error, ErrorKind, Operation, Provider, Settings};

const PUBLIC: &str = "https://storage.googleapis.com";

/// The GCS dialect with its endpoint and credentials.
#[derive(Debug)]
pub(crate) struct Gcs {
    lanes: Lanes,
    tally: Tally,
    endpoint: Endpoint,
    credentials: Google,
    headers: HeaderMap,
    project: Option<String>,
    kms_key: Option<String>,
    /// Set once the server has shown that it knows no XML multipart upload.
    lacks_multipart: AtomicBool,
    /// Set once the server has shown that it knows no batches.
    lacks_batch: AtomicBool,
}

impl Gcs {
    pub(crate) fn new(settings: &Settings, lanes: Lanes) -> Result<Arc<Self>, Error> {
        let endpoint = Endpoint::parse(settings.gcs_endpoint.as_deref().unwrap_or(PUBLIC))?;
        if endpoint.is_tls() {
            lanes.expect(&endpoint.origin, Protocol::H2);
        }
        let mut headers: HeaderMap = settings.headers.iter().cloned().collect();
        if let Some(project) = &settings.user_project {
            let invalid =
                |_| Error::new(ErrorKind::Invalid, Operation::Open, format!("{project:?} is no project"));
            headers.insert("x-goog-user-project", HeaderValue::try_from(project).map_err(invalid)?);
        }
        let credentials =
            if settings.anonymous { Google::anonymous() } else { Google::for_endpoint(&endpoint, &lanes) };
        Ok(Arc::new(Self {
            lanes,
            tally: Tally::default(),
            endpoint,
            credentials,
            headers,
            project: settings.project.clone(),
            kms_key: settings.kms_key.clone(),
            lacks_multipart: AtomicBool::new(false),
            lacks_batch: AtomicBool::new(false),
        }))
    }

    pub(crate) fn anticipate(&self, requests: usize) {
        self.lanes.anticipate(&self.endpoint.origin, requests);
    }

    pub(crate) fn endpoint(&self) -> String {
        self.endpoint.to_string()
    }

    pub(crate) fn fingerprint(&self) -> String {
        fingerprint(&self.headers, self.kms_key.as_deref())
    }

    pub(crate) fn supports_multipart(&self) -> bool {
        !self.lacks_multipart.load(Ordering::Acquire)
    }
}

impl Dialect for Gcs {
    const PROVIDER: Provider = Provider::Gcs;

    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    async fn request(&self, _bucket: &str, outgoing: &Outgoing) -> Result<Request, Error> {
        let (origin, target) = match &outgoing.origin {
            Some(origin) => (origin.clone(), outgoing.target.clone()),
            None => (self.endpoint.origin.clone(), format!("{}{}", self.endpoint.base, outgoing.target)),
        };
        let target = target.parse().map_err(|e| {
            Error::new(ErrorKind::Invalid, Operation::Open, format!("no request target: {e}"))
        })?;
        // A session's URL is its own credential, and another host must not see ours.
        let ours = origin == self.endpoint.origin;
        let mut request = Request::new(origin, outgoing.method.clone(), target);
        request.headers = self.headers.clone();
        request.headers.extend(outgoing.headers.clone());
        if ours && let Some(bearer) = self.credentials.authorization().await? {
            request.headers.insert(AUTHORIZATION, bearer);
        }
        request.body = outgoing.body.clone();
        request.expected = outgoing.expected;
        request.patience = outgoing.patience;
        Ok(request)
    }

    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<Failure> {
        let status = response.head.status;
        if status.is_success() || outgoing.also == Some(status) {
            return None;
        }
        Some(failure::read(&response.head, &response.body))
    }

    fn kind(&self, failure: &Failure) -> ErrorKind {
        failure::kind(failure)
    }

    fn learn(&self, _bucket: &str, failure: &Failure) -> bool {
        failure.status == StatusCode::UNAUTHORIZED && self.credentials.forget()
    }
}
