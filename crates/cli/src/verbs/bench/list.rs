//! Listings of many keys.

use clap::Args;
use laneway_experiments::list::{self, Plan};

use super::place::Tongue;
use super::setting::Setting;
use crate::context::Context;
use crate::exit::Exit;

/// List hundreds of thousands of keys: page by page, by known folders, and with Laneway
///
/// Half of the keys lie in one folder, a quarter in folders of days, the rest in many small ones. One chain of pages over one
/// connection; the same with the next page asked for while one is read; a chain for each folder by somebody who knows them; and
/// Laneway, which is told the prefix alone, in the order of the keys and as they arrive. The store in this process is spoken with in
/// both tongues; one elsewhere in its own. Programs that are installed (s5cmd, rclone, aws, gcloud, obstore) are rivals on the one in
/// this process.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    /// How many keys
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    objects: usize,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, Tongue::Gcs)?;
        let plan = Plan { objects: self.objects, runs: self.setting.runs, programs: true, target };
        self.setting.measure(context, |workers, stop, tell| list::run(&plan, workers, stop, tell))
    }
}
