//! `laneway rm`: objects, and everything below a prefix.

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::SystemTime;

use clap::Args;
use laneway::{Client, Event, Location, Outcome, RemoveRequest};

use crate::arguments::filters::Filters;
use crate::arguments::inventory::Inventory;
use crate::arguments::manifest::Manifest;
use crate::arguments::names_from::NamesFrom;
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit};
use crate::job;
use crate::locations;
use crate::report::line::Wording;

/// Remove objects
///
/// On a terminal a question is asked first where -r, -a or a wildcard stands for more than 1000 objects, or for what can't be
/// counted. Where stdin or stderr is no terminal, and among the commands of `run`, nothing is asked: --dry-run says what would go.
///
/// In a bucket that keeps versions what is removed becomes a noncurrent version, below a delete marker on S3. A version that is
/// named, and all of them with -a, are gone for good. With -a delete markers go after the versions below them, and not at all where a
/// filter looks at sizes or times.
///
/// With --files-from the names below the one URL are removed; without a URL each line is a whole one, and a line with
/// space around it or a slash before it is refused. With --inventory what was replaced since it was
/// made stays, and is an error.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    /// Objects, versions (gs://bucket/key#generation, s3://bucket/key#id), patterns, or with -r prefixes and buckets' contents
    #[arg(value_name = "URL", required_unless_present = "files_from")]
    urls: Vec<OsString>,
    /// Remove everything below a prefix
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    /// All versions that the bucket keeps, noncurrent ones and delete markers too; with -r those of the key itself as well
    #[arg(long, short)]
    all_versions: bool,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Don't ask, and take a missing object for one that is removed
    #[arg(long, short)]
    force: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long, alias = "dryrun")]
    dry_run: bool,
    #[command(flatten)]
    names: NamesFrom,
    #[command(flatten)]
    pub(super) manifest: Manifest,
    #[command(flatten)]
    inventory: Inventory,
    #[command(flatten)]
    filters: Filters,
}

/// Objects that are removed without a question.
const UNASKED_MAX: usize = 1000;

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: " removed",
    planned: "would remove",
    moves_bytes: false,
    resume: "interrupted; what is gone is gone, the same command removes the rest",
};

impl Rm {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let targets = locations::versioned(&self.urls)?;
        let filter = self.filters.filter(SystemTime::now())?;
        let request = RemoveRequest::new(targets).recursive(self.recursive).all_versions(self.all_versions);
        let mut request = request.dry_run(self.dry_run).missing_is_fine(self.force).filter(filter);
        request.manifest = context.manifest(self.manifest.manifest.clone());
        request.files_from = self.names.location()?;
        request.inventory = self.inventory.location()?;
        let may_ask = !self.yes && !self.force && !self.dry_run && can_ask(context);
        if may_ask && self.takes_many(&request.targets) && !is_meant(context, &request)? {
            complain("nothing was removed");
            return Ok(Exit::Failed);
        }
        job::run(context, WORDING, |client| client.remove(request))
    }

    fn takes_many(&self, targets: &[Location]) -> bool {
        // What was named one by one is meant.
        !self.names.is_some()
            && (self.recursive || self.all_versions || targets.iter().any(Location::is_pattern))
    }
}

/// Whether somebody is there to answer.
fn can_ask(context: &Context) -> bool {
    context.together.is_none() && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether a removal may go on: it takes few objects, or whoever is asked says so.
fn is_meant(context: &Context, request: &RemoveRequest) -> anyhow::Result<bool> {
    let what = named(&request.targets);
    match count(&context.client()?, request, UNASKED_MAX) {
        Count::Few => Ok(true),
        Count::Many => {
            Ok(ask(&format!("Remove more than {UNASKED_MAX} objects, all that {what} stands for?"))?)
        }
        Count::Unknown(why) => {
            complain(&why);
            Ok(ask(&format!("Remove all that {what} stands for, which could not be counted?"))?)
        }
    }
}

/// How many objects a removal would take.
#[derive(Debug)]
enum Count {
    Few,
    Many,
    /// Counting failed, for this reason.
    Unknown(String),
}

/// Counts what a removal would take, and no further than `max`.
fn count(client: &Client, request: &RemoveRequest, max: usize) -> Count {
    let mut counted = request.clone().dry_run(true);
    counted.manifest = None;
    let mut job = client.remove(counted);
    let mut found = 0;
    let mut failure = None;
    let mut is_whole = false;
    while let Some(event) = job.next_blocking() {
        match event {
            Event::Item(item) => match item.outcome {
                // There is nothing of it to be removed.
                Outcome::Failed(error) if error.is_not_found() => {}
                Outcome::Failed(error) => failure = failure.or_else(|| Some(error.to_string())),
                _ => found += 1,
            },
            Event::Done(summary) => {
                let is_cut = summary.interrupted || summary.search_cut || summary.not_done > 0;
                is_whole = !is_cut;
            }
            _ => {}
        }
        if found > max {
            return Count::Many;
        }
    }
    match failure {
        None if is_whole => Count::Few,
        failure => Count::Unknown(failure.unwrap_or_else(|| "the listing was cut short".to_owned())),
    }
}

fn named(targets: &[Location]) -> String {
    targets.iter().map(Location::to_string).collect::<Vec<_>>().join(", ")
}

/// Asks on the terminal; anything but a yes is a no.
fn ask(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

/// Asks whether all of a bucket may go, whatever it holds. Where nobody can be asked the command has to say so itself.
pub(super) fn confirmed(context: &Context, targets: &[Location]) -> anyhow::Result<bool> {
    let what = named(targets);
    if !can_ask(context) {
        let why = match context.together.is_some() {
            true => "this removes whatever is there, and among many commands nothing is asked: add --yes",
            false => "this removes whatever is there, and there is no terminal to ask on: add --yes",
        };
        return Err(BadUsage::of(what, why).into());
    }
    Ok(ask(&format!("Remove everything that {what} stands for?"))?)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(is_yes("y\n") && is_yes("YES"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("yep") && !is_yes("n"));
    }
}
