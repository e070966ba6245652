//! Decides which of two rungs is faster, and whether their runs prove it. The rule is a pure function.

use serde::Serialize;

use crate::table::seconds;

/// Minimum number of runs. Fewer don't show how much they vary.
pub const RUNS_MIN: usize = 3;
/// Medians count as equal if their ratio is closer to 1. Runs of the same program differ by this much on a machine that
/// does other things, too.
pub const NOISE: f64 = 0.1;
/// Shorter runs, in seconds, measure the wake-up of threads and the machine's scheduler.
pub const SHORT_S: f64 = 0.1;
/// Ratio of the slowest run to the fastest. From this ratio on, overlapping ranges prove nothing, not even that both
/// are equal.
pub const UNSTEADY: f64 = 1.5;

/// A measure over the runs of a rung, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// The fastest run.
    pub least: f64,
    /// The run in the middle, or the slower of the two for an even number.
    pub median: f64,
    /// The slowest run.
    pub most: f64,
}

impl Spread {
    /// Returns the spread of these values, or `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self { runs: values.len(), least, median: values[values.len() / 2], most })
    }

    /// Formats the fastest and the slowest run for people: `0.151-0.173`.
    pub fn range(&self) -> String {
        format!("{}-{}", seconds(self.least), seconds(self.most))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }

    fn is_unsteady(&self) -> bool {
        self.most > self.least * UNSTEADY
    }
}

/// The result of a comparison of two rungs' runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every run of Laneway is faster, and the medians differ by more than noise.
    Winner,
    /// The runs overlap, or differ by no more than noise.
    Tie,
    /// Every run of the other way is faster, and the medians differ by more than noise.
    Behind,
    /// The runs prove nothing: they are too few, too short, or too different.
    Smoke,
}

/// A comparison of Laneway with another way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The other's median divided by Laneway's. It is above 1 if Laneway is faster.
    pub ratio: f64,
}

impl Comparison {
    /// Compares a measure of two rungs. The slower rung lasted `lasted_s` seconds in the median.
    pub fn of(ours: &Spread, other: &Spread, lasted_s: f64) -> Self {
        let ratio = other.median / ours.median.max(f64::MIN_POSITIVE);
        let overlap = ours.overlaps(other);
        let unsteady = overlap && (ours.is_unsteady() || other.is_unsteady());
        let equal = overlap || (1.0 / (1.0 + NOISE)..=1.0 + NOISE).contains(&ratio);
        let verdict = match ratio {
            _ if ours.runs.min(other.runs) < RUNS_MIN || lasted_s < SHORT_S || unsteady => Verdict::Smoke,
            _ if equal => Verdict::Tie,
            ratio if ratio > 1.0 => Verdict::Winner,
            _ => Verdict::Behind,
        };
        Self { verdict, ratio }
    }

    /// Formats the comparison for a table cell: `winner 3.42x`.
    pub fn text(&self) -> String {
        format!("{} {}", self.verdict.word(), times(self.ratio))
    }
}

impl Verdict {
    /// Returns the word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Winner => "winner",
            Self::Tie => "tie",
            Self::Behind => "behind",
            Self::Smoke => "smoke test",
        }
    }
}

/// Formats a ratio with a useful number of digits: `0.97x`, `3.42x`, `36x`.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        r if r < 9.995 => format!("{r:.2}x"),
        r => format!("{r:.0}x"),
    }
}

/// Explains the rule, for a page.
pub(crate) fn rule() -> String {
    format!(
        "Ways take turns, and each row is a median with the quickest and the slowest run. Laneway is the winner, or behind, where \
         no run of one is as quick as any of the other's and the medians differ by more than {:.0} %; everything else is a tie. \
         The ratio is the other way's median over Laneway's. A row is a smoke test, from which nothing follows, if it has fewer \
         than {RUNS_MIN} runs, if they are over within {SHORT_S} s, or if their ranges overlap and one way's slowest run \
         took more than {UNSTEADY} times as long as its quickest.",
        NOISE * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied()).unwrap()
    }

    fn verdict(ours: &[f64], other: &[f64]) -> Verdict {
        Comparison::of(&spread(ours), &spread(other), 1.0).verdict
    }

    #[test]
    fn a_spread_is_the_median_between_the_quickest_and_the_slowest() {
        let found = spread(&[3.0, 1.0, 2.0]);
        assert_eq!((found.runs, found.least, found.median, found.most), (3, 1.0, 2.0, 3.0));
        assert_eq!(spread(&[3.0, 1.0]).median, 3.0);
        assert_eq!((found.range(), Spread::of([])), ("1.000-3.000".to_owned(), None));
    }

    #[test]
    fn whose_every_run_is_quicker_by_more_than_noise_wins() {
        assert_eq!(verdict(&[1.0, 1.1, 1.0], &[1.3, 1.25, 1.2]), Verdict::Winner);
        assert_eq!(verdict(&[1.3, 1.25, 1.2], &[1.0, 1.1, 1.0]), Verdict::Behind);
    }

    #[test]
    fn ranges_that_overlap_and_medians_within_noise_are_ties() {
        assert_eq!(verdict(&[1.0, 1.0, 1.3], &[1.2, 1.25, 1.3]), Verdict::Tie);
        assert_eq!(verdict(&[1.0, 1.0, 1.0], &[1.09, 1.1, 1.12]), Verdict::Tie);
        assert_eq!(verdict(&[1.09, 1.1, 1.12], &[1.0, 1.0, 1.0]), Verdict::Tie);
        assert_eq!(verdict(&[1.0; 3], &[1.0; 3]), Verdict::Tie);
    }

    #[test]
    fn too_few_too_short_and_too_different_runs_say_nothing() {
        assert_eq!(verdict(&[1.0, 1.0], &[9.0, 9.0, 9.0]), Verdict::Smoke);
        let (ours, other) = (spread(&[0.01; 3]), spread(&[0.09; 3]));
        assert_eq!(Comparison::of(&ours, &other, 0.09).verdict, Verdict::Smoke);
        // A latency may be short if its run isn't.
        assert_eq!(Comparison::of(&ours, &other, SHORT_S).verdict, Verdict::Winner);
        assert_eq!(verdict(&[1.0, 1.0, 2.5], &[2.0, 2.0, 2.0]), Verdict::Smoke);
        // The runs are unsteady, but their ranges don't overlap.
        assert_eq!(verdict(&[1.0, 1.0, 2.5], &[2.6, 2.6, 9.0]), Verdict::Winner);
    }

    #[test]
    fn a_ratio_says_how_much_slower_the_other_way_is() {
        let comparison = Comparison::of(&spread(&[1.0; 3]), &spread(&[3.42; 3]), 9.0);
        assert_eq!(comparison.text(), "winner 3.42x");
        assert_eq!([0.5, 9.99, 36.4].map(times), ["0.50x", "9.99x", "36x"]);
    }

    #[test]
    fn the_rule_says_its_bounds() {
        for part in ["more than 10 %", "fewer than 3 runs", "within 0.1 s", "more than 1.5 times"] {
            assert!(rule().contains(part), "{part}: {}", rule());
        }
    }
}
