//! The JSON lines of a job.

use laneway::{ErrorKind, Item, Outcome, Summary, Warning};
use serde::Serialize;

use super::stats::{CommandStats, StatsRecord};

/// The result for one file or object, as the record of kind `item`.
#[derive(Serialize, Debug)]
pub(crate) struct ItemRecord<'a> {
    kind: &'static str,
    op: &'static str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a str>,
    bytes: u64,
    start_s: f64,
    end_s: f64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<String>,
    /// False if Laneway itself checked a precondition before and after the write, because the store may ignore
    /// preconditions.
    #[serde(skip_serializing_if = "is_true")]
    atomic: bool,
    /// The reason why nothing was done, if that isn't a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'static str>,
    #[serde(skip_serializing_if = "is_false")]
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
}

/// The result of a whole job, as the record of kind `summary`.
#[derive(Serialize, Debug)]
pub(crate) struct SummaryRecord {
    kind: &'static str,
    files: u64,
    failed: u64,
    bytes: u64,
    seconds: f64,
    network_bytes: u64,
    connections: u64,
    handshakes: u64,
    requests: u64,
    retries: u64,
    hedges: u64,
    #[serde(skip_serializing_if = "is_zero")]
    skipped: u64,
    /// Number of items that a sync has removed.
    #[serde(skip_serializing_if = "is_zero")]
    removed: u64,
    /// Number of items that a sync found equal on both sides.
    #[serde(skip_serializing_if = "is_zero")]
    unchanged: u64,
    /// Number of objects that a sync requested one by one, because no listing shows their checksums or times.
    #[serde(skip_serializing_if = "is_zero")]
    asked: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unverified: u64,
    /// Bytes that an earlier, interrupted run had already moved.
    #[serde(skip_serializing_if = "is_zero")]
    resumed_bytes: u64,
    /// True if the job gave up early, because a failure would have affected all other items too.
    #[serde(skip_serializing_if = "is_false")]
    stopped: bool,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
    /// Number of items that were found but not done before the job ended.
    #[serde(skip_serializing_if = "is_zero")]
    not_done: u64,
    /// True if there may be more items that weren't done, because the search ended early.
    #[serde(skip_serializing_if = "is_false")]
    search_cut: bool,
    /// Bytes of unfinished items that are kept, so that the same command can continue with them.
    #[serde(skip_serializing_if = "is_zero")]
    kept_bytes: u64,
    /// With `--stats` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<StatsRecord>,
}

/// A record of kind `warning`: the job skipped something, or did it differently than requested.
#[derive(Serialize, Debug)]
pub(crate) struct WarningRecord<'a> {
    kind: &'static str,
    source: &'a str,
    warning: &'a str,
}

/// A failure of the whole command, or of one URL in it, as the record of kind `error`.
#[derive(Serialize, Debug)]
pub(crate) struct ErrorRecord<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    error: &'a str,
    class: &'a str,
}

impl<'a> ItemRecord<'a> {
    pub(crate) fn new(item: &'a Item) -> Self {
        let mut record = Self {
            kind: "item",
            op: item.op.name(),
            source: &item.source,
            destination: item.destination.as_deref(),
            bytes: item.bytes,
            start_s: rounded(item.start.as_secs_f64()),
            end_s: rounded(item.end.as_secs_f64()),
            attempts: item.attempts,
            verified: None,
            atomic: item.atomic,
            skipped: None,
            dry_run: false,
            error: None,
            class: None,
        };
        match &item.outcome {
            Outcome::Done { verified } => record.verified = super::line::shown(*verified),
            Outcome::Skipped { why } => record.skipped = Some(why),
            Outcome::Planned => record.dry_run = true,
            Outcome::Failed(error) => {
                record.error = Some(crate::output::plain(&error.to_string()));
                record.class = Some(class(error.kind()));
            }
            _ => {}
        }
        record
    }
}

impl SummaryRecord {
    pub(crate) fn new(summary: &Summary, stats: Option<&CommandStats>) -> Self {
        Self {
            kind: "summary",
            files: summary.files,
            failed: summary.failed,
            bytes: summary.bytes,
            seconds: rounded(summary.seconds),
            network_bytes: summary.network_bytes,
            connections: summary.connections,
            handshakes: summary.handshakes,
            requests: summary.requests,
            retries: summary.retries,
            hedges: summary.hedges,
            skipped: summary.skipped,
            removed: summary.removed,
            unchanged: summary.unchanged,
            asked: summary.asked,
            unverified: summary.unverified,
            resumed_bytes: summary.resumed_bytes,
            stopped: summary.stopped,
            interrupted: summary.interrupted,
            not_done: summary.not_done,
            search_cut: summary.search_cut,
            kept_bytes: summary.kept_bytes,
            stats: stats.map(StatsRecord::from),
        }
    }
}

impl<'a> ErrorRecord<'a> {
    pub(crate) fn new(url: Option<&'a str>, error: &'a str, class: &'a str) -> Self {
        Self { kind: "error", url, error, class }
    }
}

impl<'a> WarningRecord<'a> {
    pub(crate) fn new(warning: &'a Warning) -> Self {
        Self { kind: "warning", source: &warning.target, warning: &warning.message }
    }
}

/// Rounds seconds to the microsecond. Further digits would only be noise of the conversion.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

// The classes of failures in `--json`, which are the names of the library's error kinds. Users' programs compare the classes. So failures
// of a kind that was added later keep the class that they had before.

/// Returns the class in `--json` of a kind of error.
pub(crate) fn class(kind: ErrorKind) -> &'static str {
    let class = match kind {
        ErrorKind::AlreadyExists | ErrorKind::NotModified => ErrorKind::Precondition,
        ErrorKind::Timeout => ErrorKind::Transport,
        ErrorKind::Internal => ErrorKind::Local,
        kind => kind,
    };
    class.name()
}

/// Returns all classes with their meanings, for the documentation.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let kinds = ErrorKind::ALL.iter().filter(|kind| class(**kind) == kind.name());
    kinds.map(|kind| (kind.name(), kind.meaning()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use laneway::{Op, Verified};

    use super::*;

    fn item(outcome: Outcome) -> Item {
        let mut item = Item::new(Op::Download, "s3://b/k", outcome);
        item.destination = Some("/d/k".into());
        item.bytes = 4700;
        item.start = Duration::from_millis(101);
        item.end = Duration::from_nanos(152_000_400);
        item
    }

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).expect("it serialises")
    }

    #[test]
    fn an_item_has_the_documented_fields_in_their_order() {
        assert_eq!(
            json(&ItemRecord::new(&item(Outcome::Done { verified: Verified::Crc32c }))),
            r#"{"kind":"item","op":"download","source":"s3://b/k","destination":"/d/k","bytes":4700,"start_s":0.101,"end_s":0.152,"attempts":1,"verified":"crc32c"}"#
        );
    }

    #[test]
    fn a_check_that_was_not_atomic_says_so() {
        let mut checked = item(Outcome::Done { verified: Verified::Crc32c });
        checked.atomic = false;
        let checked = json(&ItemRecord::new(&checked));
        assert!(checked.ends_with(r#""verified":"crc32c","atomic":false}"#), "{checked}");
    }

    #[test]
    fn what_was_left_or_only_planned_says_so() {
        let skipped = json(&ItemRecord::new(&item(Outcome::Skipped { why: "it is there" })));
        assert!(skipped.ends_with(r#""attempts":1,"skipped":"it is there"}"#), "{skipped}");
        let planned = json(&ItemRecord::new(&item(Outcome::Planned)));
        assert!(planned.ends_with(r#""attempts":1,"dry_run":true}"#), "{planned}");
    }

    #[test]
    fn a_summary_has_the_documented_fields_and_omits_empty_ones() {
        let mut summary = Summary::default();
        (summary.files, summary.seconds) = (2, 0.45);
        assert_eq!(
            json(&SummaryRecord::new(&summary, None)),
            r#"{"kind":"summary","files":2,"failed":0,"bytes":0,"seconds":0.45,"network_bytes":0,"connections":0,"handshakes":0,"requests":0,"retries":0,"hedges":0}"#
        );
        (summary.interrupted, summary.skipped) = (true, 3);
        assert!(json(&SummaryRecord::new(&summary, None)).ends_with(r#","skipped":3,"interrupted":true}"#));
        let mut stopped = Summary::default();
        (stopped.stopped, stopped.not_done, stopped.search_cut, stopped.kept_bytes) = (true, 7, true, 9);
        let stopped = json(&SummaryRecord::new(&stopped, None));
        let end = r#","stopped":true,"not_done":7,"search_cut":true,"kept_bytes":9}"#;
        assert!(stopped.ends_with(end), "{stopped}");
    }

    #[test]
    fn the_documented_list_is_whole_and_every_kind_has_a_class_of_it() {
        let semantics = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SEMANTICS.md");
        let semantics = std::fs::read_to_string(semantics).expect("SEMANTICS.md");
        for (name, meaning) in all() {
            assert!(semantics.contains(&format!("| `{name}` | {meaning} |")), "{name}");
        }
        for kind in ErrorKind::ALL {
            assert!(all().any(|(name, _)| name == class(*kind)), "{kind:?}");
        }
        assert_eq!((all().count(), class(ErrorKind::AlreadyExists)), (18, "precondition"));
    }
}
