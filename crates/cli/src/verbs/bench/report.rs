//! The page that a benchmark leaves behind.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use laneway_experiments::report::{Heading, Machine, Page};

use crate::context::{Context, say};

/// The option whose values may be secrets.
const SECRET: &str = "--header";

/// Times of a build that wasn't optimised say little.
const BUILD: &str =
    if cfg!(debug_assertions) { "a debug build: its times say little" } else { "release build" };

/// The option of a page.
#[derive(Args, Clone, Default, Debug)]
pub(super) struct Report {
    /// Write a page with tables and plots to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Report {
    /// Checks that the page can be written, if one is wanted, before anything is measured.
    ///
    /// # Errors
    /// The reason why it can't.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.report.as_deref().map_or(Ok(()), check)
    }

    /// Writes the page that `fill` fills, if one is wanted.
    ///
    /// # Errors
    /// The reason why it can't be written.
    pub(super) fn write(&self, context: &Context, fill: impl FnOnce(&mut Page)) -> anyhow::Result<()> {
        let Some(path) = &self.report else { return Ok(()) };
        let mut page = Page::default();
        fill(&mut page);
        write(context, path, &page, &heading(&command(std::env::args())))
    }
}

/// Returns the facts about this program and machine, now.
pub(crate) fn heading(command: &str) -> Heading {
    Heading {
        versions: format!("laneway {}, {BUILD}", env!("CARGO_PKG_VERSION")),
        libraries: env!("LANEWAY_LIBRARIES").to_owned(),
        date: jiff::Zoned::now().strftime("%Y-%m-%d %H:%M %Z").to_string(),
        command: command.to_owned(),
        machine: Machine::this(),
    }
}

/// Writes a page and says where it is. An old file is replaced when the new one is complete.
///
/// # Errors
/// When it can't be written.
pub(crate) fn write(context: &Context, path: &Path, page: &Page, heading: &Heading) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    let mut file = tempfile::Builder::new()
        .prefix(".laneway-report-")
        // Like any file that a program writes; the umask takes its part.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder_of(path))
        .with_context(named)?;
    file.write_all(page.html(heading).as_bytes()).with_context(named)?;
    file.persist(path).with_context(named)?;
    if !context.options.quiet {
        let shown = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        say(&format!("The report is in {}", shown.display()));
    }
    Ok(())
}

/// Checks that a page can be written there, before anything is measured for it.
///
/// # Errors
/// The reason why it can't.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    tempfile::tempfile_in(folder_of(path)).with_context(|| path.display().to_string()).map(drop)
}

/// The command line as a shell takes it, without what may be a secret.
pub(super) fn command(arguments: impl IntoIterator<Item = String>) -> String {
    let mut words = vec!["laneway".to_owned()];
    let mut is_secret = false;
    for argument in arguments.into_iter().skip(1) {
        let hidden = match argument.split_once('=') {
            _ if is_secret => Some("...".to_owned()),
            Some((SECRET, _)) => Some(format!("{SECRET}=...")),
            _ => None,
        };
        is_secret = argument == SECRET;
        words.push(hidden.unwrap_or_else(|| quoted(&argument)));
    }
    words.join(" ")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted_and_tells_no_secret() {
        let command = |words: &[&str]| command(words.iter().map(|&word| word.to_owned()));
        assert_eq!(
            command(&["/x/laneway", "bench", "all", "--report", "my report"]),
            "laneway bench all --report 'my report'"
        );
        let hidden =
            command(&["laneway", "--header", "Authorization: Bearer s3cret", "--header=K: s3cret", "bench"]);
        assert_eq!(hidden, "laneway --header ... --header=... bench");
    }
}
