//! Formats a result as a human-readable table: a name and numbers per line.

use crate::turns::verdict_heads;
use crate::{Compared, Failure, Row};

/// A table. The first column is text, the others are numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The columns' heads.
    pub head: Vec<&'static str>,
    /// The lines of the table.
    pub rows: Vec<Line>,
}

/// A line of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The subject of the line.
    pub name: String,
    /// The cells of the other columns. The cells of a failed method are empty.
    pub cells: Vec<String>,
    /// "failed" or "skipped" with the reason, if the method has no figures.
    pub failure: Option<String>,
}

impl Table {
    /// Returns a line for each row: its name, and the `cells` of its median run. The columns of [`Row::verdicts`] are
    /// inserted after the first number, or after the name if there are no numbers.
    pub(crate) fn compared<F: Compared>(
        head: &[&'static str],
        rows: &[Row<F>],
        cells: impl Fn(&F) -> Vec<String>,
    ) -> Self {
        let mut table = Self::of(head, rows, |_, figures| cells(figures));
        let at = head.len().min(2);
        table.head.splice(at..at, verdict_heads::<F>());
        for (line, row) in table.rows.iter_mut().zip(rows).filter(|(line, _)| line.failure.is_none()) {
            line.cells.splice(at - 1..at - 1, row.verdicts(rows));
        }
        table
    }

    /// Returns a line for each row: its name and its cells.
    pub(crate) fn of<F>(
        head: &[&'static str],
        rows: &[Row<F>],
        cells: impl Fn(&Row<F>, &F) -> Vec<String>,
    ) -> Self {
        let line = |row: &Row<F>| Line {
            name: row.description.to_owned(),
            cells: row.figures().map(|figures| cells(row, figures)).unwrap_or_default(),
            failure: row.result.as_ref().err().map(Failure::remark),
        };
        Self { head: head.to_vec(), rows: rows.iter().map(line).collect() }
    }

    /// Returns the table as lines for a terminal. The first column is left-aligned, and numbers are right-aligned.
    pub fn lines(&self) -> Vec<String> {
        let head = Line {
            name: self.head[0].to_owned(),
            cells: self.head[1..].iter().map(|&text| text.to_owned()).collect(),
            failure: None,
        };
        let lines: Vec<&Line> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |text: &str| text.chars().count();
        // A line with only a name is a title. It may be wider than the first column.
        let named = lines.iter().filter(|line| !line.cells.is_empty() || line.failure.is_some());
        let first = named.map(|line| width(&line.name)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len() - 1)
            .map(|column| lines.iter().filter_map(|line| line.cells.get(column)).map(|c| width(c)).max())
            .map(|width| width.unwrap_or(0))
            .collect();
        let text = |line: &&Line| {
            let mut text = format!("{:<first$}", line.name);
            for (cell, width) in line.cells.iter().zip(&widths) {
                text += &format!("  {cell:>width$}");
            }
            if let Some(failure) = &line.failure {
                text += &format!("  {failure}");
            }
            text.truncate(text.trim_end().len());
            text
        };
        lines.iter().map(text).collect()
    }
}

/// Returns seconds as text: `0.153`, `12.34`, `123.4`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.3}"),
        s if s < 100.0 => format!("{s:.2}"),
        s => format!("{s:.1}"),
    }
}

/// Formats bytes in MiB, or as a dash if they are unknown.
pub(crate) fn mib(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_owned(), |bytes| format!("{:.0}", bytes as f64 / f64::from(1 << 20)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::tests::row;

    fn line(name: &str, cells: &[&str], failure: Option<&str>) -> Line {
        let cells = cells.iter().map(|&cell| cell.to_owned()).collect();
        Line { name: name.to_owned(), cells, failure: failure.map(str::to_owned) }
    }

    #[test]
    fn a_table_is_aligned_and_a_failed_line_says_why() {
        let table = Table {
            head: vec!["rung", "seconds", "requests"],
            rows: vec![
                line("resumable, each request on a new connection", &["15.00", "100"], None),
                line("one HTTP/2 connection", &[], Some("skipped: the server doesn't offer HTTP/2")),
                line("Länge", &["0.165", "50"], None),
                line("A title that is longer than all of the names of the lines", &[], None),
            ],
        };
        assert_eq!(
            table.lines(),
            [
                "rung                                         seconds  requests",
                "resumable, each request on a new connection    15.00       100",
                "one HTTP/2 connection                        skipped: the server doesn't offer HTTP/2",
                "Länge                                          0.165        50",
                "A title that is longer than all of the names of the lines",
            ]
        );
    }

    #[test]
    fn comparisons_stand_beside_what_they_compare() {
        let rows = [row("a", "", &[2.0; 3]), row("laneway", "", &[1.0; 3]), row("c", "", &[])];
        let table = Table::compared(&["way", "seconds", "twice"], &rows, |figures| {
            vec![seconds(figures.seconds), seconds(figures.seconds * 2.0)]
        });
        assert_eq!(
            table.lines(),
            [
                "way      seconds      range s    Laneway  twice",
                "a          2.000  2.000-2.000  win 2.00x  4.000",
                "laneway    1.000  1.000-1.000          -  2.000",
                "c        failed: the job ended without a summary",
            ]
        );
    }

    #[test]
    fn numbers_have_the_digits_that_tell_something() {
        assert_eq!([0.1534, 12.345, 123.45].map(seconds), ["0.153", "12.35", "123.5"]);
        assert_eq!((mib(None), mib(Some(3 << 20))), ("-".to_owned(), "3".to_owned()));
    }
}
