//! What the simulator and its scenarios look at inside of a dispatcher: nothing of it decides anything.

use super::{Direction, Dispatcher};

impl Dispatcher {
    /// Whether small requests are counted in a direction, which bulk may yield to.
    pub(crate) fn counts_small(&self, direction: Direction) -> bool {
        self.links[direction as usize].small > 0
    }

    /// What is still counted though nothing is left to be done.
    pub(crate) fn left_over(&self) -> Option<String> {
        let origins =
            self.origins.iter().map(|o| (o.express_live, o.freight_live, o.openers, o.express_weight));
        let origins =
            origins.filter(|counts| *counts != (0, 0, 0, 0)).map(|counts| format!("{counts:?} of an origin"));
        let of_origins =
            self.origins.iter().flat_map(|o| [(o.down.small, o.down.bulk), (o.up.small, o.up.bulk)]);
        let directions = self.links.iter().map(|link| (link.small, link.bulk)).chain(of_origins);
        let directions =
            directions.filter(|counts| *counts != (0, 0)).map(|counts| format!("{counts:?} of a direction"));
        let lanes = self.lanes.values().filter(|l| l.in_flight > 0 || l.uploads > 0 || l.weight > 0);
        let attempts = self.attempts.values().map(|attempt| format!("{attempt:?}"));
        origins.chain(directions).chain(lanes.map(|lane| format!("{lane:?}"))).chain(attempts).next()
    }
}
