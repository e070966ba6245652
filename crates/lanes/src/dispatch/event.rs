//! The dispatcher's vocabulary: events in, actions out, and the numbers of attempts, lanes and origins.

use std::net::SocketAddr;
use std::time::Duration;

#[cfg(doc)]
use super::Dispatcher;
use super::rules::Rules;
use crate::Protocol;

/// One submitted request, by the driver's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct AttemptId(pub(crate) u64);

/// One connection, by the dispatcher's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct LaneId(pub(crate) u64);

/// One origin, by the driver's number, counted from 0 without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct OriginId(pub(crate) usize);

/// The kind of requests that a lane carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Small requests: metadata, objects and ranges up to 1 MiB.
    Express,
    /// Bulk.
    Freight,
}

impl Role {
    /// Its name in logs: `express` or `freight`.
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
    /// A hedge of a request that runs wants to be sent, on another lane.
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
    /// Whoever wanted the request has gone. A running one also ends by [`DispatchEvent::Finished`].
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
    /// So many attempts of unknown kind are about to come.
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
        /// The lane that isn't.
        lane: LaneId,
    },
    /// The server announced how many streams it takes on this lane.
    Streams {
        /// The lane.
        lane: LaneId,
        /// The limit.
        max: usize,
    },
    /// The answer to an attempt of unknown size tells its size.
    Sized {
        /// The attempt.
        attempt: AttemptId,
        /// Bytes of its body.
        bytes: u64,
    },
    /// An attempt turned out to be bulk while it ran: its lane, where it is alone on it, is freight from now on.
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
    /// The lane takes nothing new, but what runs on it goes on: an HTTP/1.1 answer said `Connection: close`. Of a GOAWAY
    /// the driver learns when the next request is refused, and then says [`DispatchEvent::Finished`] with a lane that is not
    /// reusable.
    Draining {
        /// The lane.
        lane: LaneId,
    },
    /// The lane is gone. Of one that was idle it is learned how long its server keeps those.
    Closed {
        /// The lane.
        lane: LaneId,
    },
    /// The server has begun its first answer on this lane.
    Answered {
        /// The lane.
        lane: LaneId,
    },
    /// The lane's first request was reset, or is silent beside others that are answered. [`DispatchEvent::Finished`] comes besides.
    Unserved {
        /// The lane.
        lane: LaneId,
    },
    /// The server had closed the lane before a request was sent on it, or about to be. [`DispatchEvent::Finished`] and
    /// [`DispatchEvent::Closed`] come besides.
    Stale {
        /// The lane.
        lane: LaneId,
    },
    /// The server says how long it keeps idle connections.
    KeepsIdle {
        /// The lane on which it does.
        lane: LaneId,
        /// The time.
        limit: Duration,
    },
    /// The machine, or this process, has stood still for long.
    Slept,
    /// Bytes that have moved over all lanes of an origin since the engine started.
    Moved {
        /// The origin.
        origin: OriginId,
        /// From the server.
        down: u64,
        /// To the server, and acknowledged; `None` where that can't be known.
        up: Option<u64>,
        /// The figures of the connection that moved most since the last time, where the system tells.
        flow: Option<TcpSample>,
    },
    /// The time asked for by [`Dispatcher::next_tick`] has come.
    Tick,
}

/// TCP's own figures of a connection that carries bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TcpSample {
    /// The round trip that its packets take now, queues included.
    pub(crate) round_trip: Duration,
    /// The time since the last of them.
    pub(crate) quiet: Duration,
    /// Packets that had to be sent again, or came behind a missing one, on all connections to the origin since the last time.
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
        /// As what.
        role: Role,
    },
    /// Close an idle lane. No event is expected.
    Close {
        /// The lane.
        lane: LaneId,
    },
    /// Bulk of this direction moves at most at this rate from now on, over all lanes.
    Yield {
        /// The direction.
        direction: Direction,
        /// Bytes a second; `None` lets it go.
        rate: Option<u64>,
    },
    /// Each of the origin's connections that carries bulk to us may have so many bytes outstanding from now on.
    Window {
        /// The origin.
        origin: OriginId,
        /// Bytes; `None` leaves it to TCP.
        bytes: Option<u32>,
    },
    /// Each of the origin's connections that uploads bulk may have so many bytes in its send buffer, sent and not acknowledged
    /// ones included, from now on.
    SendBuffer {
        /// The origin.
        origin: OriginId,
        /// Bytes; `None` leaves it to TCP.
        bytes: Option<u32>,
    },
    /// The kernel takes so many bytes of bulk from each of the origin's connections that uploads it, beyond what it may send
    /// at once.
    Unsent {
        /// The origin.
        origin: OriginId,
        /// Bytes.
        bytes: u32,
    },
    /// Each of the origin's connections that uploads bulk may send so fast from now on.
    Pace {
        /// The origin.
        origin: OriginId,
        /// Bytes a second; `None` leaves it to TCP.
        rate: Option<u32>,
    },
    /// So many more requests for bulk of this origin would each get a lane that pays.
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
        /// Whose error it shares.
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
    /// An answer whose size is not known yet.
    Opener,
}

/// Bytes of a request, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestSize {
    /// Body bytes that are sent.
    pub(super) up: u64,
    /// Body bytes that are expected, if that is known.
    pub(super) down: Option<u64>,
    /// True where the answer goes into a sink: without an expectation it may be of any size. A collected answer is metadata.
    is_streamed: bool,
}

impl RequestSize {
    /// A request that sends `up` bytes and expects `down`, and whose answer goes into a sink or not.
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

    /// Returns the body bytes that are expected, an opener's being assumed.
    pub(super) fn down(&self, rules: &Rules) -> u64 {
        let assumed = if self.class(rules) == RequestClass::Opener { rules.opener_assumed } else { 0 };
        self.down.unwrap_or(assumed)
    }

    /// Returns what the request is carried as, given how many openers, express and freight attempts of its origin are alive.
    pub(super) fn role(&self, rules: &Rules, openers: usize, express: usize, freight: usize) -> Role {
        match self.class(rules) {
            RequestClass::Small => Role::Express,
            RequestClass::Bulk => Role::Freight,
            // Without express attempts all openers are among the freight ones.
            RequestClass::Opener if openers < rules.lone_openers && express == 0 && freight == openers => {
                Role::Freight
            }
            RequestClass::Opener => Role::Express,
        }
    }

    /// Returns where most of its bytes go.
    pub(super) fn direction(&self, rules: &Rules) -> Direction {
        if self.up > self.down(rules) { Direction::Up } else { Direction::Down }
    }

    /// Returns the bytes that it counts for when lanes are compared.
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
