//! Data files in Parquet: only the columns that matter are read, a page of each at a time.

#[cfg(feature = "parquet-inventory")]
pub(super) use reading::Rows;
#[cfg(not(feature = "parquet-inventory"))]
pub(super) use without::Rows;

#[cfg(not(feature = "parquet-inventory"))]
mod without {
    use csv::StringRecord;

    use super::super::origin::DataFile;
    use super::super::rows::Row;
    use crate::Error;

    /// None: this build reads no Parquet.
    pub(in super::super) enum Rows {}

    impl Rows {
        pub(in super::super) fn open(data: DataFile, _columns: &[&str]) -> Result<Self, Error> {
            let why = "is Parquet, which only a build with the feature parquet-inventory reads";
            Err(Error::refused(data.name, why))
        }

        pub(in super::super) fn names(&self) -> &StringRecord {
            match *self {}
        }

        pub(in super::super) fn next(&mut self, _row: &mut Row) -> Result<Option<u64>, (u64, String)> {
            match *self {}
        }
    }
}

#[cfg(feature = "parquet-inventory")]
mod reading {
    use std::time::{Duration, SystemTime};

    use csv::StringRecord;
    use parquet::basic::{Compression, Repetition};
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    use parquet::record::reader::RowIter;
    use parquet::schema::types::Type;

    use super::super::origin::DataFile;
    use super::super::rows::Row;
    use crate::Error;

    /// The rows of a file.
    pub(in super::super) struct Rows {
        names: StringRecord,
        rows: RowIter<'static>,
        /// How many were read.
        read: u64,
    }

    impl Rows {
        /// Begins to read these columns, as far as the file has them as plain values.
        ///
        /// # Errors
        /// For what is no Parquet.
        pub(in super::super) fn open(data: DataFile, columns: &[&str]) -> Result<Self, Error> {
            let DataFile { name, file } = data;
            let broken = |e| Error::refused(&name, format!("can't be read as Parquet: {e}"));
            let reader = SerializedFileReader::new(file).map_err(broken)?;
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
                        "its column {column} is compressed with {codec}, which isn't read: Snappy, gzip and no compression are"
                    );
                    return Err(Error::refused(&name, why));
                }
            }
            let wanted =
                Type::group_type_builder(schema.name()).with_fields(fields).build().map_err(broken)?;
            let rows = RowIter::from_file_into(Box::new(reader)).project(Some(wanted)).map_err(broken)?;
            Ok(Self { names, rows, read: 0 })
        }

        pub(in super::super) fn names(&self) -> &StringRecord {
            &self.names
        }

        pub(in super::super) fn next(&mut self, into: &mut Row) -> Result<Option<u64>, (u64, String)> {
            self.read += 1;
            let number = self.read;
            let Some(row) = self.rows.next() else { return Ok(None) };
            let row = row.map_err(|e| (number, e.to_string()))?;
            into.texts.clear();
            into.times.clear();
            for (column, (name, field)) in row.get_column_iter().enumerate() {
                if let Some(time) = time(field) {
                    into.times.push((column, time));
                }
                let text = text(field).ok_or_else(|| (number, format!("its {name} is no text or number")))?;
                into.texts.push_field(&text);
            }
            Ok(Some(number))
        }
    }

    /// The name of a codec that isn't read. Zstandard's library alone would be a third of a megabyte of the program.
    fn unread(codec: Compression) -> Option<&'static str> {
        match codec {
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::GZIP(_) => None,
            Compression::ZSTD(_) => Some("Zstandard"),
            Compression::BROTLI(_) => Some("Brotli"),
            Compression::LZ4 | Compression::LZ4_RAW => Some("LZ4"),
            Compression::LZO => Some("LZO"),
        }
    }

    /// What a column holds, as CSV would have it; a time in the units of the file.
    fn text(field: &Field) -> Option<String> {
        Some(match field {
            Field::Null => String::new(),
            Field::Bool(is) => is.to_string(),
            Field::Str(text) => text.clone(),
            // Some writers don't mark texts as such.
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
        use super::*;

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
