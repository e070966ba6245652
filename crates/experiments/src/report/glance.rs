//! A measurement in one line: Laneway beside the fastest other way.

use std::fmt::Write as _;

use super::markup::{escaped, in_seconds};
use crate::Row;
use crate::turns::{Compared, Measure};
use crate::verdict::{Comparison, Spread, Verdict, times};

/// One measure of a group of compared rungs.
#[derive(Clone, Debug)]
pub(super) struct Glance {
    /// The measured time.
    pub(super) what: String,
    /// A shorter name of it. It is empty for an experiment's only measure.
    pub(super) short: String,
    /// Laneway's runs, if none failed.
    pub(super) ours: Option<Spread>,
    /// The runs of the fastest other way, and its description.
    pub(super) other: Option<(Spread, &'static str)>,
    /// The comparison of Laneway with it.
    pub(super) found: Option<Comparison>,
    /// The slowest other way, and the comparison of Laneway with it.
    pub(super) slowest: Option<(Spread, &'static str, Option<Comparison>)>,
    /// The fewest seconds that the path permits.
    pub(super) floor_s: f64,
}

impl Glance {
    /// Returns a line for each group of compared rungs, in their order.
    pub(super) fn of<F: Compared>(rows: &[Row<F>], measure: &Measure<F>, floor_s: f64) -> Vec<Self> {
        let mut groups: Vec<&'static str> = rows.iter().map(|row| row.group).collect();
        groups.dedup();
        groups.into_iter().map(|group| Self::of_group(rows, group, measure, floor_s)).collect()
    }

    fn of_group<F: Compared>(
        rows: &[Row<F>],
        group: &'static str,
        measure: &Measure<F>,
        floor_s: f64,
    ) -> Self {
        let of_group = || rows.iter().filter(|row| row.group == group);
        let ours = of_group().find(|row| row.is_ours());
        let others = of_group().filter(|row| !row.is_ours());
        let mut others: Vec<_> = others
            .filter_map(|row| {
                Some((row.spread(measure.value)?, row.description, row.compared(rows, measure.value)))
            })
            .collect();
        others.sort_by(|(a, ..), (b, ..)| a.median.total_cmp(&b.median));
        let joined = |text: &str| match (group, text) {
            ("", text) | (text, "") => text.to_owned(),
            (group, text) => format!("{group}, {text}"),
        };
        Self {
            what: joined(measure.what),
            short: joined(measure.short),
            ours: ours.and_then(|row| row.spread(measure.value)),
            other: others.first().map(|(spread, name, _)| (*spread, *name)),
            found: others.first().and_then(|(.., found)| *found),
            slowest: others.last().copied(),
            floor_s,
        }
    }

    /// Returns which was faster, or `None` if one of them has no figures.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.found.map(|found| found.verdict)
    }

    /// Writes a line of the table at the head of the page.
    pub(super) fn write(&self, id: &str, title: &str, html: &mut String) {
        let cell =
            |head: &str, content: &str| format!("<td role=\"cell\" data-head=\"{head}\">{content}</td>");
        let small = |text: &str| match text {
            "" => String::new(),
            text => format!("<small>{}</small>", escaped(text)),
        };
        let spread = |spread: Option<Spread>, name: &str| match spread {
            Some(spread) => format!(
                "{}<small class=\"range\">{}</small>{}",
                in_seconds(spread.median),
                spread.range(),
                small(name)
            ),
            None => "no figure".to_owned(),
        };
        let ours = match self.ours {
            // Only the number is bold.
            Some(_) => format!("<b>{}", spread(self.ours, "").replacen("<small", "</b><small", 1)),
            None => spread(None, ""),
        };
        let other = self.other.map_or_else(|| spread(None, ""), |(found, name)| spread(Some(found), name));
        let verdict = self.found.map_or_else(
            || "no figure".to_owned(),
            |Comparison { verdict, ratio }| {
                let word = verdict.word();
                let class = word.replace(' ', "-");
                format!("<span class=\"verdict {class}\">{word}</span> {}", times(ratio))
            },
        );
        let slowest = self
            .slowest
            .map_or_else(|| spread(None, ""), |(slowest, name, _)| in_seconds(slowest.median) + &small(name));
        let _ = writeln!(
            html,
            "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\"><a href=\"#{id}\">{}</a><small>{}</small></th>{}{}{}{}{}</tr>",
            escaped(title),
            escaped(&self.what),
            cell("Laneway", &ours),
            cell("quickest other way", &other),
            cell("verdict", &verdict),
            cell("slowest", &slowest),
            cell("floor", &in_seconds(self.floor_s)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::tests::{Figures, row};

    const MEASURE: &Measure<Figures> = &Figures::MEASURES[0];

    #[test]
    fn the_quickest_other_way_is_named_and_failures_count_nothing() {
        let rows = [
            row("a", "", &[3.0; 3]),
            row("b", "", &[1.0; 3]),
            row("x-laneway", "", &[2.0; 3]),
            row("c", "", &[]),
        ];
        let found = Glance::of(&rows, MEASURE, 0.5);
        let median = |spread: Spread| spread.median;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].ours.map(median), Some(2.0));
        assert_eq!(found[0].other.map(|(spread, name)| (median(spread), name)), Some((1.0, "b")));
        assert_eq!(found[0].slowest.map(|(spread, name, _)| (median(spread), name)), Some((3.0, "a")));
        assert_eq!(found[0].verdict(), Some(Verdict::Behind));
    }

    #[test]
    fn each_group_has_a_line_of_its_own() {
        let rows = [
            row("a", "GCS", &[3.0; 3]),
            row("gcs-laneway", "GCS", &[1.0; 3]),
            row("s3-laneway", "S3", &[1.0; 3]),
        ];
        let found = Glance::of(&rows, MEASURE, 0.5);
        let lines: Vec<_> = found.iter().map(|glance| (glance.what.as_str(), glance.verdict())).collect();
        assert_eq!(lines, [("GCS, until the end", Some(Verdict::Winner)), ("S3, until the end", None)]);
        assert_eq!(found[0].short, "GCS");
    }
}
