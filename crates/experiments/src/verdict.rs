//! Who was quicker, and whether that can be said: a pure rule over the runs of two rungs.

use serde::Serialize;

use crate::table::seconds;

/// Fewer runs say nothing of how much they differ.
pub const RUNS_MIN: usize = 3;
/// Medians whose ratio is nearer to 1 are equal: what two runs of the same program differ by on a machine that does other
/// things, too.
pub const NOISE: f64 = 0.1;
/// Runs that are over sooner, in seconds, measure the waking of threads and the scheduler of the machine.
pub const SHORT_S: f64 = 0.1;
/// The slowest run over the quickest from which on ranges that overlap say nothing, instead of that both are equal.
pub const UNSTEADY: f64 = 1.5;

/// A measure in the runs of a rung, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// How many runs.
    pub runs: usize,
    /// The quickest.
    pub least: f64,
    /// The one in the middle; of an even number, the slower of the two.
    pub median: f64,
    /// The slowest.
    pub most: f64,
}

impl Spread {
    /// The spread of these; `None` of nothing.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self { runs: values.len(), least, median: values[values.len() / 2], most })
    }

    /// The quickest and the slowest run, for people: `0.151-0.173`.
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

/// What two rungs' runs say of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Laneway is quicker: every run of its, and by more than noise.
    Winner,
    /// The runs overlap, or differ by no more than noise.
    Tie,
    /// The other way is quicker: every run of its, and by more than noise.
    Behind,
    /// Nothing can be said: too few runs, too short ones, or too different ones.
    Smoke,
}

/// Laneway beside another way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Who was quicker.
    pub verdict: Verdict,
    /// The other's median over Laneway's: above 1 where Laneway is quicker.
    pub ratio: f64,
}

impl Comparison {
    /// Compares a measure of two rungs, the slower of which lasted `lasted_s` seconds in the median.
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

    /// For a cell of a table: `winner 3.42x`.
    pub fn text(&self) -> String {
        format!("{} {}", self.verdict.word(), times(self.ratio))
    }
}

impl Verdict {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Winner => "winner",
            Self::Tie => "tie",
            Self::Behind => "behind",
            Self::Smoke => "smoke test",
        }
    }
}

/// A ratio with as many digits as tell something: `0.97x`, `3.42x`, `36x`.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        r if r < 9.995 => format!("{r:.2}x"),
        r => format!("{r:.0}x"),
    }
}

/// The rule in words, for a page.
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
        // A latency may be short, if the run that it was read in is not.
        assert_eq!(Comparison::of(&ours, &other, SHORT_S).verdict, Verdict::Winner);
        assert_eq!(verdict(&[1.0, 1.0, 2.5], &[2.0, 2.0, 2.0]), Verdict::Smoke);
        // Unsteady, but apart.
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
