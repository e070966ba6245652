//! Uploads the folder with Laneway's library, as a program that has just started does. The measured time covers
//! creating the client and copying the folder.
//!
//! This method calls the library in this process, and doesn't start the program `laneway`. The rivals here don't start a process either, so
//! a process start would count against Laneway alone. Installed programs are compared with the program `laneway`.

use laneway::{CopyRequest, Event, Location, Outcome, Provider};

use super::work::Work;
use crate::Failure;
use crate::rival::Tally;

pub(super) async fn upload(work: &Work) -> Result<Tally, Failure> {
    let client = work.site.laneway(None)?;
    let folder = Location::from(work.files.folder());
    // A destination without a final slash is the new name of the folder.
    let destination =
        Location::object(Provider::Gcs, work.site.bucket.clone(), work.prefix.trim_end_matches('/'));
    let mut job = client.copy(CopyRequest::new(vec![folder], destination).recursive(true));
    let mut failure = None;
    while let Some(event) = job.next().await {
        match event {
            Event::Item(item) => {
                if let Outcome::Failed(error) = item.outcome {
                    failure = failure.or(Some(error));
                }
            }
            Event::Done(summary) => {
                return match failure {
                    Some(error) => Err(error.into()),
                    None => Ok(Tally { requests: summary.requests, connections: summary.connections }),
                };
            }
            _ => {}
        }
    }
    Err(Failure::Unfinished)
}
