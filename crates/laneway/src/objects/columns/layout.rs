//! Reads the footer of a Parquet file, and returns the byte range of each column in each row group.
//!
//! The footer is written in Thrift's compact protocol. This parser reads only the four kinds of structs that
//! lead to the columns, and skips everything else. The footer of a file with 50 columns and 64 row groups is
//! 400 KiB large, but the parser needs only three numbers for each column. The field numbers are those in
//! `parquet.thrift`.

use std::ops::Range;

/// The last four bytes of a Parquet file. The four bytes before them are the footer's length.
pub(super) const MAGIC: &[u8] = b"PAR1";
const TAIL: usize = 8;

/// The maximum depth of nested structs and lists. A normal footer has about ten levels. A crafted one with
/// many more could overflow the stack.
const DEPTH_MAX: u8 = 32;

const STOP: u8 = 0;
const BINARY: u8 = 8;
const I64: u8 = 6;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The ranges of the columns in each row group, in the order of the table's columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ColumnLayout {
    pub(super) groups: Vec<Vec<Range<u64>>>,
}

impl ColumnLayout {
    /// Parses the last bytes of a file of `size` bytes. Returns `None` if they don't contain the whole
    /// footer, or if a column is in another file or outside of this one.
    pub(super) fn of(last: &[u8], size: u64) -> Option<Self> {
        let (rest, tail) = last.split_at_checked(last.len().checked_sub(TAIL)?)?;
        let (length, magic) = tail.split_at(TAIL - MAGIC.len());
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let footer = rest.get(rest.len().checked_sub(length)?..).filter(|_| magic == MAGIC)?;
        let groups = ThriftReader(footer).file()?;
        let end = size.checked_sub((length + TAIL) as u64)?;
        let is_there = |chunk: &Range<u64>| chunk.start < chunk.end && chunk.end <= end;
        groups.iter().flatten().all(is_there).then_some(Self { groups })
    }
}

/// The bytes of a footer that are not yet parsed. The methods return `None` if the data is invalid.
struct ThriftReader<'a>(&'a [u8]);

impl ThriftReader<'_> {
    fn file(&mut self) -> Option<Vec<Vec<Range<u64>>>> {
        self.structs(4, Self::row_group)
    }

    fn row_group(&mut self) -> Option<Vec<Range<u64>>> {
        // Refuse a row group without columns. Such a row group takes one byte in the footer, but more in
        // memory. So a crafted footer with many of them could exhaust the memory.
        self.structs(1, Self::column).filter(|columns| !columns.is_empty())
    }

    /// Reads a struct whose field `list` is a list of structs. Returns the entries of this list, each read by
    /// `each`, and skips the other fields.
    fn structs<T>(&mut self, list: i16, each: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut read = Vec::new();
        self.fields(|from, id, kind| match (id, kind) {
            (id, LIST) if id == list => {
                let (count, kind) = from.list()?;
                for _ in 0..count {
                    read.push(if kind == STRUCT { each(from)? } else { return None });
                }
                Some(())
            }
            _ => from.skip(kind, DEPTH_MAX),
        })?;
        Some(read)
    }

    fn column(&mut self) -> Option<Range<u64>> {
        let mut place = None;
        self.fields(|from, id, kind| match (id, kind) {
            // Field 1 is the path of the file that holds the column's bytes, if they aren't in this file.
            (1, BINARY) => None,
            (3, STRUCT) => {
                place = Some(from.place()?);
                Some(())
            }
            _ => from.skip(kind, DEPTH_MAX),
        })?;
        place
    }

    /// Returns the column's range. The range begins at the dictionary page, or at the first data page if
    /// there is no dictionary. Its length is the column's compressed size.
    fn place(&mut self) -> Option<Range<u64>> {
        let (mut len, mut data, mut dictionary) = (None, None, None);
        self.fields(|from, id, kind| {
            let number = match (id, kind) {
                (7, I64) => &mut len,
                (9, I64) => &mut data,
                (11, I64) => &mut dictionary,
                _ => return from.skip(kind, DEPTH_MAX),
            };
            *number = Some(u64::try_from(from.number()?).ok()?);
            Some(())
        })?;
        let data = data?;
        let start = dictionary.filter(|at| (1..data).contains(at)).unwrap_or(data);
        Some(start..start.checked_add(len?)?)
    }

    /// Calls `each` with the number and type of every field of a struct. `each` must read or skip the field.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, i16, u8) -> Option<()>) -> Option<()> {
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == STOP {
                return Some(());
            }
            id = match head >> 4 {
                0 => self.number()?.try_into().ok()?,
                more => id.checked_add(more.into())?,
            };
            each(self, id, kind)?;
        }
    }

    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Some((count, head & 15))
    }

    fn skip(&mut self, kind: u8, depth: u8) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // Thrift encodes a boolean field of a struct in the field's type (1 is true, 2 is false), so no
            // bytes follow.
            1 | 2 => Some(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            BINARY => {
                let len = self.varint()?;
                self.pass(len)
            }
            LIST | 10 => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 15, depth)
                })
            }
            STRUCT => self.fields(|from, _, kind| from.skip(kind, depth)),
            _ => None,
        }
    }

    /// Skips an element of a list or map. Each element takes at least one byte. So a crafted large count
    /// fails at the end of the data instead of looping for long.
    fn skip_element(&mut self, kind: u8, depth: u8) -> Option<()> {
        if matches!(kind, 1 | 2) { self.pass(1) } else { self.skip(kind, depth) }
    }

    fn pass(&mut self, len: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(len).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn number(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use laneway_testkit::random_bytes;
    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
    use parquet::file::metadata::ParquetMetaDataReader;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Returns a file with `groups` row groups of four columns of different sizes.
    pub(in crate::objects::columns) fn file(groups: usize) -> Vec<u8> {
        let schema = "message row { required double a; required binary b (UTF8); required double c; required double d; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
        let mut file = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut file, schema, properties).unwrap();
        for group in 0..groups {
            let mut row_group = writer.next_row_group().unwrap();
            for column in 0..4 {
                let mut columns = row_group.next_column().unwrap().unwrap();
                if column == 1 {
                    let texts: Vec<_> =
                        (0..100).map(|row| ByteArray::from(format!("{}", row % 7).as_str())).collect();
                    columns.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
                } else {
                    let numbers: Vec<_> =
                        (0..100).map(|row| f64::from(row * (column + 1)).sin() * group as f64).collect();
                    columns.typed::<DoubleType>().write_batch(&numbers, None, None).unwrap();
                }
                columns.close().unwrap();
            }
            row_group.close().unwrap();
        }
        writer.close().unwrap();
        file
    }

    #[test]
    fn columns_lie_where_another_reader_of_the_footer_finds_them() {
        let file = file(20);
        let metadata =
            ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(file.clone())).unwrap();
        let expected: Vec<Vec<_>> = metadata
            .row_groups()
            .iter()
            .map(|group| group.columns().iter().map(|column| column.byte_range()))
            .map(|places| places.map(|(start, len)| start..start + len).collect())
            .collect();
        assert_eq!(expected.len(), 20);
        let size = file.len() as u64;
        assert_eq!(ColumnLayout::of(&file, size).unwrap().groups, expected);
        let footer = &file[expected[19][3].end as usize..];
        assert_eq!(ColumnLayout::of(footer, size).unwrap().groups, expected);
        let length = u32::from_le_bytes(footer[footer.len() - 8..][..4].try_into().unwrap()) as usize;
        let whole = &file[file.len() - length - TAIL..];
        assert_eq!(ColumnLayout::of(whole, size).unwrap().groups, expected);
        assert_eq!(ColumnLayout::of(&whole[1..], size), None, "the footer is longer than the bytes given");
        assert_eq!(ColumnLayout::of(&file[..file.len() - 1], size), None);
        assert_eq!(
            ColumnLayout::of(whole, whole.len() as u64 + 100),
            None,
            "columns would end in the footer"
        );
    }

    #[test]
    fn whatever_a_footer_says_it_is_read_to_its_end_or_not_at_all() {
        let file = file(3);
        for seed in 0..4000 {
            let (mut changed, drawn) = (file.clone(), random_bytes(seed, 64));
            let footer = &mut changed[file.len() - 700..file.len() - TAIL];
            for change in drawn.chunks(3).take(usize::from(drawn[63]) % 8) {
                footer[usize::from(u16::from_le_bytes([change[0], change[1]])) % (700 - TAIL)] = change[2];
            }
            if let Some(layout) = ColumnLayout::of(&changed, file.len() as u64) {
                let ends = layout.groups.iter().flatten().map(|chunk| chunk.end);
                assert!(ends.max() <= Some(file.len() as u64), "{seed}");
            }
        }
        for cut in 0..file.len() {
            let _any = ColumnLayout::of(&file[cut..], file.len() as u64);
        }
    }

    #[test]
    fn bytes_that_mean_nothing_end() {
        for seed in 0..4000 {
            let mut bytes = random_bytes(seed, seed as usize % 200);
            bytes.extend((bytes.len() as u32).to_le_bytes());
            bytes.extend(MAGIC);
            let _any = ColumnLayout::of(&bytes, 1 << 40);
        }
        let lists = [[0x19].repeat(1 << 20), (1_u32 << 20).to_le_bytes().to_vec(), MAGIC.to_vec()].concat();
        assert_eq!(ColumnLayout::of(&lists, 1 << 40), None, "lists of lists of lists");
    }
}
