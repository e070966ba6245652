//! Every benchmark, and one page about them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use laneway_experiments::report::Page;
use laneway_experiments::{
    Error, Event, Stop, Workers, clean, commit, ladder as steps, mixed, ranges, slices,
};

use super::place::{Place, Spoken, Tongue, Usual};
use super::run::{self, Findings};
use super::{ladder, mixed as mixing, ranges as ranging, report, slices as slicing};
use crate::context::{Context, complain};
use crate::exit::Exit;

/// Run every benchmark and write a page about them
///
/// It takes about a minute on the store in this process; --full takes the sizes that each benchmark has by itself, and
/// several minutes. The page needs nothing but a browser.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    spoken: Spoken,
    /// The sizes that each benchmark has by itself
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Sizes that take a few seconds: to see that it works
    #[arg(long)]
    quick: bool,
    /// Where the page is written
    #[arg(long, value_name = "FILE", default_value = "laneway-report.html")]
    report: PathBuf,
}

/// How much is moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    ladder_files: usize,
    ladder_runs: usize,
    object: u64,
    object_runs: usize,
    large: u64,
    large_up: u64,
    small: usize,
    arrivals: f64,
    commits: usize,
    deletes: usize,
    ranges: usize,
    /// What the embedded store imitates for small and large objects.
    mixed: Usual,
    far: Usual,
}

const MIB: u64 = 1 << 20;

impl Scale {
    const FULL: Self = Self {
        ladder_files: 50,
        ladder_runs: 3,
        object: 1024 * MIB,
        object_runs: 3,
        large: 256 * MIB,
        large_up: 256 * MIB,
        small: 200,
        arrivals: 50.0,
        commits: 500,
        deletes: 5000,
        ranges: 400,
        mixed: mixing::USUAL,
        far: Usual::FAR,
    };
    const USUAL: Self = Self {
        ladder_files: 20,
        ladder_runs: 1,
        object: 256 * MIB,
        object_runs: 1,
        large: 48 * MIB,
        large_up: 16 * MIB,
        small: 100,
        arrivals: 50.0,
        commits: 100,
        deletes: 2000,
        ranges: 200,
        mixed: mixing::USUAL,
        far: Usual::FAR,
    };
    /// Small enough for the end of a demo.
    pub(crate) const QUICK: Self = Self {
        ladder_files: 10,
        ladder_runs: 1,
        object: 64 * MIB,
        object_runs: 1,
        large: 12 * MIB,
        large_up: 4 * MIB,
        small: 30,
        arrivals: 60.0,
        commits: 20,
        deletes: 300,
        ranges: 40,
        mixed: Usual { rtt: Duration::from_millis(10), bandwidth: Some(125_000_000) },
        far: Usual { rtt: Duration::from_millis(20), bandwidth: None },
    };
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        report::check(&self.report)?;
        let scale = match (self.full, self.quick) {
            (true, _) => Scale::FULL,
            (_, true) => Scale::QUICK,
            _ => Scale::USUAL,
        };
        let mut page = Page::default();
        let all = All {
            context,
            place: &self.place,
            tongue: self.spoken.tongue,
            scale,
            page: &mut page,
            prints: true,
        };
        let exit = all.run()?;
        if exit != Exit::Interrupted {
            report::write(context, &self.report, &page, &report::command(std::env::args()))?;
        }
        Ok(exit)
    }
}

/// Runs every benchmark quickly on the embedded store and fills a page, printing nothing.
///
/// # Errors
/// What keeps one of them from being made.
pub(crate) fn quickly(context: &Context, page: &mut Page) -> anyhow::Result<Exit> {
    let place = Place::default();
    All { context, place: &place, tongue: Tongue::Gcs, scale: Scale::QUICK, page, prints: false }.run()
}

struct All<'a> {
    context: &'a Context,
    place: &'a Place,
    tongue: Tongue,
    scale: Scale,
    page: &'a mut Page,
    prints: bool,
}

impl All<'_> {
    fn run(mut self) -> anyhow::Result<Exit> {
        let mut fine = true;
        for one in [
            Self::ladder,
            Self::slices,
            Self::downloads,
            Self::uploads,
            Self::commit,
            Self::clean,
            Self::ranges,
        ] {
            match one(&mut self)? {
                Ok(this) => fine &= this,
                Err(exit) => return Ok(exit),
            }
        }
        Ok(run::exit(fine))
    }

    fn ladder(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let Scale { ladder_files: files, ladder_runs: runs, .. } = self.scale;
        let target = self.place.target(self.context, self.scale.far, Tongue::Gcs)?;
        if !ladder::speaks(&target) {
            complain("the ladder is about Google Cloud Storage and is left out");
            return Ok(Ok(true));
        }
        let climbed = ladder::climb(self.context, steps::Plan { files, size: 0, runs, target })?;
        self.show(climbed)
    }

    fn slices(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let target = self.place.target(self.context, slicing::USUAL, self.tongue)?;
        let (size, runs) = (self.scale.object, self.scale.object_runs);
        let plan = slices::Plan { size, runs, folder: None, target };
        self.one(|workers, stop, tell| slices::run(&plan, workers, stop, tell))
    }

    fn downloads(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        self.mixed(false, self.scale.large, Some(self.scale.arrivals))
    }

    fn uploads(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        self.mixed(true, self.scale.large_up, None)
    }

    fn mixed(
        &mut self,
        puts: bool,
        large_size: u64,
        arrivals: Option<f64>,
    ) -> anyhow::Result<Result<bool, Exit>> {
        let plan = mixed::Plan {
            large: 4,
            large_size,
            small: self.scale.small,
            small_size: mixed::SMALL_SIZE,
            arrivals,
            puts,
            seed: 1,
            runs: 1,
            folder: None,
            target: self.place.target(self.context, self.scale.mixed, self.tongue)?,
        };
        self.one(|workers, stop, tell| mixed::run(&plan, workers, stop, tell))
    }

    fn commit(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let target = self.place.target(self.context, self.scale.far, self.tongue)?;
        let plan = commit::Plan { objects: self.scale.commits, size: 4 << 10, runs: 1, target };
        self.one(|workers, stop, tell| commit::run(&plan, workers, stop, tell))
    }

    fn clean(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let target = self.place.target(self.context, self.scale.far, self.tongue)?;
        let plan = clean::Plan { objects: self.scale.deletes, runs: 1, target };
        self.one(|workers, stop, tell| clean::run(&plan, workers, stop, tell))
    }

    fn ranges(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let target = self.place.target(self.context, ranging::USUAL, self.tongue)?;
        let plan = ranges::Plan { ranges: self.scale.ranges, size: self.scale.object, runs: 1, target };
        self.one(|workers, stop, tell| ranges::run(&plan, workers, stop, tell))
    }

    fn one<T: Findings>(
        &mut self,
        make: impl FnOnce(&Workers, &Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
    ) -> anyhow::Result<Result<bool, Exit>> {
        let workers = run::workers()?;
        let found = run::measure(self.context, |stop, tell| make(&workers, stop, tell))?;
        self.show(found)
    }

    fn show<T: Findings>(&mut self, found: Result<T, Exit>) -> anyhow::Result<Result<bool, Exit>> {
        let found = match found {
            Ok(found) => found,
            Err(exit) => return Ok(Err(exit)),
        };
        if self.prints {
            run::print(self.context, &found)?;
            if !self.context.options.json {
                self.context.output.line("")?;
                self.context.output.flush()?;
            }
        }
        found.draw(self.page)?;
        Ok(Ok(found.is_fine()))
    }
}
