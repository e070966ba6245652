//! `laneway rm`: objects, and everything below a prefix.

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::SystemTime;

use clap::Args;
use laneway::{Location, RemoveRequest};

use crate::arguments::filters::Filters;
use crate::arguments::manifest::Manifest;
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit};
use crate::job;
use crate::locations;
use crate::report::line::Wording;

/// Remove objects
///
/// With -r, or where a wildcard stands for more than one object, a question is asked first. Where nobody can be asked,
/// because stdin or stderr is no terminal, the command must say --yes; otherwise nothing is removed and the exit status is 2.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    /// Objects, patterns, or with -r prefixes and buckets' contents
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Remove everything below a prefix
    #[arg(long, short)]
    recursive: bool,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    manifest: Manifest,
    #[command(flatten)]
    filters: Filters,
}

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: " removed",
    planned: "would remove",
    moves_bytes: false,
    resume: "interrupted; what is gone is gone, the same command removes the rest",
};

impl Rm {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let targets = locations::remote(&self.urls)?;
        if !self.yes && !self.dry_run && self.takes_many(&targets) && !confirmed(context, &targets)? {
            complain("nothing was removed");
            return Ok(Exit::Failed);
        }
        let filter = self.filters.filter(SystemTime::now())?;
        let mut request =
            RemoveRequest::new(targets).recursive(self.recursive).dry_run(self.dry_run).filter(filter);
        request.manifest = self.manifest.file;
        job::run(context, WORDING, |client| client.remove(request))
    }

    fn takes_many(&self, targets: &[Location]) -> bool {
        self.recursive || targets.iter().any(Location::is_pattern)
    }
}

/// Asks on the terminal; anything but a yes is a no.
pub(super) fn confirmed(context: &Context, targets: &[Location]) -> anyhow::Result<bool> {
    let what = targets.iter().map(Location::to_string).collect::<Vec<_>>().join(", ");
    let is_one_of_many = context.together.is_some();
    if is_one_of_many || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let why = match is_one_of_many {
            true => "this removes whatever is there, and among many commands nothing is asked: add --yes",
            false => "this removes whatever is there, and there is no terminal to ask on: add --yes",
        };
        return Err(BadUsage::of(what, why).into());
    }
    let mut stderr = io::stderr();
    write!(stderr, "Remove everything that {what} stands for? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
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
