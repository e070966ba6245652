//! Many small files up.

use clap::Args;
use laneway::Provider;
use laneway_experiments::Target;
use laneway_experiments::ladder::{self, Plan};

use super::place::Tongue;
use super::setting::Setting;
use crate::context::Context;
use crate::exit::{BadUsage, Exit};

/// Upload many small files by five other methods and with Laneway
///
/// The first method sends resumable uploads with each request on a new connection, as Google's Ruby gem does. The others send one request
/// per file: each on a new connection, on one kept connection, all at once on a connection each, and all at once over HTTP/2. The store is
/// one in this process, with TLS and a delay, unless an endpoint or a gs:// URL is given. Laneway removes what it uploads elsewhere. Of the common options, those for
/// output, --ca-cert, --anonymous and --gcs-endpoint apply here.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    /// Upload N files
    #[arg(long, value_name = "N", default_value_t = 50)]
    files: usize,
    /// Set the size of each file
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
            return Err(BadUsage::new("ladder uploads to gs://bucket/prefix only").into());
        }
        Ok(Plan {
            files: self.files,
            size: self.size,
            runs: self.setting.repeating.repeats(),
            one_by_one: true,
            programs: true,
            target,
        })
    }
}

/// Returns if a store speaks the ladder's protocol.
pub(super) fn speaks(target: &Target) -> bool {
    match target {
        Target::Embedded(_) => true,
        Target::Remote(remote) => remote.provider == Provider::Gcs,
    }
}
