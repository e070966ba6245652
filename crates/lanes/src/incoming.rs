//! Receives an answer, and passes its body to the request's sink or to memory.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::CONTENT_LENGTH;

use crate::dispatch::Role;
use crate::error::{Error, Kind};
use crate::hedge::Tracker;
use crate::outage::{ORIGIN, Outage};
use crate::stream::IoProgress;
use crate::tally::Tally;
use crate::throttle::AdmissionPass;
use crate::{Origin, Protocol, Response, ResponseHead, Route, Sink};

/// If a body isn't longer than this, all its memory is allocated when its first bytes come. A longer body gets memory only as its bytes
/// come, because a `Content-Length` may announce any length.
const ROOM_AT_ONCE: u64 = 1 << 20;

/// An answer that is being received. Its body goes to the request's sink or to memory.
pub(crate) struct ResponseReceiver {
    sink: Option<Box<dyn Sink>>,
    head: Option<ResponseHead>,
    /// True if the sink takes the body.
    sinking: bool,
    collected: BytesMut,
    sunk: u64,
    /// The role in which the body is carried.
    role: Role,
    tracker: Option<Arc<Tracker>>,
    pass: Option<AdmissionPass>,
    outage: Option<(Arc<Outage>, Origin)>,
    tally: Option<Tally>,
    credential: u64,
    pub(crate) queued: Duration,
    pub(crate) sent_at: Instant,
    first_byte: Duration,
}

impl ResponseReceiver {
    pub(crate) fn new(
        sink: Option<Box<dyn Sink>>,
        submitted: Instant,
        tracker: Option<Arc<Tracker>>,
    ) -> Self {
        let now = Instant::now();
        if let Some(tracker) = &tracker {
            tracker.sent(now);
        }
        Self {
            sink,
            head: None,
            sinking: false,
            collected: BytesMut::new(),
            sunk: 0,
            role: Role::Express,
            tracker,
            pass: None,
            outage: None,
            tally: None,
            credential: 0,
            queued: now.saturating_duration_since(submitted),
            sent_at: now,
            first_byte: Duration::ZERO,
        }
    }

    /// Sets the role in which the body is carried.
    pub(crate) fn riding_as(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Sets the throttle's pass, which admitted the request. If the server answers that it is overloaded, the pass tells the throttle at
    /// once. Otherwise hundreds of further requests could be sent before the call judges this answer.
    pub(crate) fn through(mut self, pass: Option<AdmissionPass>) -> Self {
        self.pass = pass;
        self
    }

    /// Sets the record of the origin's signs of life. If the origin was away, the answer ends the outage and this is logged.
    pub(crate) fn heard_by(mut self, outage: Option<(Arc<Outage>, Origin)>) -> Self {
        if let Some((outage, _)) = &outage {
            outage.sent(self.sent_at);
        }
        self.outage = outage;
        self
    }

    /// Sets the tally that counts this answer. The engine's own counters count it too.
    pub(crate) fn tallied(mut self, tally: Option<Tally>) -> Self {
        self.tally = tally;
        self
    }

    /// Sets the number of the credential that signed the request.
    pub(crate) fn signed_by(mut self, credential: u64) -> Self {
        self.credential = credential;
        self
    }

    /// Returns the tally that counts this answer, if there is one. The engine's own counters count it too.
    pub(crate) fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }

    /// Returns whether the body is carried as freight.
    pub(crate) fn is_bulk(&self) -> bool {
        self.role == Role::Freight
    }

    /// Returns whether a hedge of its request was sent.
    pub(crate) fn is_hedged(&self) -> bool {
        self.tracker.as_ref().is_some_and(|tracker| tracker.is_hedged())
    }

    /// Returns the role in which the body is carried.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Takes the head. Returns where the rest of the body is read.
    pub(crate) fn begin(&mut self, head: ResponseHead) -> Result<Route, Error> {
        let now = Instant::now();
        self.first_byte = now.saturating_duration_since(self.sent_at);
        if let Some((outage, origin)) = &self.outage {
            outage.answered(now, head.status);
            if let Some(away) = outage.is_over(now) {
                let after_ms = away.as_millis() as u64;
                tracing::warn!(target: ORIGIN, %origin, is_away = false, after_ms, "back");
            }
        }
        if let Some(tracker) = &self.tracker {
            tracker.head(now);
        }
        match (&self.pass, head.status) {
            (Some(pass), StatusCode::TOO_MANY_REQUESTS) => pass.refused(now),
            (Some(pass), StatusCode::SERVICE_UNAVAILABLE) => pass.unavailable(now),
            _ => {}
        }
        let mut route = Route::Stay;
        if let Some(sink) = self.sink.as_mut().filter(|_| head.status.is_success()) {
            self.sinking = true;
            route = sink.begin(&head).map_err(refused)?;
        }
        self.head = Some(head);
        Ok(route)
    }

    /// Returns the `Content-Length` of a successful answer.
    pub(crate) fn announced(&self) -> Option<u64> {
        let head = self.head.as_ref().filter(|head| head.status.is_success())?;
        head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Waits until the sink can take more of the body. Nothing is read meanwhile, so the wait doesn't count towards the no-progress
    /// timeout.
    pub(crate) async fn has_room(&mut self, progress: &IoProgress) {
        let Some(sink) = self.sink.as_mut().filter(|_| self.sinking) else { return };
        let mut has_waited = false;
        poll_fn(|context| {
            let ready = sink.poll_ready(context);
            has_waited |= ready.is_pending();
            ready
        })
        .await;
        if has_waited {
            progress.note_at(Instant::now());
        }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Route, Error> {
        if bytes.is_empty() {
            return Ok(Route::Stay);
        }
        let is_good = self.head.as_ref().is_some_and(|head| head.status.is_success());
        if let Some((outage, _)) = self.outage.as_ref().filter(|_| is_good) {
            outage.heard(Instant::now());
        }
        if let Some(tracker) = &self.tracker {
            tracker.body(Instant::now(), bytes.len());
        }
        let route = self.keep(bytes);
        if let Some(tracker) = &self.tracker {
            tracker.sunk(Instant::now());
        }
        route
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<Route, Error> {
        if let Some(sink) = self.sink.as_mut().filter(|_| self.sinking) {
            let route = sink.write(bytes).map_err(refused)?;
            self.sunk += bytes.len() as u64;
            return Ok(route);
        }
        let good = self.head.as_ref().is_some_and(|h| h.status.is_success());
        if good && self.collected.len() + bytes.len() > Response::COLLECTED_BODY_MAX {
            return Err(Error::new(
                Kind::Protocol,
                "the answer has more than 16 MiB, which is too large for a request without a sink",
            ));
        }
        if self.collected.capacity() == 0
            && let Some(len) = self.announced()
        {
            self.collected.reserve(len.min(ROOM_AT_ONCE) as usize);
        }
        let room = if good { bytes.len() } else { Response::ERROR_BODY_MAX - self.collected.len() };
        self.collected.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(if bytes.len() > room { Route::Stop } else { Route::Stay })
    }

    /// Takes an owned chunk of the body. If the chunk is the whole body, it isn't copied.
    pub(crate) fn take_whole(&mut self, bytes: Bytes) -> Result<Route, Error> {
        // The first of several chunks is copied to a buffer to which the others are appended.
        let is_part = self.announced().is_some_and(|len| len > bytes.len() as u64);
        if self.sinking || is_part || !self.collected.is_empty() {
            return self.take(&bytes);
        }
        match bytes.try_into_mut() {
            Ok(owned) if owned.len() <= Response::ERROR_BODY_MAX => {
                self.collected = owned;
                Ok(Route::Stay)
            }
            Ok(owned) => self.take(&owned),
            Err(shared) => self.take(&shared),
        }
    }

    /// Returns the response, once the body has ended.
    pub(crate) fn finish(self, protocol: Protocol, stopped: bool) -> Result<Response, Error> {
        let head = self.head.ok_or_else(|| Error::new(Kind::Protocol, "an answer ended without a head"))?;
        if let Some(tracker) = self.tracker.filter(|_| head.status.is_success()) {
            tracker.whole();
        }
        Ok(Response {
            head,
            body: self.collected.freeze(),
            sunk: self.sunk,
            stopped,
            protocol,
            credential: self.credential,
            queued: self.queued,
            first_byte: self.first_byte,
        })
    }
}

fn refused(e: crate::SinkError) -> Error {
    Error::because(Kind::Sink, "the received bytes can't be used", e)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn announcing(len: Option<u64>) -> ResponseReceiver {
        let mut incoming = ResponseReceiver::new(None, Instant::now(), None);
        let length = len.map(|len| (CONTENT_LENGTH, HeaderValue::from(len)));
        let headers = length.into_iter().collect::<HeaderMap>();
        incoming.begin(ResponseHead { status: StatusCode::OK, headers }).unwrap();
        incoming
    }

    #[test]
    fn a_body_of_known_length_takes_memory_of_that_length_at_once() {
        for is_owned in [false, true] {
            let (body, mut incoming) = ([7; 100_001], announcing(Some(100_001)));
            let mut places = Vec::new();
            for chunk in body.chunks(16 * 1024) {
                let taken = match is_owned {
                    false => incoming.take(chunk),
                    true => incoming.take_whole(Bytes::copy_from_slice(chunk)),
                };
                assert!(matches!(taken, Ok(Route::Stay)));
                places.push((incoming.collected.as_ptr(), incoming.collected.capacity()));
            }
            assert!(places.iter().all(|place| *place == (places[0].0, body.len())), "{places:?}");
            assert_eq!(incoming.finish(Protocol::H1, false).unwrap().body, body.as_slice());
        }
    }

    #[test]
    fn a_body_that_is_whole_and_owned_already_is_not_copied() {
        let (chunk, mut incoming) = (Bytes::from(vec![7; 5000]), announcing(Some(5000)));
        let place = chunk.as_ptr();
        incoming.take_whole(chunk).unwrap();
        assert_eq!(incoming.finish(Protocol::H2, false).unwrap().body.as_ptr(), place);
    }

    #[test]
    fn a_head_that_announces_much_gets_little_memory_until_it_comes() {
        let mut incoming = announcing(Some(60 << 20));
        incoming.take(&[7; 10]).unwrap();
        assert_eq!(incoming.collected.capacity() as u64, ROOM_AT_ONCE);
        let mut incoming = announcing(None);
        incoming.take(&[7; 10]).unwrap();
        assert!(incoming.collected.capacity() < 1000);
    }
}
