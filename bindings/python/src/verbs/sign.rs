//! Signs URLs for users without credentials.

use std::time::Duration;

use futures_util::future::try_join_all;
use laneway::Method;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::LibraryCall;
use crate::store::ObjectStore;
use crate::value::KeysArgument;

#[pymethods]
impl ObjectStore {
    /// Returns signed URLs. Anyone who has such a URL can send requests of one method for its object, without
    /// credentials. The URLs expire after `expires_in`, which is at most 7 days.
    #[pyo3(signature = (method, paths, expires_in))]
    fn sign(
        &self,
        py: Python<'_>,
        method: &str,
        paths: KeysArgument,
        expires_in: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        sign(self, method, paths, expires_in)?.wait(py)
    }

    /// The awaitable form of `sign`.
    #[pyo3(signature = (method, paths, expires_in))]
    fn sign_async<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        paths: KeysArgument,
        expires_in: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        sign(self, method, paths, expires_in)?.awaited(py)
    }
}

fn sign(
    store: &ObjectStore,
    method: &str,
    paths: KeysArgument,
    expires_in: &Bound<'_, PyAny>,
) -> PyResult<LibraryCall> {
    let expires_in = expires_in.extract::<Duration>().map_err(|error| {
        match error.is_instance_of::<PyValueError>(expires_in.py()) {
            true => PyValueError::new_err("expires_in must not be negative"),
            false => error,
        }
    })?;
    let method: Method = method.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    let (paths, is_one) = match paths {
        KeysArgument::One(path) => (vec![path], true),
        KeysArgument::Many(paths) => (paths, false),
    };
    let calls: Vec<_> = paths
        .iter()
        .map(|path| store.bucket.sign(path).method(method).expires(expires_in).into_future())
        .collect();
    Ok(LibraryCall::new(store.bucket.client(), try_join_all(calls), move |py, signed| {
        let mut urls: Vec<String> = signed.into_iter().map(|signed| signed.url).collect();
        match is_one {
            true => Ok(urls.pop().into_pyobject(py)?.into_any().unbind()),
            false => Ok(urls.into_pyobject(py)?.into_any().unbind()),
        }
    }))
}
