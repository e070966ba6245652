//! Jobs over many objects that remove or compare. A fault must not lead to a wrong removal or a wrong report.

use laneway::{Client, Event, Outcome, RemoveRequest, SyncRequest, VerifyRequest};
use laneway_testkit::inverted;

use super::{Ended, demand, one};
use crate::rig::{Rig, SMALL_BYTES};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tree {
    /// Removes a prefix.
    Remove,
    /// Compares two prefixes that differ.
    Verify,
    /// Synchronises a prefix with one in another dialect, and removes objects there.
    SyncAcross,
}

use Tree::*;

const SAID: &str = "report";
const SAID_UNTIL_ALL_IS: &str = "report.unfinished";

impl Tree {
    pub(super) fn name(self) -> &'static str {
        match self {
            Remove => "remove-tree",
            Verify => "verify",
            SyncAcross => "sync-across",
        }
    }

    pub(super) fn requests_max(self) -> u64 {
        match self {
            Remove | Verify => 2,
            SyncAcross => 9,
        }
    }

    pub(super) fn prepare(self, rig: &Rig) {
        let put = |keys: &[&str]| keys.iter().for_each(|key| rig.endpoint.put(key, &SMALL_BYTES));
        match self {
            Remove => put(&["t", "t/0", "t/1", "t/2", "t0"]),
            Verify => {
                put(&["p/missing", "p/same", "p/size", "q/extra", "q/same"]);
                rig.endpoint.put("q/size", b"x");
            }
            SyncAcross => put(&["from/a", "from/b", "to/c", "to/d"]),
        }
    }

    pub(super) fn carry_out(self, rig: &Rig, client: &Client) -> Result<(), Ended> {
        match self {
            Remove => one(client.remove(RemoveRequest::new(vec![rig.url("t/")]).recursive(true))),
            Verify => compared(rig, client),
            SyncAcross => {
                one(client.sync(SyncRequest::new(rig.url("from"), rig.url_across("to")).delete(true)))
            }
        }
    }

    pub(super) fn leftover(self, rig: &Rig, succeeded: bool) -> Result<(), String> {
        let keys = rig.endpoint.keys();
        let has = |key: &str| keys.iter().any(|there| there == key);
        match self {
            Remove => {
                demand(has("t") && has("t0"), "an object that was not named is gone")?;
                demand(!succeeded || keys.len() == 2, "objects are still there")
            }
            Verify => {
                demand(keys.len() == 6, "objects are gone")?;
                let rows = std::fs::read_to_string(rig.work().join(SAID)).ok();
                demand(rows.is_some() == succeeded, "the report has the wrong name")?;
                demand(
                    rows.is_none_or(|rows| rows.lines().count() == 4),
                    "the report has a wrong number of rows",
                )
            }
            SyncAcross => {
                let is_whole = |bytes: &Vec<u8>| **bytes == *SMALL_BYTES || *bytes == inverted(&SMALL_BYTES);
                let copied =
                    ["to/a", "to/b"].map(|key| rig.endpoint.stored(key).map(|bytes| is_whole(&bytes)));
                demand(has("from/a") && has("from/b"), "a source is gone")?;
                demand(!copied.contains(&Some(false)), "a copy is not its source")?;
                let all_are_copied = copied == [Some(true); 2];
                demand(
                    all_are_copied || has("to/c") && has("to/d"),
                    "an object was removed before all copies were done",
                )?;
                demand(!succeeded || all_are_copied && keys.len() == 4, "the trees differ")
            }
        }
    }

    pub(super) fn files(self) -> &'static [&'static str] {
        if self == Verify { &[SAID, SAID_UNTIL_ALL_IS] } else { &[] }
    }
}

/// The phrases with which `verify` reports differences.
const FINDINGS: [&str; 3] = ["the source has it", "the destination has it", "at the source"];

/// The differences that `verify` has to find.
const THERE: [&str; 3] =
    ["q/missing: the source has it", "q/size: it has 1 bytes", "p/extra: the destination has it"];

/// Compares two prefixes. Laneway must report exactly the differences, or some of them if a listing fails.
fn compared(rig: &Rig, client: &Client) -> Result<(), Ended> {
    let request = VerifyRequest::new(rig.url("p"), rig.url("q")).report(rig.work().join(SAID));
    let mut job = client.verify(request);
    let (mut found, mut same, mut failed) = (Vec::new(), 0, None);
    while let Some(event) = job.next_blocking() {
        let Event::Item(item) = event else { continue };
        match item.outcome {
            Outcome::Failed(error) => {
                let text = error.to_string();
                if FINDINGS.iter().any(|finding| text.contains(finding)) {
                    found.push(text);
                } else {
                    failed = failed.or(Some(error));
                }
            }
            _ => same += 1,
        }
    }
    let is_there = |text: &String| THERE.iter().any(|part| text.contains(part));
    if !found.iter().all(is_there) || same > 1 {
        return Err(Ended::Wrong(format!("{found:?} were found, and {same} the same")));
    }
    match failed {
        Some(error) => Err(error.into()),
        None if found.len() == THERE.len() && same == 1 => Ok(()),
        None => Err(Ended::Wrong(format!("{found:?} alone were found, and {same} the same"))),
    }
}
