//! Values of options and settings, by the tables of the bindings' core.

use std::time::Duration;

use laneway_bindings_core::failure::Failure;
use laneway_bindings_core::value::{Kind, Named, Value};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// Reads the values of a dictionary. `kind` returns their kinds by name.
///
/// # Errors
/// If a name is unknown, or a value has another type.
pub(crate) fn named(
    values: &Bound<'_, PyDict>,
    kind: impl Fn(&str) -> Result<Kind, Failure>,
) -> PyResult<Named> {
    let read = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let kind = kind(&name).map_err(|failure| error::failed(values.py(), &failure))?;
        Ok((name, of_kind(kind, &value)?))
    };
    values.iter().map(read).collect()
}

fn of_kind(kind: Kind, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(match kind {
        Kind::Flag => Value::Flag(value.extract()?),
        Kind::Number => Value::Number(value.extract()?),
        Kind::Text => Value::Text(value.extract()?),
        Kind::Texts => Value::Texts(value.extract()?),
        Kind::Pairs => Value::Pairs(value.extract()?),
        Kind::Time => Value::Time(value.extract()?),
        // In seconds.
        Kind::Duration => {
            Value::Duration(Duration::try_from_secs_f64(value.extract()?).unwrap_or(Duration::MAX))
        }
        Kind::Place => Value::Place(value.extract()?),
    })
}
