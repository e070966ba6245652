//! A result as people read it: a name and numbers.

/// A table. The first column is text, the others are numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The columns' heads.
    pub head: Vec<&'static str>,
    /// Its lines.
    pub rows: Vec<Line>,
}

/// A line of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// What it is about.
    pub name: String,
    /// The cells of the other columns; none in a line that failed.
    pub cells: Vec<String>,
    /// That it failed or was skipped, and why.
    pub failure: Option<String>,
}

impl Line {
    /// A line from what was found.
    pub(crate) fn new<F>(row: &crate::Row<F>, cells: impl FnOnce(&F) -> Vec<String>) -> Self {
        let (cells, failure) = match &row.result {
            Ok(run) => (cells(&run.figures), None),
            Err(failure) => (Vec::new(), Some(failure.remark())),
        };
        Self { name: row.description.to_owned(), cells, failure }
    }
}

impl Table {
    /// The table as lines for a terminal: the first column to the left, numbers to the right.
    pub fn lines(&self) -> Vec<String> {
        let head = Line {
            name: self.head[0].to_owned(),
            cells: self.head[1..].iter().map(|&text| text.to_owned()).collect(),
            failure: None,
        };
        let lines: Vec<&Line> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |text: &str| text.chars().count();
        let first = lines.iter().map(|line| width(&line.name)).max().unwrap_or(0);
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
            text
        };
        lines.iter().map(text).collect()
    }
}

/// Seconds with as many digits as tell something: `0.153`, `12.34`, `123.4`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.3}"),
        s if s < 100.0 => format!("{s:.2}"),
        s => format!("{s:.1}"),
    }
}

/// Bytes in MiB; a dash where nothing is known.
pub(crate) fn mib(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_owned(), |bytes| format!("{:.0}", bytes as f64 / f64::from(1 << 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ],
        };
        assert_eq!(
            table.lines(),
            [
                "rung                                         seconds  requests",
                "resumable, each request on a new connection    15.00       100",
                "one HTTP/2 connection                        skipped: the server doesn't offer HTTP/2",
                "Länge                                          0.165        50",
            ]
        );
    }

    #[test]
    fn numbers_have_the_digits_that_tell_something() {
        assert_eq!([0.1534, 12.345, 123.45].map(seconds), ["0.153", "12.35", "123.5"]);
        assert_eq!((mib(None), mib(Some(3 << 20))), ("-".to_owned(), "3".to_owned()));
    }
}
