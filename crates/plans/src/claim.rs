//! Leases: the right to run a part, or to use a share of the bandwidth, for a term.
//!
//! A lease is a small file that its holder renews. Whether it has expired is decided by the clock of the store
//! (or file system) that holds the file, so the clocks of the runners may differ. Two runners can still work on
//! one part, for example if one of them was suspended for longer than the term. This does no harm: both do the same,
//! and the first result counts.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use laneway::{Error, Version};
use serde::{Deserialize, Serialize};

use crate::files::{FileState, PlanFiles};
use crate::format::refused;

/// The number of runners that may take a lease without finishing its part. If that many runners have died on a part, the
/// part is the likely cause.
pub(crate) const ATTEMPTS_MAX: u32 = 10;
/// The longest term of a lease.
pub(crate) const TERM_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Added to a term, because stores report times in whole seconds.
const PRECISION: Duration = Duration::from_secs(2);

/// The content of a lease's file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) runner: String,
    /// The number of times that the lease was taken, this one included.
    pub(crate) attempt: u32,
    /// The lease expires this many seconds after its file was written. 0 if its holder has given it up.
    pub(crate) term_s: u64,
    pub(crate) renewals: u64,
}

/// The decision on a lease that a runner wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClaimChoice {
    /// The lease is free.
    Create,
    /// The lease has expired. This attempt takes it over.
    TakeOver { attempt: u32 },
    /// Another runner holds the lease.
    Wait,
    /// The lease has expired too often.
    GiveUp,
}

/// Decides on a lease, by its content, the time when it was written, and the store's present time.
pub(crate) fn choose(held: Option<(&Claim, SystemTime)>, now: SystemTime) -> ClaimChoice {
    let Some((claim, written)) = held else { return ClaimChoice::Create };
    let is_given_up = claim.term_s == 0;
    let ends = written + Duration::from_secs(claim.term_s.min(TERM_MAX.as_secs())) + PRECISION;
    if !is_given_up && now < ends {
        return ClaimChoice::Wait;
    }
    match claim.attempt < ATTEMPTS_MAX || is_given_up {
        true => ClaimChoice::TakeOver { attempt: claim.attempt + u32::from(!is_given_up) },
        false => ClaimChoice::GiveUp,
    }
}

/// A lease that this runner holds.
#[derive(Debug)]
pub(crate) struct Lease {
    name: String,
    claim: Claim,
    version: Version,
}

/// The outcome of an attempt to take a lease.
#[derive(Debug)]
pub(crate) enum ClaimOutcome {
    Taken(Lease),
    /// Another runner holds the lease, or has just taken it.
    Held,
    /// The lease has expired too often.
    GivenUp,
}

/// The name of the file by which a runner learns the store's time.
fn clock_name(runner: &str) -> String {
    format!("runners/{runner}.json")
}

/// The store's clock. It is read once, when it is first needed.
pub(crate) struct StoreClock<'a> {
    files: &'a dyn PlanFiles,
    reader: &'a str,
    now: Cell<Option<SystemTime>>,
}

impl Drop for StoreClock<'_> {
    fn drop(&mut self) {
        if self.now.get().is_some() {
            // The file is small, so it does no harm if it stays.
            drop(self.files.remove(&clock_name(self.reader)));
        }
    }
}

impl<'a> StoreClock<'a> {
    /// Returns a clock that this runner reads.
    pub(crate) fn new(files: &'a dyn PlanFiles, reader: &'a str) -> Self {
        Self { files, reader, now: Cell::new(None) }
    }

    /// Returns the store's time: the time when a file was just written.
    ///
    /// # Errors
    /// The store's errors.
    pub(crate) fn now(&self) -> Result<SystemTime, Error> {
        if let Some(now) = self.now.get() {
            return Ok(now);
        }
        let name = clock_name(self.reader);
        self.files.put(&name, format!("{{\"runner\":\"{}\"}}\n", self.reader).as_bytes())?;
        match self.files.read(&name)? {
            Some(FileState { changed, .. }) => {
                self.now.set(Some(changed));
                Ok(changed)
            }
            None => Err(refused(self.files.shown(&name), "was removed while the plan runs")),
        }
    }
}

fn json(claim: &Claim) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(claim).map_err(|e| crate::format::local("a lease", e))
}

impl Lease {
    /// Tries to take a lease. With `is_forced`, also takes a lease that has expired too often.
    ///
    /// # Errors
    /// The store's errors; `ErrorKind::Refused` if the lease's file isn't one.
    pub(crate) fn take(
        clock: &StoreClock<'_>,
        name: &str,
        (runner, term): (&str, Duration),
        is_forced: bool,
    ) -> Result<ClaimOutcome, Error> {
        let files = clock.files;
        let there = match files.read(name)? {
            Some(there) => {
                let claim: Claim = serde_json::from_slice(&there.bytes)
                    .map_err(|e| refused(files.shown(name), format!("isn't a lease of a plan: {e}")))?;
                Some((claim, there))
            }
            None => None,
        };
        let choice = match &there {
            None => ClaimChoice::Create,
            Some((claim, there)) => choose(Some((claim, there.changed)), clock.now()?),
        };
        let attempt = match choice {
            ClaimChoice::Create => 1,
            ClaimChoice::TakeOver { attempt } => attempt,
            ClaimChoice::Wait => return Ok(ClaimOutcome::Held),
            ClaimChoice::GiveUp if is_forced => 1,
            ClaimChoice::GiveUp => return Ok(ClaimOutcome::GivenUp),
        };
        let claim = Claim { runner: runner.to_owned(), attempt, term_s: term.as_secs().max(1), renewals: 0 };
        let version = match &there {
            None => files.create(name, &json(&claim)?)?,
            Some((_, there)) => files.replace(name, &json(&claim)?, &there.version)?,
        };
        Ok(match version {
            Some(version) => ClaimOutcome::Taken(Self { name: name.to_owned(), claim, version }),
            None => ClaimOutcome::Held,
        })
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.claim.attempt
    }

    /// Renews the lease for another term. Returns false if another runner has taken it over.
    ///
    /// # Errors
    /// The store's errors.
    pub(crate) fn renew(&mut self, files: &dyn PlanFiles) -> Result<bool, Error> {
        self.claim.renewals += 1;
        match files.replace(&self.name, &json(&self.claim)?, &self.version)? {
            Some(version) => {
                self.version = version;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Gives the lease up, so that another runner can take it at once.
    ///
    /// # Errors
    /// The store's errors.
    pub(crate) fn give_up(mut self, files: &dyn PlanFiles) -> Result<(), Error> {
        self.claim.term_s = 0;
        files.replace(&self.name, &json(&self.claim)?, &self.version).map(drop)
    }
}

/// Finds out whether the store keeps the conditions of writes, without which two runners could take the same lease.
///
/// # Errors
/// `ErrorKind::Unsupported` if the store ignores conditions; else the store's errors.
pub(crate) fn check_conditions(files: &dyn PlanFiles, runner: &str) -> Result<(), Error> {
    let name = format!("runners/{runner}-check.json");
    let first = files.create(&name, b"1\n")?;
    let second = files.create(&name, b"2\n")?;
    let kept = match (&first, &second) {
        (Some(first), None) => {
            let third = files.replace(&name, b"3\n", first)?;
            third.is_some() && files.replace(&name, b"4\n", first)?.is_none()
        }
        _ => false,
    };
    files.remove(&name)?;
    match kept {
        true => Ok(()),
        false => Err(laneway::internal::error(
            laneway::ErrorKind::Unsupported,
            files.shown(&name),
            "this store ignores the conditions of writes, so several runners could take the same part; \
             put the plan's folder elsewhere, or use one runner with --single-runner",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn claim(attempt: u32, term_s: u64) -> Claim {
        Claim { runner: "r".to_owned(), attempt, term_s, renewals: 0 }
    }

    #[test]
    fn a_lease_is_held_for_its_term_and_then_taken_over() {
        assert_eq!(choose(None, at(0)), ClaimChoice::Create);
        let held = claim(1, 60);
        assert_eq!(choose(Some((&held, at(100))), at(161)), ClaimChoice::Wait);
        assert_eq!(choose(Some((&held, at(100))), at(162)), ClaimChoice::TakeOver { attempt: 2 });
    }

    #[test]
    fn a_lease_that_was_given_up_is_free_at_once() {
        assert_eq!(choose(Some((&claim(5, 0), at(100))), at(100)), ClaimChoice::TakeOver { attempt: 5 });
    }

    #[test]
    fn a_part_whose_runners_always_die_is_left_alone() {
        assert_eq!(choose(Some((&claim(ATTEMPTS_MAX, 60), at(100))), at(1000)), ClaimChoice::GiveUp);
    }

    #[test]
    fn a_store_whose_clock_goes_back_frees_no_lease() {
        assert_eq!(choose(Some((&claim(1, 60), at(100))), at(50)), ClaimChoice::Wait);
    }
}
