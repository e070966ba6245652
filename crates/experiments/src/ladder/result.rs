//! What a ladder found.

use std::time::Duration;

use super::Rung;
use crate::Failure;
use crate::rival::Tally;
use crate::table::{Line, Table, seconds};
use crate::trace::Trace;

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
    /// What that run did on its connections; empty where it failed.
    pub trace: Trace,
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

impl Ladder {
    /// What people are shown.
    pub fn table(&self) -> Table {
        let head = vec!["way", "seconds", "requests", "connections", "round trips", "times the floor"];
        let cells = |figures: &Figures| {
            vec![
                seconds(figures.time.as_secs_f64()),
                figures.tally.requests.to_string(),
                figures.tally.connections.to_string(),
                format!("{:.1}", figures.round_trips),
                format!("{:.2}", figures.floor_ratio),
            ]
        };
        let line = |row: &Row| Line {
            name: row.rung.description().to_owned(),
            cells: row.result.as_ref().map(cells).unwrap_or_default(),
            failure: row.result.as_ref().err().map(Failure::remark),
        };
        Table { head, rows: self.rows.iter().map(line).collect() }
    }
}

/// A row from a rung's runs.
pub(super) fn row(
    rung: Rung,
    runs: Vec<Result<(Duration, Tally, Trace), Failure>>,
    rtt: Duration,
    floor: Duration,
) -> Row {
    let over =
        |time: Duration, unit: Duration| time.as_secs_f64() / unit.as_secs_f64().max(f64::MIN_POSITIVE);
    let result = runs.into_iter().collect::<Result<Vec<_>, _>>().map(|mut runs| {
        runs.sort_by_key(|(time, ..)| *time);
        let middle = runs.len() / 2;
        let (time, tally, trace) = runs.into_iter().nth(middle).unwrap_or_default();
        let figures = Figures { time, tally, round_trips: over(time, rtt), floor_ratio: over(time, floor) };
        (figures, trace)
    });
    let (result, trace) = match result {
        Ok((figures, trace)) => (Ok(figures), trace),
        Err(failure) => (Err(failure), Trace::default()),
    };
    Row { rung, result, trace }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ran(ms: u32, connections: u64) -> Result<(Duration, Tally, Trace), Failure> {
        Ok((MS * ms, Tally { requests: 50, connections }, Trace::default()))
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
