//! Compares two folders or prefixes by their listings, and by the bytes of local files.

pub(super) mod finding;
mod report;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, StreamExt as _};

use super::merge::{Turn, turn};
use super::side::{EntryPlace, Side, SideEntry, SideRole};
use crate::event::Verified;
use crate::inventory::InventoryScope;
use crate::job::running::{FILTERED, JobState, ResultObject, TransferOutcome};
use crate::listing::folder_prefix;
use crate::listing::walk::Links;
use crate::{Error, Location, Op, VerifyRequest, Warning};

use finding::{Finding, finding};
use report::Report;

/// The maximum number of names that are compared concurrently. This number is somewhat more than the number
/// of threads that read files.
const COMPARED_AT_ONCE: usize = 64;

/// Carries out a request to compare two folders or prefixes. Returns after the job's last event.
pub(crate) async fn run(job: Arc<JobState>, request: VerifyRequest) {
    let compared = match request.check() {
        Ok(()) => job.unless_cancelled(compare(&job, &request)).await,
        Err(error) => Ok(Err(error)),
    };
    match compared {
        Ok(Ok(())) => job.progress.scanned(),
        Ok(Err(error)) => {
            let (source, destination) = (request.source.to_string(), request.destination.to_string());
            job.fail(Op::Verify, source, Some(destination), error).await;
        }
        // The job was cancelled, so there is nothing to report.
        Err(_) => {}
    }
    job.finish().await;
}

async fn compare(job: &Arc<JobState>, request: &VerifyRequest) -> Result<(), Error> {
    let mut report = match request.report.clone() {
        Some(path) => Some(Report::begin(job, path).await?),
        None => None,
    };
    let compared = merge(job, request, report.as_mut()).await;
    if let Some(report) = report {
        report.end(job, compared.is_ok()).await?;
    }
    compared
}

async fn merge(
    job: &Arc<JobState>,
    request: &VerifyRequest,
    report: Option<&mut Report>,
) -> Result<(), Error> {
    let (source, destination) =
        (side(job, request, SideRole::Source)?, side(job, request, SideRole::Destination)?);
    let mut pairs = Pairs { job, request, source, destination };
    let mut telling = FindingQueue { job, report, under_way: FuturesOrdered::new(), taken: 0 };
    let ended = loop {
        match pairs.next().await {
            Ok(Some(pair)) => {
                let compared = async move { (pair.finding(job).await, pair) };
                telling.under_way.push_back(compared.boxed());
                telling.tell(COMPARED_AT_ONCE).await?;
            }
            ended => break ended,
        }
    };
    telling.tell(0).await?;
    ended?;
    let taken = telling.taken;
    if taken == 0 {
        let message = match pairs.source.is_empty && pairs.destination.is_empty {
            true => "is empty, and so is the other side",
            false => FILTERED,
        };
        job.warn(Warning { target: request.source.to_string(), message: message.to_owned() }).await;
    }
    Ok(())
}

/// Names that are compared in parallel, and reported in order.
struct FindingQueue<'a> {
    job: &'a JobState,
    report: Option<&'a mut Report>,
    under_way: FuturesOrdered<BoxFuture<'a, (PairFinding, Pair<'a>)>>,
    taken: u64,
}

impl FindingQueue<'_> {
    /// Runs all comparisons, and reports finished ones, until at most `left_max` comparisons are left.
    ///
    /// # Errors
    /// If the report can't be written.
    async fn tell(&mut self, left_max: usize) -> Result<(), Error> {
        loop {
            let next = match self.under_way.len() > left_max {
                true => self.under_way.next().await,
                false => self.under_way.next().now_or_never().flatten(),
            };
            let Some(((finding, error), pair)) = next else { return Ok(()) };
            self.taken += 1;
            if let Some(report) = self.report.as_deref_mut() {
                report.add(self.job, pair.row(&finding)).await?;
            }
            pair.tell(self.job, finding, error).await;
        }
    }
}

/// The names of both sides, in order.
struct Pairs<'a> {
    job: &'a JobState,
    request: &'a VerifyRequest,
    source: Side,
    destination: Side,
}

impl<'a> Pairs<'a> {
    /// Returns the next name that must be compared.
    ///
    /// # Errors
    /// The error of a listing or a folder.
    async fn next(&mut self) -> Result<Option<Pair<'a>>, Error> {
        let Self { job, request, source, destination } = self;
        loop {
            let next = source.peek(job).await?.map(|entry| entry.name.as_str());
            let there = destination.peek(job).await?.map(|entry| entry.name.as_str());
            let Some(turn) = turn(next, there) else { return Ok(None) };
            let entry = if turn == Turn::Destination { None } else { source.take() };
            let there = if turn == Turn::Source { None } else { destination.take() };
            let Some(name) = entry.as_ref().or(there.as_ref()).map(|entry| entry.name.clone()) else {
                continue;
            };
            if entry.is_none() && source.leaves_out(&name) {
                continue;
            }
            let pair = Pair { request, name, source: entry, destination: there };
            if pair.is_meant() {
                return Ok(Some(pair));
            }
        }
    }
}

fn side(job: &JobState, request: &VerifyRequest, role: SideRole) -> Result<Side, Error> {
    let at = if role == SideRole::Source { &request.source } else { &request.destination };
    match at {
        Location::Object { provider, bucket, key } => {
            let inventory = match role {
                SideRole::Source => &request.source_inventory,
                SideRole::Destination => &request.destination_inventory,
            };
            if let Some(at) = inventory {
                let place = InventoryScope {
                    provider: *provider,
                    bucket: bucket.clone(),
                    prefix: folder_prefix(key),
                };
                return Side::inventory(job, at, place, role);
            }
            Side::prefix(job.store(*provider)?, bucket, &folder_prefix(key), role)
        }
        Location::Local(root) => {
            Ok(Side::tree(root.clone(), role, Links::ToFiles, &request.filter)?.compared())
        }
        Location::Standard | Location::Version { .. } => Err(Error::usage(at.to_string(), "is not a folder")),
    }
}

/// The result of comparing a pair. If one of its entries can't be read, it includes the error.
type PairFinding = (Finding, Option<Error>);

/// A name, and its entries on both sides.
struct Pair<'a> {
    request: &'a VerifyRequest,
    name: String,
    source: Option<SideEntry>,
    destination: Option<SideEntry>,
}

impl Pair<'_> {
    /// Returns whether the filter includes the name and both sides can have it. A local side can't have an
    /// empty object that stands for a folder.
    fn is_meant(&self) -> bool {
        let is_local = !self.request.source.is_object() || !self.request.destination.is_object();
        let Some(entry) = self.source.as_ref().or(self.destination.as_ref()) else { return false };
        !(is_local && entry.is_folder())
            && self.request.filter.takes(&self.name, entry.facts.size, entry.facts.changed)
    }

    /// Compares both entries by their listings, and by bytes if one is a local file.
    async fn finding(&self, job: &Arc<JobState>) -> PairFinding {
        let finding = finding(self.source.as_ref(), self.destination.as_ref());
        let (Some(source), Some(destination)) = (&self.source, &self.destination) else {
            return (finding, None);
        };
        let is_local =
            matches!(source.at, EntryPlace::File(_)) || matches!(destination.at, EntryPlace::File(_));
        if !self.request.read || !is_local || finding != Finding::Same(Verified::Unverified) {
            return (finding, None);
        }
        match finding::content_finding(
            job,
            (&self.request.source, source),
            (&self.request.destination, destination),
        )
        .await
        {
            Ok(finding) => (finding, None),
            Err(error) => (Finding::Unreadable(error.to_string()), Some(error)),
        }
    }

    fn row(&self, finding: &Finding) -> report::ReportRow {
        let (at, entry) = match (&self.request.source, &self.source) {
            (Location::Object { .. }, Some(entry)) => (&self.request.source, Some(entry)),
            _ if self.request.destination.is_object() => {
                (&self.request.destination, self.destination.as_ref())
            }
            _ => (&self.request.source, self.source.as_ref()),
        };
        report::ReportRow::of(at, &self.name, entry, finding)
    }

    async fn tell(&self, job: &JobState, finding: Finding, error: Option<Error>) {
        let (source, destination) =
            (place(&self.request.source, &self.name), place(&self.request.destination, &self.name));
        let size = self.source.as_ref().or(self.destination.as_ref()).map_or(0, |entry| entry.facts.size);
        job.progress.found(1, 0);
        let target = if matches!(finding, Finding::Extra) { source.clone() } else { destination.clone() };
        let begun = job.begin(Op::Verify, source, Some(destination));
        let result = match finding {
            Finding::Same(verified) => {
                Ok(TransferOutcome { bytes: size, verified, atomic: true, made: ResultObject::default() })
            }
            Finding::Missing | Finding::Extra => Err(Error::not_found(target, finding.message())),
            Finding::Size(..) | Finding::Etag | Finding::Checksum(_) => {
                Err(Error::integrity(target, finding.message()))
            }
            Finding::Unreadable(why) => Err(error.unwrap_or_else(|| Error::source(target, why))),
        };
        job.end(begun, size, result).await;
    }
}

/// Returns the path or URL of a name, for messages.
fn place(at: &Location, name: &str) -> String {
    match at {
        Location::Object { provider, bucket, key } => {
            format!("{}://{bucket}/{}{name}", provider.scheme(), folder_prefix(key))
        }
        Location::Local(root) => root.join(name).display().to_string(),
        Location::Standard | Location::Version { .. } => name.to_owned(),
    }
}
