//! The dispatcher's events and actions, and the numbers of attempts, lanes and origins.

use std::net::SocketAddr;
use std::time::Duration;

#[cfg(doc)]
use super::Dispatcher;
use super::rules::Rules;
use crate::Protocol;

/// One try of a request. The driver numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct AttemptId(pub(crate) u64);

/// One connection. The dispatcher numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct LaneId(pub(crate) u64);

/// One origin. The driver numbers them from 0 without gaps.
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
    /// From the server.
    Down,
    /// To the server.
    Up,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Down, Self::Up];
}

/// An event that the driver reports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DispatchEvent {
    /// A request wants to be sent.
    Submitted {
        /// Its number.
        attempt: AttemptId,
        /// Where it goes.
        origin: OriginId,
        /// Its size, as far as it is known.
        size: RequestSize,
    },
    /// A hedge, which is a second try of a request that still runs, wants to be sent on another lane.
    Hedged {
        /// Its number.
        attempt: AttemptId,
        /// Where it goes.
        origin: OriginId,
        /// Its size, as far as it is known.
        size: RequestSize,
        /// The attempt that it hedges.
        hedge_of: AttemptId,
    },
    /// The caller no longer wants the request. If its attempt runs, [`DispatchEvent::Finished`] follows.
    Cancelled {
        /// Its number.
        attempt: AttemptId,
    },
    /// The origin is likely to speak this protocol.
    Expected {
        /// The origin.
        origin: OriginId,
        /// The protocol.
        protocol: Protocol,
    },
    /// The caller announces attempts of unknown kind.
    Anticipated {
        /// Where to.
        origin: OriginId,
        /// Their number.
        attempts: usize,
    },
    /// A dial's TCP handshake has shown the round trip; the lane isn't open yet.
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
        /// The round trip its handshake saw.
        rtt: Duration,
    },
    /// The address of the origin that a lane leads to.
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
    /// The server announced how many streams it takes on this lane.
    Streams {
        /// The lane.
        lane: LaneId,
        /// The limit.
        max: usize,
    },
    /// The answer to an opener, a request of unknown size, tells its size.
    Sized {
        /// The attempt.
        attempt: AttemptId,
        /// Bytes of its body.
        bytes: u64,
    },
    /// A running attempt turned out to be bulk. If it is alone on its lane, the lane becomes a freight lane.
    TurnedFreight {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An attempt ended, well or not.
    Finished {
        /// The attempt.
        attempt: AttemptId,
        /// True if its lane can take another request.
        reusable: bool,
    },
    /// The lane takes nothing new, but its requests go on: an HTTP/1.1 answer said `Connection: close`. After an HTTP/2 GOAWAY, the driver
    /// only notices when a new request is refused. It then says [`DispatchEvent::Finished`] with `reusable` false.
    Draining {
        /// The lane.
        lane: LaneId,
    },
    /// The lane is gone. If it was idle, this shows how long its server keeps idle connections.
    Closed {
        /// The lane.
        lane: LaneId,
    },
    /// The server has begun its first answer on this lane.
    Answered {
        /// The lane.
        lane: LaneId,
    },
    /// The lane's first request was reset, or is silent while others are answered. [`DispatchEvent::Finished`] follows.
    Unserved {
        /// The lane.
        lane: LaneId,
    },
    /// The server had closed the lane before a request was sent on it, or about to be. [`DispatchEvent::Finished`] and
    /// [`DispatchEvent::Closed`] follow.
    Stale {
        /// The lane.
        lane: LaneId,
    },
    /// The server announces how long it keeps idle connections.
    KeepsIdle {
        /// The lane that announced it.
        lane: LaneId,
        /// The time.
        limit: Duration,
    },
    /// The machine, or this process, has stood still for long, as after a suspend.
    Slept,
    /// Bytes that have moved over all lanes of an origin since the engine started.
    Moved {
        /// The origin.
        origin: OriginId,
        /// From the server.
        down: u64,
        /// To the server, and acknowledged. `None` where the system can't tell.
        up: Option<u64>,
        /// The figures of the connection that moved most since the last time, where the system tells.
        flow: Option<TcpSample>,
    },
    /// The time that [`Dispatcher::next_tick`] returned has come.
    Tick,
}

/// TCP's own figures of a connection that carries bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TcpSample {
    /// The round trip that its packets take now, queues included.
    pub(crate) round_trip: Duration,
    /// The time since the last packet came.
    pub(crate) quiet: Duration,
    /// Packets since the last sample, on all connections to the origin, that were sent again or came behind a missing one.
    pub(crate) disordered: u64,
}

/// An action for the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DispatchAction {
    /// Open a connection; answer with [`DispatchEvent::Opened`] or [`DispatchEvent::DialFailed`].
    Dial {
        /// The new lane.
        lane: LaneId,
        /// Where to.
        origin: OriginId,
        /// The role that it is for.
        role: Role,
    },
    /// Send an attempt on a lane; answer with [`DispatchEvent::Finished`].
    Send {
        /// The attempt.
        attempt: AttemptId,
        /// The lane.
        lane: LaneId,
        /// The role that it is sent in.
        role: Role,
    },
    /// Close an idle lane. No event is expected.
    Close {
        /// The lane.
        lane: LaneId,
    },
    /// Bulk of this direction may move at most at this rate from now on, over all lanes.
    Yield {
        /// The direction.
        direction: Direction,
        /// Bytes a second. `None` removes the limit.
        rate: Option<u64>,
    },
    /// Each of the origin's connections that download bulk may have at most this many bytes in flight from now on.
    Window {
        /// The origin.
        origin: OriginId,
        /// Bytes; `None` leaves it to TCP.
        bytes: Option<u32>,
    },
    /// The send buffer of each of the origin's connections that upload bulk may hold at most this many bytes from now on. Bytes that were
    /// sent but not acknowledged count.
    SendBuffer {
        /// The origin.
        origin: OriginId,
        /// Bytes; `None` leaves it to TCP.
        bytes: Option<u32>,
    },
    /// For each of the origin's connections that upload bulk, the kernel takes at most this many bytes beyond those that it may send at
    /// once.
    Unsent {
        /// The origin.
        origin: OriginId,
        /// Bytes.
        bytes: u32,
    },
    /// Each of the origin's connections that upload bulk may send at this rate from now on.
    Pace {
        /// The origin.
        origin: OriginId,
        /// Bytes a second; `None` leaves it to TCP.
        rate: Option<u32>,
    },
    /// This many more bulk requests to the origin would each get a lane that pays.
    Spare {
        /// The origin.
        origin: OriginId,
        /// Their number.
        lanes: usize,
    },
    /// The attempt can't be sent: the lane that was dialled for it failed.
    Fail {
        /// The attempt.
        attempt: AttemptId,
        /// The lane whose error it shares.
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

/// Bytes of a request, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestSize {
    /// Body bytes that are sent.
    pub(super) up: u64,
    /// Body bytes of the expected answer, if known.
    pub(super) down: Option<u64>,
    /// True if the answer goes into a sink. Without an expected size it may then have any. A collected answer is metadata, and small.
    is_streamed: bool,
}

impl RequestSize {
    /// A request that sends `up` bytes and expects `down`. `is_streamed` tells whether the answer goes into a sink.
    pub(crate) fn new(up: u64, down: Option<u64>, is_streamed: bool) -> Self {
        // Bounded so that sums over any number of attempts don't overflow.
        let bounded = |bytes: u64| bytes.min(1 << 42);
        Self { up: bounded(up), down: down.map(bounded), is_streamed }
    }

    /// Returns whether it is small, bulk or of unknown size.
    pub(super) fn class(&self, rules: &Rules) -> RequestClass {
        match self.down {
            _ if self.up > rules.freight_above => RequestClass::Bulk,
            Some(down) if down > rules.freight_above => RequestClass::Bulk,
            None if self.is_streamed => RequestClass::Opener,
            _ => RequestClass::Small,
        }
    }

    /// Returns the body bytes of the expected answer, or the assumed ones of an opener.
    pub(super) fn down(&self, rules: &Rules) -> u64 {
        let assumed = if self.class(rules) == RequestClass::Opener { rules.opener_assumed } else { 0 };
        self.down.unwrap_or(assumed)
    }

    /// Returns the request's role, given the number of its origin's openers, express attempts and freight attempts.
    pub(super) fn role(&self, rules: &Rules, openers: usize, express: usize, freight: usize) -> Role {
        match self.class(rules) {
            RequestClass::Small => Role::Express,
            RequestClass::Bulk => Role::Freight,
            // If there are no express attempts, all openers are freight.
            RequestClass::Opener if openers < rules.lone_openers && express == 0 && freight == openers => {
                Role::Freight
            }
            RequestClass::Opener => Role::Express,
        }
    }

    /// Returns the direction of most of its bytes.
    pub(super) fn direction(&self, rules: &Rules) -> Direction {
        if self.up > self.down(rules) { Direction::Up } else { Direction::Down }
    }

    /// Returns the bytes that it counts for when loads of lanes are compared.
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
