//! The program `laneway`: arguments, progress, output, exit codes.
//!
//! The program decides nothing about transfers. A verb turns its options into a request to the library `laneway`, and
//! the library's events into lines. Output for programs (`--json`, listings) goes to standard output. Messages for the
//! user go to standard error. The crate is a library so that other programs can embed it, as the Python package does.
//! The program itself is `main.rs`.

mod arguments;
mod context;
mod exit;
mod job;
mod locations;
mod logging;
mod output;
mod progress;
mod report;
mod standard_streams;
mod verbs;

use std::ffi::OsString;
use std::time::Instant;

use laneway::ErrorKind;

use crate::arguments::{CliVerb, CommandLine};
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit};
use crate::output::StandardOutput;
use crate::report::json::ErrorRecord;

/// Runs the program with a command line, whose first word is the program's name, and returns its exit status.
/// Meanwhile it controls the process's signals, standard streams and log messages.
pub fn run(line: Vec<OsString>) -> u8 {
    let started = Instant::now();
    let CommandLine { verb, options } = match arguments::parsed(&line) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&line, error).status(),
    };
    let context = Context::new(options, started);
    let ended = carry_out(verb, &context).and_then(|exit| match context.output.flush() {
        // The work is done, so a reader that has closed standard output doesn't change the result.
        Err(error) if output::is_closed(&error) => Ok(exit),
        flushed => Ok(flushed.map(|()| exit)?),
    });
    ended.unwrap_or_else(|error| failure(&context, &error)).status()
}

/// Prints help or the version, if requested, or the mistake in the command line.
fn usage(line: &[OsString], error: clap::Error) -> Exit {
    let output = StandardOutput::new();
    if error.use_stderr() {
        let text = arguments::explained(line, error);
        complain(&text);
        // With `--json`, print the error as a record too. The command line couldn't be parsed, so search its words for
        // this option.
        if line.iter().any(|argument| argument == "--json") {
            let message = text.lines().next().unwrap_or_default();
            let record = ErrorRecord::new(locations::only_url(line), message, ErrorKind::Usage.name());
            let _ = output.json(&record).and_then(|()| output.flush());
        }
        return Exit::Usage;
    }
    match output.bytes(error.render().to_string().as_bytes()).and_then(|()| output.flush()) {
        Err(error) if !output::is_closed(&error) => {
            complain(&error.to_string());
            Exit::Failed
        }
        _ => Exit::Done,
    }
}

fn carry_out(verb: CliVerb, context: &Context) -> anyhow::Result<Exit> {
    logging::start(&context.options, context.started)?;
    verb_of(verb, context)
}

fn verb_of(verb: CliVerb, context: &Context) -> anyhow::Result<Exit> {
    match verb {
        CliVerb::Cp(verb) => verb.run(context),
        CliVerb::Ls(verb) => verb.run(context),
        CliVerb::Du(verb) => verb.run(context),
        CliVerb::Stat(verb) => verb.run(context),
        CliVerb::Cat(verb) => verb.run(context),
        CliVerb::Rm(verb) => verb.run(context),
        CliVerb::Mv(verb) => verb.run(context),
        CliVerb::Sync(verb) => verb.run(context),
        CliVerb::Compose(verb) => verb.run(context),
        CliVerb::Restore(verb) => verb.run(context),
        CliVerb::Setmeta(verb) => verb.run(context),
        CliVerb::Verify(verb) => verb.run(context),
        CliVerb::Sign(verb) => verb.run(context),
        CliVerb::Mb(verb) => verb.run(context),
        CliVerb::Rb(verb) => verb.run(context),
        CliVerb::Bucket(verb) => verb.run(context),
        CliVerb::Hash(verb) => verb.run(context),
        CliVerb::Run(verb) => verb.run(context, verb_of),
        CliVerb::Plan(verb) => verb.run(context),
        #[cfg(feature = "serve")]
        CliVerb::Serve(verb) => verb.run(context),
        #[cfg(feature = "demo")]
        CliVerb::Demo(verb) => verb.run(context),
        #[cfg(feature = "bench")]
        CliVerb::Bench(verb) => verb.run(context),
        CliVerb::Completions(verb) => verb.run(context),
        CliVerb::Man(verb) => verb.run(context),
        CliVerb::Help(verb) => verb.run(context),
    }
}

/// Reports why the command as a whole failed.
fn failure(context: &Context, error: &anyhow::Error) -> Exit {
    if output::is_closed(error.as_ref()) {
        return Exit::Done;
    }
    let usage = error.downcast_ref::<BadUsage>();
    let ours = error.downcast_ref::<laneway::Error>();
    let class = match ours {
        Some(error) => report::json::class(error.kind()),
        None if usage.is_some() => ErrorKind::Usage.name(),
        None => ErrorKind::Local.name(),
    };
    let about = ours.and_then(laneway::Error::url).or_else(|| usage.and_then(BadUsage::about));
    // The message of an I/O error already includes its cause.
    let bare = error.chain().next().and_then(|first| first.downcast_ref::<std::io::Error>());
    // The message of the library's errors also includes the cause.
    let ours = ours.map(ToString::to_string);
    let message = ours.or_else(|| bare.map(ToString::to_string)).unwrap_or_else(|| format!("{error:#}"));
    // If this can't be printed either, nothing is left to do.
    let _ = context.report_failure(about, &message, class).and_then(|()| context.output.flush());
    if class == ErrorKind::Usage.name() { Exit::Usage } else { Exit::Failed }
}
