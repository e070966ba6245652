//! The folders of buckets with a hierarchical namespace. GCS creates a folder together with the first object in it, and
//! keeps the folder when its objects are deleted (<https://cloud.google.com/storage/docs/json_api/v1/folders>).

use http::Method;
use serde::Deserialize;

use super::Gcs;
use crate::encode::{QueryString, component};
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::{Error, FolderPage, FolderRename, Operation};

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

/// A folder, as `folders.get` returns it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FolderResource {
    /// Present while the folder is being renamed.
    pending_rename_info: Option<PendingRename>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PendingRename {
    operation_id: String,
}

/// A long-running operation. It has failed if it is done and has an error.
#[derive(Deserialize)]
struct LongOperation {
    name: String,
    #[serde(default)]
    done: bool,
    error: Option<OperationError>,
}

#[derive(Deserialize)]
struct OperationError {
    #[serde(default)]
    message: String,
}

impl LongOperation {
    fn state(self) -> FolderRename {
        match self.error {
            Some(error) => FolderRename::Refused(error.message),
            None if self.done => FolderRename::Done,
            None => FolderRename::Running(operation_id(&self.name).to_owned()),
        }
    }
}

/// Returns the last part of an operation's name, such as `projects/_/buckets/b/operations/id`.
fn operation_id(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
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
        let query = QueryString::new().and("fields", "hierarchicalNamespace");
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
        let query = QueryString::new()
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
            return Err(exchange.nonsense(&sent, "the list of folders repeats a page".to_owned()));
        }
        Ok(FolderPage { names: answer.items.into_iter().map(|folder| folder.name).collect(), next })
    }

    /// Begins to rename a folder. GCS restores the old names if a rename fails, and permits no writes below the folder
    /// until it ends (<https://cloud.google.com/storage/docs/rename-hns-folders>). So a refused rename has changed
    /// nothing.
    pub(crate) async fn begin_folder_rename(
        &self,
        bucket: &str,
        from: &str,
        to: &str,
    ) -> Result<FolderRename, Error> {
        if !self.is_hierarchical(bucket).await? {
            return Ok(FolderRename::Refused("the bucket has no hierarchical namespace".to_owned()));
        }
        // If the answer to the rename is lost, a folder of the new name shows that the rename was made. So first make
        // sure that no folder has this name yet.
        match self.folder(bucket, to).await {
            Err(error) if error.is_not_found() => {}
            Err(error) => return refused(error),
            Ok(_) => return Ok(FolderRename::Refused(format!("the folder {to} exists"))),
        }
        let exchange = Exchange::bucket(self, Operation::Copy, bucket).below(from);
        let target = format!("{}/renameTo/folders/{}", folder_path(bucket, from), component(to));
        let begun = match exchange.send(&Outgoing::new(Method::POST, target)).await {
            // Treat an answer that can't be read like a lost one.
            Ok(sent) => operation(&exchange, &sent).map_err(|error| error.uncertain(true)),
            Err(error) => Err(error),
        };
        match begun {
            Ok(operation) => Ok(operation.state()),
            Err(error) if error.is_uncertain() => self.lost_rename(bucket, from, to, error).await,
            Err(error) => refused(error),
        }
    }

    /// Finds out if the store began a rename whose answer was lost.
    async fn lost_rename(
        &self,
        bucket: &str,
        from: &str,
        to: &str,
        lost: Error,
    ) -> Result<FolderRename, Error> {
        let found = match self.folder(bucket, from).await {
            Ok(FolderResource { pending_rename_info: Some(pending) }) => {
                return Ok(FolderRename::Running(operation_id(&pending.operation_id).to_owned()));
            }
            Ok(_) => return refused(lost),
            Err(error) if error.is_not_found() => match self.folder(bucket, to).await {
                Ok(_) => return Ok(FolderRename::Done),
                Err(error) if error.is_not_found() => format!("neither {from} nor {to} exists"),
                Err(error) => format!("{from} is gone, and {to} can't be looked up: {error}"),
            },
            Err(error) => format!("{from} can't be looked up: {error}"),
        };
        let message = format!("{}; the folder may have been renamed to {to}: {found}", lost.message());
        let kind = lost.kind();
        Err(lost.but(kind, message))
    }

    /// Returns the state of an operation that renames a folder.
    pub(crate) async fn folder_rename_state(&self, bucket: &str, id: &str) -> Result<FolderRename, Error> {
        let exchange = Exchange::bucket(self, Operation::Copy, bucket);
        let target = format!("/storage/v1/b/{}/operations/{}", component(bucket), component(id));
        let sent = exchange.send(&Outgoing::new(Method::GET, target)).await?;
        Ok(operation(&exchange, &sent)?.state())
    }

    async fn folder(&self, bucket: &str, folder: &str) -> Result<FolderResource, Error> {
        let exchange = Exchange::bucket(self, Operation::Head, bucket).below(folder);
        let sent = exchange.send(&Outgoing::new(Method::GET, folder_path(bucket, folder))).await?;
        serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a folder: {e}")))
    }

    pub(crate) async fn remove_folder(&self, bucket: &str, folder: &str) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::Delete, bucket).below(folder);
        match exchange.send(&Outgoing::new(Method::DELETE, folder_path(bucket, folder))).await {
            Err(error) if error.is_not_found() && error.is_uncertain() => Ok(()),
            removed => removed.map(drop),
        }
    }
}

fn operation(exchange: &Exchange<'_, Gcs>, sent: &ExchangeResponse) -> Result<LongOperation, Error> {
    serde_json::from_slice(&sent.response.body)
        .map_err(|e| exchange.nonsense(sent, format!("the answer isn't an operation: {e}")))
}

/// Turns an error into a refusal if the store has answered that it refuses the rename. The objects can then be moved
/// one by one. If the store can't be reached, or the bucket doesn't exist, returns the error.
fn refused(error: Error) -> Result<FolderRename, Error> {
    let is_answer = error.status().is_some_and(|status| status.is_client_error()) || error.is_unsupported();
    let is_general = error.is_missing_bucket() || error.is_unauthenticated() || error.is_throttled();
    if is_answer && !is_general { Ok(FolderRename::Refused(error.to_string())) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_tells_if_the_folder_has_its_new_name() {
        let state = |text: &str| serde_json::from_str::<LongOperation>(text).expect("an operation").state();
        let name = r#""name": "projects/_/buckets/b/operations/id-1""#;
        assert_eq!(state(&format!("{{{name}}}")), FolderRename::Running("id-1".to_owned()));
        assert_eq!(state(&format!(r#"{{{name}, "done": true, "response": {{}}}}"#)), FolderRename::Done);
        let failed = format!(r#"{{{name}, "done": true, "error": {{"code": 9, "message": "held"}}}}"#);
        assert_eq!(state(&failed), FolderRename::Refused("held".to_owned()));
    }

    #[test]
    fn a_folder_is_one_segment_of_the_path() {
        assert_eq!(folder_path("b", "a b/c/"), "/storage/v1/b/b/folders/a%20b%2Fc%2F");
    }
}
