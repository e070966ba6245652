//! `laneway demo`: the main job, shown on a store of the program's own.

mod content;
mod stage;
mod steps;

use std::io;
use std::path::PathBuf;

use clap::Args;
use laneway_experiments::report::Page;

use crate::context::{Context, complain};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::verbs::bench::{all, report};
use stage::{Stop, Stopped};

/// Show what Laneway does, without an account or a network
///
/// The demo starts a store in this process, with TLS and HTTP/2, behind an imitated link of 20 ms and 1 Gbit/s. It moves fifty files to the
/// store and back as simple scripts would, then as Laneway does; then a thousand files; then one large object. It compares every byte and
/// removes everything it made. Then it runs three benchmarks three times each, beside the usual ways, and writes a page about them.
/// `laneway bench all` runs more benchmarks, also beside installed programs.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Set the size of the large object
    ///
    /// Example: laneway demo --size 1GiB
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = laneway_quantity::parse_size)]
    size: u64,
    /// Write the page about the benchmarks to FILE
    ///
    /// Example: laneway demo --report /tmp/report.html
    #[arg(long, value_name = "FILE", default_value = "laneway-report.html")]
    report: PathBuf,
    /// Skip the benchmarks and their page
    ///
    /// Example: laneway demo --no-report
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
}

impl Demo {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if !self.no_report {
            report::check(&self.report)?;
        }
        let stop = Stop::default();
        let pressed = stop.clone();
        let _interrupt = Interrupt::listen(move || pressed.press())?;
        match steps::play(context, self.size, &stop) {
            Err(error) if stop.pressed() && was_stopped(&error) => {
                complain("interrupted; everything the demo made has been removed");
                Ok(Exit::Interrupted)
            }
            Err(error) => Err(error),
            Ok(()) if self.no_report => Ok(Exit::Done),
            Ok(()) => self.measure(context),
        }
    }
}

impl Demo {
    /// Every benchmark, and the page about them. The demo itself has been printed already.
    fn measure(&self, context: &Context) -> anyhow::Result<Exit> {
        if !context.options.json {
            context.output.line("\nNow the measurements that Laneway comes from, each beside the usual ways, three times in turns: about a minute.")?;
            context.output.flush()?;
        }
        let mut page = Page::default();
        let exit = all::scenes(context, &mut page)?;
        if exit != Exit::Interrupted {
            report::write(context, &self.report, &page, "laneway demo")?;
        }
        Ok(exit)
    }
}

fn was_stopped(error: &anyhow::Error) -> bool {
    let interrupted = |e: &io::Error| e.kind() == io::ErrorKind::Interrupted;
    error.is::<Stopped>() || error.downcast_ref::<io::Error>().is_some_and(interrupted)
}
