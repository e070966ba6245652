//! The plan of a ladder.

use std::time::Duration;

use crate::Error;
use crate::place::{Imitated, Target};
use crate::turns::Repeats;

/// Maximum number of files. The method `concurrent` opens a connection for each file.
const FILES_MAX: usize = 10_000;
/// Maximum bytes of all files together. The methods that upload all files at once hold them in memory, as simple
/// programs do.
const BYTES_MAX: u64 = 256 << 20;

/// The plan of a ladder.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of files that each method uploads.
    pub files: usize,
    /// Bytes of each file.
    pub size: u64,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// True if the slowest methods take part. The slowest methods open a connection for each file, one file after another.
    pub one_by_one: bool,
    /// True if installed programs take part. They require the embedded store.
    pub programs: bool,
    /// The store.
    pub target: Target,
}

impl Default for Plan {
    /// Returns the plan of the original measurement: fifty empty files to another continent.
    fn default() -> Self {
        Self {
            files: 50,
            size: 0,
            runs: Repeats::times(3),
            one_by_one: true,
            programs: true,
            target: Target::Embedded(Imitated::at(Duration::from_millis(50))),
        }
    }
}

impl Plan {
    /// Checks that the plan can be carried out.
    ///
    /// # Errors
    /// Returns [`Error::Plan`] if there are no files or runs, more than 10,000 files, or more than 256 MiB together.
    pub fn check(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Plan(why));
        if self.files == 0 || self.runs.least == 0 {
            return refused("`bench ladder` needs at least one file and one run".to_owned());
        }
        if self.files > FILES_MAX {
            return refused(format!("`bench ladder` uploads at most {FILES_MAX} files"));
        }
        if (self.files as u64).checked_mul(self.size).is_none_or(|bytes| bytes > BYTES_MAX) {
            return refused(format!(
                "`bench ladder` is for small files: all files together can have at most {} MiB",
                BYTES_MAX >> 20
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_beyond_the_bounds_is_refused() {
        let plan = Plan::default();
        assert!(plan.check().is_ok());
        assert!(Plan { files: 0, ..plan.clone() }.check().is_err());
        assert!(Plan { runs: Repeats::times(0), ..plan.clone() }.check().is_err());
        assert!(Plan { files: FILES_MAX + 1, ..plan.clone() }.check().is_err());
        assert!(Plan { files: 2, size: BYTES_MAX / 2, ..plan.clone() }.check().is_ok());
        assert!(Plan { files: 2, size: BYTES_MAX / 2 + 1, ..plan.clone() }.check().is_err());
        assert!(Plan { files: 3, size: u64::MAX, ..plan }.check().is_err());
    }
}
