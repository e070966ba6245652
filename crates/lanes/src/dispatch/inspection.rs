//! What the simulator and its scenarios look at inside of a dispatcher: nothing of it decides anything.

use super::ledger::Account;
use super::{Direction, Dispatcher};

impl Dispatcher {
    /// Whether small requests are counted in a direction, which bulk may yield to.
    pub(crate) fn counts_small(&self, direction: Direction) -> bool {
        self.ledger.outstanding(direction).small > 0
    }

    /// What is still counted though nothing is left to be done.
    pub(crate) fn left_over(&self) -> Option<String> {
        let of_origin =
            |account: &Account| (account.express, account.freight, account.openers, account.express_weight);
        let origins = self.ledger.accounts().map(|(_, account)| of_origin(account));
        let origins =
            origins.filter(|counts| *counts != (0, 0, 0, 0)).map(|counts| format!("{counts:?} of an origin"));
        let directions = Direction::BOTH.into_iter().flat_map(|direction| {
            let of_origins = self.ledger.accounts().map(move |(_, account)| account.outstanding(direction));
            of_origins.chain([self.ledger.outstanding(direction)])
        });
        let directions = directions.filter(|sum| !sum.is_none()).map(|sum| format!("{sum:?}"));
        let lanes = self.ledger.lanes().filter(|(_, l)| l.in_flight > 0 || l.uploads > 0 || l.weight > 0);
        let attempts = self.ledger.attempts().map(|attempt| format!("{attempt:?}"));
        origins.chain(directions).chain(lanes.map(|(_, lane)| format!("{lane:?}"))).chain(attempts).next()
    }
}
