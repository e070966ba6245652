//! `laneway hash`: prints the checksums of files as stores report them, so that users can compare them with an object's.

use std::ffi::OsString;
use std::fs::File;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use laneway::{Checksums, Location};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{BadUsage, Exit, OutcomeTally};

/// Print the checksums of files, as stores write them
///
/// CRC32C, CRC64NVME and MD5 are in base64. Compare them with the checksums that `laneway stat` prints for an
/// object.
#[derive(Args, Debug)]
pub(crate) struct Hash {
    /// Files; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<OsString>,
}

/// A file's checksums, as the record of kind `hash`.
#[derive(Serialize, Debug)]
struct HashRecord<'a> {
    kind: &'static str,
    source: &'a str,
    size: u64,
    crc32c: String,
    crc64nvme: String,
    md5: String,
}

impl<'a> HashRecord<'a> {
    fn new(source: &'a str, size: u64, sums: &Checksums) -> Self {
        Self {
            kind: "hash",
            source,
            size,
            crc32c: STANDARD.encode(sums.crc32c.unwrap_or_default().to_be_bytes()),
            crc64nvme: STANDARD.encode(sums.crc64nvme.unwrap_or_default().to_be_bytes()),
            md5: STANDARD.encode(sums.md5.unwrap_or_default()),
        }
    }

    fn details(&self) -> String {
        let Self { source, size, crc32c, crc64nvme, md5, .. } = self;
        format!(
            "{source}\n  Size       {size}\n  CRC32C     {crc32c}\n  CRC64NVME  {crc64nvme}\n  MD5        {md5}"
        )
    }
}

impl Hash {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut tally = OutcomeTally::default();
        for file in &self.files {
            let at = Location::parse(file)?;
            let source = at.to_string();
            let hashed = match &at {
                Location::Local(path) => File::open(path).and_then(laneway::hash),
                Location::Standard => laneway::hash(io::stdin().lock()),
                _ => {
                    let why = "hash reads local files; `laneway stat` prints the checksums of an object";
                    return Err(BadUsage::of(source, why).into());
                }
            };
            match hashed {
                Ok((size, sums)) => {
                    tally.done();
                    let record = HashRecord::new(&source, size, &sums);
                    match context.options.json {
                        true => context.output.json(&record)?,
                        false => context.output.line(&record.details())?,
                    }
                }
                Err(error) => {
                    tally.failed(false);
                    let message = format!("{source}: can't be read: {error}");
                    context.report_failure(Some(&source), &message, laneway::ErrorKind::Local.name())?;
                }
            }
        }
        Ok(tally.exit())
    }
}
