//! `put`: the whole object in one request.

use http::Method;
use laneway_lanes::Body;

use super::S3;
use super::conditions::on_write;
use super::head::object_target;
use super::headers::{checked, describe, meta};
use crate::checksum::encode_md5;
use crate::encode::Query;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::{compared, landed};
use crate::{Checksums, Error, ErrorKind, ObjectId, ObjectMeta, Operation, PutOptions};

fn request(
    id: &ObjectId,
    body: Body,
    sums: &Checksums,
    options: &PutOptions,
    kms_key: Option<&str>,
) -> Result<Outgoing, String> {
    let mut outgoing = Outgoing::new(Method::PUT, object_target(id, &Query::new()));
    outgoing.body = body;
    if let Some(crc32c) = sums.crc32c {
        outgoing = checked(outgoing, crc32c).map_err(|e| e.to_string())?;
    }
    let outgoing = outgoing
        .header_some("content-md5", sums.md5.map(encode_md5).as_deref())
        .and_then(|outgoing| describe(outgoing, options, kms_key))
        .map_err(|e| e.to_string())?;
    on_write(outgoing, &options.condition)
}

impl S3 {
    pub(crate) async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Put, id);
        let size = body.len();
        let outgoing = request(id, body, sums, options, self.kms_key.as_deref())
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let meta = match exchange.send(&outgoing).await {
            Ok(sent) => {
                let mut meta = meta(id, &sent.response.head);
                // The answer's own length and type are those of its empty body.
                meta.size = size;
                meta.content_type = options.content_type.clone();
                meta
            }
            Err(error) => landed(error, self.head(id, None), size, sums).await?,
        };
        compared(&exchange, meta, size, sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Condition;

    #[test]
    fn an_upload_carries_its_checksum_and_condition() {
        let sums = Checksums { crc32c: Some(0xe306_9283), md5: Some([0; 16]), ..Checksums::default() };
        let options = PutOptions { condition: Condition::Absent, ..PutOptions::default() };
        let request = request(&ObjectId::new("b", "k"), Body::from("123456789"), &sums, &options, None)
            .expect("a request");
        assert_eq!(request.headers["x-amz-checksum-crc32c"], "4waSgw==");
        assert_eq!(request.headers["x-amz-sdk-checksum-algorithm"], "CRC32C");
        assert_eq!(request.headers["content-md5"], "AAAAAAAAAAAAAAAAAAAAAA==");
        assert_eq!(request.headers["if-none-match"], "*");
        assert_eq!(request.body.len(), 9);
    }
}
