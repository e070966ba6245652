//! `laneway help`, `laneway man` and `laneway completions`: the long help of a verb or a topic, the manual, and a script with which a shell
//! completes verbs and options.

use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};

use crate::arguments;
use crate::arguments::{mistakes, topics};
use crate::context::Context;
use crate::exit::{BadUsage, Exit, STATUSES};
use crate::report::json;

/// Explain a verb or a topic: urls, credentials, patterns, json
#[derive(Args, Debug)]
pub(crate) struct Help {
    /// Verb or topic to explain
    #[arg(value_name = "VERB|TOPIC")]
    about: Vec<String>,
}

impl Help {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let topic = match &self.about[..] {
            [name] => topics::text(name).map(|text| text + "\n"),
            _ => None,
        };
        let Some(text) = topic.or_else(|| arguments::long_help(&self.about)) else {
            let name = self.about.join(" ");
            let topics = topics::names().collect::<Vec<_>>().join(", ");
            let hint = self.about.first().and_then(|verb| mistakes::answer_to_verb(verb));
            let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
            let why = format!(
                "no such verb or topic{hint}; `laneway -h` lists the verbs, and the topics are {topics}"
            );
            return Err(BadUsage::of(name, why).into());
        };
        context.output.bytes(text.as_bytes())?;
        Ok(Exit::Done)
    }
}

/// Print the manual
///
/// The page is in the format of the program man. Pipe the page to man to read it, or install all pages with --dir.
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Verb to describe, instead of the whole program
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
    /// Write all pages to this folder
    ///
    /// Example: laneway man --dir ~/.local/share/man/man1
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let whole = definition();
        match &self.dir {
            Some(dir) => write_all(&whole, dir)?,
            None => context.output.bytes(&page(named(&whole, &self.verb)?)?)?,
        }
        Ok(Exit::Done)
    }
}

/// Returns the definition of the command line, with all options and without clap's own verb `help`.
fn definition() -> Command {
    let mut command = arguments::whole().disable_help_subcommand(true);
    command.build();
    command
}

fn named<'a>(whole: &'a Command, verb: &[String]) -> anyhow::Result<&'a Command> {
    verb.iter().try_fold(whole, |command, name| {
        let known = command.find_subcommand(name).filter(|verb| !verb.is_hide_set());
        known.ok_or_else(|| BadUsage::new(format!("{name}: {} has no such verb", command.get_name())).into())
    })
}

fn write_all(command: &Command, dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_all(verb, dir)?;
    }
    let path = dir.join(Page::new(command.clone()).get_filename());
    std::fs::write(&path, page(command)?).with_context(|| path.display().to_string())
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let page = Page::new(command.clone())
        .source(concat!("laneway ", env!("CARGO_PKG_VERSION")))
        .manual("Laneway Manual");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    section(&mut rest, "EXIT STATUS", STATUSES);
    let classes: Vec<_> = json::all().collect();
    section(&mut rest, "ERROR CLASSES", &classes);
    section(&mut rest, "ENVIRONMENT", arguments::VARIABLES);
    rest.to_writer(&mut text)?;
    text.flush()?;
    Ok(text)
}

fn section(page: &mut Roff, title: &str, rows: &[(&str, &str)]) {
    page.control("SH", [title]);
    for (name, meaning) in rows {
        page.control("TP", []);
        page.text([bold(*name)]);
        page.text([roman(*meaning)]);
    }
}

/// Print a completion script for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionScript {
    /// Shell that reads the script
    shell: Shell,
}

impl CompletionScript {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut arguments::command(), "laneway", &mut script);
        context.output.bytes(&script)?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(verb: &[&str]) -> String {
        let verb: Vec<_> = verb.iter().map(ToString::to_string).collect();
        String::from_utf8(page(named(&definition(), &verb).expect("a verb")).expect("rendered"))
            .expect("text")
    }

    #[test]
    fn the_programs_page_lists_verbs_statuses_and_variables() {
        let page = text(&[]);
        assert!(page.contains(".TH laneway 1"), "{page}");
        for part in
            ["laneway\\-cp(1)", "\\-\\-s3\\-endpoint", "EXIT STATUS", "AWS_PROFILE", "Send no credentials"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_verbs_page_is_made_of_its_definition() {
        assert!(text(&["cp"]).contains("\\-\\-no\\-clobber"));
        assert!(text(&["bench", "ladder"]).contains(".TH laneway-bench-ladder 1"));
        assert!(named(&definition(), &["nothing".to_owned()]).is_err());
    }

    #[test]
    fn every_verb_has_a_page_in_the_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        write_all(&definition(), dir.path()).expect("written");
        for verb in arguments::command().get_subcommands().map(Command::get_name) {
            assert!(dir.path().join(format!("laneway-{verb}.1")).is_file(), "{verb}");
        }
        assert!(dir.path().join("laneway.1").is_file());
    }
}
