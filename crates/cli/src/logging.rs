//! Logs on stderr. Logging is set up only if requested, because the set-up takes start-up time.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use laneway_lanes::ORIGIN;
use laneway_quantity as quantity;
use laneway_store::SLOW_CREDENTIALS;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::arguments::Options;
use crate::exit::BadUsage;
use crate::output::{self, StderrLines};

const VARIABLE: &str = "LANEWAY_LOG";

/// Starts logging if `-v`, or else `LANEWAY_LOG` (a level, or `target=level,...`), requests it. Otherwise
/// only retries are reported, unless `-q` silences them. Times are seconds since the program `started`.
///
/// # Errors
/// Returns [`BadUsage`] if the value of `LANEWAY_LOG` is used and can't be parsed.
pub(crate) fn start(options: &Options, started: Instant) -> anyhow::Result<()> {
    let wanted = match options.verbose {
        0 => std::env::var(VARIABLE).unwrap_or_default(),
        _ => String::new(),
    };
    let filter = match (wanted.as_str(), options.verbose) {
        ("", 0) => {
            if !options.quiet {
                // This fails only if a subscriber is already set, and only this function sets one.
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
        .with_writer(|| StderrLines)
        .with_timer(ElapsedTime(started))
        .with_target(!wanted.is_empty())
        .with_ansi(false)
        .with_filter(filter);
    // This fails only if a subscriber is already set, and only this function sets one.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines));
    Ok(())
}

/// Formats times as seconds since the program's start, as `start_s` and `end_s` in `--json`.
struct ElapsedTime(Instant);

impl FormatTime for ElapsedTime {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        write!(out, "{:8.3}", self.0.elapsed().as_secs_f64())
    }
}

/// Returns the log levels: `level` for Laneway itself, and at most `warn` for the libraries that it uses.
fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target("laneway", level).with_default(level.min(LevelFilter::WARN))
}

// Notices say that a server can't be reached or answers again, or that a source of credentials is slow. Without these notices, a run whose
// server accepts no connections would print nothing until it gives up.

static HAS_REPORTED: AtomicBool = AtomicBool::new(false);

/// Returns whether a notice has been printed yet.
pub(crate) fn has_reported() -> bool {
    HAS_REPORTED.load(Relaxed)
}

/// Receives only messages about origins that can't be reached or answer again, and about slow sources of credentials. Each change of an
/// origin or source prints one line, however many requests it affects.
#[derive(Debug)]
pub(crate) struct Notices;

/// The fields of a notice.
#[derive(Default)]
struct NoticeFields {
    origin: String,
    is_away: bool,
    /// The source of credentials.
    source: String,
    cause: String,
    retry_for: Duration,
    after: Duration,
}

impl NoticeFields {
    fn line(&self) -> String {
        let after = quantity::duration(self.after);
        match self.is_away {
            _ if !self.source.is_empty() => {
                let cause = if self.cause.is_empty() { String::new() } else { format!("; {}", self.cause) };
                format!("waiting for credentials: {} has not answered for {after}{cause}", self.source)
            }
            true => format!(
                "retrying: {}; gives up after {} (--retry-for)",
                self.cause,
                quantity::duration(self.retry_for)
            ),
            false => format!("{} answers again, after {after}", self.origin),
        }
    }
}

impl Visit for NoticeFields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "retry_for_ms" => self.retry_for = Duration::from_millis(value),
            "after_ms" => self.after = Duration::from_millis(value),
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "is_away" {
            self.is_away = value;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "source" => self.source = value.to_owned(),
            "cause" => self.cause = value.to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "origin" => self.origin = format!("{value:?}"),
            "cause" => self.cause = format!("{value:?}"),
            _ => {}
        }
    }
}

impl Subscriber for Notices {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && [ORIGIN, SLOW_CREDENTIALS].contains(&metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut change = NoticeFields::default();
        event.record(&mut change);
        HAS_REPORTED.store(true, Relaxed);
        output::line(&change.line());
    }

    // `enabled` is false for spans, so these methods do nothing.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_server_or_a_slow_source_is_one_line() {
        let away = NoticeFields {
            is_away: true,
            cause: "http://h (127.0.0.1:1) can't be reached: refused".to_owned(),
            retry_for: Duration::from_secs(120),
            ..NoticeFields::default()
        };
        assert!(
            away.line()
                .starts_with("retrying: http://h (127.0.0.1:1) can't be reached: refused; gives up after ")
        );
        let back = NoticeFields {
            origin: "http://h".to_owned(),
            after: Duration::from_secs(6),
            ..NoticeFields::default()
        };
        assert!(back.line().starts_with("http://h answers again, after "), "{}", back.line());
        let slow = NoticeFields {
            source: "credential_process of profile \"p\"".to_owned(),
            after: Duration::from_secs(5),
            ..NoticeFields::default()
        };
        let guessed = NoticeFields { cause: "a guess".to_owned(), after: Duration::from_secs(2), ..slow };
        assert!(guessed.line().ends_with("has not answered for 2.00 s; a guess"), "{}", guessed.line());
        let slow = NoticeFields { cause: String::new(), after: Duration::from_secs(5), ..guessed };
        assert!(
            slow.line()
                .starts_with("waiting for credentials: credential_process of profile \"p\" has not answered"),
            "{}",
            slow.line()
        );
    }
}
