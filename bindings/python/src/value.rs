//! Converts values from Python: keys, numbers, and the values of options and settings, whose types are in tables of
//! `laneway-bindings-core`.

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use laneway_bindings_core::failure::Failure;
use laneway_bindings_core::value::{NamedValues, Value, ValueKind};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error;

/// The key of an object, which Python passes as `str` or as a path of `pathlib`.
#[derive(Debug)]
pub(crate) struct KeyArgument(String);

impl Deref for KeyArgument {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<KeyArgument> for String {
    fn from(key: KeyArgument) -> Self {
        key.0
    }
}

impl FromPyObject<'_, '_> for KeyArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self(text.to_cow()?.into_owned()));
        }
        let path = object.extract::<PathBuf>().ok().and_then(|path| path.to_str().map(str::to_owned));
        let refused = || {
            let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("a key is text or a path, not {kind}"))
        };
        path.map(Self).ok_or_else(refused)
    }
}

/// The keys of one object or of many.
#[derive(FromPyObject)]
pub(crate) enum KeysArgument {
    One(KeyArgument),
    Many(Vec<KeyArgument>),
}

/// A prefix of keys. A path of `pathlib` stands for a folder, so a slash is added to it.
#[derive(Default, Debug)]
pub(crate) struct PrefixArgument(String);

impl Deref for PrefixArgument {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromPyObject<'_, '_> for PrefixArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let KeyArgument(text) = object.extract()?;
        Ok(Self(match object.hasattr(intern!(object.py(), "__fspath__"))? {
            true if text == "." => String::new(),
            true => text + "/",
            false => text,
        }))
    }
}

/// A number of bytes or objects, or an offset. A negative number raises `ValueError` here. With a plain `u64`, it would
/// raise `OverflowError`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NumberArgument(pub(crate) u64);

impl FromPyObject<'_, '_> for NumberArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        object.extract::<u64>().map(Self).map_err(|error| {
            match error.is_instance_of::<PyOverflowError>(object.py()) {
                true => PyValueError::new_err(format!("{} is negative, or too large", &*object)),
                false => error,
            }
        })
    }
}

/// Converts the values of a dictionary. `kind` returns the type of a value by its name.
///
/// # Errors
/// Fails if a name is unknown, or a value has another type.
pub(crate) fn named(
    values: &Bound<'_, PyDict>,
    kind: impl Fn(&str) -> Result<ValueKind, Failure>,
) -> PyResult<NamedValues> {
    let read = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let kind = kind(&name).map_err(|failure| error::failed(values.py(), &failure))?;
        Ok((name, of_kind(kind, &value)?))
    };
    values.iter().map(read).collect()
}

fn of_kind(kind: ValueKind, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(match kind {
        ValueKind::Flag => Value::Flag(value.extract()?),
        ValueKind::Number => Value::Number(value.extract()?),
        ValueKind::Text => Value::Text(value.extract()?),
        ValueKind::Texts => Value::Texts(value.extract()?),
        ValueKind::Pairs => Value::Pairs(value.extract()?),
        ValueKind::Time => Value::Time(value.extract()?),
        // The value is a number of seconds.
        ValueKind::Duration => {
            Value::Duration(Duration::try_from_secs_f64(value.extract()?).unwrap_or(Duration::MAX))
        }
        ValueKind::Place => Value::Place(value.extract()?),
    })
}
