//! The result of each job: a comparison of Laneway with the fastest other method. The top of the page shows four
//! numbers, one for each verdict.

use std::fmt::Write as _;

use serde::Serialize;

use super::{escaped, in_seconds};
use crate::Row;
use crate::turns::{Compared, Measure};
use crate::verdict::{Comparison, Spread, Verdict, times};

/// If there are more wins or ties than this, the page shows their number and doesn't list them.
const LISTED_MAX: usize = 16;

/// A comparison of Laneway with the fastest other method, by one measure of a job.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The job, and the measure by which it is compared.
    pub job: String,
    /// Laneway's runs, if none failed.
    pub laneway: Option<Spread>,
    /// The fastest other method.
    pub other: Option<&'static str>,
    /// The runs of that method.
    pub other_runs: Option<Spread>,
    /// The verdict and the ratio, or `None` if one of the two has no figures.
    #[serde(flatten)]
    pub found: Option<Comparison>,
}

impl Score {
    /// Returns a score for each group of rows, in the order of the groups.
    pub(super) fn of<F: Compared>(title: &str, rows: &[Row<F>], measure: &Measure<F>) -> Vec<Self> {
        let mut groups: Vec<&'static str> = rows.iter().map(|row| row.group).collect();
        groups.dedup();
        let score = |group: &'static str| {
            let ours = rows.iter().find(|row| row.group == group && row.is_ours());
            let other = Row::best_other(rows, group, measure.value);
            let parts = [title, group, measure.short].into_iter().filter(|part| !part.is_empty());
            Self {
                job: parts.collect::<Vec<_>>().join(", "),
                laneway: ours.and_then(|row| row.spread(measure.value)),
                other: other.map(|row| row.description),
                other_runs: other.and_then(|row| row.spread(measure.value)),
                found: other.and_then(|row| row.compared(rows, measure.value)),
            }
        };
        groups.into_iter().map(score).collect()
    }

    /// Returns the verdict. The verdict is unclear if there are no figures.
    pub fn verdict(&self) -> Verdict {
        self.found.map_or(Verdict::Unclear, |found| found.verdict)
    }

    /// Returns the ratio as human-readable text. If the verdict is unclear and the ratio is below 1, the text says that
    /// Laneway is slower so far.
    fn ratio(&self) -> String {
        match self.found {
            None => "no figures".to_owned(),
            Some(Comparison { verdict: Verdict::Unclear, ratio }) if ratio < 1.0 => {
                format!("{}, slower so far", times(ratio))
            }
            Some(Comparison { ratio, .. }) => times(ratio),
        }
    }
}

fn of<T>(scores: &[(T, Score)], verdict: Verdict) -> Vec<&(T, Score)> {
    scores.iter().filter(|(_, score)| score.verdict() == verdict).collect()
}

/// Returns whether a verdict has too many jobs to list. Jobs that are behind or unclear are always listed.
fn is_long(verdict: Verdict, count: usize) -> bool {
    matches!(verdict, Verdict::Win | Verdict::Tie) && count > LISTED_MAX
}

/// Returns a line for each verdict: the number of jobs, and the jobs with their ratios.
pub(super) fn lines<T>(scores: &[(T, Score)]) -> Vec<String> {
    let line = |verdict: Verdict| {
        let of = of(scores, verdict);
        let jobs = of.iter().map(|(_, score)| format!("{} ({})", score.job, score.ratio()));
        let jobs = match of.len() {
            0 => String::new(),
            n if is_long(verdict, n) => String::new(),
            _ => format!(": {}", jobs.collect::<Vec<_>>().join("; ")),
        };
        let word = if of.len() == 1 { verdict.word() } else { verdict.words() };
        format!("{} {word}{jobs}", of.len())
    };
    Verdict::ALL.map(line).to_vec()
}

/// Writes the verdicts and their jobs as four HTML tiles. Each job links to its section, whose id is in `scores`.
pub(super) fn write(scores: &[(&'static str, Score)], html: &mut String) {
    html.push_str("<div class=\"scores\">\n");
    for verdict in Verdict::ALL {
        let of = of(scores, verdict);
        let class = verdict.word();
        let word = if of.len() == 1 { verdict.word() } else { verdict.words() };
        let _ = write!(html, "<section class=\"{class}\"><h2><b>{}</b> {word}</h2>\n<ul>", of.len());
        let shown = if is_long(verdict, of.len()) { 0 } else { of.len() };
        for (id, score) in &of[..shown] {
            let _ = writeln!(
                html,
                "<li><a href=\"#{id}\">{}</a> <b>{}</b><small>{}</small></li>",
                escaped(&score.job),
                score.ratio(),
                escaped(&sides(score))
            );
        }
        if shown < of.len() {
            html.push_str("<li>The tables below list these jobs.</li>");
        }
        html.push_str("</ul></section>\n");
    }
    html.push_str("</div>\n");
}

/// Returns the medians of Laneway and of the other method, with the other method's name.
fn sides(score: &Score) -> String {
    let side =
        |spread: Option<Spread>| spread.map_or("no figures".to_owned(), |runs| in_seconds(runs.median));
    let other = score.other.map(|name| format!("; {name}: {}", side(score.other_runs)));
    format!("Laneway: {}{}", side(score.laneway), other.unwrap_or_default())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::turns::tests::{Figures, row};

    const MEASURE: &Measure<Figures> = &Figures::MEASURES[0];

    /// Returns the scores of a job in which Laneway and the other method took these times.
    pub(in crate::report) fn scores(job: &str, ours: &[f64], other: &[f64]) -> Vec<(&'static str, Score)> {
        let rows = [row("other", "", other), row("slow", "", &[9.0; 3]), row("laneway", "", ours)];
        Score::of(job, &rows, MEASURE).into_iter().map(|score| ("x", score)).collect()
    }

    #[test]
    fn the_fastest_other_method_is_named_and_failures_count_nothing() {
        let rows = [
            row("a", "", &[3.0; 3]),
            row("b", "", &[1.0; 3]),
            row("x-laneway", "", &[2.0; 3]),
            row("c", "", &[]),
        ];
        let found = &Score::of("Job", &rows, MEASURE)[..];
        let [score] = found else { panic!("there must be one score: {found:?}") };
        assert_eq!((score.job.as_str(), score.other, score.verdict()), ("Job", Some("b"), Verdict::Behind));
        assert_eq!(sides(score), "Laneway: 2.000 s; b: 1.000 s");
    }

    #[test]
    fn each_group_has_a_score_of_its_own() {
        let rows = [
            row("a", "GCS", &[3.0; 3]),
            row("gcs-laneway", "GCS", &[1.0; 3]),
            row("s3-laneway", "S3", &[1.0; 3]),
        ];
        let found = Score::of("Job", &rows, MEASURE);
        let jobs: Vec<_> = found.iter().map(|score| (score.job.as_str(), score.verdict())).collect();
        assert_eq!(jobs, [("Job, GCS", Verdict::Win), ("Job, S3", Verdict::Unclear)]);
    }

    #[test]
    fn lines_name_every_job_by_its_verdict() {
        let all = [
            scores("Alpha", &[1.0; 3], &[3.0; 3]),
            scores("Beta", &[1.0; 3], &[1.0; 3]),
            scores("Gamma", &[2.0; 3], &[1.0; 3]),
            scores("Delta", &[3.0], &[2.0]),
            scores("Epsilon", &[], &[1.0; 3]),
        ]
        .concat();
        assert_eq!(
            lines(&all),
            [
                "1 win: Alpha (3.00x)",
                "1 tie: Beta (1.00x)",
                "1 behind: Gamma (0.50x)",
                "2 unclear: Delta (0.67x, slower so far); Epsilon (no figures)",
            ]
        );
    }

    #[test]
    fn jobs_that_are_not_won_are_named_however_many_there_are() {
        let many = |ours: f64| (0..=LISTED_MAX).flat_map(move |_| scores("Job", &[ours; 3], &[3.0; 3]));
        let lines = lines(&many(1.0).chain(many(9.0)).collect::<Vec<_>>());
        assert_eq!((lines[0].as_str(), lines[1].as_str()), ("17 wins", "0 ties"));
        assert_eq!(lines[2].matches("Job (0.33x)").count(), 17);
    }
}
