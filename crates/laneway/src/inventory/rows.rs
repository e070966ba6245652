//! The rows of a data file, whichever its format.

use std::io::Read;
use std::time::SystemTime;

use csv::StringRecord;
use laneway_store::Retention;

use super::origin::DataFile;
use super::parquet;
use crate::Error;

/// A row: what its columns hold, as text.
#[derive(Default)]
pub(super) struct Row {
    pub(super) texts: StringRecord,
    /// Those that the file holds as points in time, by their columns.
    pub(super) times: Vec<(usize, SystemTime)>,
}

impl Row {
    /// What a column holds; `None` for nothing.
    pub(super) fn text(&self, column: Option<usize>) -> Option<&str> {
        column.and_then(|column| self.texts.get(column)).filter(|text| !text.is_empty())
    }

    /// A point in time.
    pub(super) fn time(&self, column: Option<usize>) -> Option<SystemTime> {
        match self.times.iter().find(|(known, _)| Some(*known) == column) {
            Some((_, time)) => Some(*time),
            None => self.text(column).and_then(Retention::time),
        }
    }
}

/// The rows of a data file, one at a time.
pub(super) enum Rows {
    Csv(Box<csv::Reader<Box<dyn Read>>>),
    Parquet(parquet::Rows),
}

impl Rows {
    pub(super) fn csv(data: DataFile, has_header: bool) -> Self {
        let rows = csv::ReaderBuilder::new().has_headers(has_header).from_reader(data.decoded());
        Self::Csv(Box::new(rows))
    }

    /// Those of a Parquet file, of these columns where it has them.
    ///
    /// # Errors
    /// For what is no such file; for all of them where the library is built without `parquet-inventory`.
    pub(super) fn parquet(data: DataFile, columns: &[&str]) -> Result<Self, Error> {
        Ok(Self::Parquet(parquet::Rows::open(data, columns)?))
    }

    /// The names of the columns, as the file tells them.
    ///
    /// # Errors
    /// What is wrong with a header.
    pub(super) fn names(&mut self) -> Result<StringRecord, String> {
        match self {
            Self::Csv(rows) => rows.headers().cloned().map_err(|e| e.to_string()),
            Self::Parquet(rows) => Ok(rows.names().clone()),
        }
    }

    /// Reads the next row; its line or, in Parquet, its number, counted from 1. `None` at the end.
    ///
    /// # Errors
    /// What is wrong with which line or row.
    pub(super) fn next(&mut self, row: &mut Row) -> Result<Option<u64>, (u64, String)> {
        match self {
            Self::Csv(rows) => {
                let line = rows.position().line();
                let is_there = rows.read_record(&mut row.texts).map_err(|e| (line, e.to_string()))?;
                Ok(is_there.then_some(line))
            }
            Self::Parquet(rows) => rows.next(row),
        }
    }
}
