//! Reads text fields leniently: a server may send a number, `null`, an array or an object instead.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Converts a JSON value to text. A string is returned as it is, `null` becomes an empty text, and any other value is
/// written as JSON.
pub(super) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Reads a text field, borrowed from the answer if possible.
pub(super) fn text<'de, D: Deserializer<'de>, T: From<Cow<'de, str>>>(field: D) -> Result<T, D::Error> {
    field.deserialize_any(LenientText).map(T::from)
}

struct LenientText;

impl<'de> Visitor<'de> for LenientText {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok("".into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(text_of(value.into()).into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(text_of(number.into()).into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(text_of(number.into()).into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(text_of(number.into()).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(values)).map(|value| text_of(value).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(fields)).map(|value| text_of(value).into())
    }
}

/// Reads a field that is an object with text fields.
pub(super) fn texts<'de, D: Deserializer<'de>>(field: D) -> Result<BTreeMap<String, String>, D::Error> {
    let fields = Option::<BTreeMap<String, Value>>::deserialize(field)?.unwrap_or_default();
    Ok(fields.into_iter().map(|(name, value)| (name, text_of(value))).collect())
}
