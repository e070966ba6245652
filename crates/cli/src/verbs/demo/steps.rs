//! What the demo does, step by step, and what it says of each.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use laneway::Location;
use laneway_experiments::ladder::Usual;
use laneway_experiments::room;
use serde::Serialize;

use super::content;
use super::stage::{Stage, Stop, Took};
use crate::context::Context;
use laneway_quantity as quantity;

const FEW: usize = 50;
const MANY: usize = 1000;
/// What a commit of a table format or a file of a web page has about: the size at which round trips cost everything.
const SMALL: u64 = 4700;
/// The large object is made from this seed; the small files from their numbers.
const LARGE_SEED: u64 = 1 << 32;
/// Two folders of small files, and the blocks of a file system.
const SLACK: u64 = 64 << 20;

/// One line of the table.
#[derive(Serialize, Debug)]
struct Step<'a> {
    kind: &'static str,
    step: &'a str,
    seconds: f64,
    bytes: u64,
    connections: u64,
    requests: u64,
    #[serde(skip)]
    remark: String,
}

/// Plays the whole demo.
///
/// # Errors
/// What goes wrong first; [`Stopped`](super::stage::Stopped) when `stop` is pressed.
pub(super) fn play(context: &Context, size: u64, stop: &Stop) -> anyhow::Result<()> {
    // The large file and its object at first, later the object and what was downloaded.
    let bytes = size.saturating_mul(2).saturating_add(SLACK);
    let folder = room::folder("laneway-demo-", None, bytes);
    let folder = folder.context("no room for the demo's files; --size makes the large object smaller")?;
    let at = |name: &str| folder.path().join(name);
    let stage = Stage::set(folder.path(), stop.clone())?;
    let table = Table { context };
    table.title(&stage.description())?;

    let (few, many) = (small_files(&at("few"), FEW)?, small_files(&at("many"), MANY)?);
    let slow = stage.upload_as_usual(Usual::OneByOne, &at("few"), "one-by-one")?;
    table.step("50 files, one request and one connection at a time", &slow, String::new())?;
    let parallel = stage.upload_as_usual(Usual::AllAtOnce, &at("few"), "all-at-once")?;
    table.step("50 files, all at once, a connection each", &parallel, String::new())?;
    let fast = stage.copy(locations(&few), stage.at("few/"))?;
    table.step("50 files, laneway cp", &fast, beside(&fast, &slow, &parallel))?;
    let thousand = stage.copy(locations(&many), stage.at("many/"))?;
    table.step("1000 files, laneway cp", &thousand, String::new())?;

    let folders = ["one-by-one", "all-at-once", "few", "many"].map(|name| stage.at(name));
    let back = stage.copy(folders.to_vec(), Location::from(prepared(&at("back"))?.as_path()))?;
    table.step("all of them back, laneway cp -r", &back, String::new())?;
    for (name, files) in [("one-by-one", FEW), ("all-at-once", FEW), ("few", FEW), ("many", MANY)] {
        compare_small(&at("back").join(name), files)?;
    }

    let large = quantity::readable_size(size);
    content::write(&at("large"), LARGE_SEED, size, || !stop.pressed())?;
    let up = stage.copy(vec![at("large").as_path().into()], stage.at("large"))?;
    table.step(&format!("{large} up, laneway cp"), &up, rate(&up))?;
    // Room for the copy that comes back; it is compared with the seed, not with this file.
    fs::remove_file(at("large"))?;
    let down = stage.copy(vec![stage.at("large")], at("large.back").as_path().into())?;
    table.step(&format!("{large} down, laneway cp"), &down, rate(&down))?;
    if !content::matches(&at("large.back"), LARGE_SEED, size, || !stop.pressed())? {
        bail!("the large object came back different");
    }

    let all = [&fast, &thousand, &back, &up, &down];
    if !all.iter().all(|took| took.verified) {
        bail!("the store told no checksum of some object");
    }
    table.end(FEW * 3 + MANY, &large)
}

/// Prints the steps as they end: lines for people, records with `--json`.
struct Table<'a> {
    context: &'a Context,
}

impl Table<'_> {
    fn title(&self, description: &str) -> anyhow::Result<()> {
        self.print(&format!(
            "{description}\n\n{:<52}{:>9}{:>13}{:>10}",
            "", "time", "connections", "requests"
        ))
    }

    fn step(&self, name: &str, took: &Took, remark: String) -> anyhow::Result<()> {
        let step = Step {
            kind: "step",
            step: name,
            seconds: took.time.as_secs_f64(),
            bytes: took.bytes,
            connections: took.connections,
            requests: took.requests,
            remark,
        };
        if self.context.options.json {
            self.context.output.json(&step)?;
            return Ok(self.context.output.flush()?);
        }
        self.print(&line(&step))
    }

    fn end(&self, files: usize, large: &str) -> anyhow::Result<()> {
        self.print(&format!(
            "\nEvery byte of the {files} files and of the {large} that came back was compared with what was sent,\n\
             and every checksum (CRC32C) with the store's. Its files are gone from this machine."
        ))
    }

    fn print(&self, text: &str) -> anyhow::Result<()> {
        if !self.context.options.json {
            self.context.output.line(text)?;
            self.context.output.flush()?;
        }
        Ok(())
    }
}

fn line(step: &Step<'_>) -> String {
    let line = format!(
        "{:<52}{:>7.2} s{:>13}{:>10}   {}",
        step.step, step.seconds, step.connections, step.requests, step.remark
    );
    line.trim_end().to_owned()
}

/// What one copy is beside the same files one by one, and what they take all at once.
fn beside(fast: &Took, slow: &Took, parallel: &Took) -> String {
    let times = slow.time.as_secs_f64() / fast.time.as_secs_f64().max(1e-9);
    let seconds = parallel.time.as_secs_f64();
    let connections = parallel.connections;
    format!("{times:.0} times as fast; all at once {seconds:.2} s, over {connections} connections")
}

fn rate(took: &Took) -> String {
    quantity::rate(took.bytes, took.time).unwrap_or_default()
}

/// Makes a folder of small files, numbered from 0.
fn small_files(folder: &Path, files: usize) -> anyhow::Result<Vec<PathBuf>> {
    prepared(folder)?;
    let paths: Vec<_> = (0..files).map(|n| folder.join(small_name(n))).collect();
    for (n, path) in paths.iter().enumerate() {
        content::write(path, n as u64, SMALL, || true)?;
    }
    Ok(paths)
}

fn compare_small(folder: &Path, files: usize) -> anyhow::Result<()> {
    for n in 0..files {
        let path = folder.join(small_name(n));
        if !content::matches(&path, n as u64, SMALL, || true)? {
            bail!("{}: came back different", path.display());
        }
    }
    let found = fs::read_dir(folder)?.count();
    if found != files {
        bail!("{}: {found} files came back instead of {files}", folder.display());
    }
    Ok(())
}

fn small_name(n: usize) -> String {
    format!("file-{n:04}")
}

fn prepared(folder: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    Ok(folder.to_path_buf())
}

fn locations(paths: &[PathBuf]) -> Vec<Location> {
    paths.iter().map(|path| path.as_path().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_times_as_fast_stands_beside_what_all_at_once_takes() {
        let took = |ms, connections| Took {
            time: std::time::Duration::from_millis(ms),
            connections,
            ..Took::default()
        };
        assert_eq!(
            beside(&took(100, 8), &took(3600, 50), &took(120, 50)),
            "36 times as fast; all at once 0.12 s, over 50 connections"
        );
    }

    #[test]
    fn a_line_of_the_table_is_as_wide_as_its_head() {
        let step = Step {
            kind: "step",
            step: "50 files, laneway cp",
            seconds: 0.1867,
            bytes: 0,
            connections: 8,
            requests: 50,
            remark: "40 times as fast".into(),
        };
        assert_eq!(
            line(&step),
            "50 files, laneway cp                                   0.19 s            8        50   40 times as fast"
        );
    }
}
