//! A sender's congestion control, its window and pace: by loss, as CUBIC, or by measured rate, as BBR's first version.

mod bbr;
mod cubic;

use bbr::Bbr;
use cubic::Cubic;

use crate::simulator::wire::{MSS, Nanos};

/// The congestion control of a host's TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    Loss,
    Rate,
}

/// An acknowledgement, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Nanos,
    pub(crate) bytes: u64,
    pub(crate) rtt: Nanos,
    /// Bytes acknowledged in all, and when this was sent.
    pub(crate) delivered: u64,
    pub(crate) delivered_when_sent: u64,
    /// Bytes a second since it was sent.
    pub(crate) rate: f64,
    /// The sender had nothing more to send when this was sent.
    pub(crate) is_app_limited: bool,
    pub(crate) in_flight: u64,
}

const INITIAL: u64 = 10 * MSS;

#[derive(Debug)]
pub(crate) enum Congestion {
    Loss(Cubic),
    Rate(Bbr),
}

impl Congestion {
    pub(crate) fn new(control: Control) -> Self {
        match control {
            Control::Loss => Self::Loss(Cubic::default()),
            Control::Rate => Self::Rate(Bbr::default()),
        }
    }

    /// Bytes that may be on their way.
    pub(crate) fn window(&self) -> u64 {
        match self {
            Self::Loss(cubic) => cubic.window(),
            Self::Rate(bbr) => bbr.window(),
        }
    }

    /// Bytes a second at which it sends; infinite where acknowledgements alone set the pace.
    pub(crate) fn pace(&self) -> f64 {
        match self {
            Self::Loss(_) => f64::INFINITY,
            Self::Rate(bbr) => bbr.pace(),
        }
    }

    pub(crate) fn acked(&mut self, acked: Acked) {
        match self {
            Self::Loss(cubic) => cubic.acked(acked),
            Self::Rate(bbr) => bbr.acked(acked),
        }
    }

    /// Something was lost that was sent at `sent`.
    pub(crate) fn lost(&mut self, now: Nanos, sent: Nanos) {
        match self {
            Self::Loss(cubic) => cubic.lost(now, sent),
            Self::Rate(bbr) => bbr.lost(),
        }
    }

    /// Nothing was acknowledged for so long that everything is taken for lost.
    pub(crate) fn timed_out(&mut self) {
        match self {
            Self::Loss(cubic) => cubic.timed_out(),
            Self::Rate(bbr) => bbr.timed_out(),
        }
    }
}
