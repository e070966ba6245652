//! Sends one request for each file, all at once on one HTTP/2 connection. The connection queues requests above the
//! server's stream limit.

use tokio::task::JoinSet;

use super::work::Work;
use crate::Failure;
use crate::rival::Tally;
use crate::rival::{Protocol, Rival, all};

pub(super) async fn upload(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H2);
    let connection = rival.connect_h2().await?;
    let mut uploads = JoinSet::new();
    for name in work.files.names() {
        let (mut connection, request) = (connection.clone(), work.upload_request(name)?);
        uploads.spawn(async move { connection.send(request).await?.succeeded() });
    }
    all(uploads).await?;
    Ok(rival.tally())
}
