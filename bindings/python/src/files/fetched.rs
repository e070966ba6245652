//! Ranges of an open file that are on their way while its owner does something else.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use laneway::{Client, Error, Reader, Spawned};
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::bytes::Bytes;
use crate::call::Call;
use crate::error;

/// Ranges that are being read. Dropped, it ends the reading.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct Fetched {
    client: Client,
    coming: Mutex<Option<Coming>>,
}

struct Coming {
    ranges: oneshot::Receiver<Result<Vec<::bytes::Bytes>, Error>>,
    running: Spawned,
}

impl Fetched {
    /// # Errors
    /// Where the engine can't be at work.
    pub(super) fn begin(
        py: Python<'_>,
        client: &Client,
        reader: &Reader,
        ranges: Vec<Range<u64>>,
    ) -> PyResult<Self> {
        let (read, (done, ranges)) = (reader.read_ranges(ranges), oneshot::channel());
        // Who waits may have gone.
        let read = async move { drop(done.send(read.await)) };
        let running = client.spawn(read).map_err(|error| error::raised(py, &error))?;
        Ok(Self { client: client.clone(), coming: Mutex::new(Some(Coming { ranges, running })) })
    }
}

#[pymethods]
impl Fetched {
    /// Waits for the ranges, and hands them over, once. To be asked in the process that began to read them.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let coming = self.coming.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Coming { ranges, running } =
            coming.ok_or_else(|| error::closed("these ranges were handed over"))?;
        let read = async move {
            let read = ranges.await;
            drop(running);
            read.ok().transpose()
        };
        let give = |py: Python<'_>, ranges: Option<Vec<::bytes::Bytes>>| {
            let ranges: Vec<Bytes> = ranges.ok_or_else(error::ended)?.into_iter().map(Bytes).collect();
            Ok(ranges.into_pyobject(py)?.into_any().unbind())
        };
        Call::new(&self.client, read, give).wait(py)
    }
}
