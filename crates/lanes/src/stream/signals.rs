//! Signals of a connection's path, beside the bytes that the program has read and written.

use crate::dispatch::{Direction, Flow};

/// The signals of one connection's path. A transport tells what it knows. By default it knows nothing, and nothing is concluded then.
pub(crate) trait PathSignals: std::fmt::Debug + Send + Sync {
    /// About how many bytes have come and can't be read yet, or weren't. Without it what was read counts, which comes in bursts behind
    /// each lost packet.
    fn waiting(&self) -> Option<u64> {
        None
    }

    /// Returns how many of the written bytes the peer hasn't acknowledged. Without it uploads are not judged.
    fn unacknowledged(&self) -> Option<u64> {
        None
    }

    /// Returns how many segments were sent again so far. Without it `Counters::segments_resent` is 0.
    fn resent(&self) -> Option<u64> {
        None
    }

    /// The round trip that the connection's packets take now, and how long none has come or gone. Without it a queue on the path isn't
    /// seen, and lanes are added that bring nothing and leave again.
    fn flow(&self, _direction: Direction) -> Option<Flow> {
        None
    }
}
