//! Decides which of two methods is faster, and whether their runs prove it.

use serde::Serialize;

use crate::table::seconds;

/// The minimum number of runs of a method for a comparison. Fewer runs don't show how much runs differ.
pub const RUNS_MIN: usize = 3;
/// Two medians count as equal if they differ by at most this share. On a machine that also does other work, two runs of
/// the same program can differ by as much.
pub const NOISE: f64 = 0.1;
/// Runs below this many seconds also measure the machine's scheduler, so they need [`RUNS_MIN_SHORT`] runs.
pub const SHORT_S: f64 = 0.1;
/// The minimum number of runs if they are short. With nine or more runs, an outlier at each end is ignored.
pub const RUNS_MIN_SHORT: usize = 9;
/// If the slowest run of a method takes more than this many times as long as the fastest, the runs are too unsteady for
/// a tie. Outliers aren't counted.
pub const UNSTEADY: f64 = 1.5;
/// The probability that the true median lies outside a [`Spread`]'s interval, if there are at least six runs.
const DOUBT: f64 = 0.05;

/// The distribution of a measure over the runs of a method, in seconds.
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
    /// The interval that holds the true median with 95 % probability. For fewer than nine runs, it covers all
    /// runs.
    #[serde(skip)]
    interval: (f64, f64),
}

impl Spread {
    /// Returns the spread of these values, or `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let outside = outside(values.len());
        let interval = (values[outside], values[values.len() - 1 - outside]);
        Some(Self { runs: values.len(), least, median: values[values.len() / 2], most, interval })
    }

    /// Returns the times of the fastest and the slowest run as text: `0.151-0.173`.
    pub fn range(&self) -> String {
        format!("{}-{}", seconds(self.least), seconds(self.most))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.interval.0 <= other.interval.1 && other.interval.0 <= self.interval.1
    }

    fn is_steady(&self) -> bool {
        self.interval.1 <= self.interval.0 * UNSTEADY
    }
}

/// Returns how many of `runs` runs are faster than the median's interval. The same number of runs is slower than it. A
/// run is as likely below the true median as above it, so the number follows from the binomial distribution.
fn outside(runs: usize) -> usize {
    let mut exactly = 0.5f64.powi(runs as i32);
    let (mut at_most, mut ends) = (exactly, 0);
    while 2.0 * at_most <= DOUBT {
        ends += 1;
        exactly *= (runs + 1 - ends) as f64 / ends as f64;
        at_most += exactly;
    }
    ends.saturating_sub(1)
}

/// The result of comparing Laneway with another method.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Laneway is faster by more than noise.
    Win,
    /// Both take the same time, within noise.
    Tie,
    /// The other method is faster by more than noise.
    Behind,
    /// The runs are too few or too different to tell.
    Unclear,
}

/// A comparison of Laneway with another method.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The result.
    pub verdict: Verdict,
    /// The other method's median divided by Laneway's. The ratio is above 1 if Laneway is faster.
    pub ratio: f64,
}

impl Comparison {
    /// Compares a measure of two methods. `lasted_s` is the median duration of a run of the slower one, in seconds.
    pub fn of(ours: &Spread, other: &Spread, lasted_s: f64) -> Self {
        let ratio = other.median / ours.median.max(f64::MIN_POSITIVE);
        let is_apart = !ours.overlaps(other);
        let is_equal = (1.0 / (1.0 + NOISE)..=1.0 + NOISE).contains(&ratio);
        let needed = if lasted_s < SHORT_S { RUNS_MIN_SHORT } else { RUNS_MIN };
        let verdict = match ratio {
            _ if ours.runs.min(other.runs) < needed => Verdict::Unclear,
            _ if is_equal && (is_apart || ours.is_steady() && other.is_steady()) => Verdict::Tie,
            _ if is_equal || !is_apart => Verdict::Unclear,
            ratio if ratio > 1.0 => Verdict::Win,
            _ => Verdict::Behind,
        };
        Self { verdict, ratio }
    }

    /// Formats the comparison for a table cell: `win 3.42x`.
    pub fn text(&self) -> String {
        format!("{} {}", self.verdict.word(), times(self.ratio))
    }
}

impl Verdict {
    /// All verdicts, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Win, Self::Tie, Self::Behind, Self::Unclear];

    /// Returns the word for the verdict, both in tables and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Win => "win",
            Self::Tie => "tie",
            Self::Behind => "behind",
            Self::Unclear => "unclear",
        }
    }

    /// Returns the plural of the word.
    pub fn words(self) -> &'static str {
        match self {
            Self::Win => "wins",
            Self::Tie => "ties",
            Self::Behind | Self::Unclear => self.word(),
        }
    }
}

/// Returns a ratio as text: `0.97x`, `3.42x`, `36x`.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if r < 9.995 => format!("{r:.2}x"),
        r => format!("{r:.0}x"),
    }
}

/// Returns the explanation of this rule for the report's page.
pub(crate) fn rule() -> String {
    format!(
        "Methods take turns, and each row is the median of its runs. The ratio is the other method's median divided by Laneway's. \
         Two medians that differ by at most {:.0} % are a tie. If they differ by more, Laneway wins or is behind, but only if the runs \
         of the two methods are clearly apart: the intervals that contain the true medians with {:.0} % probability must not \
         overlap. With fewer than nine runs, the intervals cover all runs. All other comparisons are unclear, and their methods run \
         again until the comparison is decided or the time is up. A comparison needs {RUNS_MIN} runs of each method, or \
         {RUNS_MIN_SHORT} if a run takes less than {SHORT_S} s. If the intervals overlap, a tie also needs steady runs: the slowest \
         takes at most {UNSTEADY} times as long as the fastest.",
        NOISE * 100.0,
        (1.0 - DOUBT) * 100.0
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
    fn a_spread_is_the_median_between_the_fastest_and_the_slowest() {
        let found = spread(&[3.0, 1.0, 2.0]);
        assert_eq!((found.runs, found.least, found.median, found.most), (3, 1.0, 2.0, 3.0));
        assert_eq!(spread(&[3.0, 1.0]).median, 3.0);
        assert_eq!((found.range(), Spread::of([])), ("1.000-3.000".to_owned(), None));
    }

    #[test]
    fn the_interval_of_the_median_leaves_more_runs_out_the_more_there_are() {
        // Tables of the sign test have the same numbers.
        assert_eq!([1, 3, 6, 8, 9, 11, 12, 15, 20].map(outside), [0, 0, 0, 0, 1, 1, 2, 3, 5]);
    }

    #[test]
    fn runs_that_are_apart_by_more_than_noise_win_or_are_behind() {
        assert_eq!(verdict(&[1.0, 1.1, 1.0], &[1.3, 1.25, 1.2]), Verdict::Win);
        assert_eq!(verdict(&[1.3, 1.25, 1.2], &[1.0, 1.1, 1.0]), Verdict::Behind);
        assert_eq!(verdict(&[1.0, 1.0, 2.5], &[2.6, 2.6, 9.0]), Verdict::Win);
    }

    #[test]
    fn medians_within_noise_tie_if_the_runs_are_steady() {
        assert_eq!(verdict(&[1.0; 3], &[1.0; 3]), Verdict::Tie);
        assert_eq!(verdict(&[1.0; 3], &[1.09, 1.1, 1.12]), Verdict::Tie);
        assert_eq!(verdict(&[1.09, 1.1, 1.12], &[1.0; 3]), Verdict::Tie);
        assert_eq!(verdict(&[1.0, 1.0, 2.5], &[1.0; 3]), Verdict::Unclear);
    }

    #[test]
    fn too_few_or_overlapping_runs_are_unclear() {
        assert_eq!(verdict(&[1.0, 1.0], &[9.0, 9.0, 9.0]), Verdict::Unclear);
        assert_eq!(verdict(&[1.0, 1.0, 1.3], &[1.2, 1.25, 1.3]), Verdict::Unclear);
        assert_eq!(verdict(&[1.0, 1.0, 2.5], &[2.0; 3]), Verdict::Unclear);
    }

    #[test]
    fn more_runs_decide_although_one_of_them_is_an_outlier() {
        let ours = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.5];
        assert_eq!(verdict(&ours, &[2.0; 9]), Verdict::Win);
        assert_eq!(verdict(&[2.0; 9], &ours), Verdict::Behind);
        assert_eq!(verdict(&ours, &[1.05; 9]), Verdict::Tie);
    }

    #[test]
    fn short_runs_need_more_of_them() {
        let short = |runs: usize| {
            Comparison::of(&spread(&vec![0.01; runs]), &spread(&vec![0.09; runs]), 0.09).verdict
        };
        assert_eq!([3, 8, 9].map(short), [Verdict::Unclear, Verdict::Unclear, Verdict::Win]);
        // A short latency from a long run doesn't need more runs.
        let (ours, other) = (spread(&[0.01; 3]), spread(&[0.09; 3]));
        assert_eq!(Comparison::of(&ours, &other, SHORT_S).verdict, Verdict::Win);
    }

    #[test]
    fn a_ratio_says_how_much_slower_the_other_way_is() {
        let comparison = Comparison::of(&spread(&[1.0; 3]), &spread(&[3.42; 3]), 9.0);
        assert_eq!(comparison.text(), "win 3.42x");
        assert_eq!([0.5, 9.99, 36.4].map(times), ["0.50x", "9.99x", "36x"]);
    }

    #[test]
    fn the_rule_says_its_bounds() {
        for part in ["at most 10 %", "95 %", "needs 3 runs", "9 if", "than 0.1 s", "at most 1.5 times"] {
            assert!(rule().contains(part), "the rule lacks {part:?}: {}", rule());
        }
    }
}
