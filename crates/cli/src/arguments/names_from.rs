//! `--files-from`: what is meant, named in a file.

use std::ffi::OsString;

use clap::Args;
use laneway::{Error, Location};

/// Where names come from.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct NamesFrom {
    /// Take what FILE (or - for stdin) names, a name below the one source in each line, and list nothing. Empty lines and those that begin
    /// with # or ; are passed over
    #[arg(long = "files-from", value_name = "FILE")]
    files_from: Option<OsString>,
}

impl NamesFrom {
    pub(crate) fn is_some(&self) -> bool {
        self.files_from.is_some()
    }

    /// # Errors
    /// For what is neither a file nor `-`.
    pub(crate) fn location(&self) -> Result<Option<Location>, Error> {
        self.files_from.as_deref().map(Location::parse).transpose()
    }
}
