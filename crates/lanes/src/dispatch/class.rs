//! Express or freight.

use super::rules::Rules;
use super::{Direction, Role};

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
    /// Body bytes that are sent.
    pub(super) up: u64,
    /// Body bytes that are expected, if that is known.
    pub(super) down: Option<u64>,
    /// True where the answer goes into a sink: without an expectation it may be of any size. A collected answer is metadata.
    is_streamed: bool,
}

impl Size {
    /// A request that sends `up` bytes and expects `down`, and whose answer goes into a sink or not.
    pub(crate) fn new(up: u64, down: Option<u64>, is_streamed: bool) -> Self {
        // Bounded so that sums over any number of attempts don't overflow.
        let bounded = |bytes: u64| bytes.min(1 << 42);
        Self { up: bounded(up), down: down.map(bounded), is_streamed }
    }

    /// Returns whether it is small, bulk or of unknown size.
    pub(super) fn class(&self, rules: &Rules) -> Class {
        match self.down {
            _ if self.up > rules.freight_above => Class::Bulk,
            Some(down) if down > rules.freight_above => Class::Bulk,
            None if self.is_streamed => Class::Opener,
            _ => Class::Small,
        }
    }

    /// Returns the body bytes that are expected, an opener's being assumed.
    pub(super) fn down(&self, rules: &Rules) -> u64 {
        let assumed = if self.class(rules) == Class::Opener { rules.opener_assumed } else { 0 };
        self.down.unwrap_or(assumed)
    }

    /// What the request is carried as, given how many openers, express and freight attempts of its origin are alive.
    pub(super) fn role(&self, rules: &Rules, openers: usize, express: usize, freight: usize) -> Role {
        match self.class(rules) {
            Class::Small => Role::Express,
            Class::Bulk => Role::Freight,
            // Without express attempts all openers are among the freight ones.
            Class::Opener if openers < rules.lone_openers && express == 0 && freight == openers => {
                Role::Freight
            }
            Class::Opener => Role::Express,
        }
    }

    /// Where most of its bytes go.
    pub(super) fn direction(&self, rules: &Rules) -> Direction {
        if self.up > self.down(rules) { Direction::Up } else { Direction::Down }
    }

    /// What the request counts for when lanes are compared, in bytes.
    pub(super) fn weight(&self, rules: &Rules) -> u64 {
        self.up + self.down(rules) + rules.overhead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_direction_makes_bulk() {
        assert_eq!(Size::new(0, Some(Rules::CHOSEN.freight_above), true).class(&Rules::CHOSEN), Class::Small);
        assert_eq!(
            Size::new(0, Some(Rules::CHOSEN.freight_above + 1), true).class(&Rules::CHOSEN),
            Class::Bulk
        );
        assert_eq!(
            Size::new(Rules::CHOSEN.freight_above + 1, None, false).class(&Rules::CHOSEN),
            Class::Bulk
        );
        assert_eq!(Size::new(10, None, false).class(&Rules::CHOSEN), Class::Small);
    }

    #[test]
    fn a_lone_opener_is_freight_and_one_among_many_is_express() {
        let opener = Size::new(0, None, true);
        assert_eq!(opener.role(&Rules::CHOSEN, 0, 0, 0), Role::Freight);
        assert_eq!(opener.role(&Rules::CHOSEN, 1, 0, 1), Role::Freight);
        assert_eq!(opener.role(&Rules::CHOSEN, 2, 0, 2), Role::Express);
        assert_eq!(opener.role(&Rules::CHOSEN, 0, 1, 0), Role::Express);
    }

    #[test]
    fn an_opener_does_not_stand_in_the_queue_of_bulk() {
        let opener = Size::new(0, None, true);
        assert_eq!(opener.role(&Rules::CHOSEN, 0, 0, 4), Role::Express);
        assert_eq!(opener.role(&Rules::CHOSEN, 1, 0, 2), Role::Express);
    }
}
