//! The verbs that act on whole objects without transferring their bytes: metadata, copies, renames, deletes and signed URLs.

use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, stream};
use laneway::Method;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::LibraryCall;
use crate::meta::{described, written};
use crate::store::ObjectStore;
use crate::value::{KeyArgument, KeysArgument};

#[pymethods]
impl ObjectStore {
    /// Returns an object's metadata, by one request that doesn't transfer the object's bytes.
    #[pyo3(signature = (path))]
    fn head(&self, py: Python<'_>, path: KeyArgument) -> PyResult<Py<PyAny>> {
        head(self, &path).wait(py)
    }

    /// The awaitable form of `head`.
    #[pyo3(signature = (path))]
    fn head_async<'py>(&self, py: Python<'py>, path: KeyArgument) -> PyResult<Bound<'py, PyAny>> {
        head(self, &path).awaited(py)
    }
}

fn head(store: &ObjectStore, path: &str) -> LibraryCall {
    let call = store.bucket.head(path).into_future();
    LibraryCall::new(store.bucket.client(), call, |py, meta| Ok(described(py, &meta)?.into_any().unbind()))
}

#[pymethods]
impl ObjectStore {
    /// Copies an object within the store, without its bytes passing through this machine.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn copy(
        &self,
        py: Python<'_>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Py<PyAny>> {
        copy(self, &from_, &to, overwrite).wait(py)
    }

    /// The awaitable form of `copy`.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn copy_async<'py>(
        &self,
        py: Python<'py>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        copy(self, &from_, &to, overwrite).awaited(py)
    }
}

fn copy(store: &ObjectStore, from: &str, to: &str, overwrite: bool) -> LibraryCall {
    let call = store.bucket.copy(from, to);
    let call = if overwrite { call } else { call.if_absent() };
    LibraryCall::new(store.bucket.client(), call.into_future(), |py, done| {
        Ok(written(py, &done)?.into_any().unbind())
    })
}

#[pymethods]
impl ObjectStore {
    /// Renames an object: copies it, and then removes the version of the source that was copied. In between, other
    /// clients can see both objects.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn rename(
        &self,
        py: Python<'_>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Py<PyAny>> {
        rename(self, &from_, &to, overwrite).wait(py)
    }

    /// The awaitable form of `rename`.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn rename_async<'py>(
        &self,
        py: Python<'py>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        rename(self, &from_, &to, overwrite).awaited(py)
    }
}

fn rename(store: &ObjectStore, from: &str, to: &str, overwrite: bool) -> LibraryCall {
    let call = store.bucket.rename(from, to);
    let call = if overwrite { call } else { call.if_absent() };
    LibraryCall::new(store.bucket.client(), call.into_future(), |py, done| {
        Ok(written(py, &done)?.into_any().unbind())
    })
}

#[pymethods]
impl ObjectStore {
    /// Removes an object, or many objects in full batches. If an object doesn't exist, GCS reports an error and S3
    /// reports success. With many objects, all are tried, and then the first failure is raised.
    #[pyo3(signature = (paths))]
    fn delete(&self, py: Python<'_>, paths: KeysArgument) -> PyResult<Py<PyAny>> {
        delete(self, paths).wait(py)
    }

    /// The awaitable form of `delete`.
    #[pyo3(signature = (paths))]
    fn delete_async<'py>(&self, py: Python<'py>, paths: KeysArgument) -> PyResult<Bound<'py, PyAny>> {
        delete(self, paths).awaited(py)
    }
}

fn delete(store: &ObjectStore, paths: KeysArgument) -> LibraryCall {
    let bucket = store.bucket.clone();
    let removed = async move {
        let paths = match paths {
            KeysArgument::One(path) => return bucket.delete(&path).await,
            KeysArgument::Many(paths) => paths,
        };
        let mut outcomes = bucket.delete_many(stream::iter(paths.into_iter().map(String::from)));
        let mut failed = None;
        while let Some((_, outcome)) = outcomes.next().await {
            failed = failed.or(outcome.err());
        }
        failed.map_or(Ok(()), Err)
    };
    LibraryCall::new(store.bucket.client(), removed, |py, ()| Ok(py.None()))
}

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
