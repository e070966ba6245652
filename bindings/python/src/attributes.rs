//! The properties of a new object: attributes, tags, and the mode of the write.

use std::collections::BTreeMap;

use laneway::dialect::VersionNames;
use laneway::{Condition, PutOptions, Version};
use laneway_bindings_core::attributes::with_attributes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// Returns the options of a write. Attributes whose names are known headers become these headers, and other attributes
/// become user metadata.
///
/// # Errors
/// Fails if the mode doesn't exist, or the store can't compare the version.
pub(crate) fn options(
    names: VersionNames,
    attributes: Option<&Bound<'_, PyDict>>,
    tags: Option<&Bound<'_, PyDict>>,
    mode: Option<&Bound<'_, PyAny>>,
) -> PyResult<PutOptions> {
    let pairs = |dict: Option<&Bound<'_, PyDict>>| -> PyResult<BTreeMap<String, String>> {
        dict.map(|dict| dict.extract()).transpose().map(Option::unwrap_or_default)
    };
    let options = with_attributes(PutOptions::default(), pairs(attributes)?);
    let options = pairs(tags)?.into_iter().fold(options, |options, (name, value)| options.tag(name, value));
    match mode {
        Some(mode) => Ok(options.condition(condition(names, mode)?)),
        None => Ok(options),
    }
}

fn condition(names: VersionNames, mode: &Bound<'_, PyAny>) -> PyResult<Condition> {
    if let Ok(name) = mode.extract::<String>() {
        return match name.as_str() {
            "overwrite" => Ok(Condition::None),
            "create" => Ok(Condition::Absent),
            _ => Err(PyValueError::new_err(format!(
                "there is no mode {name:?}: use 'create', 'overwrite', or a dict with 'e_tag' and 'version'"
            ))),
        };
    }
    let Ok(state) = mode.cast::<PyDict>() else {
        return Err(PyTypeError::new_err(
            "a mode must be 'create', 'overwrite', or a dict with 'e_tag' and 'version'",
        ));
    };
    let text = |name| {
        state.get_item(name)?.map(|text| text.extract::<Option<String>>()).transpose().map(Option::flatten)
    };
    let (e_tag, version): (Option<String>, Option<String>) = (text("e_tag")?, text("version")?);
    let state = if names == VersionNames::Generation { version } else { e_tag };
    let state = state.map(|text| self::version(mode.py(), names, &text)).transpose()?;
    state.map(Condition::Matches).ok_or_else(|| {
        let wanted = if names == VersionNames::Generation { "'version', a generation" } else { "'e_tag'" };
        PyValueError::new_err(format!(
            "the mode doesn't name the version to replace: on this store, give {wanted}"
        ))
    })
}

/// Parses the version of an object: a generation on GCS, and an ETag on S3.
///
/// # Errors
/// Fails if the text isn't a generation, on GCS.
pub(crate) fn version(py: Python<'_>, names: VersionNames, text: &str) -> PyResult<Version> {
    laneway_bindings_core::attributes::version(names, text).map_err(|failure| error::failed(py, &failure))
}
