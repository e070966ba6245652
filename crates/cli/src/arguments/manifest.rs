//! `--manifest`: a file with the outcomes of a job.

use std::path::PathBuf;

use clap::Args;

/// Where outcomes are written.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct Manifest {
    /// Record outcomes in FILE, and skip what FILE says is done
    ///
    /// Each outcome is one line of JSON. Sources that changed since are done again.
    ///
    /// Example: laneway cp -r --manifest done.jsonl photos gs://my-bucket/photos
    #[arg(long = "manifest", value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
}
