//! The context of every verb: the options, the program's start and its standard output.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use laneway::{Client, ClientBuilder, Engine, Location, Manifest, RunCommand, Summary};

use crate::arguments::{Addressing, Options};
use crate::exit::OutcomeTally;
use crate::job::SharedEngine;
use crate::output;
use crate::output::StandardOutput;
use crate::report::json::{ErrorRecord, class};
use crate::report::object::BucketOutcomeRecord;
use crate::report::stats::{CommandStats, StatsLine};

/// The state that all parts of a run of the program share.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) options: Options,
    /// The time when the program started. `start_s` and `end_s` are seconds since this time.
    pub(crate) started: Instant,
    pub(crate) output: Arc<StandardOutput>,
    /// The state that this command shares with other commands of `laneway run`.
    pub(crate) together: Option<Arc<SharedEngine>>,
    /// The line of a command in the input of `laneway run`, as `FILE:LINE`.
    pub(crate) line: Option<String>,
    /// The command's entry in the manifest of `laneway run`.
    pub(crate) command: Option<RunCommand>,
}

impl Context {
    pub(crate) fn new(options: Options, started: Instant) -> Self {
        Self {
            options,
            started,
            output: Arc::new(StandardOutput::new()),
            together: None,
            line: None,
            command: None,
        }
    }

    /// Returns the context for a command of `laneway run`. `laneway run` reports the statistics of all its commands together, so a command
    /// reports none.
    pub(crate) fn one_of(&self, together: Arc<SharedEngine>) -> Self {
        let options = Options { stats: false, ..self.options.clone() };
        let (started, output) = (self.started, Arc::clone(&self.output));
        Self { options, started, output, together: Some(together), line: None, command: None }
    }

    /// Returns the manifest of a job: the one that the command names, or else that of `laneway run`.
    pub(crate) fn manifest(&self, own: Option<PathBuf>) -> Option<Manifest> {
        own.map(Manifest::from).or_else(|| self.command.clone().map(Manifest::from))
    }

    /// Reports and counts the failure of `url`, one of the command's URLs.
    ///
    /// # Errors
    /// Fails if `--json` can't write to standard output.
    pub(crate) fn fail(
        &self,
        url: &Location,
        error: &laneway::Error,
        tally: &mut OutcomeTally,
    ) -> io::Result<()> {
        tally.failed(error.is_usage());
        self.report_failure(Some(&url.to_string()), &error.to_string(), class(error.kind()))
    }

    /// Prints a failure on stderr, in one line. In `laneway run`, it begins with the command's `FILE:LINE`.
    pub(crate) fn complain(&self, message: &str) {
        match &self.line {
            Some(line) => complain(&format!("{line}: {message}")),
            None => complain(message),
        }
    }

    /// Returns whether Ctrl-C has stopped all commands of `laneway run`.
    pub(crate) fn is_stopped(&self) -> bool {
        self.together.as_ref().is_some_and(|together| together.is_stopped())
    }

    /// Prints the failure of `url`, or of the whole command if `url` is `None`.
    ///
    /// # Errors
    /// Fails in the same cases as [`fail`](Self::fail).
    pub(crate) fn report_failure(&self, url: Option<&str>, message: &str, class: &str) -> io::Result<()> {
        let message = output::plain(message);
        self.complain(&message);
        if self.options.json { self.output.json(&ErrorRecord::new(url, &message, class)) } else { Ok(()) }
    }

    /// Reports that a bucket was `made` or `removed`.
    ///
    /// # Errors
    /// Fails in the same cases as [`fail`](Self::fail).
    pub(crate) fn bucket(&self, url: &Location, outcome: &'static str) -> io::Result<()> {
        let url = url.to_string();
        if self.options.json {
            return self.output.json(&BucketOutcomeRecord::new(&url, outcome));
        }
        if !self.options.quiet {
            say(&format!("{outcome} {url}"));
        }
        Ok(())
    }

    /// Returns the command's statistics so far, if `--stats` was given. `summary` is the summary of the
    /// command's job.
    pub(crate) fn stats(&self, client: &Client, summary: Option<&Summary>) -> Option<CommandStats> {
        self.options.stats.then(|| CommandStats::of(client, summary, self.started.elapsed()))
    }

    /// Prints the statistics of a command without a summary, if `--stats` was given.
    ///
    /// # Errors
    /// Fails if standard output can't be written.
    pub(crate) fn print_stats(&self, client: &Client) -> io::Result<()> {
        let Some(stats) = self.stats(client, None) else { return Ok(()) };
        if self.options.json {
            return self.output.json(&StatsLine::from(&stats));
        }
        self.output.flush()?;
        say(&stats.table());
        Ok(())
    }

    /// Returns the library's client, configured by the environment and by the options, which override it.
    ///
    /// # Errors
    /// Fails if [`ClientBuilder::build`] fails. Returns bad usage for an invalid key.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        self.client_within(None)
    }

    /// Returns the same client, which uses at most `share` bytes a second.
    ///
    /// # Errors
    /// Fails as [`client`](Self::client) does.
    pub(crate) fn client_within(&self, share: Option<u64>) -> anyhow::Result<Client> {
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
        if can_ask_for_mfa() {
            client = client.mfa_prompt(ask_for_mfa);
        }
        let in_path = options.s3_addressing.map(|style| style == Addressing::Path);
        client = with(client, in_path, ClientBuilder::s3_path_style);
        client = with(client, options.gcs_endpoint, ClientBuilder::gcs_endpoint);
        client = with(client, options.s3_endpoint, ClientBuilder::s3_endpoint);
        client = with(client, options.azure_endpoint, ClientBuilder::azure_endpoint);
        client = with(client, options.azure_account, ClientBuilder::azure_account);
        client = with(client, options.profile, ClientBuilder::profile);
        client = with(client, options.region, ClientBuilder::region);
        client = with(client, options.project, ClientBuilder::project);
        client = with(client, options.user_project, ClientBuilder::user_project);
        client = with(client, options.kms_key, ClientBuilder::kms_key);
        client = with(client, options.max_connections, ClientBuilder::connections_max);
        client = with(client, options.bandwidth_limit, ClientBuilder::bandwidth_limit);
        if let Some(share) = share {
            // Another client has already started the process's engine, without this limit.
            let limit = options.bandwidth_limit.map_or(share, |limit| limit.min(share));
            let engine = Engine::builder().bandwidth_limit(limit);
            let engine = match options.max_connections {
                Some(connections) => engine.connections_max(connections),
                None => engine,
            };
            client = client.engine(engine.build());
        }
        client = with(client, options.retry_for, ClientBuilder::retry_for);
        Ok(client.build()?)
    }

    /// Returns whether to draw progress: stderr is a terminal, and no option turned progress off.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.options.quiet && !self.options.no_progress && !self.options.json && io::stderr().is_terminal()
    }
}

/// Applies an option to the client.
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

/// Prints a line on stderr. The program goes on if stderr is closed.
pub(crate) fn say(line: &str) {
    output::line(line);
}

/// Prints a failure on stderr, in one line.
pub(crate) fn complain(message: &str) {
    say(&format!("laneway: {message}"));
}

/// Returns whether a user can be asked for the code of an MFA device.
fn can_ask_for_mfa() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal for the code of an MFA device.
///
/// # Errors
/// Fails if there is no terminal, or the user enters no code.
fn ask_for_mfa(serial: &str) -> io::Result<String> {
    say(&format!("MFA code of {serial}:"));
    // Don't read through `io::stdin`: its buffer could take bytes that the command is to upload.
    let terminal = std::fs::File::open("/dev/tty")?;
    let mut line = String::new();
    io::BufReader::new(terminal).read_line(&mut line)?;
    let code = line.trim();
    if code.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no code was given"));
    }
    Ok(code.to_owned())
}
