//! The blocking calls.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use laneway_testkit::random_bytes;

use super::bucket;
use crate::stage::{DIALECTS, MIB, Stage, at_once};

#[test]
fn readers_and_writers_are_those_of_the_standard_library() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        let bytes = random_bytes(1, 17 * MIB);
        let mut writer = bucket.writer("k").into_blocking();
        writer.write_all(&bytes).unwrap();
        writer.flush().unwrap();
        assert!(stage.keys().is_empty());
        assert_eq!(writer.finish().unwrap().size, bytes.len() as u64);
        assert!(stage.stored("k") == bytes);

        let mut reader = bucket.open("k").footer(8).call().unwrap().into_blocking();
        let mut buffer = [0; 1000];
        assert_eq!(reader.read_at(MIB as u64, &mut buffer).unwrap(), 1000);
        assert!(buffer == bytes[MIB..][..1000]);
        assert_eq!(reader.read_at(reader.size() - 5, &mut buffer).unwrap(), 5);
        assert_eq!(reader.read_at(reader.size(), &mut buffer).unwrap(), 0);
        reader.seek(SeekFrom::Start(9)).unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest == bytes[9..]);
        assert!(reader.read_ranges([0..3, 5..9]).unwrap()[1] == bytes[5..9]);
        assert!(reader.read_range(5..9).unwrap() == bytes[5..9]);
        let mut first = [0; 7];
        reader.again().read_exact(&mut first).unwrap();
        assert!(first == bytes[..7]);

        bucket.writer("given up").into_blocking().abort();
        assert_eq!(stage.keys(), ["k"]);
        let mut removed = bucket.delete_many(futures_util::stream::iter(["k".to_owned()]));
        let (key, outcome) = removed.next_blocking().unwrap();
        assert!(key == "k" && outcome.is_ok() && removed.next_blocking().is_none());
        assert!(stage.keys().is_empty());
    });
}
