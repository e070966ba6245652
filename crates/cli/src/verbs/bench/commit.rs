//! Read-modify-writes.

use clap::Args;
use laneway_experiments::commit::{self, Plan};

use super::place::Spoken;
use super::setting::Setting;
use crate::context::Context;
use crate::exit::Exit;

/// Change hundreds of objects: read, change, write back if unchanged
///
/// A commit of a lakehouse table works like this. The methods are: one after another on a kept-alive connection, a pool of 50 connections,
/// and Laneway's library. The store is one in this process unless an endpoint or a URL is given.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    #[command(flatten)]
    spoken: Spoken,
    /// Change N objects
    #[arg(long, value_name = "N", default_value_t = 500)]
    objects: usize,
    /// Set the size of each object
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = laneway_quantity::parse_size)]
    size: u64,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, self.spoken.tongue)?;
        let plan =
            Plan { objects: self.objects, size: self.size, runs: self.setting.repeating.repeats(), target };
        self.setting.measure(context, |workers, stop, tell| commit::run(&plan, workers, stop, tell))
    }
}
