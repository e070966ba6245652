//! `--manifest`: what a job did, on file.

use std::path::PathBuf;

use clap::Args;

/// Where outcomes are written.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct Manifest {
    /// Write each item's outcome to FILE as it comes, a line of JSON each. The same command with the same FILE leaves out what is done and
    /// unchanged
    #[arg(long = "manifest", value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
}
