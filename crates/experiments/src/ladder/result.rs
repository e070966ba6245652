//! What a ladder found.

use std::time::Duration;

use super::Rung;
use super::rival;

/// A ladder that was climbed.
#[derive(Debug)]
pub struct Ladder {
    /// The store's URL.
    pub store: String,
    /// The path's round-trip time as the client measured it.
    pub rtt: Duration,
    /// The least time that the path allows a cold client.
    pub floor: Duration,
    /// A row for each rung, in the order of [`Rung::ALL`].
    pub rows: Vec<Row>,
}

/// A rung's result.
#[derive(Debug)]
pub struct Row {
    /// The rung.
    pub rung: Rung,
    /// Its median run (of an even number, the slower of the two in the middle), or why one of its runs failed.
    pub result: Result<Figures, Failure>,
}

/// What a run took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// From nothing to the last answer.
    pub time: Duration,
    /// What the client counted.
    pub tally: Tally,
    /// The time in round trips.
    pub round_trips: f64,
    /// The time over the floor.
    pub floor_ratio: f64,
}

/// What a client counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Requests sent.
    pub requests: u64,
    /// TCP connections established.
    pub connections: u64,
}

/// Why a run has no figures.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A request of one of the five usual ways failed.
    #[error(transparent)]
    Rival(#[from] rival::Error),
    /// Laneway failed.
    #[error(transparent)]
    Laneway(#[from] ::laneway::Error),
    /// Laneway's job ended without telling how.
    #[error("the job ended without a summary")]
    Unfinished,
    /// A file of the ladder's own couldn't be read.
    #[error("a file to be uploaded can't be read")]
    File(#[source] std::io::Error),
    /// The uploads succeeded, and afterwards the store held something else.
    #[error("{right} of {wanted} objects are in the store with {size} bytes each, and {wrong} others")]
    Wrong {
        /// Objects with the right name and size.
        right: usize,
        /// How many there should be.
        wanted: usize,
        /// Bytes that each should have.
        size: u64,
        /// Objects with another name or size.
        wrong: usize,
    },
}

/// A row from a rung's runs.
pub(super) fn row(
    rung: Rung,
    runs: Vec<Result<(Duration, Tally), Failure>>,
    rtt: Duration,
    floor: Duration,
) -> Row {
    let over =
        |time: Duration, unit: Duration| time.as_secs_f64() / unit.as_secs_f64().max(f64::MIN_POSITIVE);
    let result = runs.into_iter().collect::<Result<Vec<_>, _>>().map(|mut runs| {
        runs.sort_by_key(|(time, _)| *time);
        let (time, tally) = runs.get(runs.len() / 2).copied().unwrap_or_default();
        Figures { time, tally, round_trips: over(time, rtt), floor_ratio: over(time, floor) }
    });
    Row { rung, result }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ran(ms: u32, connections: u64) -> Result<(Duration, Tally), Failure> {
        Ok((MS * ms, Tally { requests: 50, connections }))
    }

    #[test]
    fn a_row_is_the_median_run_with_its_own_counts() {
        let runs = vec![ran(200, 3), ran(150, 2), ran(900, 4)];
        let row = row(Rung::Laneway, runs, MS * 50, MS * 100);
        let figures = row.result.expect("figures");
        assert_eq!((figures.time, figures.tally.connections), (MS * 200, 3));
        assert_eq!((figures.round_trips, figures.floor_ratio), (4.0, 2.0));
    }

    #[test]
    fn of_two_runs_the_slower_one_counts() {
        let row = row(Rung::Single, vec![ran(3, 1), ran(2, 1)], MS, MS);
        assert_eq!(row.result.expect("figures").time, MS * 3);
    }

    #[test]
    fn one_failed_run_fails_the_row() {
        let wrong = Failure::Wrong { right: 49, wanted: 50, size: 0, wrong: 0 };
        let row = row(Rung::Http2, vec![ran(3, 1), Err(wrong)], MS, MS);
        assert!(row.result.unwrap_err().to_string().starts_with("49 of 50 objects"));
    }
}
