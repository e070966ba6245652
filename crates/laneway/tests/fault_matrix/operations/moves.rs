//! Moves: under every fault the source stays until its copy is complete and correct.

use laneway::{Client, CopyRequest, Location};
use laneway_testkit::inverted;

use super::{Ended, demand, one};
use crate::rig::{Rig, SMALL_BYTES};

/// The direction of a move of one object or file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// From the folder to the store.
    Up,
    Down,
    /// Inside the store.
    Within,
    /// From one dialect to the other.
    Across,
}

use Way::*;

const SOURCE: &str = "source";
const DESTINATION: &str = "destination";

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Up => "move-up",
            Down => "move-down",
            Within => "move-within",
            Across => "move-across",
        }
    }

    pub(super) fn requests_max(self) -> u64 {
        match self {
            Up => 1,
            Down => 2,
            Within => 3,
            Across => 5,
        }
    }

    pub(super) fn prepare(self, rig: &Rig) {
        let file = |name: &str, bytes: &[u8]| std::fs::write(rig.work().join(name), bytes).unwrap();
        match self {
            Up => file(SOURCE, &SMALL_BYTES),
            Down | Within | Across => rig.endpoint.put(SOURCE, &SMALL_BYTES),
        }
        match self {
            Down => file(DESTINATION, b"old"),
            Up | Within | Across => rig.endpoint.put(DESTINATION, b"old"),
        }
    }

    pub(super) fn carry_out(self, rig: &Rig, client: &Client) -> Result<(), Ended> {
        let file = |name: &str| Location::Local(rig.work().join(name));
        let source = if self == Up { file(SOURCE) } else { rig.url(SOURCE) };
        let destination = match self {
            Down => file(DESTINATION),
            Up | Within => rig.url(DESTINATION),
            Across => rig.url_across(DESTINATION),
        };
        one(client.copy(CopyRequest::new(vec![source], destination).remove_source(true)))
    }

    pub(super) fn leftover(self, rig: &Rig, succeeded: bool) -> Result<(), String> {
        let file = |name: &str| std::fs::read(rig.work().join(name)).ok();
        let source = if self == Up { file(SOURCE) } else { rig.endpoint.stored(SOURCE) };
        let destination = if self == Down { file(DESTINATION) } else { rig.endpoint.stored(DESTINATION) };
        let is_whole = |there: &[u8]| there == *SMALL_BYTES || there == inverted(&SMALL_BYTES);
        let has_arrived = destination.as_deref().is_some_and(is_whole);
        let is_old = destination.as_deref() == Some(b"old");
        demand(has_arrived || is_old && !succeeded, "the destination is neither old nor the source")?;
        demand(source.is_some() || has_arrived, "the source is gone, and its copy is not there")?;
        demand(source.as_deref().is_none_or(is_whole), "the source has other bytes")?;
        demand(source.is_none() || !succeeded, "the source is still there")
    }

    /// Returns true if the object that another writer put in the source's place is still there.
    pub(crate) fn has_kept_replacement(rig: &Rig) -> bool {
        rig.endpoint.stored(SOURCE) == Some(inverted(&SMALL_BYTES))
    }

    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Up => &[SOURCE],
            Down => &[DESTINATION],
            Within | Across => &[],
        }
    }
}
