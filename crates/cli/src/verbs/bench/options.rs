//! Options of all benchmarks: the store (in this process or elsewhere), the number of runs, and the page.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use laneway::{Location, Provider};
use laneway_experiments::report::{Heading, Machine, Page};
use laneway_experiments::verdict::RUNS_MIN;
use laneway_experiments::{Error, Event, Imitated, Remote, Repeats, Stop, Target, Workers};

use super::Findings;
use crate::context::{Context, say};
use crate::exit::{BadUsage, Exit};
use crate::verbs::bench;

/// The store that a benchmark uses.
#[derive(Args, Clone, Default, Debug)]
pub(super) struct StoreOptions {
    /// Bucket or prefix to work in, instead of a store in this process
    #[arg(value_name = "URL")]
    target: Option<OsString>,
    /// Use this server; it must speak GCS's JSON API, or S3's API if you give an s3:// URL
    ///
    /// If you don't also name a bucket, Laneway creates one on this server.
    ///
    /// Example: laneway bench ladder --endpoint http://localhost:4443
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Imitate this round trip to the store in this process [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = laneway_quantity::parse_duration,
          conflicts_with_all = ["target", "endpoint"])]
    rtt: Option<Duration>,
    /// Limit all connections together to this rate in each direction, such as 100MB/s [default: 1Gbit/s]
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate,
          conflicts_with_all = ["target", "endpoint"])]
    bandwidth: Option<u64>,
    /// Let at most this many bytes wait in the queue before the imitated link [default: what the link sends
    /// in one round trip]
    #[arg(long, value_name = "SIZE", value_parser = laneway_quantity::parse_size,
          conflicts_with_all = ["target", "endpoint"])]
    queue: Option<u64>,
    /// Lose this share of packets, such as 0.5%
    #[arg(long, value_name = "PERCENT", value_parser = laneway_quantity::parse_loss,
          conflicts_with_all = ["target", "endpoint"])]
    loss: Option<f64>,
    /// Limit each connection to this rate, such as 90MB/s
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate,
          conflicts_with_all = ["target", "endpoint"])]
    connection_bandwidth: Option<u64>,
    /// Offer HTTP/1.1 only, as S3 does
    #[arg(long, conflicts_with_all = ["target", "endpoint"])]
    h1_only: bool,
}

/// The protocol that clients speak with the store in this process.
#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Debug)]
pub(super) enum StoreProtocol {
    /// Google Cloud Storage's JSON API
    #[default]
    Gcs,
    /// Amazon S3's API
    S3,
}

/// The protocol of the store in this process.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(super) struct ProtocolOption {
    /// Speak this protocol with the store in this process
    #[arg(long = "store", value_name = "STORE", value_enum, default_value_t)]
    pub(super) tongue: StoreProtocol,
}

impl From<StoreProtocol> for Provider {
    fn from(tongue: StoreProtocol) -> Self {
        match tongue {
            StoreProtocol::Gcs => Self::Gcs,
            StoreProtocol::S3 => Self::S3,
        }
    }
}

impl StoreOptions {
    /// Returns whether one of the options for the imitated link was given.
    pub(super) fn names_a_link(&self) -> bool {
        let Self { rtt, bandwidth, queue, loss, connection_bandwidth, .. } = self;
        rtt.is_some() || bandwidth.or(*queue).or(*connection_bandwidth).is_some() || loss.is_some()
    }

    /// Returns the store that the options and the environment variables name.
    ///
    /// # Errors
    /// Returns bad usage if the URL names no bucket.
    pub(super) fn target(&self, context: &Context, tongue: StoreProtocol) -> anyhow::Result<Target> {
        let place = self.target.as_deref().map(Location::parse).transpose()?;
        let (provider, bucket, prefix) = match place {
            None => (Provider::from(tongue), None, String::new()),
            Some(Location::Object { provider, bucket, key }) if !bucket.is_empty() => {
                (provider, Some(bucket), key)
            }
            Some(place) => {
                let why = "a benchmark works in gs://bucket/prefix or s3://bucket/prefix";
                return Err(BadUsage::of(place.to_string(), why).into());
            }
        };
        let options = &context.options;
        let region = options.region.clone().or_else(|| variable(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
        let region = region.unwrap_or_else(|| Remote::REGION.to_owned());
        let (option, variables) = match provider {
            Provider::Gcs => (&options.gcs_endpoint, &["STORAGE_EMULATOR_HOST"][..]),
            _ => (&options.s3_endpoint, &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"][..]),
        };
        let endpoint = self.endpoint.clone().or_else(|| option.clone());
        if endpoint.is_none() && bucket.is_none() {
            return Ok(Target::Embedded(Imitated {
                rtt: self.rtt.unwrap_or(Imitated::USUAL.rtt),
                bandwidth: self.bandwidth.or(Imitated::USUAL.bandwidth),
                queue: self.queue,
                loss: self.loss.unwrap_or_default(),
                connection_bandwidth: self.connection_bandwidth,
                h1_only: self.h1_only,
                provider,
            }));
        }
        if provider == Provider::S3 && bucket.is_none() {
            return Err(BadUsage::new("an S3 endpoint needs a bucket: add s3://BUCKET").into());
        }
        let endpoint = endpoint.or_else(|| variable(variables)).unwrap_or_else(|| match provider {
            Provider::Gcs => Remote::GOOGLE.to_owned(),
            _ => format!("https://s3.{region}.amazonaws.com"),
        });
        Ok(Target::Remote(Remote {
            provider,
            bucket,
            prefix,
            region,
            anonymous: options.anonymous,
            ca_files: options.ca_certs.clone(),
            ..Remote::gcs(endpoint)
        }))
    }
}

fn variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// The store of a benchmark, its number of runs, and the page that it writes.
#[derive(Args, Debug)]
pub(super) struct BenchOptions {
    #[command(flatten)]
    pub(super) place: StoreOptions,
    #[command(flatten)]
    pub(super) repeating: RepeatOptions,
    #[command(flatten)]
    pub(super) report: ReportOption,
}

/// Runs of each method.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct RepeatOptions {
    /// Run each method at least N times, in turns; a verdict needs three runs
    #[arg(long, value_name = "N", default_value_t = RUNS_MIN)]
    runs: usize,
    #[command(flatten)]
    deciding: DecisionOption,
}

/// The time for which unclear comparisons are repeated.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct DecisionOption {
    /// Repeat unclear comparisons of each table for up to TIME
    ///
    /// Example: laneway bench slices --decide-for 2m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = laneway_quantity::parse_duration)]
    pub(super) decide_for: Duration,
}

impl RepeatOptions {
    pub(super) fn repeats(self) -> Repeats {
        Repeats { least: self.runs, until_decided: self.deciding.decide_for }
    }
}

impl BenchOptions {
    /// Returns the store that the options name.
    ///
    /// # Errors
    /// Returns bad usage if the URL names no bucket.
    pub(super) fn target(&self, context: &Context, tongue: StoreProtocol) -> anyhow::Result<Target> {
        self.place.target(context, tongue)
    }

    /// Makes a measurement and prints its result.
    ///
    /// # Errors
    /// Fails if the measurement can't be made, or its result can't be printed.
    pub(super) fn measure<T: Findings>(
        &self,
        context: &Context,
        make: impl FnOnce(&Workers, &Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
    ) -> anyhow::Result<Exit> {
        bench::one(context, &self.report, make)
    }
}

/// The option whose values may be secrets.
const SECRET: &str = "--header";

/// The kind of build, which a page names because an unoptimised build is slower.
const BUILD: &str = if cfg!(debug_assertions) {
    "a debug build, which is much slower than a release build"
} else {
    "release build"
};

/// The option to write a page.
#[derive(Args, Clone, Default, Debug)]
pub(super) struct ReportOption {
    /// Write a page with tables and plots to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl ReportOption {
    /// Checks before the measurement that the page can be written, if one was requested.
    ///
    /// # Errors
    /// Returns the reason why the page can't be written.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.report.as_deref().map_or(Ok(()), check)
    }

    /// Writes the page that `fill` fills, if one was requested.
    ///
    /// # Errors
    /// Returns the reason why the page can't be written.
    pub(super) fn write(&self, context: &Context, fill: impl FnOnce(&mut Page)) -> anyhow::Result<()> {
        let Some(path) = &self.report else { return Ok(()) };
        let mut page = Page::default();
        fill(&mut page);
        write(context, path, &page, &heading(&command(std::env::args())))
    }
}

/// Returns the current facts about this program and machine, for a page's heading.
pub(crate) fn heading(command: &str) -> Heading {
    Heading {
        versions: format!("laneway {}, {BUILD}", env!("CARGO_PKG_VERSION")),
        libraries: env!("LANEWAY_LIBRARIES").to_owned(),
        date: jiff::Zoned::now().strftime("%Y-%m-%d %H:%M %Z").to_string(),
        command: command.to_owned(),
        machine: Machine::this(),
    }
}

/// Writes a page and prints its path. The page replaces an old file only when it is complete.
///
/// # Errors
/// Fails if it can't be written.
pub(crate) fn write(context: &Context, path: &Path, page: &Page, heading: &Heading) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    let mut file = tempfile::Builder::new()
        .prefix(".laneway-report-")
        // Use the mode of ordinary new files, because a temporary file is readable by its owner only. The
        // umask still applies.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder_of(path))
        .with_context(named)?;
    file.write_all(page.html(heading).as_bytes()).with_context(named)?;
    file.persist(path).with_context(named)?;
    if !context.options.quiet {
        let shown = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        say(&format!("The report is in {}", shown.display()));
    }
    Ok(())
}

/// Checks before a measurement that a page can be written to `path`.
///
/// # Errors
/// Returns the reason why the page can't be written.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    tempfile::tempfile_in(folder_of(path)).with_context(|| path.display().to_string()).map(drop)
}

/// Returns the command line, quoted for a shell and without values that may be secrets.
pub(super) fn command(arguments: impl IntoIterator<Item = String>) -> String {
    let mut words = vec!["laneway".to_owned()];
    let mut is_secret = false;
    for argument in arguments.into_iter().skip(1) {
        let hidden = match argument.split_once('=') {
            _ if is_secret => Some("...".to_owned()),
            Some((SECRET, _)) => Some(format!("{SECRET}=...")),
            _ => None,
        };
        is_secret = argument == SECRET;
        words.push(hidden.unwrap_or_else(|| quoted(&argument)));
    }
    words.join(" ")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted_and_tells_no_secret() {
        let command = |words: &[&str]| command(words.iter().map(|&word| word.to_owned()));
        assert_eq!(
            command(&["/x/laneway", "bench", "all", "--report", "my report"]),
            "laneway bench all --report 'my report'"
        );
        let hidden =
            command(&["laneway", "--header", "Authorization: Bearer s3cret", "--header=K: s3cret", "bench"]);
        assert_eq!(hidden, "laneway --header ... --header=... bench");
    }
}
