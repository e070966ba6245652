//! Deletes by the thousand.

use clap::Args;
use laneway_experiments::clean::{self, Plan};

use super::place::Tongue;
use super::setting::Setting;
use crate::context::Context;
use crate::exit::Exit;

/// Delete thousands of objects: one by one, in batches, and with Laneway
///
/// The methods are: one by one over a pool of 50 HTTP/1.1 connections; S3's DeleteObjects and GCS's batches, all at once; and Laneway, which
/// also has to list the prefix. The store in this process is measured with both protocols, any other store with its own. Installed programs
/// (s5cmd, rclone, aws, gcloud, obstore) are rivals on the store in this process.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    /// Delete N objects
    #[arg(long, value_name = "N", default_value_t = 5000)]
    objects: usize,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, Tongue::Gcs)?;
        let plan =
            Plan { objects: self.objects, runs: self.setting.repeating.repeats(), programs: true, target };
        self.setting.measure(context, |workers, stop, tell| clean::run(&plan, workers, stop, tell))
    }
}
