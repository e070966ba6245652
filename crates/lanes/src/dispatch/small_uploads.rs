//! How much of small uploads may lie in send buffers and be on its way from us.
//!
//! Many connections that all begin at once overflow the path's queue, each probing for itself, and whoever loses the end of
//! his body waits for a timeout. So the connections that carry small uploads share little more than the path holds, and go
//! on as fast as it takes that.

use super::goodput::Goodput;
use super::in_flight::UP_UNKNOWN;
use super::limit::{Applied, NEARBY, Sharing};

/// What the buffers hold, in bandwidth-delay products.
const GAIN: f64 = 2.0;

/// And this in addition, in bytes: what goes out while our threads are not running.
const SLACK: f64 = 256.0 * 1024.0;

/// A lane's buffer is never smaller: below a few segments TCP falls into timeouts.
const LANE_MIN: f64 = 32.0 * 1024.0;

/// A buffer that would be larger than any small body is left to TCP.
const LANE_MAX: f64 = 1024.0 * 1024.0;

/// What differs by less than one in so many isn't said.
const CHANGE_MIN: u32 = 4;

/// What the path is taken to carry up, in bytes a second: what was seen, and until bulk has filled it at least what is
/// assumed of one of which nothing is known.
pub(super) fn assumed(goodput: &Goodput) -> f64 {
    let seen = goodput.rate().unwrap_or_default();
    if goodput.is_full() { seen } else { seen.max(UP_UNKNOWN) }
}

/// The clamp of connections that carry small uploads.
#[derive(Debug, Default)]
pub(super) struct SmallUploads {
    applied: Applied,
}

impl SmallUploads {
    /// What each of the lanes may have in its send buffer, in bytes: `Some` when that differs by much from what was said
    /// last. `Some(None)` leaves it to TCP again.
    pub(super) fn decide(
        &mut self,
        Sharing { lanes, rtt }: Sharing,
        goodput: &Goodput,
    ) -> Option<Option<u32>> {
        if lanes == 0 {
            // Whoever comes next finds what held before.
            return None;
        }
        let share = (assumed(goodput) * rtt.as_secs_f64() * GAIN + SLACK) / lanes as f64;
        let is_held = rtt >= NEARBY && share <= LANE_MAX;
        self.applied.update(is_held.then(|| share.max(LANE_MIN) as u32), CHANGE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NEAR: Duration = Duration::from_millis(2);

    #[test]
    fn many_lanes_share_little_more_than_the_path_holds() {
        let mut small = SmallUploads::default();
        let clamp =
            small.decide(Sharing { lanes: 16, rtt: NEAR }, &Goodput::default()).flatten().expect("a clamp");
        assert!((500_000..=1_000_000).contains(&(16 * clamp)), "{clamp}");
        assert_eq!(small.decide(Sharing { lanes: 15, rtt: NEAR }, &Goodput::default()), None, "nothing new");
        assert_eq!(
            small.decide(Sharing { lanes: 0, rtt: NEAR }, &Goodput::default()),
            None,
            "nothing to share it"
        );
    }

    #[test]
    fn a_few_lanes_and_far_ones_are_left_to_tcp() {
        let (mut small, unknown) = (SmallUploads::default(), Goodput::default());
        assert_eq!(small.decide(Sharing { lanes: 4, rtt: Duration::from_millis(50) }, &unknown), None);
        assert!(small.decide(Sharing { lanes: 16, rtt: NEAR }, &unknown).flatten().is_some());
        assert_eq!(
            small.decide(Sharing { lanes: 16, rtt: Duration::from_micros(200) }, &unknown),
            Some(None)
        );
    }
}
