//! Converts an object's metadata to Python dictionaries.

use laneway::{ObjectMeta, Version, Written};
use laneway_bindings_core::attributes::ATTRIBUTES;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
