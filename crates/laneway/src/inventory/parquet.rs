//! Reads data files in Parquet. Reads only the needed columns, one page of each column at a time.

#[cfg(feature = "parquet-inventory")]
pub(super) use reading::Rows;
#[cfg(not(feature = "parquet-inventory"))]
pub(super) use without::Rows;

#[cfg(not(feature = "parquet-inventory"))]
mod without {
    use csv::StringRecord;

    use super::super::origin::InventoryFile;
    use super::super::rows::InventoryRow;
    use crate::Error;

    /// A type without values, because this build reads no Parquet.
    pub(in super::super) enum Rows {}

    impl Rows {
        pub(in super::super) fn open(data: InventoryFile, _columns: &[&str]) -> Result<Self, Error> {
            let why = "is a Parquet file, which Laneway reads only if it was built with the feature parquet-inventory";
            Err(Error::refused(data.name, why))
        }

        pub(in super::super) fn names(&self) -> &StringRecord {
            match *self {}
        }

        pub(in super::super) fn next(
            &mut self,
            _row: &mut InventoryRow,
        ) -> Result<Option<u64>, (u64, String)> {
            match *self {}
        }
    }
}

#[cfg(feature = "parquet-inventory")]
mod reading {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Duration, SystemTime};

    use csv::StringRecord;
    use parquet::basic::{Compression, Repetition};
    use parquet::errors::ParquetError;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    use parquet::record::reader::RowIter;
    use parquet::schema::types::Type;

    use super::super::origin::InventoryFile;
    use super::super::rows::InventoryRow;
    use crate::Error;

    pub(in super::super) struct Rows {
        names: StringRecord,
        rows: RowIter<'static>,
        /// The number of rows read.
        read: u64,
    }

    impl Rows {
        /// Begins to read these columns. Leaves out columns that the file lacks or that aren't plain values.
        ///
        /// # Errors
        /// If the file isn't Parquet.
        pub(in super::super) fn open(data: InventoryFile, columns: &[&str]) -> Result<Self, Error> {
            let InventoryFile { name, file } = data;
            let broken = |e: String| Error::refused(&name, format!("can't be read as Parquet: {e}"));
            let reader = survived(|| SerializedFileReader::new(file)).map_err(broken)?;
            let schema = reader.metadata().file_metadata().schema();
            let is_wanted = |column: &Type| {
                column.is_primitive()
                    && column.get_basic_info().repetition() != Repetition::REPEATED
                    && columns.contains(&column.name())
            };
            let fields: Vec<_> =
                schema.get_fields().iter().filter(|column| is_wanted(column)).cloned().collect();
            let names: StringRecord = fields.iter().map(|column| column.name().to_owned()).collect();
            let chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
            let top = |path: &[String]| path.first().cloned().unwrap_or_default();
            for (column, codec) in chunks.map(|chunk| (top(chunk.column_path().parts()), chunk.compression()))
            {
                if let Some(codec) = unread(codec).filter(|_| names.iter().any(|name| name == column)) {
                    let why = format!(
                        "its column {column} is compressed with {codec}, which Laneway can't read (only Snappy, gzip and none)"
                    );
                    return Err(Error::refused(&name, why));
                }
            }
            let wanted = Type::group_type_builder(schema.name()).with_fields(fields).build();
            let rows =
                wanted.and_then(|wanted| RowIter::from_file_into(Box::new(reader)).project(Some(wanted)));
            Ok(Self { names, rows: rows.map_err(|e| broken(e.to_string()))?, read: 0 })
        }

        pub(in super::super) fn names(&self) -> &StringRecord {
            &self.names
        }

        pub(in super::super) fn next(
            &mut self,
            into: &mut InventoryRow,
        ) -> Result<Option<u64>, (u64, String)> {
            self.read += 1;
            let number = self.read;
            let row = survived(|| self.rows.next().transpose()).map_err(|why| (number, why))?;
            let Some(row) = row else { return Ok(None) };
            into.texts.clear();
            into.times.clear();
            for (column, (name, field)) in row.get_column_iter().enumerate() {
                if let Some(time) = time(field) {
                    into.times.push((column, time));
                }
                let text = text(field)
                    .ok_or_else(|| (number, format!("its {name} is neither text nor a number")))?;
                into.texts.push_field(&text);
            }
            Ok(Some(number))
        }
    }

    const CONTRADICTORY: &str = "the content of its pages contradicts their headers";

    /// Calls the `parquet` crate, and turns a panic into an error: the crate panics on some damaged pages.
    fn survived<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
        let read = catch_unwind(AssertUnwindSafe(read)).map_err(|_| CONTRADICTORY.to_owned())?;
        read.map_err(|e| e.to_string())
    }

    /// Returns the name of a codec that Laneway doesn't support. Zstandard's library alone would add 300 KB
    /// to the program.
    fn unread(codec: Compression) -> Option<&'static str> {
        match codec {
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::GZIP(_) => None,
            Compression::ZSTD(_) => Some("Zstandard"),
            Compression::BROTLI(_) => Some("Brotli"),
            Compression::LZ4 | Compression::LZ4_RAW => Some("LZ4"),
            Compression::LZO => Some("LZO"),
        }
    }

    /// Returns a column's value in its CSV form. A time is a number in the file's unit.
    fn text(field: &Field) -> Option<String> {
        Some(match field {
            Field::Null => String::new(),
            Field::Bool(is) => is.to_string(),
            Field::Str(text) => text.clone(),
            // Some writers don't mark columns of text as UTF-8.
            Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).ok()?.to_owned(),
            Field::Int(number) => number.to_string(),
            Field::UInt(number) => number.to_string(),
            Field::Long(number) | Field::TimestampMillis(number) | Field::TimestampMicros(number) => {
                number.to_string()
            }
            Field::ULong(number) => number.to_string(),
            _ => return None,
        })
    }

    fn time(field: &Field) -> Option<SystemTime> {
        let since = match field {
            Field::TimestampMillis(millis) => Duration::from_millis((*millis).try_into().ok()?),
            Field::TimestampMicros(micros) => Duration::from_micros((*micros).try_into().ok()?),
            _ => return None,
        };
        SystemTime::UNIX_EPOCH.checked_add(since)
    }

    #[cfg(test)]
    mod tests {
        #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

        use std::io::{Seek as _, Write as _};
        use std::sync::Arc;

        use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
        use parquet::file::properties::WriterProperties;
        use parquet::file::writer::SerializedFileWriter;
        use parquet::schema::parser::parse_message_type;

        use super::*;

        fn file() -> Vec<u8> {
            let schema = Arc::new(
                parse_message_type("message s { optional binary key; optional int64 size; }").unwrap(),
            );
            let mut file = Vec::new();
            let settings = Arc::new(WriterProperties::default());
            let mut writer = SerializedFileWriter::new(&mut file, schema, settings).unwrap();
            let mut group = writer.next_row_group().unwrap();
            let mut keys = group.next_column().unwrap().unwrap();
            let texts = ["pa", "pb", "pc"].map(ByteArray::from);
            keys.typed::<ByteArrayType>().write_batch(&texts, Some(&[1, 1, 1]), None).unwrap();
            keys.close().unwrap();
            let mut sizes = group.next_column().unwrap().unwrap();
            sizes.typed::<Int64Type>().write_batch(&[1, 2], Some(&[1, 1, 0]), None).unwrap();
            sizes.close().unwrap();
            group.close().unwrap();
            writer.close().unwrap();
            file
        }

        /// Returns the number of a file's rows, or a message that says what is wrong with the file.
        fn read(bytes: &[u8]) -> Result<usize, String> {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            let data = InventoryFile { name: "data.parquet".to_owned(), file };
            let (mut rows, mut row) =
                (Rows::open(data, &["key", "size"]).map_err(|e| e.to_string())?, InventoryRow::default());
            let mut count = 0;
            while rows.next(&mut row).map_err(|(_, why)| why)?.is_some() {
                count += 1;
            }
            Ok(count)
        }

        /// The `parquet` crate panics on some of these files.
        #[test]
        fn a_bit_that_is_wrong_anywhere_in_a_file_is_an_error_at_most() {
            let file = file();
            assert_eq!(read(&file), Ok(3));
            let mut contradictory = 0;
            for at in 0..file.len() {
                let mut damaged = file.clone();
                damaged[at] ^= 64;
                contradictory += usize::from(read(&damaged).is_err_and(|why| why.contains(CONTRADICTORY)));
            }
            assert!(contradictory > 0, "nothing is caught");
        }

        #[test]
        fn values_are_told_as_csv_tells_them_and_times_as_times() {
            assert_eq!(text(&Field::Long(5)).as_deref(), Some("5"));
            assert_eq!(text(&Field::Bytes(b"\xff".to_vec().into())), None);
            assert_eq!(text(&Field::Double(0.5)), None);
            let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
            assert_eq!(time(&Field::TimestampMillis(1_000)), Some(second));
            assert_eq!(time(&Field::TimestampMicros(1_000_000)), Some(second));
            assert_eq!((time(&Field::TimestampMillis(-1)), time(&Field::Long(1))), (None, None));
        }
    }
}
