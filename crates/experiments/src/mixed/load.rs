//! The objects of an experiment. The objects' sizes are random numbers from the plan's seed.

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::latency::Latencies;
use crate::random::Random;
use crate::stage::Supply;

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
