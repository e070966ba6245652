//! Converts an object's metadata to Python dictionaries, and Python's attributes, tags and mode to the options of a
//! write.

use std::collections::BTreeMap;

use laneway::dialect::VersionNames;
use laneway::{Condition, ObjectMeta, PutOptions, Version, Written};
use laneway_bindings_core::described::{ATTRIBUTES, with_attributes};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// Returns an object's metadata: `path`, `last_modified`, `size`, `e_tag`, `version`, and everything else
/// that the store reported.
pub(crate) fn described<'py>(py: Python<'py>, meta: &ObjectMeta) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "path"), &meta.id.key)?;
    dict.set_item(intern!(py, "last_modified"), meta.updated)?;
    dict.set_item(intern!(py, "size"), meta.size)?;
    let (e_tag, version) = state(meta.version.as_ref());
    dict.set_item(intern!(py, "e_tag"), e_tag.or(meta.etag.as_deref()))?;
    dict.set_item(intern!(py, "version"), version)?;
    if let Some(created) = meta.created {
        dict.set_item(intern!(py, "created"), created)?;
    }
    let texts = [
        (intern!(py, "content_type"), &meta.content_type),
        (intern!(py, "content_encoding"), &meta.content_encoding),
        (intern!(py, "storage_class"), &meta.storage_class),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            dict.set_item(name, text)?;
        }
    }
    if !meta.checksums.is_empty() {
        dict.set_item(intern!(py, "checksums"), checksums(py, &meta.checksums)?)?;
    }
    if let Some(metadata) = &meta.metadata {
        dict.set_item(intern!(py, "metadata"), metadata)?;
    }
    Ok(dict)
}

/// Returns the attributes that came with an object, by their header names, including user metadata.
pub(crate) fn attributes<'py>(py: Python<'py>, meta: &ObjectMeta) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for attribute in ATTRIBUTES {
        if let Some(text) = attribute.of(meta) {
            dict.set_item(attribute.header, text)?;
        }
    }
    for (name, value) in meta.metadata.iter().flatten() {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// Returns the result of a write as a dictionary.
pub(crate) fn written<'py>(py: Python<'py>, written: &Written) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (e_tag, version) = state(written.version.as_ref());
    dict.set_item(intern!(py, "e_tag"), e_tag)?;
    dict.set_item(intern!(py, "version"), version)?;
    dict.set_item(intern!(py, "size"), written.size)?;
    dict.set_item(intern!(py, "checksums"), checksums(py, &written.checksums)?)?;
    dict.set_item(intern!(py, "verified"), written.verified.to_string())?;
    Ok(dict)
}

fn state(version: Option<&Version>) -> (Option<&str>, Option<String>) {
    match version {
        Some(Version::ETag(etag)) => (Some(etag), None),
        Some(Version::Generation(generation)) => (None, Some(generation.to_string())),
        _ => (None, None),
    }
}

/// Returns checksums as integers by name, and an MD5 as bytes.
fn checksums<'py>(py: Python<'py>, sums: &laneway::Checksums) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    if let Some(crc32c) = sums.crc32c {
        dict.set_item("crc32c", crc32c)?;
    }
    if let Some(crc32) = sums.crc32 {
        dict.set_item("crc32", crc32)?;
    }
    if let Some(crc64nvme) = sums.crc64nvme {
        dict.set_item("crc64nvme", crc64nvme)?;
    }
    if let Some(md5) = sums.md5 {
        dict.set_item("md5", md5.as_slice())?;
    }
    Ok(dict)
}

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
    laneway_bindings_core::described::version(names, text).map_err(|failure| error::failed(py, &failure))
}
