//! `--files-from`: a file with the names to work on.

use std::ffi::OsString;

use clap::Args;
use laneway::{Error, Location};

/// Where names come from.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct NamesFrom {
    /// Read names below the source from FILE, one per line, instead of listing; - is stdin
    ///
    /// Empty lines and lines that begin with # or ; are comments. cp and rm take no filters beside it; sync applies them to the names.
    ///
    /// Example: laneway cp --files-from names.txt photos gs://my-bucket/photos
    #[arg(hide_short_help = true, long = "files-from", value_name = "FILE")]
    files_from: Option<OsString>,
}

impl NamesFrom {
    pub(crate) fn is_some(&self) -> bool {
        self.files_from.is_some()
    }

    /// # Errors
    /// If it is neither a file nor `-`.
    pub(crate) fn location(&self) -> Result<Option<Location>, Error> {
        self.files_from.as_deref().map(Location::parse).transpose()
    }
}
