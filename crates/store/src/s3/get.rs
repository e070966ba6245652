//! `get`: downloads an object or a range of it.

use http::{HeaderValue, Method};

use super::S3;
use super::conditions::on_read;
use super::head::object_target;
use crate::delivery::Delivery;
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, Get, GetRange, Got, ObjectId, Operation, Unless, Version};

fn request(
    id: &ObjectId,
    version: Option<&Version>,
    range: Option<&GetRange>,
    unless: Option<&Unless>,
    expected: Option<u64>,
    sums: bool,
) -> Result<Outgoing, String> {
    let mut outgoing = Outgoing::new(Method::GET, object_target(id, &QueryString::new()));
    outgoing.expected = expected;
    match range {
        Some(range) => {
            outgoing.headers.insert("range", range.header());
        }
        // S3 sends no checksum with a range, so don't request one.
        None if !sums => {}
        None => {
            outgoing.headers.insert("x-amz-checksum-mode", HeaderValue::from_static("ENABLED"));
        }
    }
    on_read(outgoing, version, unless)
}

impl S3 {
    pub(crate) async fn download(&self, get: &Get<'_>, key_use: KeyUse) -> Result<Got, Error> {
        let exchange = Exchange::object(self, Operation::Get, get.id);
        let delivery = Delivery::new(self.etags.reader(), get);
        let mut attempt = self.checksums.reads.attempt();
        let sent = loop {
            let Get { id, version, unless, expected, .. } = *get;
            let outgoing = request(id, version, get.range.as_ref(), unless, expected, attempt.form())
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
                .key_use(key_use);
            match exchange.carry(&outgoing, Some(&delivery)).await {
                // A request for a range doesn't request a checksum, so there is no simpler form to try.
                Err(error) if get.range.is_none() && attempt.fall_back(&error) => {}
                sent => break sent?,
            }
        };
        if get.range.is_none() {
            attempt.settle();
        }
        exchange.got(sent, &delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_asked_for_with_its_checksum_and_a_range_without() {
        let id = ObjectId::new("b", "k");
        let whole = request(&id, None, None, None, None, true).expect("a request");
        assert_eq!(whole.headers["x-amz-checksum-mode"], "ENABLED");
        assert!(!whole.headers.contains_key("range"));
        let version = Version::ETag("e".into());
        let part =
            request(&id, Some(&version), Some(&(5..6).into()), None, Some(1), true).expect("a request");
        assert!(!part.headers.contains_key("x-amz-checksum-mode"));
        assert_eq!(part.headers["range"], "bytes=5-5");
        assert_eq!(part.headers["if-match"], "\"e\"");
    }
}
