//! What a new object is to be besides its bytes.

use laneway::dialect::VersionNames;
use laneway::{Condition, ErrorKind, PutOptions, Version};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// The options of a write: attributes by the names of their headers (others are the user's own metadata), tags, and the mode.
///
/// # Errors
/// For a mode that there isn't, and for a state that the store doesn't compare.
pub(crate) fn options(
    names: VersionNames,
    attributes: Option<&Bound<'_, PyDict>>,
    tags: Option<&Bound<'_, PyDict>>,
    mode: Option<&Bound<'_, PyAny>>,
) -> PyResult<PutOptions> {
    let mut options = PutOptions::default();
    for (name, value) in attributes.into_iter().flatten() {
        let (name, value): (String, String) = (name.extract()?, value.extract()?);
        options = match name.to_ascii_lowercase().as_str() {
            "content-type" => options.content_type(value),
            "content-encoding" => options.content_encoding(value),
            "content-disposition" => options.content_disposition(value),
            "content-language" => options.content_language(value),
            "cache-control" => options.cache_control(value),
            "storage-class" => options.storage_class(value),
            _ => options.metadata(name, value),
        };
    }
    for (name, value) in tags.into_iter().flatten() {
        options = options.tag(name.extract::<String>()?, value.extract::<String>()?);
    }
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
                "there is no mode {name:?}: 'create', 'overwrite', or a dict with 'e_tag' and 'version'"
            ))),
        };
    }
    let Ok(state) = mode.cast::<PyDict>() else {
        return Err(PyTypeError::new_err(
            "a mode is 'create', 'overwrite', or a dict with 'e_tag' and 'version'",
        ));
    };
    let text = |name| {
        state.get_item(name)?.map(|text| text.extract::<Option<String>>()).transpose().map(Option::flatten)
    };
    let (e_tag, version): (Option<String>, Option<String>) = (text("e_tag")?, text("version")?);
    let state = match names {
        VersionNames::Generation => version.map(|version| generation(mode.py(), &version)).transpose()?,
        _ => e_tag.map(|e_tag| etag(&e_tag)),
    };
    state.map(Condition::Matches).ok_or_else(|| {
        let wanted = if names == VersionNames::Generation { "'version', a generation" } else { "'e_tag'" };
        PyValueError::new_err(format!("what is to be replaced is named by {wanted}"))
    })
}

/// A state of an object of GCS.
///
/// # Errors
/// For what is no generation.
pub(crate) fn generation(py: Python<'_>, version: &str) -> PyResult<Version> {
    let no_number = |_| error::own(py, ErrorKind::Usage, &format!("{version:?} is no generation of GCS's"));
    version.parse().map(Version::Generation).map_err(no_number)
}

/// A state of an object of S3, with quotes or without.
pub(crate) fn etag(text: &str) -> Version {
    let (weak, quoted) = text.strip_prefix("W/").map_or(("", text), |rest| ("W/", rest));
    Version::ETag(format!("{weak}{}", quoted.trim_matches('"')))
}
