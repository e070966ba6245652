//! Sends one request for each file, all at once, each on a new HTTP/1.1 connection.

use tokio::task::JoinSet;

use super::work::Work;
use crate::Failure;
use crate::rival::Tally;
use crate::rival::{Protocol, Rival, all};

pub(super) async fn upload(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    let mut uploads = JoinSet::new();
    for name in work.files.names() {
        let (rival, request) = (rival.clone(), work.upload_request(name)?);
        uploads.spawn(async move { rival.connect_h1().await?.send(request).await?.succeeded() });
    }
    all(uploads).await?;
    Ok(rival.tally())
}
