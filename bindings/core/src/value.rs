//! The values of options and settings. Hosts pass them in their own types or as texts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use laneway::{Error, Location};

use crate::failure::Failure;

/// The type of an option or a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// A Boolean. As a text, it is `true` or `false`.
    Flag,
    /// A whole number from 0. As a text, it is decimal.
    Number,
    /// A text.
    Text,
    /// A list of texts. A host that passes texts repeats the option's name for each text of the list.
    Texts,
    /// A map of texts. A host that passes texts uses the name `NAME:KEY` for each text of the map.
    Pairs,
    /// A point in time. As a text, it is the number of milliseconds since 1970.
    Time,
    /// A duration. As a text, it is the number of milliseconds.
    Duration,
    /// A path or URL.
    Place,
}

/// A value of an option or a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A value of [`ValueKind::Flag`].
    Flag(bool),
    /// A value of [`ValueKind::Number`].
    Number(u64),
    /// A value of [`ValueKind::Text`].
    Text(String),
    /// A value of [`ValueKind::Texts`].
    Texts(Vec<String>),
    /// A value of [`ValueKind::Pairs`].
    Pairs(BTreeMap<String, String>),
    /// A value of [`ValueKind::Time`].
    Time(SystemTime),
    /// A value of [`ValueKind::Duration`].
    Duration(Duration),
    /// A value of [`ValueKind::Place`].
    Place(OsString),
}

/// The values of options or settings, with their names.
pub type NamedValues = Vec<(String, Value)>;

/// Converts values that a host passes as texts. `kind` returns the type of a value by its name.
///
/// # Errors
/// Returns the error of `kind` for an unknown name, or a failure for an invalid text. The message doesn't repeat the
/// text, which may be a secret.
pub fn of_texts<'t>(
    texts: impl IntoIterator<Item = (&'t str, &'t str)>,
    kind: impl Fn(&str) -> Result<ValueKind, Failure>,
) -> Result<NamedValues, Failure> {
    let mut named = NamedValues::new();
    for (full, text) in texts {
        let (name, key) = full.split_once(':').map_or((full, None), |(name, key)| (name, Some(key)));
        let kind = kind(name)?;
        let had = named.iter_mut().find(|(had, _)| had == name).map(|(_, value)| value);
        match (had, kind, key) {
            (Some(Value::Texts(texts)), ..) => texts.push(text.to_owned()),
            (Some(Value::Pairs(pairs)), _, key) => {
                pairs.extend(key.map(|key| (key.to_owned(), text.to_owned())))
            }
            (had, kind, key) => {
                let value =
                    Value::of_text(kind, key, text).ok_or_else(|| InvalidValue::unreadable().of(name))?;
                match had {
                    Some(had) => *had = value,
                    None => named.push((name.to_owned(), value)),
                }
            }
        }
    }
    Ok(named)
}

impl Value {
    fn of_text(kind: ValueKind, key: Option<&str>, text: &str) -> Option<Self> {
        let milliseconds = || text.parse().ok().map(Duration::from_millis);
        Some(match (kind, key) {
            (ValueKind::Pairs, key) => {
                Self::Pairs(key.map(|key| (key.to_owned(), text.to_owned())).into_iter().collect())
            }
            (_, Some(_)) => return None,
            (ValueKind::Flag, _) => Self::Flag(text.parse().ok()?),
            (ValueKind::Number, _) => Self::Number(text.parse().ok()?),
            (ValueKind::Text, _) => Self::Text(text.to_owned()),
            (ValueKind::Texts, _) => Self::Texts(vec![text.to_owned()]),
            (ValueKind::Time, _) => Self::Time(UNIX_EPOCH.checked_add(milliseconds()?)?),
            (ValueKind::Duration, _) => Self::Duration(milliseconds()?),
            (ValueKind::Place, _) => Self::Place(text.into()),
        })
    }

    /// Returns the value's type.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Flag(_) => ValueKind::Flag,
            Self::Number(_) => ValueKind::Number,
            Self::Text(_) => ValueKind::Text,
            Self::Texts(_) => ValueKind::Texts,
            Self::Pairs(_) => ValueKind::Pairs,
            Self::Time(_) => ValueKind::Time,
            Self::Duration(_) => ValueKind::Duration,
            Self::Place(_) => ValueKind::Place,
        }
    }

    /// Converts the value to a type of the library.
    ///
    /// # Errors
    /// Fails if the value has another type or is invalid.
    pub(crate) fn read<T: FromValue>(self) -> Result<T, InvalidValue> {
        T::from_value(self)
    }
}

/// The reason why an option or a setting is invalid.
#[derive(Debug)]
pub(crate) enum InvalidValue {
    /// A reason. The message shows it after the name.
    Value(String),
    /// The library's own error.
    Library(Error),
}

impl InvalidValue {
    pub(crate) fn unreadable() -> Self {
        Self::Value("the value has the wrong type or format".to_owned())
    }

    /// Returns a failure that names the option or setting.
    pub(crate) fn of(self, name: &str) -> Failure {
        match self {
            Self::Value(why) => Failure::usage(format!("{name}: {why}")),
            Self::Library(error) => error.into(),
        }
    }
}

impl From<Error> for InvalidValue {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// A type of the library to which values can be converted.
pub(crate) trait FromValue: Sized {
    /// # Errors
    /// Fails if the value can't be converted.
    fn from_value(value: Value) -> Result<Self, InvalidValue>;
}

macro_rules! from_value {
    ($($kind:ident($type:ty),)*) => {
        $(impl FromValue for $type {
            fn from_value(value: Value) -> Result<Self, InvalidValue> {
                match value {
                    Value::$kind(value) => Ok(value),
                    _ => Err(InvalidValue::unreadable()),
                }
            }
        })*
    };
}

from_value! {
    Flag(bool),
    Number(u64),
    Text(String),
    Texts(Vec<String>),
    Pairs(BTreeMap<String, String>),
    Time(SystemTime),
    Duration(Duration),
    Place(OsString),
}

impl FromValue for usize {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        Self::try_from(value.read::<u64>()?).map_err(|_| InvalidValue::unreadable())
    }
}

impl FromValue for Location {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        Ok(Self::parse(&value.read::<OsString>()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Result<ValueKind, Failure> {
        let all = [
            ("flag", ValueKind::Flag),
            ("number", ValueKind::Number),
            ("time", ValueKind::Time),
            ("more", ValueKind::Texts),
        ];
        let known = all.into_iter().chain([("pairs", ValueKind::Pairs)]).find(|(known, _)| *known == name);
        known.map(|(_, kind)| kind).ok_or_else(|| Failure::usage(format!("{name}: unknown")))
    }

    #[test]
    fn texts_are_read_by_kind_and_gathered_by_name() {
        let texts = [("more", "a"), ("pairs:x:y", "1"), ("number", "3"), ("more", "b"), ("number", "4")];
        let more = Value::Texts(vec!["a".into(), "b".into()]);
        let pairs = Value::Pairs([("x:y".into(), "1".into())].into());
        let read = of_texts(texts, kind).unwrap();
        assert_eq!(
            read,
            [("more".into(), more), ("pairs".into(), pairs), ("number".into(), Value::Number(4))]
        );
        assert_eq!(
            of_texts([("pairs", "")], kind).unwrap(),
            [("pairs".into(), Value::Pairs(BTreeMap::new()))]
        );
        let time = Value::Time(UNIX_EPOCH + Duration::from_millis(1500));
        assert_eq!(of_texts([("time", "1500")], kind).unwrap(), [("time".into(), time)]);
    }

    #[test]
    fn refuses_unreadable_texts_without_repeating_them() {
        for (name, text) in [("flag", "secret"), ("number", "-7"), ("flag:key", "true"), ("other", "secret")]
        {
            let failure = of_texts([(name, text)], kind).unwrap_err();
            assert!(failure.message.starts_with(name.split(':').next().unwrap()), "{}", failure.message);
            assert!(!failure.message.contains(text), "{}", failure.message);
        }
    }
}
