//! What every verb is handed: the options, the program's start and its standard output.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use laneway::{Client, Location, Settings, Summary};

use crate::arguments::{Addressing, Options};
use crate::exit::BadUsage;
use crate::exit::Tally;
use crate::mfa;
use crate::output::Output;
use crate::report::class::class;
use crate::report::json::ErrorRecord;
use crate::report::stats::{Stats, StatsLine};
use crate::stderr;

/// Shared by everything that a run of the program does.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) options: Options,
    /// When the program started: what `start_s` and `end_s` count from.
    pub(crate) started: Instant,
    pub(crate) output: Arc<Output>,
}

impl Context {
    pub(crate) fn new(options: Options, started: Instant) -> Self {
        Self { options, started, output: Arc::new(Output::new()) }
    }

    /// Reports that one of several places failed, of which `url` is one, and counts it.
    ///
    /// # Errors
    /// When standard output, which `--json` prints on, can't be written.
    pub(crate) fn fail(&self, url: &Location, error: &laneway::Error, tally: &mut Tally) -> io::Result<()> {
        tally.failed(error.is_usage());
        self.report_failure(Some(&url.to_string()), &error.to_string(), class(error.kind()))
    }

    /// Prints a failure, of a place or of the whole command.
    ///
    /// # Errors
    /// As [`fail`](Self::fail).
    pub(crate) fn report_failure(&self, url: Option<&str>, message: &str, class: &str) -> io::Result<()> {
        complain(message);
        if self.options.json { self.output.json(&ErrorRecord::new(url, message, class)) } else { Ok(()) }
    }

    /// What a command took so far, if that is wanted. `summary` is that of its job.
    pub(crate) fn stats(&self, client: &Client, summary: Option<&Summary>) -> Option<Stats> {
        self.options.stats.then(|| Stats::of(client, summary, self.started.elapsed()))
    }

    /// Prints what a command without a summary took, if that is wanted.
    ///
    /// # Errors
    /// When standard output can't be written.
    pub(crate) fn print_stats(&self, client: &Client) -> io::Result<()> {
        let Some(stats) = self.stats(client, None) else { return Ok(()) };
        if self.options.json {
            return self.output.json(&StatsLine::from(&stats));
        }
        self.output.flush()?;
        say(&stats.table());
        Ok(())
    }

    /// The library, set up by the environment and, above it, the options.
    ///
    /// # Errors
    /// As [`Client::new`]; bad usage for a key that is none.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(self.settings()?)?)
    }

    /// Whether a person watches stderr and wants to.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.options.quiet && !self.options.json && io::stderr().is_terminal()
    }

    fn settings(&self) -> Result<Settings, BadUsage> {
        let options = self.options.clone();
        let mut settings = Settings { epoch: self.started, ..Settings::from_env() };

        let store = &mut settings.store;
        store.anonymous |= options.anonymous;
        store.request_payer |= options.request_payer;
        store.headers = options.headers;
        store.encryption = options.encryption.encryption(|name| std::env::var_os(name))?;
        store.mfa_prompt = mfa::prompt();
        store.s3_path_style = options.s3_addressing.map(|style| style == Addressing::Path);
        for (setting, option) in [
            (&mut store.gcs_endpoint, options.gcs_endpoint),
            (&mut store.s3_endpoint, options.s3_endpoint),
            (&mut store.profile, options.profile),
            (&mut store.region, options.region),
            (&mut store.user_project, options.user_project),
            (&mut store.kms_key, options.kms_key),
        ] {
            if option.is_some() {
                *setting = option;
            }
        }

        let lanes = &mut settings.lanes;
        lanes.connections_max = options.max_connections;
        lanes.bandwidth_limit = options.bandwidth_limit;
        lanes.retry_for = options.retry_for.unwrap_or(lanes.retry_for);
        let bundle = std::env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty()).map(PathBuf::from);
        lanes.trust.extra_ca_files.extend(options.ca_certs.into_iter().chain(bundle));
        Ok(settings)
    }
}

/// Prints a line on stderr. A stderr that is gone is no reason to stop.
pub(crate) fn say(line: &str) {
    stderr::line(line);
}

/// Prints a failure on stderr, as one line.
pub(crate) fn complain(message: &str) {
    say(&format!("laneway: {message}"));
}
