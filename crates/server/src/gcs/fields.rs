//! Partial answers: the `fields` parameter.
//! <https://cloud.google.com/storage/docs/json_api#partial-response>

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::ApiError;

/// The maximum nesting depth of a selection. No answer is even half as deep.
const DEPTH_MAX: usize = 8;

/// The fields of all answers of the JSON API: objects, listings, rewrites and buckets. A selection of any other field
/// is refused.
const KNOWN: [&str; 71] = [
    "acl",
    "autoclass",
    "billing",
    "bucket",
    "cacheControl",
    "componentCount",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "contexts",
    "cors",
    "crc32c",
    "createTime",
    "customPlacementConfig",
    "customTime",
    "customerEncryption",
    "defaultEventBasedHold",
    "defaultObjectAcl",
    "done",
    "encryption",
    "etag",
    "eventBasedHold",
    "generation",
    "hardDeleteTime",
    "hierarchicalNamespace",
    "iamConfiguration",
    "id",
    "ipFilter",
    "items",
    "kind",
    "kmsKeyName",
    "labels",
    "lifecycle",
    "location",
    "locationType",
    "logging",
    "md5Hash",
    "mediaLink",
    "metadata",
    "metageneration",
    "name",
    "nextPageToken",
    "objectRetention",
    "objectSize",
    "owner",
    "prefixes",
    "projectNumber",
    "resource",
    "restoreToken",
    "retention",
    "retentionExpirationTime",
    "retentionPolicy",
    "rewriteToken",
    "rpo",
    "satisfiesPZS",
    "selfLink",
    "size",
    "softDeletePolicy",
    "softDeleteTime",
    "storageClass",
    "temporaryHold",
    "timeCreated",
    "timeDeleted",
    "timeFinalized",
    "timeStorageClassUpdated",
    "totalBytesRewritten",
    "updateTime",
    "updated",
    "versioning",
    "website",
];

/// Fields whose subfields are also checked. Below other fields, any name is accepted.
const KNOWN_BELOW: [&str; 2] = ["items", "resource"];

/// The requested fields of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fields {
    All,
    Named(BTreeMap<String, Fields>),
}

impl Fields {
    /// Reads `a,b/c,d(e,f)`.
    ///
    /// # Errors
    /// Fails for an invalid selection, and for unknown fields.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let invalid = |at: &str| ApiError::invalid_parameter(format!("Invalid field selection {at}"));
        let mut rest = text;
        let fields = Self::list(&mut rest, 0).filter(|_| rest.is_empty()).ok_or_else(|| invalid(text))?;
        fields.unknown().map_or(Ok(()), |name| Err(invalid(name)))?;
        Ok(fields)
    }

    fn list(rest: &mut &str, depth: usize) -> Option<Self> {
        let mut named = BTreeMap::new();
        loop {
            let (path, fields) = Self::one(rest, depth)?;
            merge(&mut named, &path, fields);
            match rest.strip_prefix(',') {
                Some(more) => *rest = more,
                None => return Some(Self::of_names(named)),
            }
        }
    }

    /// Reads `a/b` or `a/b(c)`. Returns the path's names, and the fields that are selected inside the last name: those in the parentheses,
    /// or all fields if there are no parentheses.
    fn one<'a>(rest: &mut &'a str, depth: usize) -> Option<(Vec<&'a str>, Self)> {
        let end = rest.find([',', '(', ')']).unwrap_or(rest.len());
        let (path, after) = rest.split_at(end);
        let path: Vec<_> = path.split('/').map(str::trim).collect();
        if depth + path.len() > DEPTH_MAX || path.iter().any(|name| name.is_empty()) {
            return None;
        }
        *rest = after;
        let Some(inner) = rest.strip_prefix('(') else { return Some((path, Self::All)) };
        *rest = inner;
        let fields = Self::list(rest, depth + path.len())?;
        *rest = rest.strip_prefix(')')?;
        Some((path, fields))
    }

    /// Returns the selection of these names. A `*` among them selects everything.
    fn of_names(named: BTreeMap<String, Self>) -> Self {
        if named.contains_key("*") { Self::All } else { Self::Named(named) }
    }

    fn unknown(&self) -> Option<&str> {
        let Self::Named(named) = self else { return None };
        named.iter().find_map(|(name, below)| match name.as_str() {
            name if !KNOWN.contains(&name) => Some(name),
            name if KNOWN_BELOW.contains(&name) => below.unknown(),
            _ => None,
        })
    }

    /// Returns the selection below a field, if the field is selected.
    pub(super) fn of(&self, name: &str) -> Option<&Self> {
        match self {
            Self::All => Some(self),
            Self::Named(named) => named.get(name),
        }
    }

    /// Returns true if a field is selected.
    pub(super) fn has(&self, name: &str) -> bool {
        self.of(name).is_some()
    }

    /// Returns true if the selection names parts of a field, and not only whole fields.
    pub(super) fn is_deep(&self) -> bool {
        matches!(self, Self::Named(named) if named.values().any(|below| *below != Self::All))
    }

    /// Removes the fields that aren't selected from an answer.
    pub(super) fn select(&self, answer: &mut Value) {
        match (self, answer) {
            (Self::All, _) => {}
            (Self::Named(_), Value::Object(object)) => {
                object.retain(|name, _| self.has(name));
                for (name, value) in object.iter_mut() {
                    if let Some(below) = self.of(name) {
                        below.select(value);
                    }
                }
            }
            (Self::Named(_), Value::Array(values)) => {
                for value in values {
                    self.select(value);
                }
            }
            (Self::Named(_), _) => {}
        }
    }
}

/// Adds a selection below a path. If a whole field is selected already, all its parts are selected too.
fn merge(named: &mut BTreeMap<String, Fields>, path: &[&str], fields: Fields) {
    let Some((first, below)) = path.split_first() else { return };
    let entry = named.entry((*first).to_owned()).or_insert_with(|| Fields::Named(BTreeMap::new()));
    match (below.is_empty(), fields, &mut *entry) {
        (true, Fields::Named(added), Fields::Named(there)) => {
            for (name, fields) in added {
                merge(there, &[&name], fields);
            }
        }
        (true, Fields::All, _) => *entry = Fields::All,
        (false, fields, Fields::Named(there)) => {
            merge(there, below, fields);
            *entry = Fields::of_names(std::mem::take(there));
        }
        (_, _, Fields::All) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selected(fields: &str, mut answer: Value) -> Value {
        Fields::parse(fields).expect("a selection").select(&mut answer);
        answer
    }

    #[test]
    fn a_selection_leaves_what_it_names() {
        let answer = || json!({"kind": "k", "items": [{"name": "n", "size": "1", "metadata": {"a": "1", "b": "2"}}], "prefixes": ["p/"]});
        assert_eq!(selected("*", answer()), answer());
        assert_eq!(selected("items/*,kind,prefixes", answer()), answer());
        assert_eq!(selected("items(metadata/*)", answer()), selected("items/metadata", answer()));
        assert_eq!(selected("kind", answer()), json!({"kind": "k"}));
        assert_eq!(
            selected("prefixes,items(name)", answer()),
            json!({"items": [{"name": "n"}], "prefixes": ["p/"]})
        );
        let both = json!({"items": [{"name": "n", "size": "1"}]});
        assert_eq!(selected("items/name,items/size", answer()), both);
        assert_eq!(selected("items(name),items(size)", answer()), both);
        assert_eq!(selected("items/metadata/a", answer()), json!({"items": [{"metadata": {"a": "1"}}]}));
        assert_eq!(selected("items(name),items", answer()), json!({"items": answer()["items"]}));
        assert_eq!(selected("items,items/name", answer()), json!({"items": answer()["items"]}));
    }

    #[test]
    fn what_is_no_selection_is_refused() {
        let deep = "items(".repeat(100_000);
        for fields in [
            "",
            ",",
            "kind,",
            "items(",
            "items(name",
            "items)",
            "items()",
            "nam",
            "items(nam)",
            "a//b",
            &deep,
        ] {
            assert!(Fields::parse(fields).is_err(), "{fields}");
        }
    }
}
