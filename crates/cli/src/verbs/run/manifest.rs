//! What of the lines of a run is done, on file: the same lines, begun again, leave that out.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::exit::BadUsage;

/// Raised when what a line says changes its meaning.
const FORMAT: u32 = 1;
const DONE: &str = "done";

/// The first line: whose manifest it is. The same words mean other files in another folder.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
struct Subject {
    kind: String,
    format: u32,
    job: String,
    folder: String,
}

/// A command that has ended.
#[derive(Serialize, Deserialize, Debug)]
struct Command {
    kind: String,
    /// Where it stood.
    number: usize,
    line: String,
    /// The line's bytes in hexadecimal, where they are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    seconds: f64,
    outcome: String,
}

/// A manifest in use.
#[derive(Debug)]
pub(super) struct Manifest {
    path: PathBuf,
    file: Mutex<File>,
    known: Mutex<Known>,
}

/// How often each line was done that is not begun again yet. Of texts 128 bits of a keyed hash are held.
#[derive(Default, Debug)]
struct Known {
    keys: [RandomState; 2],
    lines: HashMap<(u64, u64), u32>,
}

impl Known {
    fn key(&self, line: &[u8]) -> (u64, u64) {
        (self.keys[0].hash_one(line), self.keys[1].hash_one(line))
    }

    fn add(&mut self, line: &[u8]) {
        *self.lines.entry(self.key(line)).or_default() += 1;
    }

    /// Whether a line was done; each time that it was counts for one such line.
    fn takes(&mut self, line: &[u8]) -> bool {
        match self.lines.get_mut(&self.key(line)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}

impl Manifest {
    /// Reads what is there, and goes on with it. With it comes what is to be said of it, if anything is.
    ///
    /// # Errors
    /// For a file that is no run's, or one's in another folder, that has a broken line, or that another run is writing.
    pub(super) fn open(path: &Path, folder: &Path) -> anyhow::Result<(Self, Option<String>)> {
        let shown = path.display();
        let refused = |at: String, why: String| BadUsage::of(at, format!("{why}; nothing was done"));
        let failed = |error| BadUsage::of(shown.to_string(), format!("can't be used as a manifest: {error}"));
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(refused(shown.to_string(), "another run is writing this manifest".to_owned()).into());
        }
        let subject = Subject {
            kind: "manifest".to_owned(),
            format: FORMAT,
            job: "run".to_owned(),
            folder: folder.to_string_lossy().into_owned(),
        };
        let first = line_of(&subject)?;
        let mut known = Known::default();
        let mut warning = None;
        let mut input = BufReader::new(&file);
        let (mut number, mut at) = (0, 0);
        loop {
            let mut line = Vec::new();
            let read = input.read_until(b'\n', &mut line).map_err(failed)?;
            if read == 0 {
                break;
            }
            number += 1;
            let is_ended = line.ends_with(b"\n");
            let broken = |why: String| refused(format!("{shown}:{number}"), why);
            match (number, is_ended) {
                (1, true) => subject.check(&line).map_err(broken)?,
                // Whatever else a file may hold that has no line: it is not ours to cut.
                (1, false) if !first.starts_with(&line) => {
                    return Err(broken("this is no manifest".to_owned()).into());
                }
                (_, false) => {
                    warning = Some(format!(
                        "line {number} is torn, as a killed process leaves its last one: it counts as not written"
                    ));
                    file.set_len(at).map_err(failed)?;
                    break;
                }
                (_, true) => {
                    let command: Command = serde_json::from_slice(&line)
                        .map_err(|error| broken(format!("this line is broken: {error}")))?;
                    if command.outcome == DONE {
                        let bytes =
                            command.bytes().ok_or_else(|| broken("this line is broken".to_owned()))?;
                        known.add(&bytes);
                    }
                }
            }
            at += read as u64;
        }
        if at == 0 {
            file.write_all(&first).map_err(failed)?;
        }
        let manifest = Self { path: path.to_owned(), file: Mutex::new(file), known: Mutex::new(known) };
        Ok((manifest, warning))
    }

    /// Whether a line is done, by an earlier run.
    pub(super) fn has_done(&self, line: &[u8]) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).takes(line)
    }

    /// Writes how a command has ended.
    ///
    /// # Errors
    /// When that can't be written.
    pub(super) fn record(
        &self,
        (number, line): (usize, &[u8]),
        is_done: bool,
        seconds: f64,
    ) -> anyhow::Result<()> {
        let text = std::str::from_utf8(line);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let command = Command {
            kind: "command".to_owned(),
            number,
            line: String::from_utf8_lossy(line).into_owned(),
            bytes: text.is_err().then(|| hex(line)),
            seconds: (seconds * 1e6).round() / 1e6,
            outcome: if is_done { DONE } else { "failed" }.to_owned(),
        };
        let written = line_of(&command)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&written)
            .map_err(|error| anyhow::anyhow!("{}: can't be written: {error}", self.path.display()))
    }
}

impl Subject {
    /// Whether the first line of a manifest says this.
    fn check(&self, first: &[u8]) -> Result<(), String> {
        let no_manifest = || "this is no manifest of a run".to_owned();
        let found: serde_json::Value = serde_json::from_slice(first).map_err(|_| no_manifest())?;
        if found["kind"] != "manifest" {
            return Err(no_manifest());
        }
        match serde_json::from_value::<Self>(found) {
            Ok(found) if found == *self => Ok(()),
            Ok(found) if found.job == self.job && found.format == self.format => {
                Err(format!("this is the manifest of a run in another folder, {}", found.folder))
            }
            _ => Err("this is the manifest of another job".to_owned()),
        }
    }
}

impl Command {
    /// The line itself.
    fn bytes(&self) -> Option<Vec<u8>> {
        let Some(hex) = &self.bytes else { return Some(self.line.clone().into_bytes()) };
        let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        Some(digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
    }
}

fn line_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> anyhow::Result<(Manifest, Option<String>)> {
        Manifest::open(path, Path::new("/here"))
    }

    #[test]
    fn a_line_counts_as_done_as_often_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let (manifest, _) = open(&path).unwrap();
        let lines: [(&[u8], bool); 4] =
            [(b"rm a", true), (b"rm a", true), (b"rm b", false), (b"rm \xff", true)];
        for (at, (line, is_done)) in lines.into_iter().enumerate() {
            assert!(!manifest.has_done(line));
            manifest.record((at + 1, line), is_done, 0.5).unwrap();
        }
        assert!(open(&path).is_err(), "another run is writing it");
        drop(manifest);
        let (manifest, warning) = open(&path).unwrap();
        assert!(warning.is_none());
        assert!(manifest.has_done(b"rm a") && manifest.has_done(b"rm a") && !manifest.has_done(b"rm a"));
        assert!(
            !manifest.has_done(b"rm b") && manifest.has_done(b"rm \xff") && !manifest.has_done(b"rm \xfe")
        );
    }

    #[test]
    fn a_torn_last_line_is_cut_and_told_and_a_broken_one_refused_by_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let (manifest, _) = open(&path).unwrap();
        manifest.record((1, b"rm a"), true, 0.5).unwrap();
        drop(manifest);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let (manifest, warning) = open(&path).unwrap();
        assert!(warning.unwrap().contains("line 2 is torn") && !manifest.has_done(b"rm a"));
        manifest.record((1, b"rm a"), true, 0.5).unwrap();
        drop(manifest);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        std::fs::write(&path, [&whole[..], b"nonsense\n"].concat()).unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("m:3: this line is broken"));
        for (text, why) in [
            ("rm a\n", "m:1: this is no manifest"),
            ("r", "m:1: this is no manifest"),
            ("{\"kind\":\"manifest\",\"format\":1,\"job\":\"copy\",\"sources\":[]}\n", "another job"),
            ("{\"kind\":\"manifest\",\"format\":1,\"job\":\"run\",\"folder\":\"/there\"}\n", "/there"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = open(&path).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("nothing was done"), "{text}: {error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
