//! One run of one method, executed in this process or in a separate one.
//!
//! In a separate process, the measured processor time and memory don't include those of the embedded store. Each run
//! also starts without warm connections or caches there, as a user's program does. The process reads an [`Order`] from
//! its standard input and writes a [`Reply`] to its standard output, both as JSON.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;

use crate::place::Remote;
use crate::site::Site;
use crate::usage::Meter;
use crate::{Error, Failure, Usage, clean, commit, ladder, list, mixed, ranges, slices};

/// The process in which runs are executed: this one, or a new one for each run.
#[derive(Clone, Debug, Default)]
pub enum Workers {
    /// In this process. A run's resource usage can't be separated from that of the rest of the process.
    #[default]
    ThisProcess,
    /// In a new process for each run. The process executes the program at this path, with these arguments. The arguments must make the
    /// program call [`carry_out`].
    Program(PathBuf, Vec<String>),
}

/// The input of one run of one method, and the code that executes it.
pub(crate) trait Errand: Serialize + DeserializeOwned + Send + 'static {
    /// The experiment's name in an [`Order`].
    const NAME: &'static str;
    /// The result.
    type Found: Serialize + DeserializeOwned + Send;

    /// Executes the run.
    fn run(self, site: Arc<Site>) -> impl Future<Output = Result<Self::Found, Failure>> + Send;
}

/// The result of a run, and its process's resource usage if it had its own process.
#[derive(Debug)]
pub(crate) struct Measured<T> {
    pub(crate) found: T,
    pub(crate) usage: Option<Usage>,
}

/// The data from which another process can build the same [`Site`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) remote: Remote,
    pub(crate) bucket: String,
    /// A prefix that only this experiment uses.
    pub(crate) unique: String,
}

#[derive(Serialize, Deserialize)]
struct Order {
    errand: String,
    at: Address,
    with: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reply<T> {
    Found(T, Usage),
    Absent(String),
    Failed(String),
}

impl Workers {
    /// Executes an errand. If the future is dropped, the errand ends.
    ///
    /// # Errors
    /// Returns the errand's own error.
    pub(crate) async fn carry<E: Errand>(
        &self,
        errand: E,
        site: &Arc<Site>,
        at: &Address,
    ) -> Result<Measured<E::Found>, Failure> {
        let (program, arguments) = match self {
            Self::ThisProcess => {
                return Ok(Measured { found: errand.run(Arc::clone(site)).await?, usage: None });
            }
            Self::Program(program, arguments) => (program, arguments),
        };
        let failed =
            |what: &str, why: String| Failure::Process(format!("{what} {} failed: {why}", program.display()));
        let with = serde_json::to_value(errand).map_err(|e| failed("describing a run to", e.to_string()))?;
        let order = Order { errand: E::NAME.to_owned(), at: at.clone(), with };
        let order = serde_json::to_vec(&order).map_err(|e| failed("describing a run to", e.to_string()))?;
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failed("starting", e.to_string()))?;
        if let Some(mut input) = child.stdin.take() {
            // If the process has already ended, this write fails, and the code below finds the reason.
            let _ = input.write_all(&order).await;
        }
        let output = child.wait_with_output().await.map_err(|e| failed("waiting for", e.to_string()))?;
        match serde_json::from_slice(&output.stdout) {
            Ok(Reply::Found(found, usage)) => Ok(Measured { found, usage: Some(usage) }),
            Ok(Reply::Absent(what)) => Err(Failure::Absent(what)),
            Ok(Reply::Failed(why)) => Err(Failure::Process(why)),
            Err(_) => {
                Err(failed("running", format!("the process ended without an answer ({})", output.status)))
            }
        }
    }
}

/// Executes one run: it reads the order from `input` and writes the result to `output`. Blocks the thread, so don't call this on a thread
/// that runs async tasks.
///
/// # Errors
/// Fails if the order can't be read or the answer can't be written.
pub fn carry_out(input: impl Read, mut output: impl Write) -> Result<(), Error> {
    let order: Order = serde_json::from_reader(input)
        .map_err(|e| Error::Plan(format!("standard input doesn't describe a run of a benchmark: {e}")))?;
    let Order { errand, at, with } = order;
    let reply = match errand.as_str() {
        ladder::Errand::NAME => reply::<ladder::Errand>(&at, with),
        slices::Errand::NAME => reply::<slices::Errand>(&at, with),
        mixed::Errand::NAME => reply::<mixed::Errand>(&at, with),
        commit::Errand::NAME => reply::<commit::Errand>(&at, with),
        clean::Errand::NAME => reply::<clean::Errand>(&at, with),
        list::Errand::NAME => reply::<list::Errand>(&at, with),
        ranges::Errand::NAME => reply::<ranges::Errand>(&at, with),
        other => Err(Error::Plan(format!("{other:?} isn't a benchmark"))),
    }?;
    let failed = |source| Error::Local { what: "writing the result", source };
    output.write_all(&reply).map_err(failed)?;
    output.flush().map_err(failed)
}

fn reply<E: Errand>(at: &Address, with: serde_json::Value) -> Result<Vec<u8>, Error> {
    let unreadable =
        |e: serde_json::Error| Error::Plan(format!("the description of the run can't be read: {e}"));
    let errand: E = serde_json::from_value(with).map_err(unreadable)?;
    let runtime = crate::stage::runtime()?;
    let reply = runtime.block_on(async {
        let site = Arc::new(Site::prepare(&at.remote, &at.bucket, &at.unique).await?);
        let meter = Meter::start();
        Ok::<_, Error>(match errand.run(site).await {
            Ok(found) => Reply::Found(found, meter.stop()),
            Err(failure) if failure.is_absence() => Reply::Absent(failure.reason()),
            Err(failure) => Reply::Failed(failure.reason()),
        })
    })?;
    serde_json::to_vec(&reply).map_err(unreadable)
}

/// Ends an experiment from any thread. The experiment removes its objects, and its `run` returns.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Requests the end of the experiment. Returns without waiting for it.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether the end was requested.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Executes a future, but drops it if the end was requested before or is requested meanwhile.
    ///
    /// # Errors
    /// Returns [`Error::Stopped`] if the future was dropped.
    pub(crate) async fn unless<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut stopped = self.0.subscribe();
        tokio::select! {
            done = work => Ok(done),
            // `self` holds the sender, so the channel isn't closed while this waits.
            _ = stopped.wait_for(|stopped| *stopped) => Err(Error::Stopped),
        }
    }
}
