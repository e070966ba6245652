//! Logs on stderr. They are set up only if requested, because that takes start-up time.

use std::time::Instant;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::arguments::Options;
use crate::exit::BadUsage;
use crate::retrying::Notices;
use crate::stderr::Above;

const VARIABLE: &str = "LANEWAY_LOG";

/// Starts logging if `-v`, or else `LANEWAY_LOG` (a level, or `target=level,...`), requests it. Otherwise
/// only retries are reported, unless `-q` silences them. Times are seconds since the program `started`.
///
/// # Errors
/// [`BadUsage`] if the value of `LANEWAY_LOG` is used and can't be parsed.
pub(crate) fn start(options: &Options, started: Instant) -> anyhow::Result<()> {
    let wanted = match options.verbose {
        0 => std::env::var(VARIABLE).unwrap_or_default(),
        _ => String::new(),
    };
    let filter = match (wanted.as_str(), options.verbose) {
        ("", 0) => {
            if !options.quiet {
                // As below: nothing else sets one.
                let _ = tracing::subscriber::set_global_default(Notices);
            }
            return Ok(());
        }
        ("", 1) => ours(LevelFilter::INFO),
        ("", 2) => ours(LevelFilter::DEBUG),
        ("", _) => ours(LevelFilter::TRACE),
        (text, _) => match text.parse::<LevelFilter>() {
            Ok(level) => ours(level),
            Err(_) => text.parse().map_err(|e| {
                BadUsage::new(format!("{VARIABLE}={text:?} is neither a level nor a filter: {e}"))
            })?,
        },
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Above)
        .with_timer(Since(started))
        .with_target(!wanted.is_empty())
        .with_ansi(false)
        .with_filter(filter);
    // This fails only if a subscriber is already set, and only this function sets one.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines));
    Ok(())
}

/// Formats times as seconds since the program's start, as `start_s` and `end_s` in `--json`.
struct Since(Instant);

impl FormatTime for Since {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        write!(out, "{:8.3}", self.0.elapsed().as_secs_f64())
    }
}

/// Returns the levels: this one for Laneway itself, and at most `warn` for the libraries below it.
fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target("laneway", level).with_default(level.min(LevelFilter::WARN))
}
