//! The folders of buckets with a hierarchical namespace. They appear with the objects in them, and stay when these are
//! gone (<https://cloud.google.com/storage/docs/json_api/v1/folders>).

use http::Method;
use serde::Deserialize;

use super::Gcs;
use crate::encode::{Query, component};
use crate::exchange::{Exchange, Outgoing};
use crate::listing::Tokens;
use crate::{Error, ErrorKind, Operation};

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

/// A long-running operation on a bucket.
#[derive(Deserialize, Default)]
#[serde(default)]
struct LongOperation {
    name: String,
    done: bool,
    error: Option<OperationError>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OperationError {
    message: String,
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

    /// Begins to rename a folder with everything in it, and returns the operation's name. Returns `None` if the objects
    /// must be moved one by one. That is so in a flat bucket, if the folder doesn't exist, and if the new name is taken
    /// or lacks a parent. It is also so if the caller may not rename folders.
    pub(crate) async fn begin_rename_folder(
        &self,
        bucket: &str,
        from: &str,
        to: &str,
    ) -> Result<Option<String>, Error> {
        if !self.is_hierarchical(bucket).await? {
            return Ok(None);
        }
        let exchange = Exchange::bucket(self, Operation::Copy, bucket).below(from);
        let target = format!("{}/renameTo/folders/{}", folder_path(bucket, from), component(to));
        let sent = match exchange.send(&Outgoing::new(Method::POST, target)).await {
            Ok(sent) => sent,
            // The answer to the first attempt may have been lost, so a refusal of the second proves nothing.
            Err(error) if error.is_uncertain() => return Err(error),
            Err(error)
                if error.is_not_found()
                    || error.is_precondition()
                    || error.is_invalid()
                    || error.is_permission()
                    || error.is_unsupported() =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let operation: LongOperation = serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer is no operation: {e}")))?;
        let id = operation.name.rsplit('/').next().unwrap_or_default();
        match id.is_empty() {
            true => Err(exchange.nonsense(&sent, "the answer names no operation")),
            false => Ok(Some(id.to_owned())),
        }
    }

    /// Returns whether an operation is done.
    pub(crate) async fn is_done(&self, bucket: &str, operation: &str) -> Result<bool, Error> {
        let exchange = Exchange::bucket(self, Operation::Copy, bucket);
        let target = format!("/storage/v1/b/{}/operations/{}", component(bucket), component(operation));
        let sent = exchange.send(&Outgoing::new(Method::GET, target)).await?;
        let operation: LongOperation = serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer is no operation: {e}")))?;
        match operation.error {
            Some(error) => Err(exchange.error(ErrorKind::Server, error.message)),
            None => Ok(operation.done),
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
