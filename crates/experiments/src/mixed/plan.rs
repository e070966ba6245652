//! The plan of a mixed experiment.

use std::path::PathBuf;

use crate::Error;
use crate::place::Target;
use crate::turns::Repeats;

/// The minimum and maximum bytes of a small object. Small objects in lakehouses have such sizes.
pub const SMALL_SIZE: (u64, u64) = (32 << 10, 512 << 10);

/// The objects that are moved together, and the store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of large objects.
    pub large: usize,
    /// Bytes of each large object.
    pub large_size: u64,
    /// Number of small objects.
    pub small: usize,
    /// The minimum and maximum bytes of a small object.
    pub small_size: (u64, u64),
    /// Small objects per second that arrive while large ones are moved. `None` skips the measurement with random
    /// arrivals.
    pub arrivals: Option<f64>,
    /// `true` uploads the objects instead of downloading them.
    pub puts: bool,
    /// The seed of the small objects' sizes and of the arrival times.
    pub seed: u64,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// The folder for files. `None` uses memory if there is enough, else the folder for temporary files.
    pub folder: Option<PathBuf>,
    /// `true` lets installed programs take part if the store is embedded in this process.
    pub programs: bool,
    /// The store.
    pub target: Target,
}

impl Plan {
    /// Returns the number and size of the objects as human-readable text.
    pub(super) fn what(&self) -> String {
        let size = |bytes: u64| match bytes {
            b if b >= 1 << 20 => format!("{} MiB", b >> 20),
            b => format!("{} KiB", b >> 10),
        };
        let (least, most) = self.small_size;
        let (large, small) = (self.large, self.small);
        format!(
            "{large} objects of {} and {small} of {} to {}",
            size(self.large_size),
            size(least),
            size(most)
        )
    }

    /// Checks that the plan can be carried out.
    ///
    /// # Errors
    /// Returns [`Error::Plan`] if a number is out of bounds.
    pub fn check(&self) -> Result<(), Error> {
        let refused = |why: &str| Err(Error::Plan(why.to_owned()));
        if self.small == 0 || self.runs.least == 0 {
            return refused("the plan needs at least one small object and one run");
        }
        if self.small > 10_000 || self.large > 1000 {
            return refused("the plan can have at most 10,000 small and 1000 large objects");
        }
        if self.small_size.0 == 0 || self.small_size.0 > self.small_size.1 {
            return refused(
                "a small object needs at least one byte, and the smallest size can't be above the largest",
            );
        }
        if self.large > 0 && self.large_size == 0 {
            return refused("a large object needs at least one byte");
        }
        if self.large == 0 && self.arrivals.is_some() {
            return refused("with --arrivals, the plan needs at least one large object");
        }
        Ok(())
    }
}
