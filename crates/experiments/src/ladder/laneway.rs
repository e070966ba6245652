//! Laneway's library, as a program that has just started uses it: the client is made within the time that counts, and
//! copies the folder.
//!
//! The library and not the program as a child process, because the rivals' processes have started already, too: a
//! process start in one row only would be a handicap. Whole-process times are a matter for comparisons of programs.

use laneway::{CopyRequest, Event, Location, Outcome, Provider};

use super::work::Work;
use crate::Failure;
use crate::rival::Tally;

pub(super) async fn upload(work: &Work) -> Result<Tally, Failure> {
    let client = work.site.laneway(None)?;
    let folder = Location::from(work.files.folder());
    // Without a slash at its end the destination is what the folder becomes.
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
