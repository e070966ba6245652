//! `laneway rm`: removes objects, and everything below a prefix.

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::SystemTime;

use clap::Args;
use laneway::{Client, Event, Location, Outcome, RemoveRequest};

use crate::arguments::ManifestOption;
use crate::arguments::filters::{FilterOptions, InventoryOption, NamesFromOption};
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit};
use crate::report::line::Wording;
use crate::{job, locations};
use laneway_quantity as quantity;

/// Remove objects
///
/// With -r, -a or wildcards, Laneway asks first if more than 1000 objects match or if it cannot count them. Laneway only asks on a
/// terminal, and never inside `run`. Without a terminal, try --dry-run first.
///
/// In a bucket that keeps versions, a removed object becomes a noncurrent version; S3 also adds a delete marker. If you name a version,
/// Laneway deletes it permanently. -a deletes all versions permanently, and a delete marker only after the versions that it hides. With a
/// filter on size or time, Laneway never removes delete markers.
///
/// With --files-from and a URL, each line of the file is a name below that URL. Without a URL, each line is a whole URL. Laneway refuses
/// lines with leading or trailing space or a leading slash. With --inventory, Laneway keeps objects that were replaced since the inventory
/// was made, and reports them as errors.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    /// Objects, versions, patterns, or with -r prefixes and buckets
    ///
    /// A version is gs://bucket/key#generation or s3://bucket/key#id. -r of a bucket removes its objects and keeps the bucket.
    #[arg(value_name = "URL", required_unless_present = "files_from")]
    urls: Vec<OsString>,
    /// Remove everything below a prefix
    ///
    /// Example: laneway rm -r gs://my-bucket/old
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    /// Print what would be removed, and remove nothing
    ///
    /// Example: laneway rm -r --dry-run gs://my-bucket/old
    #[arg(long, alias = "dryrun")]
    dry_run: bool,
    /// Remove without asking
    ///
    /// Example: laneway rm -r -y gs://my-bucket/old
    #[arg(long, short)]
    yes: bool,
    /// Remove without asking, and ignore missing objects
    ///
    /// Example: laneway rm -f gs://my-bucket/old/key
    #[arg(long, short)]
    force: bool,
    /// Remove all versions, including noncurrent ones, and all delete markers
    ///
    /// With -r, this includes versions of an object whose key is the prefix itself.
    ///
    /// Example: laneway rm -r -a gs://my-bucket/old
    #[arg(long, short)]
    all_versions: bool,
    #[command(flatten)]
    filters: FilterOptions,
    #[command(flatten)]
    names: NamesFromOption,
    #[command(flatten)]
    inventory: InventoryOption,
    #[command(flatten)]
    pub(super) manifest: ManifestOption,
}

/// The maximum number of objects that are removed without a question: one page of a listing.
const UNASKED_MAX: u64 = 1000;

/// The maximum number of objects that are counted before the question. S3 lists 1000 in 0.1 to 0.2 s, so the question comes within 10 to 20
/// seconds.
const COUNTED_MAX: u64 = 100_000;

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: (" removed", " removed"),
    planned: "would remove",
    moves_bytes: false,
    resume: "Run the same command to remove the rest",
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
        // Don't ask about objects that the user named one by one.
        !self.names.is_some()
            && (self.recursive || self.all_versions || targets.iter().any(Location::is_pattern))
    }
}

/// Returns whether a user can answer on a terminal.
fn can_ask(context: &Context) -> bool {
    context.together.is_none() && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Returns whether to go on with a removal: it removes few objects, or the user agrees.
fn is_meant(context: &Context, request: &RemoveRequest) -> anyhow::Result<bool> {
    let what = named(&request.targets);
    let place = match request.targets.iter().any(Location::is_pattern) {
        true => format!("that match {what}"),
        false => format!("below {what}"),
    };
    match count(&context.client()?, request) {
        RemovalSize::Whole { objects, .. } if objects <= UNASKED_MAX => Ok(true),
        RemovalSize::Whole { objects, bytes } => {
            let (objects, bytes) = (quantity::grouped(objects), quantity::size(bytes));
            Ok(ask(&format!("Remove {objects} objects ({bytes}) {place}?"))?)
        }
        RemovalSize::Cut => {
            let objects = quantity::grouped(COUNTED_MAX);
            Ok(ask(&format!("Remove more than {objects} objects {place}?"))?)
        }
        RemovalSize::Unknown(why) => {
            complain(&why);
            Ok(ask(&format!("Laneway could not count the objects. Remove all objects {place}?"))?)
        }
    }
}

/// The size of a removal.
#[derive(Debug)]
enum RemovalSize {
    Whole {
        objects: u64,
        bytes: u64,
    },
    /// There are more than [`COUNTED_MAX`] objects.
    Cut,
    /// Counting failed, for this reason.
    Unknown(String),
}

/// Counts the objects that would be removed, up to [`COUNTED_MAX`].
fn count(client: &Client, request: &RemoveRequest) -> RemovalSize {
    let mut counted = request.clone().dry_run(true);
    counted.manifest = None;
    let mut job = client.remove(counted);
    let (mut objects, mut bytes) = (0, 0);
    let mut failure = None;
    let mut is_whole = false;
    while let Some(event) = job.next_blocking() {
        match event {
            Event::Item(item) => match item.outcome {
                // The object doesn't exist, so it doesn't count.
                Outcome::Failed(error) if error.is_not_found() => {}
                Outcome::Failed(error) => failure = failure.or_else(|| Some(error.to_string())),
                _ => {
                    objects += 1;
                    bytes += item.bytes;
                }
            },
            Event::Done(summary) => {
                let is_cut = summary.interrupted || summary.search_cut || summary.not_done > 0;
                is_whole = !is_cut;
            }
            _ => {}
        }
        if objects > COUNTED_MAX {
            return RemovalSize::Cut;
        }
    }
    match failure {
        None if is_whole => RemovalSize::Whole { objects, bytes },
        failure => RemovalSize::Unknown(failure.unwrap_or_else(|| "the listing ended early".to_owned())),
    }
}

fn named(targets: &[Location]) -> String {
    targets.iter().map(Location::to_string).collect::<Vec<_>>().join(", ")
}

/// Asks on the terminal. Returns true only if the answer is `y` or `yes`.
fn ask(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

/// Asks whether to remove buckets with all their objects. Without a terminal it fails, because the command then needs --yes.
pub(super) fn confirmed(context: &Context, targets: &[Location]) -> anyhow::Result<bool> {
    let what = named(targets);
    if !can_ask(context) {
        let why = match context.together.is_some() {
            true => "--force asks before it removes a bucket, and `run` can't ask; add --yes",
            false => "--force asks before it removes a bucket, and there is no terminal to ask on; add --yes",
        };
        return Err(BadUsage::of(what, why).into());
    }
    Ok(ask(&format!("Remove {what} and all objects in it?"))?)
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
