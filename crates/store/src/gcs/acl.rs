//! Access control lists: the grants of an object, and predefined lists, which GCS's two APIs spell differently.

use http::Method;
use serde::Deserialize;

use super::Gcs;
use super::head::object_path;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::{AccessGrant, Error, ObjectId, Operation};

#[derive(Deserialize, Default)]
#[serde(default)]
struct AccessList {
    acl: Vec<AccessEntry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AccessEntry {
    entity: String,
    role: String,
}

impl Gcs {
    /// Returns an object's grants. In a bucket with uniform access, objects have none.
    pub(crate) async fn read_acl(&self, id: &ObjectId) -> Result<Vec<AccessGrant>, Error> {
        let exchange = Exchange::object(self, Operation::Access, id);
        let query = QueryString::new()
            .and_some("generation", id.version.as_deref())
            .and("projection", "full")
            .and("fields", "acl(entity,role)");
        let sent = exchange.send(&Outgoing::new(Method::GET, format!("{}{query}", object_path(id)))).await?;
        let list: AccessList = serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't an access control list: {e}")))?;
        let grant = |entry: AccessEntry| AccessGrant { grantee: entry.entity, permission: entry.role };
        Ok(list.acl.into_iter().map(grant).collect())
    }
}

/// Returns the JSON API's spelling, such as `publicRead`.
pub(super) fn in_json(acl: &str) -> String {
    let mut words = acl.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

/// Returns the XML API's spelling, such as `public-read`.
pub(super) fn in_xml(acl: &str) -> String {
    let mut name = String::with_capacity(acl.len() + 4);
    for letter in acl.chars() {
        if letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_understood() {
        for (json, xml) in [
            ("publicRead", "public-read"),
            ("bucketOwnerFullControl", "bucket-owner-full-control"),
            ("private", "private"),
        ] {
            assert_eq!((in_json(xml).as_str(), in_json(json).as_str()), (json, json));
            assert_eq!((in_xml(json).as_str(), in_xml(xml).as_str()), (xml, xml));
        }
    }
}
