//! The rows of a data file in any format.

use std::io::{self, Read};
use std::time::SystemTime;

use csv::StringRecord;
use laneway_store::Retention;

use super::origin::InventoryFile;
use super::parquet;
use crate::Error;
use crate::location::lines::LINE_MAX;

/// A row: the values of its columns, as text.
#[derive(Default)]
pub(super) struct InventoryRow {
    pub(super) texts: StringRecord,
    /// Values that the file stores as points in time, with the positions of their columns.
    pub(super) times: Vec<(usize, SystemTime)>,
}

impl InventoryRow {
    /// Returns a column's value, or `None` if it is empty.
    pub(super) fn text(&self, column: Option<usize>) -> Option<&str> {
        column.and_then(|column| self.texts.get(column)).filter(|text| !text.is_empty())
    }

    pub(super) fn time(&self, column: Option<usize>) -> Option<SystemTime> {
        match self.times.iter().find(|(known, _)| Some(*known) == column) {
            Some((_, time)) => Some(*time),
            None => self.text(column).and_then(Retention::time),
        }
    }
}

/// A reader of a data file that fails if a row has more than [`LINE_MAX`] bytes. A few compressed KiB can
/// hold gigabytes without a line end.
pub(super) struct BoundedReader {
    input: Box<dyn Read>,
    /// The number of bytes that may still be read for the current row.
    left: u64,
}

impl Read for BoundedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than 1 MiB"));
        }
        let read = self.input.by_ref().take(self.left).read(buffer)?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// The rows of a data file, one at a time.
pub(super) enum Rows {
    Csv(Box<csv::Reader<BoundedReader>>),
    Parquet(parquet::Rows),
}

impl Rows {
    pub(super) fn csv(data: InventoryFile, has_header: bool) -> Self {
        let input = BoundedReader { input: data.decoded(), left: LINE_MAX };
        let rows = csv::ReaderBuilder::new().has_headers(has_header).from_reader(input);
        Self::Csv(Box::new(rows))
    }

    /// Reads these columns of a Parquet file. Leaves out columns that the file lacks.
    ///
    /// # Errors
    /// If the file isn't Parquet, or if the library is built without the feature `parquet-inventory`.
    pub(super) fn parquet(data: InventoryFile, columns: &[&str]) -> Result<Self, Error> {
        Ok(Self::Parquet(parquet::Rows::open(data, columns)?))
    }

    /// Returns the names of the columns in the file.
    ///
    /// # Errors
    /// A message that says what is wrong with the header.
    pub(super) fn names(&mut self) -> Result<StringRecord, String> {
        match self {
            Self::Csv(rows) => rows.headers().cloned().map_err(|e| e.to_string()),
            Self::Parquet(rows) => Ok(rows.names().clone()),
        }
    }

    /// Reads the next row. Returns its line or, in Parquet, its number, counted from 1. Returns `None` at the
    /// end.
    ///
    /// # Errors
    /// The number of the line or row, and a message that says what is wrong with it.
    pub(super) fn next(&mut self, row: &mut InventoryRow) -> Result<Option<u64>, (u64, String)> {
        match self {
            Self::Csv(rows) => {
                let line = rows.position().line();
                rows.get_mut().left = LINE_MAX;
                let is_there = rows.read_record(&mut row.texts).map_err(|e| (line, e.to_string()))?;
                Ok(is_there.then_some(line))
            }
            Self::Parquet(rows) => rows.next(row),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::{Seek as _, Write as _};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compressed(chunks: &[&[u8]]) -> InventoryFile {
        let mut gzip = GzEncoder::new(tempfile::tempfile().unwrap(), Compression::fast());
        chunks.iter().for_each(|chunk| gzip.write_all(chunk).unwrap());
        let mut file = gzip.finish().unwrap();
        file.rewind().unwrap();
        InventoryFile { name: "data.csv.gz".to_owned(), file }
    }

    #[test]
    fn a_row_that_is_small_and_becomes_large_is_an_error() {
        let mib = vec![b'x'; 1 << 20];
        let mut rows = Rows::csv(compressed(&[b"a,b\nc,", &mib, &mib, b"\n"]), false);
        let mut row = InventoryRow::default();
        assert_eq!(rows.next(&mut row), Ok(Some(1)));
        let (line, why) = rows.next(&mut row).unwrap_err();
        assert!(line == 2 && why.contains("longer than 1 MiB"), "{line} {why}");
    }

    #[test]
    fn any_number_of_rows_may_be_as_long_as_one() {
        let long = vec![b'x'; (1 << 20) - 3];
        let mut rows = Rows::csv(compressed(&[&long, b"\n", &long, b"\n", &long, b"\n"]), false);
        let mut row = InventoryRow::default();
        let read = std::iter::from_fn(|| rows.next(&mut row).unwrap()).count();
        assert_eq!(read, 3);
    }
}
