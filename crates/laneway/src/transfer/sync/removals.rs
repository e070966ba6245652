//! Removals at the destination. Removals wait until every copy is done, some in memory and the rest in a
//! temporary file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};

use laneway_store::Version;
use serde::{Deserialize, Serialize};

/// The maximum number of removals in memory, which takes about 10 MiB.
const MEMORY_MAX: usize = 1 << 16;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Removal {
    /// The path relative to the destination's folder or prefix.
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) version: Option<Version>,
}

/// The names to remove, in the order in which they were added.
#[derive(Debug)]
pub(super) struct Removals {
    memory: Vec<Removal>,
    memory_max: usize,
    spool: Option<File>,
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Default for Removals {
    fn default() -> Self {
        Self { memory: Vec::new(), memory_max: MEMORY_MAX, spool: None, count: 0, bytes: 0 }
    }
}

impl Removals {
    /// Adds a removal. Blocks now and then, to write many removals to a temporary file.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn add(&mut self, removal: Removal) -> io::Result<()> {
        self.count += 1;
        self.bytes += removal.size;
        self.memory.push(removal);
        if self.memory.len() < self.memory_max {
            return Ok(());
        }
        let mut lines = Vec::new();
        for removal in self.memory.drain(..) {
            serde_json::to_writer(&mut lines, &removal)?;
            lines.push(b'\n');
        }
        let spool = match self.spool.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        self.spool.insert(spool).write_all(&lines)
    }

    /// Keeps only the removals that `keeps` accepts.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn keep(&mut self, keeps: impl Fn(&str) -> bool) -> io::Result<()> {
        let memory_max = self.memory_max;
        let mut reading = std::mem::take(self).read()?;
        self.memory_max = memory_max;
        loop {
            let some = reading.next(MEMORY_MAX)?;
            if some.is_empty() {
                return Ok(());
            }
            some.into_iter()
                .filter(|removal| keeps(&removal.name))
                .try_for_each(|removal| self.add(removal))?;
        }
    }

    /// Begins to read the removals.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn read(self) -> io::Result<RemovalReader> {
        let spool = match self.spool {
            Some(mut file) => {
                file.rewind()?;
                Some(BufReader::new(file))
            }
            None => None,
        };
        Ok(RemovalReader { spool, memory: self.memory.into_iter() })
    }
}

/// Reads the removals in their order.
#[derive(Debug)]
pub(super) struct RemovalReader {
    spool: Option<BufReader<File>>,
    memory: std::vec::IntoIter<Removal>,
}

impl RemovalReader {
    /// Returns the next removals, at most `max`. Returns an empty list at the end.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn next(&mut self, max: usize) -> io::Result<Vec<Removal>> {
        let mut some = Vec::new();
        while let Some(spool) = self.spool.as_mut().filter(|_| some.len() < max) {
            let mut line = Vec::new();
            match spool.read_until(b'\n', &mut line)? {
                0 => self.spool = None,
                _ => some.push(serde_json::from_slice(&line)?),
            }
        }
        some.extend(self.memory.by_ref().take(max - some.len()));
        Ok(some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_them_are_forgotten() {
        let mut removals = Removals { memory_max: 4, ..Removals::default() };
        for i in 0..30 {
            removals.add(Removal { name: i.to_string(), size: 1, version: None }).unwrap();
        }
        removals.keep(|name| name.ends_with('7')).unwrap();
        assert_eq!((removals.count, removals.bytes), (3, 3));
        let names: Vec<_> = removals.read().unwrap().next(9).unwrap().into_iter().map(|r| r.name).collect();
        assert_eq!(names, ["7", "17", "27"]);
    }

    #[test]
    fn however_many_there_are_they_come_back_in_their_order() {
        let removal = |i: u64| Removal {
            name: format!("a\n/{i}"),
            size: i,
            version: i.is_multiple_of(2).then_some(Version::Generation(i)),
        };
        for count in [0, 1, 9, 10, 11, 35] {
            let mut removals = Removals { memory_max: 10, ..Removals::default() };
            (0..count).for_each(|i| removals.add(removal(i)).unwrap());
            assert_eq!((removals.count, removals.bytes), (count, (0..count).sum()));
            assert!(removals.memory.len() < 10 && removals.spool.is_some() == (count >= 10));
            let mut reading = removals.read().unwrap();
            let mut found = Vec::new();
            loop {
                let some = reading.next(4).unwrap();
                if some.is_empty() {
                    break;
                }
                assert!(some.len() <= 4);
                found.extend(some);
            }
            assert_eq!(found, (0..count).map(removal).collect::<Vec<_>>(), "{count}");
        }
    }
}
