//! Logs on stderr, only where they are asked for: setting them up costs start-up time.

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::exit::BadUsage;

const VARIABLE: &str = "LANEWAY_LOG";

/// Starts logging if `-vv` or `LANEWAY_LOG` (a level, or `target=level,...`) wants it. `-v` alone is answered by the
/// report, which names each object.
///
/// # Errors
/// [`BadUsage`] for a value of `LANEWAY_LOG` that can't be read.
pub(crate) fn start(verbose: u8) -> anyhow::Result<()> {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let filter = match (wanted.as_str(), verbose) {
        ("", 0 | 1) => return Ok(()),
        ("", 2) => ours(LevelFilter::DEBUG),
        ("", _) => ours(LevelFilter::TRACE),
        (text, _) => match text.parse::<LevelFilter>() {
            Ok(level) => ours(level),
            Err(_) => text
                .parse()
                .map_err(|e| BadUsage(format!("{VARIABLE}={text:?} is neither a level nor a filter: {e}")))?,
        },
    };
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(filter);
    // It fails only where a subscriber is already set, and this is the only place that sets one.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines));
    Ok(())
}

/// The level for Laneway itself; the libraries below it log at `info` about things that nobody asked for.
fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target("laneway", level).with_default(level.min(LevelFilter::WARN))
}
