//! Listings of many keys.

use clap::Args;
use laneway_experiments::list::{self, Plan};

use super::place::Tongue;
use super::setting::Setting;
use crate::context::Context;
use crate::exit::Exit;

/// List hundreds of thousands of keys: page by page, by known folders, and with Laneway
///
/// Half of the keys lie in one folder, a quarter in folders of days, the rest in many small folders. The other methods fetch one page after
/// another, the same with one page ahead, and a chain of pages for each known folder. Laneway knows only the prefix. It lists in key order,
/// and as keys arrive. The store in this process is measured with both protocols, any other store with its own. Installed programs (s5cmd, rclone, aws,
/// gcloud, obstore) are rivals on the store in this process.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    /// List N keys
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    objects: usize,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, Tongue::Gcs)?;
        let plan =
            Plan { objects: self.objects, runs: self.setting.repeating.repeats(), programs: true, target };
        self.setting.measure(context, |workers, stop, tell| list::run(&plan, workers, stop, tell))
    }
}
