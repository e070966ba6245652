//! The program `laneway`: arguments, progress, output, exit codes.
//!
//! It decides nothing about transfers: a verb turns its options into a request of the library `laneway`, and the events
//! that come back into lines. What it prints for programs (`--json`, listings) goes to standard output; what it tells
//! people goes to standard error.

mod arguments;
mod context;
mod exit;
mod interrupt;
mod job;
mod locations;
mod logging;
mod mfa;
mod output;
mod progress;
mod quantity;
mod report;
mod retrying;
mod stderr;
mod verbs;
mod version;

use std::process::ExitCode;
use std::time::Instant;

use crate::arguments::{Arguments, Verb};
use crate::context::Context;
use crate::exit::{BadUsage, Exit};

/// A small upload makes some hundred allocations on two threads and frees them on a third, which glibc's arenas are slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let started = Instant::now();
    let Arguments { verb, options } =
        arguments::parsed(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let context = Context::new(options, started);
    let ended = run(verb, &context).and_then(|exit| match context.output.flush() {
        // Who stopped reading doesn't change how the work ended.
        Err(error) if output::is_closed(&error) => Ok(exit),
        flushed => Ok(flushed.map(|()| exit)?),
    });
    ended.unwrap_or_else(|error| failure(&context, &error)).into()
}

fn run(verb: Verb, context: &Context) -> anyhow::Result<Exit> {
    logging::start(&context.options, context.started)?;
    match verb {
        Verb::Cp(verb) => verb.run(context),
        Verb::Ls(verb) => verb.run(context),
        Verb::Stat(verb) => verb.run(context),
        Verb::Cat(verb) => verb.run(context),
        Verb::Rm(verb) => verb.run(context),
        Verb::Mv(verb) => verb.run(context),
        Verb::Serve(verb) => verb.run(context),
        Verb::Demo(verb) => verb.run(context),
        Verb::Bench(verb) => verb.run(context),
        Verb::Completions(verb) => verb.run(context),
        Verb::Man(verb) => verb.run(context),
    }
}

/// Says why the command as a whole came to nothing.
fn failure(context: &Context, error: &anyhow::Error) -> Exit {
    if output::is_closed(error.as_ref()) {
        return Exit::Done;
    }
    let usage = error.is::<BadUsage>();
    let class = match error.downcast_ref::<laneway::Error>() {
        Some(error) => error.class(),
        None if usage => "usage",
        None => "local",
    };
    // When this can't be printed either, there is nobody left to tell.
    let _ = context.fail_with(&format!("{error:#}"), class).and_then(|()| context.output.flush());
    if class == "usage" { Exit::Usage } else { Exit::Failed }
}
