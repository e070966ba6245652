//! The folders of buckets with a hierarchical namespace. GCS creates a folder together with the first object in it, and
//! keeps the folder when its objects are deleted (<https://cloud.google.com/storage/docs/json_api/v1/folders>).

use http::Method;
use serde::Deserialize;

use super::Gcs;
use crate::encode::{Query, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, FolderPage, Operation};

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
struct FolderList {
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
    /// Returns true if a bucket has a hierarchical namespace. Returns false if the server doesn't know the request, as
    /// emulators don't, or if the caller isn't permitted to send it.
    pub(crate) async fn is_hierarchical(&self, bucket: &str) -> Result<bool, Error> {
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

    /// Returns a page of the folders whose names begin with a prefix. A bucket without a hierarchical namespace has
    /// none.
    pub(crate) async fn list_folders(
        &self,
        bucket: &str,
        prefix: &str,
        token: Option<&str>,
    ) -> Result<FolderPage, Error> {
        if !self.is_hierarchical(bucket).await? {
            return Ok(FolderPage::default());
        }
        let exchange = Exchange::bucket(self, Operation::List, bucket);
        let query = Query::new()
            .and_some("prefix", Some(prefix).filter(|prefix| !prefix.is_empty()))
            .and_some("pageToken", token)
            .and("fields", "kind,nextPageToken,items(name)");
        let target = format!("/storage/v1/b/{}/folders{query}", component(bucket));
        let sent = exchange.send(&Outgoing::new(Method::GET, target)).await?;
        let answer: FolderList = serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a list of folders: {e}")))?;
        if answer.kind.as_deref() != Some(FOLDERS) {
            let message = format!("the answer isn't a list of folders: its kind isn't {FOLDERS}");
            return Err(exchange.nonsense(&sent, message));
        }
        let next = answer.next_page_token.filter(|next| !next.is_empty());
        if next.is_some() && next.as_deref() == token {
            return Err(exchange.nonsense(&sent, "the page of folders is followed by itself".to_owned()));
        }
        Ok(FolderPage { names: answer.items.into_iter().map(|folder| folder.name).collect(), next })
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
