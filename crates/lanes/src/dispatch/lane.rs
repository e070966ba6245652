//! One lane, as the dispatcher knows it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::rules::Rules;
use super::{OriginId, Role};
use crate::Protocol;

#[derive(Debug)]
pub(super) struct Lane {
    rules: &'static Rules,
    pub(super) origin: OriginId,
    pub(super) role: Role,
    pub(super) state: LaneState,
    /// When it was dialled, then when it opened.
    pub(super) since: Instant,
    pub(super) in_flight: usize,
    /// Bytes of the attempts in flight.
    pub(super) weight: u64,
    /// How many of them are bulk that goes up.
    pub(super) uploads: usize,
    /// Since when nothing has been on it.
    pub(super) idle_since: Instant,
    /// How long nothing had been on it before what is on it now, or was last.
    pub(super) rested: Duration,
    /// When it was given the first of what is on it now, or was last.
    pub(super) asked: Instant,
    /// True once its server has answered on it.
    pub(super) has_answered: bool,
    /// True once it counts as one that its server doesn't serve.
    pub(super) is_unserved: bool,
    /// Where it leads.
    pub(super) address: Option<SocketAddr>,
    streams_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LaneState {
    Dialling,
    Open(Protocol),
    /// Takes nothing new.
    Draining,
}

impl Lane {
    pub(super) fn dialling(rules: &'static Rules, origin: OriginId, role: Role, now: Instant) -> Self {
        let state = LaneState::Dialling;
        Self {
            rules,
            origin,
            role,
            state,
            since: now,
            in_flight: 0,
            weight: 0,
            uploads: 0,
            idle_since: now,
            rested: Duration::ZERO,
            asked: now,
            has_answered: false,
            is_unserved: false,
            address: None,
            streams_max: rules.streams_max,
        }
    }

    pub(super) fn open(&mut self, now: Instant, protocol: Protocol) {
        self.state = LaneState::Open(protocol);
        (self.since, self.idle_since) = (now, now);
    }

    pub(super) fn limit_streams(&mut self, max: usize) {
        self.streams_max = max.clamp(1, self.rules.streams_max);
    }

    pub(super) fn is_dialling(&self) -> bool {
        self.state == LaneState::Dialling
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, LaneState::Open(_))
    }

    /// Whether it is open and nothing is on it.
    pub(super) fn is_idle(&self) -> bool {
        self.is_open() && self.in_flight == 0
    }

    pub(super) fn is_draining(&self) -> bool {
        self.state == LaneState::Draining
    }

    /// Returns whether it is open and carries one attempt at a time. Its attempt may take it along to the other role.
    pub(super) fn is_exclusive(&self) -> bool {
        matches!(self.state, LaneState::Open(protocol) if !protocol.is_multiplexed())
    }

    /// Returns how many attempts it carries at once as a lane of the role; 0 unless it is open.
    fn attempts_max(&self, role: Role) -> usize {
        match (self.state, role) {
            (LaneState::Open(protocol), _) if !protocol.is_multiplexed() => 1,
            (LaneState::Open(_), Role::Express) => self.streams_max,
            (LaneState::Open(_), Role::Freight) => self.rules.freight_streams.min(self.streams_max),
            _ => 0,
        }
    }

    /// Whether another attempt fits: a free stream, and not more than the lane's share of the queue.
    pub(super) fn can_take(&self, role: Role, weight: u64, share: Option<u64>) -> bool {
        self.in_flight < self.attempts_max(role)
            && (self.in_flight == 0 || share.is_none_or(|s| self.weight + weight <= s))
    }

    pub(super) fn take(&mut self, now: Instant, weight: u64) {
        if self.in_flight == 0 {
            self.rested = now.saturating_duration_since(self.idle_since);
            self.asked = now;
        }
        self.in_flight += 1;
        self.weight += weight;
    }

    pub(super) fn give_back(&mut self, now: Instant, weight: u64) {
        self.in_flight -= 1;
        self.idle_since = now;
        self.weight -= weight;
    }
}
