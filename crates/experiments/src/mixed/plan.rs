//! The plan of a mixed experiment, and its objects. The objects' sizes are random numbers from the plan's seed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::latency::Latencies;
use crate::place::Target;
use crate::random::Random;
use crate::stage::Supply;
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

/// An object and its name below the experiment's prefix.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) size: u64,
}

pub(super) struct Load {
    pub(super) large: Vec<Object>,
    pub(super) small: Vec<Object>,
    seed: u64,
}

impl Load {
    pub(super) fn draw(plan: &Plan) -> Self {
        let mut random = Random::new(plan.seed);
        let large = (0..plan.large)
            .map(|n| Object { name: format!("large-{n:03}"), size: plan.large_size })
            .collect();
        let (least, most) = plan.small_size;
        let small = (0..plan.small)
            .map(|n| Object { name: format!("small-{n:05}"), size: random.between(least, most) })
            .collect();
        Self { large, small, seed: plan.seed }
    }

    /// Returns the bytes of all objects.
    pub(super) fn bytes(&self) -> u64 {
        self.large.iter().chain(&self.small).map(|object| object.size).sum()
    }

    /// Returns the bytes of the smaller half of the small objects. At least these bytes must be moved before half of
    /// the small objects are complete.
    pub(super) fn smaller_half(&self) -> u64 {
        let mut sizes: Vec<u64> = self.small.iter().map(|object| object.size).collect();
        sizes.sort_unstable();
        sizes[..sizes.len().div_ceil(2)].iter().sum()
    }

    /// Returns the shortest possible time of each small object, in seconds. Assumes that their bytes begin to flow at
    /// `begun_s`, the smallest object first, and at the given bandwidth if it is known.
    pub(super) fn floors(&self, begun_s: f64, bandwidth: Option<u64>) -> Latencies {
        let mut sizes: Vec<u64> = self.small.iter().map(|object| object.size).collect();
        sizes.sort_unstable();
        let mut bytes = 0;
        let ended = sizes.into_iter().map(|size| {
            bytes += size;
            begun_s + bandwidth.map_or(0.0, |rate| bytes as f64 / rate as f64)
        });
        Latencies::new(ended.collect())
    }

    pub(super) fn supplies(&self) -> Vec<Supply> {
        let objects = self.large.iter().chain(&self.small).enumerate();
        let supply = |(n, object): (usize, &Object)| Supply {
            name: object.name.clone(),
            seed: self.seed ^ ((n as u64) << 32),
            size: object.size,
        };
        objects.map(supply).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_of_the_median_is_the_median_of_the_floors() {
        let object = |size| Object { name: String::new(), size };
        let load = Load { large: Vec::new(), small: [300, 100, 200].map(object).to_vec(), seed: 1 };
        let floors = load.floors(1.0, Some(1000));
        assert_eq!(floors.sorted(), [1.1, 1.3, 1.6]);
        assert_eq!(floors.percentile(50.0), 1.0 + load.smaller_half() as f64 / 1000.0);
        assert_eq!(load.floors(1.0, None).sorted(), [1.0; 3]);
    }
}
