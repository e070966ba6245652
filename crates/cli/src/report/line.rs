//! Human-readable lines: the final line of a job, a line for each object if requested, and the lines of `ls`.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use laneway::{Item, Op, Outcome, Summary, Verified};
use laneway_quantity as quantity;

/// The words in which the final line describes a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wording {
    /// The noun for the items of the job, in singular and plural.
    pub(crate) noun: (&'static str, &'static str),
    /// The words after the noun, in singular and plural, such as ` removed`. They may be empty.
    pub(crate) done: (&'static str, &'static str),
    /// The words of a dry run before the count: `would copy`.
    pub(crate) planned: &'static str,
    /// True if the job transfers data, so that its final line shows bytes, a rate and checksums.
    pub(crate) moves_bytes: bool,
    /// The state that an interrupted job leaves, and how to continue.
    pub(crate) resume: &'static str,
}

/// Returns the final line: files, bytes, seconds, rate, opened connections, requests, retries, and the checksums that were verified.
/// `checksums` names these. `throttled` is the time for which the store throttled the job, or zero if it is too short to report.
pub(crate) fn last(
    wording: &Wording,
    summary: &Summary,
    checksums: &BTreeSet<String>,
    throttled: Duration,
) -> String {
    let time = Duration::try_from_secs_f64(summary.seconds).unwrap_or_default();
    let done = if summary.files == 1 { wording.done.0 } else { wording.done.1 };
    let mut line = format!("{}{done}", count(wording, summary.files));
    if summary.removed > 0 {
        line += &format!(", {} removed", summary.removed);
    }
    line += &exceptions(summary);
    if !wording.moves_bytes {
        line += &compared(summary, checksums);
    }
    if summary.asked > 0 {
        line += &format!(", {} looked up one by one", summary.asked);
    }
    if wording.moves_bytes {
        line += &format!(", {}", quantity::size(summary.bytes));
        if summary.resumed_bytes > 0 {
            line += &format!(" ({} of it by an earlier run)", quantity::size(summary.resumed_bytes));
        }
    }
    line += &format!(" in {}", quantity::duration(time));
    // The bytes that an earlier run has moved don't count in this run's rate.
    let moved = summary.bytes.saturating_sub(summary.resumed_bytes);
    if let Some(rate) = quantity::rate(moved, time).filter(|_| wording.moves_bytes && moved > 0) {
        line += &format!(" ({rate})");
    }
    line += &format!(
        ", {}, {}, {}",
        quantity::count(summary.connections, "connection", "connections"),
        quantity::count(summary.requests, "request", "requests"),
        quantity::count(summary.retries, "retry", "retries"),
    );
    if !throttled.is_zero() {
        line += &format!(", throttled for {}", quantity::duration(throttled));
    }
    if wording.moves_bytes && summary.files > 0 {
        line += &format!(", {}", verdict(summary, checksums));
    }
    line
}

/// Returns the final line of a dry run.
pub(crate) fn planned(wording: &Wording, summary: &Summary) -> String {
    let bytes = quantity::size(summary.bytes);
    let mut planned = format!("{}, {bytes}", count(wording, summary.files));
    if summary.removed > 0 {
        planned += &format!(", remove {}", summary.removed);
    }
    format!("{} {planned}{}; nothing was changed", wording.planned, exceptions(summary))
}

fn count(wording: &Wording, n: u64) -> String {
    quantity::count(n, wording.noun.0, wording.noun.1)
}

fn exceptions(summary: &Summary) -> String {
    let part = |(n, what): (u64, &str)| if n > 0 { format!(", {n} {what}") } else { String::new() };
    let text = [(summary.failed, "failed"), (summary.skipped, "skipped"), (summary.unchanged, "unchanged")];
    let text = text.map(part).concat();
    match (summary.not_done, summary.search_cut) {
        (0, true) if summary.stopped => text + ", the rest not tried",
        (0, _) => text,
        (n, false) => text + &format!(", {n} not done"),
        (n, true) => text + &format!(", {n} and more not done"),
    }
}

/// Returns the line of an item for `-v` and for a dry run, or `None` for a failure, whose error is printed instead.
pub(crate) fn item(item: &Item) -> Option<String> {
    let op = item.op.name();
    let what = match (&item.destination, item.op) {
        (Some(destination), Op::Upload | Op::Download | Op::Copy | Op::Move | Op::Verify) => {
            format!("{} -> {destination}", item.source)
        }
        _ => item.source.clone(),
    };
    match &item.outcome {
        Outcome::Done { .. } if !item.atomic => Some(format!(
            "{op} {what} (the store may ignore preconditions, so Laneway checked the destination before and after the write, which is not atomic)"
        )),
        Outcome::Done { .. } => Some(format!("{op} {what}")),
        Outcome::Planned => Some(format!("would {op} {what}")),
        Outcome::Skipped { why } => Some(format!("skip {what}: {why}")),
        _ => None,
    }
}

/// Returns the name of the checksum that was compared, or `None` if the item has no content to compare.
pub(crate) fn shown(verified: Verified) -> Option<String> {
    (verified != Verified::NotApplicable).then(|| verified.to_string())
}

/// Returns the phrase that names the checksums of a `verify`. The phrase is empty for jobs that compare nothing.
fn compared(summary: &Summary, checksums: &BTreeSet<String>) -> String {
    let names = checksums.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
    match (summary.unverified, names.as_str()) {
        (0, "") => String::new(),
        (0, names) => format!(" by {names}"),
        (_, "") => " by name and size (no checksums were available to compare)".to_owned(),
        (n, names) => format!(" ({} by {names}, {n} by name and size)", summary.files.saturating_sub(n)),
    }
}

fn verdict(summary: &Summary, checksums: &BTreeSet<String>) -> String {
    let names = checksums.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
    match (summary.unverified, names.as_str()) {
        (0, "") => "nothing to verify".to_owned(),
        (0, names) => format!("{names} verified"),
        (_, "") => "unverified".to_owned(),
        (n, names) => format!("{names} verified, {n} unverified"),
    }
}

/// Width of the size column, as in `gcloud storage ls -l`.
const SIZE_WIDTH: usize = 10;
/// Length of a time in UTC, to the second.
const TIME_WIDTH: usize = 20;

/// Returns the line of an object in a long listing: size, time of the last change in UTC, URL.
pub(crate) fn object(size: u64, updated: Option<SystemTime>, url: &str, readable: bool) -> String {
    let size = if readable { quantity::readable_size(size) } else { size.to_string() };
    let time = updated.and_then(timestamp).unwrap_or_default();
    format!("{size:>SIZE_WIDTH$}  {time:<TIME_WIDTH$}  {url}")
}

/// The suffix after the URL of a delete marker.
pub(crate) const DELETE_MARKER: &str = "  (delete marker)";

/// Returns the suffix after the URL of an object that is in an archive, or was restored from one.
pub(crate) fn archive_status(meta: &laneway::ObjectMeta) -> &'static str {
    let is_under_way = |restore: &str| restore.contains("=\"true\"");
    match meta.restore.as_deref() {
        Some(restore) if is_under_way(restore) => "  (being restored)",
        _ if meta.archived => "  (archived)",
        Some(_) => "  (restored)",
        None => "",
    }
}

/// Returns the line of a delete marker in a long listing. Delete markers have no size.
pub(crate) fn delete_marker(updated: Option<SystemTime>, url: &str) -> String {
    let time = updated.and_then(timestamp).unwrap_or_default();
    format!("{:>SIZE_WIDTH$}  {time:<TIME_WIDTH$}  {url}{DELETE_MARKER}", "-")
}

/// Returns the line of a prefix in a long listing, with its URL in the same column as the objects'.
pub(crate) fn prefix(url: &str) -> String {
    format!("{:1$}{url}", "", SIZE_WIDTH + 2 + TIME_WIDTH + 2)
}

/// Returns a line of `du`: bytes and their URL, in the form of `gsutil du` and `gcloud storage du`.
pub(crate) fn usage(bytes: u64, what: &str, readable: bool) -> String {
    let size = if readable { quantity::readable_size(bytes) } else { bytes.to_string() };
    format!("{size:<11}  {what}")
}

/// Returns the last line of a long listing.
pub(crate) fn total(objects: u64, bytes: u64) -> String {
    let objects = quantity::count(objects, "object", "objects");
    format!("TOTAL: {objects}, {bytes} bytes ({})", quantity::readable_size(bytes))
}

/// Returns a time in UTC to the second, in the form of RFC 3339.
pub(crate) fn timestamp(time: SystemTime) -> Option<String> {
    let whole = Timestamp::from_second(Timestamp::try_from(time).ok()?.as_second()).ok()?;
    Some(whole.to_string())
}

/// Returns a name that is safe on a terminal. Control characters are escaped, because a terminal would obey them. `ls` and `du` print names
/// to a pipe without this.
pub(crate) fn printable(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    const COPY: Wording = Wording {
        noun: ("file", "files"),
        done: ("", ""),
        planned: "would copy",
        moves_bytes: true,
        resume: "",
    };
    const REMOVE: Wording = Wording {
        noun: ("object", "objects"),
        done: (" removed", " removed"),
        planned: "would remove",
        moves_bytes: false,
        resume: "",
    };

    fn summary() -> Summary {
        let mut summary = Summary::default();
        (summary.files, summary.bytes, summary.seconds) = (1000, 4_700_000, 0.45);
        (summary.connections, summary.requests) = (16, 1000);
        summary
    }

    fn sums(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_final_line_has_everything_in_its_place() {
        assert_eq!(
            last(&COPY, &summary(), &sums(&["crc32c"]), Duration::ZERO),
            "1000 files, 4.5 MiB in 0.45 s (10.0 MiB/s), 16 connections, 1000 requests, 0 retries, crc32c verified"
        );
    }

    #[test]
    fn the_final_line_says_for_how_long_the_store_asked_to_slow_down() {
        let line = last(&COPY, &summary(), &sums(&["crc32c"]), Duration::from_secs(41));
        assert!(line.ends_with(", 0 retries, throttled for 41.0 s, crc32c verified"), "{line}");
    }

    #[test]
    fn what_failed_and_what_was_skipped_is_counted() {
        let mut summary = summary();
        (summary.files, summary.failed, summary.skipped, summary.bytes) = (1, 2, 3, 0);
        (summary.connections, summary.requests, summary.retries) = (1, 1, 1);
        assert_eq!(
            last(&COPY, &summary, &sums(&["crc32c"]), Duration::ZERO),
            "1 file, 2 failed, 3 skipped, 0 B in 0.45 s, 1 connection, 1 request, 1 retry, crc32c verified"
        );
    }

    #[test]
    fn the_rate_is_that_of_what_was_moved_now() {
        let mut summary = summary();
        (summary.bytes, summary.resumed_bytes) = (10 << 20, 9 << 20);
        (summary.seconds, summary.files) = (0.5, 1);
        let line = last(&COPY, &summary, &sums(&["crc32c"]), Duration::ZERO);
        assert!(
            line.starts_with("1 file, 10.0 MiB (9.0 MiB of it by an earlier run) in 0.50 s (2.0 MiB/s), "),
            "{line}"
        );
    }

    #[test]
    fn what_a_shared_failure_kept_from_being_tried_is_said() {
        let stopped = |not_done, search_cut| {
            let mut summary = summary();
            (summary.files, summary.bytes, summary.failed) = (0, 0, 1);
            (summary.stopped, summary.not_done, summary.search_cut) = (true, not_done, search_cut);
            last(&COPY, &summary, &sums(&[]), Duration::ZERO)
        };
        assert!(stopped(0, true).starts_with("0 files, 1 failed, the rest not tried, 0 B in "));
        assert!(stopped(3999, false).starts_with("0 files, 1 failed, 3999 not done, 0 B in "));
        assert!(stopped(1024, true).starts_with("0 files, 1 failed, 1024 and more not done, 0 B in "));
        assert!(stopped(0, false).starts_with("0 files, 1 failed, 0 B in "));
    }

    #[test]
    fn it_never_pretends_that_something_was_verified() {
        let verdict = |unverified, names: &[&str]| {
            let mut summary = summary();
            summary.unverified = unverified;
            verdict(&summary, &sums(names))
        };
        assert_eq!(verdict(0, &["crc32c", "md5"]), "crc32c and md5 verified");
        assert_eq!(verdict(1000, &[]), "unverified");
        assert_eq!(verdict(3, &["md5"]), "md5 verified, 3 unverified");
        assert_eq!(verdict(0, &[]), "nothing to verify");
    }

    #[test]
    fn a_comparison_says_by_what_names_were_compared() {
        let last = |unverified, names: &[&str]| {
            let mut summary = summary();
            (summary.files, summary.unverified) = (5, unverified);
            let wording = Wording { noun: ("object", "objects"), done: (" matches", " match"), ..REMOVE };
            last(&wording, &summary, &sums(names), Duration::ZERO)
                .split(" in ")
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(last(0, &["crc32c", "md5"]), "5 objects match by crc32c and md5");
        assert_eq!(last(2, &["md5"]), "5 objects match (3 by md5, 2 by name and size)");
        assert_eq!(last(5, &[]), "5 objects match by name and size (no checksums were available to compare)");
    }

    #[test]
    fn a_removal_counts_objects_and_no_bytes() {
        let mut summary = summary();
        (summary.files, summary.bytes, summary.requests) = (5000, 0, 5);
        assert_eq!(
            last(&REMOVE, &summary, &sums(&[]), Duration::ZERO),
            "5000 objects removed in 0.45 s, 16 connections, 5 requests, 0 retries"
        );
    }

    #[test]
    fn a_dry_run_says_that_nothing_was_changed() {
        assert_eq!(planned(&COPY, &summary()), "would copy 1000 files, 4.5 MiB; nothing was changed");
    }

    #[test]
    fn a_long_listing_has_the_columns_of_gcloud() {
        let updated = UNIX_EPOCH + Duration::from_millis(1_700_000_000_900);
        assert_eq!(
            object(4700, Some(updated), "gs://b/k", false),
            "      4700  2023-11-14T22:13:20Z  gs://b/k"
        );
        assert_eq!(
            object(4700, Some(updated), "gs://b/k", true),
            "   4.59KiB  2023-11-14T22:13:20Z  gs://b/k"
        );
        assert_eq!(object(1, None, "gs://b/k", false), "         1                        gs://b/k");
        assert_eq!(prefix("gs://b/p/"), "                                  gs://b/p/");
        assert_eq!(total(2, 9400), "TOTAL: 2 objects, 9400 bytes (9.18KiB)");
    }

    #[test]
    fn a_key_cannot_command_the_terminal() {
        assert_eq!(printable("gs://b/a\u{1b}[2J\n"), "gs://b/a\\u{1b}[2J\\n");
        assert_eq!(printable("gs://b/ä b"), "gs://b/ä b");
    }
}
