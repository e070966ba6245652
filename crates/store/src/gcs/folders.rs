//! The folders of buckets with a hierarchical namespace. They appear with the objects in them, and stay when these are
//! gone (<https://cloud.google.com/storage/docs/json_api/v1/folders>).

use http::Method;
use serde::Deserialize;

use super::Gcs;
use crate::encode::{Query, component};
use crate::exchange::{Exchange, Outgoing};
use crate::listing::Tokens;
use crate::{Error, Operation};

const FOLDERS: &str = "storage#folders";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StorageLayout {
    hierarchical_namespace: Namespace,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Namespace {
    enabled: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FolderPage {
    kind: Option<String>,
    items: Vec<ListedFolder>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct ListedFolder {
    name: String,
}

/// Returns the path of a folder in the JSON API.
fn folder_path(bucket: &str, folder: &str) -> String {
    format!("/storage/v1/b/{}/folders/{}", component(bucket), component(folder))
}

impl Gcs {
    /// Returns whether a bucket has a hierarchical namespace. An emulator without this question has none, and a caller
    /// who may not ask it sees a flat bucket.
    async fn is_hierarchical(&self, bucket: &str) -> Result<bool, Error> {
        if let Some(known) = self.namespaces().get(bucket) {
            return Ok(*known);
        }
        let exchange = Exchange::bucket(self, Operation::List, bucket);
        let query = Query::new().and("fields", "hierarchicalNamespace");
        let target = format!("/storage/v1/b/{}/storageLayout{query}", component(bucket));
        let layout: StorageLayout = match exchange.send(&Outgoing::new(Method::GET, target)).await {
            Ok(sent) => serde_json::from_slice(&sent.response.body).unwrap_or_default(),
            Err(error) if error.is_not_found() || error.is_permission() || error.is_invalid() => {
                StorageLayout::default()
            }
            Err(error) if error.is_unsupported() => StorageLayout::default(),
            Err(error) => return Err(error),
        };
        let is_hierarchical = layout.hierarchical_namespace.enabled;
        self.namespaces().insert(bucket.to_owned(), is_hierarchical);
        Ok(is_hierarchical)
    }

    /// Lists the folders whose names begin with a prefix. A flat bucket has none.
    pub(crate) async fn list_folders(&self, bucket: &str, prefix: &str) -> Result<Vec<String>, Error> {
        if !self.is_hierarchical(bucket).await? {
            return Ok(Vec::new());
        }
        let exchange = Exchange::bucket(self, Operation::List, bucket);
        let (mut names, mut tokens) = (Vec::new(), Tokens::default());
        let mut token: Option<String> = None;
        loop {
            let query = Query::new()
                .and_some("prefix", Some(prefix).filter(|prefix| !prefix.is_empty()))
                .and_some("pageToken", token.as_deref())
                .and("fields", "kind,nextPageToken,items(name)");
            let target = format!("/storage/v1/b/{}/folders{query}", component(bucket));
            let sent = exchange.send(&Outgoing::new(Method::GET, target)).await?;
            let answer: FolderPage = serde_json::from_slice(&sent.response.body)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer is no list of folders: {e}")))?;
            if answer.kind.as_deref() != Some(FOLDERS) {
                let message = format!("the answer is no list of folders: it is not of the kind {FOLDERS}");
                return Err(exchange.nonsense(&sent, message));
            }
            names.extend(answer.items.into_iter().map(|folder| folder.name));
            token = tokens.next(answer.next_page_token).map_err(|e| exchange.nonsense(&sent, e))?;
            if token.is_none() {
                return Ok(names);
            }
        }
    }

    pub(crate) async fn remove_folder(&self, bucket: &str, folder: &str) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::Delete, bucket).below(folder);
        match exchange.send(&Outgoing::new(Method::DELETE, folder_path(bucket, folder))).await {
            Err(error) if error.is_not_found() && error.is_uncertain() => Ok(()),
            removed => removed.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_segment_of_the_path() {
        assert_eq!(folder_path("b", "a b/c/"), "/storage/v1/b/b/folders/a%20b%2Fc%2F");
    }
}
