//! Sends one request for each file on a new connection, one after another.

use super::work::Work;
use crate::Failure;
use crate::rival::Tally;
use crate::rival::{Protocol, Rival};

pub(super) async fn upload(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    for name in work.files.names() {
        let request = work.upload_request(name)?;
        rival.connect_h1().await?.send(request).await?.succeeded()?;
    }
    Ok(rival.tally())
}
