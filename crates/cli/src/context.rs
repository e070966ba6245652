//! What every verb is handed: the options, the program's start and its standard output.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use laneway::{Client, ClientBuilder, Location, Manifest, RunCommand, Summary};

use crate::arguments::{Addressing, Options};
use crate::exit::Tally;
use crate::mfa;
use crate::output::Output;
use crate::report::bucket::BucketRecord;
use crate::report::class::class;
use crate::report::json::ErrorRecord;
use crate::report::stats::{Stats, StatsLine};
use crate::stderr;
use crate::together::Together;

/// Shared by everything that a run of the program does.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) options: Options,
    /// When the program started: what `start_s` and `end_s` count from.
    pub(crate) started: Instant,
    pub(crate) output: Arc<Output>,
    /// What it shares with others, where it is one of many commands.
    pub(crate) together: Option<Arc<Together>>,
    /// Where a command stands that is one of many, as `FILE:LINE`.
    pub(crate) line: Option<String>,
    /// The same in the manifest that they keep together.
    pub(crate) command: Option<RunCommand>,
}

impl Context {
    pub(crate) fn new(options: Options, started: Instant) -> Self {
        Self { options, started, output: Arc::new(Output::new()), together: None, line: None, command: None }
    }

    /// The same for one of many commands, whose statistics are told together.
    pub(crate) fn one_of(&self, together: Arc<Together>) -> Self {
        let options = Options { stats: false, ..self.options.clone() };
        let (started, output) = (self.started, Arc::clone(&self.output));
        Self { options, started, output, together: Some(together), line: None, command: None }
    }

    /// The manifest that a job keeps: the one that the command names, else that of all commands.
    pub(crate) fn manifest(&self, own: Option<PathBuf>) -> Option<Manifest> {
        own.map(Manifest::from).or_else(|| self.command.clone().map(Manifest::from))
    }

    /// Reports that one of several places failed, of which `url` is one, and counts it.
    ///
    /// # Errors
    /// When standard output, which `--json` prints on, can't be written.
    pub(crate) fn fail(&self, url: &Location, error: &laneway::Error, tally: &mut Tally) -> io::Result<()> {
        tally.failed(error.is_usage());
        self.report_failure(Some(&url.to_string()), &error.to_string(), class(error.kind()))
    }

    /// Prints a failure on stderr, as one line, which says where the command stands if it is one of many.
    pub(crate) fn complain(&self, message: &str) {
        match &self.line {
            Some(line) => complain(&format!("{line}: {message}")),
            None => complain(message),
        }
    }

    /// Whether Ctrl-C has asked for the end of all commands that this is one of.
    pub(crate) fn is_stopped(&self) -> bool {
        self.together.as_ref().is_some_and(|together| together.is_stopped())
    }

    /// Prints a failure, of a place or of the whole command.
    ///
    /// # Errors
    /// As [`fail`](Self::fail).
    pub(crate) fn report_failure(&self, url: Option<&str>, message: &str, class: &str) -> io::Result<()> {
        let message = stderr::plain(message);
        self.complain(&message);
        if self.options.json { self.output.json(&ErrorRecord::new(url, &message, class)) } else { Ok(()) }
    }

    /// Tells that a bucket was `made` or `removed`.
    ///
    /// # Errors
    /// As [`fail`](Self::fail).
    pub(crate) fn bucket(&self, url: &Location, outcome: &'static str) -> io::Result<()> {
        let url = url.to_string();
        if self.options.json {
            return self.output.json(&BucketRecord::new(&url, outcome));
        }
        if !self.options.quiet {
            say(&format!("{outcome} {url}"));
        }
        Ok(())
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
    /// As [`ClientBuilder::build`]; bad usage for a key that is none.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        if let Some(together) = &self.together {
            return Ok(together.client.clone());
        }
        let mut client = self.options.encryption.add_to(ClientBuilder::from_env().epoch(self.started))?;
        let options = self.options.clone();
        for file in options.ca_certs {
            client = client.ca_file(file);
        }
        for (name, value) in options.headers {
            client = client.header(&name, &value)?;
        }
        if options.anonymous {
            client = client.anonymous(true);
        }
        if options.request_payer {
            client = client.request_payer(true);
        }
        if mfa::can_ask() {
            client = client.mfa_prompt(mfa::ask);
        }
        let in_path = options.s3_addressing.map(|style| style == Addressing::Path);
        client = with(client, in_path, ClientBuilder::s3_path_style);
        client = with(client, options.gcs_endpoint, ClientBuilder::gcs_endpoint);
        client = with(client, options.s3_endpoint, ClientBuilder::s3_endpoint);
        client = with(client, options.profile, ClientBuilder::profile);
        client = with(client, options.region, ClientBuilder::region);
        client = with(client, options.project, ClientBuilder::project);
        client = with(client, options.user_project, ClientBuilder::user_project);
        client = with(client, options.kms_key, ClientBuilder::kms_key);
        client = with(client, options.max_connections, ClientBuilder::connections_max);
        client = with(client, options.bandwidth_limit, ClientBuilder::bandwidth_limit);
        client = with(client, options.retry_for, ClientBuilder::retry_for);
        Ok(client.build()?)
    }

    /// Whether a person watches stderr and wants to.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.options.quiet && !self.options.no_progress && !self.options.json && io::stderr().is_terminal()
    }
}

/// Sets what an option says.
fn with<T>(
    client: ClientBuilder,
    option: Option<T>,
    set: impl FnOnce(ClientBuilder, T) -> ClientBuilder,
) -> ClientBuilder {
    match option {
        Some(value) => set(client, value),
        None => client,
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
