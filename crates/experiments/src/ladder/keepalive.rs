//! Sends one request for each file on one kept-alive connection, one after another.

use super::work::Work;
use crate::Failure;
use crate::rival::Tally;
use crate::rival::{Protocol, Rival};

pub(super) async fn upload(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    for name in work.files.names() {
        // Many servers close a connection after some number of requests. Then open a new connection, as any client with
        // keep-alive does.
        if !connection.is_usable().await {
            connection = rival.connect_h1().await?;
        }
        connection.send(work.upload_request(name)?).await?.succeeded()?;
    }
    Ok(rival.tally())
}
