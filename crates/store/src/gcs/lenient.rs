//! Text where a server may have written something else: a number, nothing at all, a structure.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A value as text: what is no string stands for its JSON, and `null` for nothing.
pub(super) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A field that is text.
pub(super) fn text<'de, D: Deserializer<'de>>(field: D) -> Result<String, D::Error> {
    Value::deserialize(field).map(text_of)
}

/// A field whose own fields are text.
pub(super) fn texts<'de, D: Deserializer<'de>>(field: D) -> Result<BTreeMap<String, String>, D::Error> {
    let fields = Option::<BTreeMap<String, Value>>::deserialize(field)?.unwrap_or_default();
    Ok(fields.into_iter().map(|(name, value)| (name, text_of(value))).collect())
}
