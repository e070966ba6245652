//! Many small files up, the usual ways and Laneway's.

use clap::Args;
use laneway::Provider;
use laneway_experiments::Target;
use laneway_experiments::ladder::{self, Plan};

use super::place::Tongue;
use super::setting::Setting;
use crate::context::Context;
use crate::exit::{BadUsage, Exit};

/// Upload many small files in the five usual ways, then with Laneway
///
/// The ways are: resumable uploads with each request on a new connection, as Google's Ruby gem has them; one request a
/// file on a new connection; on one connection that is kept; all at once on a connection each; all at once over HTTP/2.
/// The store is one in this process, with TLS and a delay, unless an endpoint or a gs:// URL says otherwise; what is
/// uploaded elsewhere is removed again. The floor is the least time that the path allows. Of the options that all
/// verbs have, those for output count here, --ca-cert, --anonymous and --gcs-endpoint.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    /// How many files
    #[arg(long, value_name = "N", default_value_t = 50)]
    files: usize,
    /// Size of each file
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = laneway_quantity::parse_size)]
    size: u64,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plan = self.plan(context)?;
        self.setting.measure(context, |workers, stop, tell| ladder::run(&plan, workers, stop, tell))
    }

    fn plan(&self, context: &Context) -> anyhow::Result<Plan> {
        let target = self.setting.target(context, Tongue::Gcs)?;
        if !speaks(&target) {
            return Err(BadUsage::new("the ladder uploads to gs://bucket/prefix").into());
        }
        Ok(Plan { files: self.files, size: self.size, runs: self.setting.runs, programs: true, target })
    }
}

/// Whether a store speaks what the ladder does.
pub(super) fn speaks(target: &Target) -> bool {
    match target {
        Target::Embedded(_) => true,
        Target::Remote(remote) => remote.provider == Provider::Gcs,
    }
}
