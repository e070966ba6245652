//! Runs a job of the library to its end. Prints the job's events, draws its progress, and handles Ctrl-C. The first
//! Ctrl-C asks for an orderly end, and the second ends the program at once.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use laneway::{Canceller, Client, Event, Item, Job, Op, Outcome, Summary, Verified, Warning};
use laneway_quantity as quantity;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::context::{Context, complain, say};
use crate::exit::Exit;
use crate::output;
use crate::progress::Ticker;
use crate::report::json::{ItemRecord, SummaryRecord, WarningRecord};
use crate::report::line;
use crate::report::line::Wording;

/// Starts a job and runs it to its end. Prints each failure at once, and goes on with the rest of the job.
///
/// # Errors
/// Fails if the job can't begin, or the reader of standard output has gone away.
pub(crate) fn run(
    context: &Context,
    wording: Wording,
    start: impl FnOnce(&Client) -> Job,
) -> anyhow::Result<Exit> {
    let client = context.client()?;
    // Start the job first, so that its requests don't wait for the progress bar and the signal handlers.
    let mut job = start(&client);
    let canceller = job.canceller();
    let alone = context.together.is_none().then(|| SingleJob::begin(context, &client, &job)).transpose()?;
    let _entered = context.together.as_ref().map(|together| together.enter(canceller));

    let mut seen = JobRemarks::default();
    let mut unread = None;
    let mut summary = None;
    while let Some(event) = job.next_blocking() {
        let printed = match event {
            Event::Item(item) => {
                seen.note(&item);
                print_item(context, &item)
            }
            Event::Warning(warning) => print_warning(context, &warning),
            Event::Done(done) => {
                summary = Some(done);
                break;
            }
            _ => continue,
        };
        if let Err(error) = printed
            && unread.is_none()
        {
            job.canceller().cancel();
            unread = Some(error);
        }
    }
    let throttled = alone.map_or(Duration::ZERO, |alone| alone.ticker.end());

    if let Some(error) = unread {
        if !output::is_closed(&error) {
            return Err(error.into());
        }
        // If the reader closes the output pipe, most programs end without a message, and with a status other than 0. Do the same.
        return Ok(Exit::Failed);
    }
    if seen.reader_left {
        return Ok(Exit::Done);
    }
    let summary = summary.unwrap_or_default();
    match print_end(context, &wording, &client, &summary, &seen, throttled) {
        // The work is done, so a reader that has closed standard output doesn't change the result.
        Err(error) if output::is_closed(&error) => {}
        printed => printed?,
    }
    if summary.interrupted {
        return Ok(Exit::Interrupted);
    }
    Ok(match seen.usage && summary.files == 0 {
        true => Exit::Usage,
        false if summary.failed > 0 => Exit::Failed,
        false => Exit::Done,
    })
}

/// The parts that a job needs if it doesn't run inside `laneway run`.
struct SingleJob {
    ticker: Ticker,
    _interrupt: Interrupt,
}

impl SingleJob {
    /// Draws the job's progress, and handles Ctrl-C.
    fn begin(context: &Context, client: &Client, job: &Job) -> std::io::Result<Self> {
        let options = &context.options;
        let ticker = Ticker::start(
            Arc::clone(job.progress()),
            context.shows_progress(),
            options.json.then(|| Arc::clone(&context.output)),
            (!options.quiet).then(|| client.clone()),
            options.bandwidth_limit,
        );
        Ok(Self { ticker, _interrupt: Interrupt::cancelling(job.canceller())? })
    }
}

/// Facts for the final line that aren't in the summary.
#[derive(Default, Debug)]
struct JobRemarks {
    /// Names of the checksums that were compared.
    checksums: BTreeSet<String>,
    /// True in a dry run.
    planned: bool,
    /// True if the request as a whole was invalid.
    usage: bool,
    /// True if the reader of standard output closed it, because it had read enough of the object.
    reader_left: bool,
}

impl JobRemarks {
    fn note(&mut self, item: &Item) {
        match &item.outcome {
            Outcome::Done { verified: Verified::Unverified } => {}
            Outcome::Done { verified } => self.checksums.extend(line::shown(*verified)),
            Outcome::Planned => self.planned = true,
            Outcome::Failed(error) => {
                self.usage |= error.is_usage();
                self.reader_left |= has_enough(item, error);
            }
            _ => {}
        }
    }
}

/// Returns whether a copy ended early because the reader of standard output closed it, as in `cp gs://b/k - | head`. For `cp` this isn't a
/// failure. For `mv` it is, because the source wasn't removed.
fn has_enough(item: &Item, error: &laneway::Error) -> bool {
    error.is_broken_pipe() && item.op != Op::Move && item.destination.as_deref() == Some("-")
}

fn print_warning(context: &Context, warning: &Warning) -> std::io::Result<()> {
    context.complain(&format!("warning: {warning}"));
    if context.options.json { context.output.json(&WarningRecord::new(warning)) } else { Ok(()) }
}

fn print_item(context: &Context, item: &Item) -> std::io::Result<()> {
    let options = &context.options;
    // Ctrl-C prints a single message. The items that it cancels print none.
    if let Outcome::Failed(error) = &item.outcome
        && !error.is_cancelled()
        && !has_enough(item, error)
    {
        context.complain(&error.to_string());
    }
    if options.json {
        return context.output.json(&ItemRecord::new(item));
    }
    let planned = matches!(item.outcome, Outcome::Planned);
    if !planned && (options.quiet || options.verbose == 0) {
        return Ok(());
    }
    match line::item(item) {
        // The findings of a dry run are its result, so they go to standard output. The lines that `-v` adds
        // go to stderr.
        Some(line) if planned => context.output.line(&line),
        Some(line) => {
            say(&line);
            Ok(())
        }
        None => Ok(()),
    }
}

fn print_end(
    context: &Context,
    wording: &Wording,
    client: &Client,
    summary: &Summary,
    seen: &JobRemarks,
    throttled: Duration,
) -> std::io::Result<()> {
    if context.together.is_some() {
        return Ok(());
    }
    let options = &context.options;
    let stats = context.stats(client, Some(summary));
    if options.json {
        context.output.json(&SummaryRecord::new(summary, stats.as_ref()))?;
    } else if !options.quiet && !seen.usage {
        context.output.flush()?;
        let last = match seen.planned {
            true => line::planned(wording, summary),
            false => line::last(wording, summary, &seen.checksums, throttled),
        };
        say(&last);
    }
    if let Some(stats) = stats.filter(|_| !options.json) {
        context.output.flush()?;
        say(&stats.table());
    }
    if summary.interrupted {
        let whole = if wording.moves_bytes { "Every file at its final name is complete. " } else { "" };
        let kept = match summary.kept_bytes {
            0 => String::new(),
            bytes => format!("; {} of partial transfers will be reused", quantity::size(bytes)),
        };
        complain(&format!("interrupted. {whole}{}{kept}.", wording.resume));
    } else if summary.stopped && summary.kept_bytes > 0 {
        let kept = quantity::size(summary.kept_bytes);
        say(&format!("{kept} of partial transfers are kept; run the same command to continue"));
    }
    context.output.flush()
}

/// A second signal within this time is ignored: `timeout` sends one signal twice, to the program and then to its process group.
const SAME_PRESS: Duration = Duration::from_millis(300);

/// Listens for signals until it is dropped.
#[derive(Debug)]
pub(crate) struct Interrupt(Handle);

impl Interrupt {
    /// Cancels a job or a call at the first signal, and ends the program at the second.
    ///
    /// # Errors
    /// Fails in the same cases as [`listen`](Self::listen).
    pub(crate) fn cancelling(canceller: Canceller) -> io::Result<Self> {
        Self::listen(move || {
            canceller.cancel();
            complain("stopping; press Ctrl-C again to stop at once");
        })
    }

    /// Calls `first` on a thread of its own at the first SIGINT or SIGTERM, and ends the program at the second. SIGHUP keeps its usual
    /// effect, so `nohup` works.
    ///
    /// # Errors
    /// Fails if the signal handler can't be installed, or the thread can't be started.
    pub(crate) fn listen(first: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let handle = signals.handle();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let mut first = Some(first);
            let mut asked = Instant::now();
            for _ in signals.forever() {
                match first.take() {
                    Some(first) => {
                        asked = Instant::now();
                        first();
                    }
                    None if asked.elapsed() < SAME_PRESS => {}
                    // Exit at once, without destructors and exit handlers. A user who presses Ctrl-C twice wants the prompt back.
                    None => signal_hook::low_level::exit(Exit::Interrupted.status().into()),
                }
            }
        })?;
        Ok(Self(handle))
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The state that parallel commands of `laneway run` share: one engine, and the jobs that Ctrl-C ends.
#[derive(Debug)]
pub(crate) struct SharedEngine {
    pub(crate) client: Client,
    jobs: Mutex<RunningJobs>,
}

#[derive(Default, Debug)]
struct RunningJobs {
    under_way: HashMap<u64, Canceller>,
    begun: u64,
    is_stopped: bool,
}

impl SharedEngine {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, jobs: Mutex::default() }
    }

    /// Registers a job for as long as the returned value lives. If the commands were stopped, the job is
    /// cancelled.
    pub(crate) fn enter(&self, job: Canceller) -> JobRegistration<'_> {
        let mut jobs = self.lock();
        if jobs.is_stopped {
            job.cancel();
        }
        jobs.begun += 1;
        let number = jobs.begun;
        jobs.under_way.insert(number, job);
        JobRegistration { together: self, number }
    }

    /// Cancels running jobs, and those that begin from now on.
    pub(crate) fn stop(&self) {
        let mut jobs = self.lock();
        jobs.is_stopped = true;
        jobs.under_way.values().for_each(Canceller::cancel);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Locks the jobs. No code panics while it holds the lock, so a poisoned lock needs no handling.
    fn lock(&self) -> std::sync::MutexGuard<'_, RunningJobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of a running job. Dropping it removes the job from the engine.
#[derive(Debug)]
pub(crate) struct JobRegistration<'a> {
    together: &'a SharedEngine,
    number: u64,
}

impl Drop for JobRegistration<'_> {
    fn drop(&mut self) {
        self.together.lock().under_way.remove(&self.number);
    }
}
