//! Express or freight.

use super::{Direction, Role};

/// Bodies above this many bytes are freight. At 1 MiB a body keeps a 1 Gbit/s link for 8 ms, about what a small request
/// can bear behind it; and one S3 stream of some 90 MB/s needs 11 ms for it, less than the round trip that fetching it
/// in ranges would cost.
pub(crate) const FREIGHT_ABOVE: u64 = 1 << 20;

/// What a request weighs on its lane beside its body: request and answer heads, and a store's JSON or XML answer.
const OVERHEAD: u64 = 1024;

/// What the body of an opener is taken for until its answer tells: what most small objects stay below.
pub(super) const OPENER_ASSUMED: u64 = 256 * 1024;

/// An opener may go as freight at once while at most this many are alive and nothing else is: a program that fetches
/// one or two objects of unknown size saves bulk the detour over an express lane. Among many, most are small; and beside
/// other bulk a small one would stand in its queue: one in fifty that came while four large objects did waited 1.5 s.
const OPENERS_AS_FREIGHT: usize = 2;

/// What is known of a request's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Small in both directions.
    Small,
    /// Bulk in one direction.
    Bulk,
    /// The answer's size is not known yet.
    Opener,
}

/// A request as the dispatcher sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    /// Small, bulk or not known.
    pub(crate) class: Class,
    /// Body bytes that are sent.
    pub(crate) up: u64,
    /// Body bytes that are expected, an opener's being assumed.
    pub(crate) down: u64,
}

impl Size {
    /// Classifies a request that sends `up` bytes and expects `down`. `streamed` says that its answer goes into a sink:
    /// without an expectation it may be of any size, where a collected answer is metadata.
    pub(crate) fn new(up: u64, down: Option<u64>, streamed: bool) -> Self {
        let class = match down {
            _ if up > FREIGHT_ABOVE => Class::Bulk,
            Some(down) if down > FREIGHT_ABOVE => Class::Bulk,
            None if streamed => Class::Opener,
            _ => Class::Small,
        };
        let assumed = if class == Class::Opener { OPENER_ASSUMED } else { 0 };
        // Bounded so that sums over any number of attempts don't overflow.
        let bounded = |bytes: u64| bytes.min(1 << 42);
        Self { class, up: bounded(up), down: bounded(down.unwrap_or(assumed)) }
    }

    /// What the request is carried as, given how many openers, express and freight attempts of its origin are alive.
    pub(super) fn role(&self, openers: usize, express: usize, freight: usize) -> Role {
        match self.class {
            Class::Small => Role::Express,
            Class::Bulk => Role::Freight,
            // Without express attempts all openers are among the freight ones.
            Class::Opener if openers < OPENERS_AS_FREIGHT && express == 0 && freight == openers => {
                Role::Freight
            }
            Class::Opener => Role::Express,
        }
    }

    /// Where most of its bytes go.
    pub(super) fn direction(&self) -> Direction {
        if self.up > self.down { Direction::Up } else { Direction::Down }
    }

    /// What the request counts for when lanes are compared, in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.up + self.down + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_direction_makes_bulk() {
        assert_eq!(Size::new(0, Some(FREIGHT_ABOVE), true).class, Class::Small);
        assert_eq!(Size::new(0, Some(FREIGHT_ABOVE + 1), true).class, Class::Bulk);
        assert_eq!(Size::new(FREIGHT_ABOVE + 1, None, false).class, Class::Bulk);
        assert_eq!(Size::new(10, None, false).class, Class::Small);
    }

    #[test]
    fn a_lone_opener_is_freight_and_one_among_many_is_express() {
        let opener = Size::new(0, None, true);
        assert_eq!(opener.role(0, 0, 0), Role::Freight);
        assert_eq!(opener.role(1, 0, 1), Role::Freight);
        assert_eq!(opener.role(2, 0, 2), Role::Express);
        assert_eq!(opener.role(0, 1, 0), Role::Express);
    }

    #[test]
    fn an_opener_does_not_stand_in_the_queue_of_bulk() {
        let opener = Size::new(0, None, true);
        assert_eq!(opener.role(0, 0, 4), Role::Express);
        assert_eq!(opener.role(1, 0, 2), Role::Express);
    }
}
