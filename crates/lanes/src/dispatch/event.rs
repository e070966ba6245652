//! The dispatcher's events and actions, and the ids of attempts, lanes and origins.

use std::net::SocketAddr;
use std::time::Duration;

#[cfg(doc)]
use super::Dispatcher;
use super::rules::Rules;
use crate::Protocol;

/// The id of an attempt, which is one try of a request. The driver assigns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct AttemptId(pub(crate) u64);

/// The id of a connection. The dispatcher assigns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct LaneId(pub(crate) u64);

/// The id of an origin. The driver assigns these from 0 without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct OriginId(pub(crate) usize);

/// The kind of requests that a lane carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Small requests: metadata, objects and ranges up to 1 MiB.
    Express,
    /// Bulk: bodies above 1 MiB.
    Freight,
}

impl Role {
    /// Returns the name for logs: `express` or `freight`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Express => "express",
            Self::Freight => "freight",
        }
    }
}

/// The direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the server to us.
    Down,
    /// From us to the server.
    Up,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Down, Self::Up];
}

/// An event that the driver reports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DispatchEvent {
    /// A request was submitted.
    Submitted {
        /// The id of the attempt.
        attempt: AttemptId,
        /// The origin of the request.
        origin: OriginId,
        /// The size of the request and of its answer, as far as they are known.
        size: RequestSize,
    },
    /// A hedge was submitted: a second try of a request that still runs. The hedge must be sent on another lane.
    Hedged {
        /// The id of the attempt.
        attempt: AttemptId,
        /// The origin of the request.
        origin: OriginId,
        /// The size of the request and of its answer, as far as they are known.
        size: RequestSize,
        /// The attempt that this hedge repeats.
        hedge_of: AttemptId,
    },
    /// The caller has cancelled the request. If its attempt runs, [`DispatchEvent::Finished`] follows.
    Cancelled {
        /// The id of the attempt.
        attempt: AttemptId,
    },
    /// The origin is likely to speak this protocol.
    Expected {
        /// The origin.
        origin: OriginId,
        /// The protocol.
        protocol: Protocol,
    },
    /// The caller announces attempts that it will submit soon, so that lanes can be dialled for them.
    Anticipated {
        /// The origin of the announced attempts.
        origin: OriginId,
        /// The number of announced attempts.
        attempts: usize,
    },
    /// The TCP handshake of a dial has ended, after one round trip. The lane isn't open yet.
    Reached {
        /// The lane.
        lane: LaneId,
        /// The round trip.
        rtt: Duration,
    },
    /// A dial succeeded.
    Opened {
        /// The lane.
        lane: LaneId,
        /// The protocol that it speaks.
        protocol: Protocol,
        /// The round trip that its handshake measured.
        rtt: Duration,
    },
    /// Reports the address to which a lane is connected.
    Located {
        /// The lane.
        lane: LaneId,
        /// The address.
        address: SocketAddr,
    },
    /// A dial failed.
    DialFailed {
        /// The lane that was being dialled.
        lane: LaneId,
    },
    /// The server has announced how many concurrent streams it allows on this lane.
    Streams {
        /// The lane.
        lane: LaneId,
        /// The maximum number of concurrent streams.
        max: usize,
    },
    /// The size of an answer is now known. The driver reports it if the request was an opener, whose answer can have any size. It also
    /// reports it if the answer is small but larger than one window.
    Sized {
        /// The attempt.
        attempt: AttemptId,
        /// The size of the answer's body in bytes.
        bytes: u64,
    },
    /// A running attempt turned out to be bulk. If it is alone on its lane, the lane becomes a freight lane.
    TurnedFreight {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An attempt has ended, successfully or not.
    Finished {
        /// The attempt.
        attempt: AttemptId,
        /// True if its lane can take another request.
        reusable: bool,
    },
    /// The lane takes no further requests, but its running request continues: an HTTP/1.1 answer had `Connection: close`. The driver
    /// doesn't send this event after an HTTP/2 GOAWAY. It notices a GOAWAY only when a new request is refused, and then sends
    /// [`DispatchEvent::Finished`] with `reusable` false.
    Draining {
        /// The lane.
        lane: LaneId,
    },
    /// The lane's connection has ended. If the lane was idle, this shows how long its server keeps idle connections open.
    Closed {
        /// The lane.
        lane: LaneId,
    },
    /// The server has begun its first answer on this lane.
    Answered {
        /// The lane.
        lane: LaneId,
    },
    /// The lane's first request was reset, or has no answer while requests on other lanes are answered. [`DispatchEvent::Finished`]
    /// follows.
    Unserved {
        /// The lane.
        lane: LaneId,
    },
    /// A request found that the server had already closed the lane. [`DispatchEvent::Finished`] and [`DispatchEvent::Closed`] follow.
    Stale {
        /// The lane.
        lane: LaneId,
    },
    /// The server announces how long it keeps idle connections open.
    KeepsIdle {
        /// The lane on which the server announced it.
        lane: LaneId,
        /// The idle timeout.
        limit: Duration,
    },
    /// The machine or this process was stopped for a long time, for example by a suspend.
    Slept,
    /// A reading of the bytes that have moved over all lanes of an origin since the engine started.
    Moved {
        /// The origin.
        origin: OriginId,
        /// Bytes from the server.
        down: u64,
        /// Bytes to the server that the server has acknowledged. `None` on systems that don't report acknowledged bytes.
        up: Option<u64>,
        /// TCP's figures of the connection that has moved the most bytes since the last reading. `None` on systems that don't report them.
        flow: Option<TcpSample>,
    },
    /// The time that [`Dispatcher::next_tick`] returned has come.
    Tick,
}

/// Measurements of the kernel's TCP for a connection that carries bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TcpSample {
    /// The present round trip of the connection's packets, including the time in queues.
    pub(crate) round_trip: Duration,
    /// The time since the last packet was received.
    pub(crate) quiet: Duration,
    /// The number of packets since the last sample that were retransmitted or came out of order, on all connections to the origin.
    pub(crate) disordered: u64,
}

/// An action for the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DispatchAction {
    /// Open a connection. [`DispatchEvent::Opened`] or [`DispatchEvent::DialFailed`] must follow.
    Dial {
        /// The new lane.
        lane: LaneId,
        /// The origin to connect to.
        origin: OriginId,
        /// The role of the new lane.
        role: Role,
    },
    /// Send an attempt on a lane. [`DispatchEvent::Finished`] must follow.
    Send {
        /// The attempt.
        attempt: AttemptId,
        /// The lane.
        lane: LaneId,
        /// The role of the lane for this attempt.
        role: Role,
    },
    /// Close an idle lane. No event follows.
    Close {
        /// The lane.
        lane: LaneId,
    },
    /// Limit bulk of this direction to this rate, over all lanes together.
    Yield {
        /// The direction.
        direction: Direction,
        /// The limit in bytes per second. `None` removes it.
        rate: Option<u64>,
    },
    /// Limit the bytes in flight on each of the origin's connections that download bulk.
    Window {
        /// The origin.
        origin: OriginId,
        /// The limit in bytes. `None` removes it.
        bytes: Option<u32>,
    },
    /// Limit the send buffer of each of the origin's connections that upload bulk. The limit includes bytes that were sent but not
    /// acknowledged.
    SendBuffer {
        /// The origin.
        origin: OriginId,
        /// The limit in bytes. `None` removes it.
        bytes: Option<u32>,
    },
    /// Limit the bytes that the kernel holds but can't send yet, for each of the origin's connections that upload bulk.
    Unsent {
        /// The origin.
        origin: OriginId,
        /// The limit in bytes.
        bytes: u32,
    },
    /// Limit the rate of each of the origin's connections that upload bulk.
    Pace {
        /// The origin.
        origin: OriginId,
        /// The limit in bytes per second. `None` removes it.
        rate: Option<u32>,
    },
    /// Report the number of further bulk requests to the origin, each on its own lane, that would raise goodput.
    Spare {
        /// The origin.
        origin: OriginId,
        /// The number of such requests.
        lanes: usize,
        /// The number of these lanes that are open and idle.
        open: usize,
    },
    /// Fail an attempt, because the lane that was dialled for it couldn't be opened.
    Fail {
        /// The attempt.
        attempt: AttemptId,
        /// The lane whose error becomes the attempt's error.
        because: LaneId,
    },
}

/// A request's class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestClass {
    /// Small in both directions.
    Small,
    /// Bulk in one direction.
    Bulk,
    /// A request whose answer may have any size.
    Opener,
}

/// The size of a request and of its answer, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestSize {
    /// The size of the request's body.
    pub(super) up: u64,
    /// The expected size of the answer's body, if known.
    pub(super) down: Option<u64>,
    /// True if the answer's body goes to a sink. Such a body may be large if its size isn't known. Answers that are collected in memory are
    /// metadata, and small.
    is_streamed: bool,
}

impl RequestSize {
    /// Describes a request that sends `up` body bytes and expects `down`. `is_streamed` says if the answer's body goes to a sink.
    pub(crate) fn new(up: u64, down: Option<u64>, is_streamed: bool) -> Self {
        // Limit the numbers, so that sums over many attempts can't overflow.
        let bounded = |bytes: u64| bytes.min(1 << 42);
        Self { up: bounded(up), down: down.map(bounded), is_streamed }
    }

    /// Returns the class of the request: small, bulk or of unknown size.
    pub(super) fn class(&self, rules: &Rules) -> RequestClass {
        match self.down {
            _ if self.up > rules.freight_above => RequestClass::Bulk,
            Some(down) if down > rules.freight_above => RequestClass::Bulk,
            None if self.is_streamed => RequestClass::Opener,
            _ => RequestClass::Small,
        }
    }

    /// Returns the expected size of the answer's body. For an opener it is an assumed size.
    pub(super) fn down(&self, rules: &Rules) -> u64 {
        let assumed = if self.class(rules) == RequestClass::Opener { rules.opener_assumed } else { 0 };
        self.down.unwrap_or(assumed)
    }

    /// Returns the request's role, given the number of its origin's openers, express attempts and freight attempts.
    pub(super) fn role(&self, rules: &Rules, openers: usize, express: usize, freight: usize) -> Role {
        match self.class(rules) {
            RequestClass::Small => Role::Express,
            RequestClass::Bulk => Role::Freight,
            // Without express attempts, all openers are freight. So here `freight == openers` means that there is no other freight.
            RequestClass::Opener if openers < rules.lone_openers && express == 0 && freight == openers => {
                Role::Freight
            }
            RequestClass::Opener => Role::Express,
        }
    }

    /// Returns the direction in which more bytes of the request and its answer move.
    pub(super) fn direction(&self, rules: &Rules) -> Direction {
        if self.up > self.down(rules) { Direction::Up } else { Direction::Down }
    }

    /// Returns the number of bytes that the request adds to the load of a lane.
    pub(super) fn weight(&self, rules: &Rules) -> u64 {
        self.up + self.down(rules) + rules.overhead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_direction_makes_bulk() {
        assert_eq!(
            RequestSize::new(0, Some(Rules::CHOSEN.freight_above), true).class(&Rules::CHOSEN),
            RequestClass::Small
        );
        assert_eq!(
            RequestSize::new(0, Some(Rules::CHOSEN.freight_above + 1), true).class(&Rules::CHOSEN),
            RequestClass::Bulk
        );
        assert_eq!(
            RequestSize::new(Rules::CHOSEN.freight_above + 1, None, false).class(&Rules::CHOSEN),
            RequestClass::Bulk
        );
        assert_eq!(RequestSize::new(10, None, false).class(&Rules::CHOSEN), RequestClass::Small);
    }

    #[test]
    fn a_lone_opener_is_freight_and_one_among_many_is_express() {
        let opener = RequestSize::new(0, None, true);
        assert_eq!(opener.role(&Rules::CHOSEN, 0, 0, 0), Role::Freight);
        assert_eq!(opener.role(&Rules::CHOSEN, 1, 0, 1), Role::Freight);
        assert_eq!(opener.role(&Rules::CHOSEN, 2, 0, 2), Role::Express);
        assert_eq!(opener.role(&Rules::CHOSEN, 0, 1, 0), Role::Express);
    }

    #[test]
    fn an_opener_does_not_stand_in_the_queue_of_bulk() {
        let opener = RequestSize::new(0, None, true);
        assert_eq!(opener.role(&Rules::CHOSEN, 0, 0, 4), Role::Express);
        assert_eq!(opener.role(&Rules::CHOSEN, 1, 0, 2), Role::Express);
    }
}
