//! `put`: uploads a whole object with one request.

use http::Method;
use laneway_lanes::Body;

use super::S3;
use super::checksum_support::BodyChecksum;
use super::conditions::on_write;
use super::get::object_target;
use super::headers::{check_options, checked, describe, meta};
use super::write_conditions::ConditionalWrite;
use crate::checksum::{encode_md5, md5_of};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::{compared, landed, unread};
use crate::{
    ChecksumAlgorithm, Checksums, Condition, Error, ErrorKind, ObjectId, ObjectMeta, Operation, PutOptions,
};

fn request(
    id: &ObjectId,
    body: Body,
    sums: &Checksums,
    guard: BodyChecksum,
    options: &PutOptions,
    condition: &Condition,
    kms_key: Option<&str>,
) -> Result<Outgoing, String> {
    check_options(options)?;
    let mut outgoing =
        Outgoing::new(Method::PUT, object_target(id, &QueryString::new())).key_use(KeyUse::New);
    outgoing.body = body;
    if let (BodyChecksum::Crc32c, Some(crc32c)) = (guard, sums.crc32c) {
        outgoing = checked(outgoing, crc32c).map_err(|e| e.to_string())?;
    }
    let md5 = sums.md5.filter(|_| guard != BodyChecksum::None);
    let outgoing = outgoing
        .header_some("content-md5", md5.map(encode_md5).as_deref())
        .and_then(|outgoing| describe(outgoing, options, kms_key))
        .map_err(|e| e.to_string())?;
    on_write(outgoing, condition)
}

impl S3 {
    pub(crate) async fn upload(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Put, id);
        let size = body.len();
        let mut sums = sums.clone();
        let digest = match self.checksum_algorithm {
            ChecksumAlgorithm::Crc32c => None,
            _ => Box::pin(self.chosen_digest(&exchange, &body, sums.crc32c)).await?,
        };
        let mut attempt = self.checksums.bodies.attempt();
        let write = ConditionalWrite::put(&options.condition);
        let (sent, outgoing) = loop {
            let guard = if digest.is_some() { BodyChecksum::None } else { attempt.form() };
            if guard == BodyChecksum::Md5 && sums.md5.is_none() {
                // The MD5 takes 30 ms for the largest single-request body. It is only computed for stores that support
                // no faster checksum.
                sums.md5 = md5_of(&body);
            }
            self.look_before(&exchange, write, id, &options.condition).await?;
            let condition = self.sendable(write, &options.condition);
            let kms_key = self.kms_key.as_deref();
            let outgoing = request(id, body.clone(), &sums, guard, options, condition, kms_key)
                .and_then(|outgoing| match &digest {
                    Some(digest) => digest.on(outgoing).map_err(|e| e.to_string()),
                    None => Ok(outgoing),
                })
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            match exchange.send(&outgoing).await {
                Err(error) if !condition.is_none() && self.conditions.learn(write, &error) => {}
                Err(error) if digest.is_none() && attempt.fall_back(&error) => {}
                sent => {
                    // Keep the request only if it may be sent again as a probe. Otherwise every put would keep its body
                    // in memory until the end.
                    let is_kept = self.is_kept(write, &options.condition);
                    break (sent, (!is_kept).then(|| Box::new(outgoing)));
                }
            }
        };
        let sums = &sums;
        let meta = match sent {
            // The answer to a PUT is empty and has the object's ETag. Any other answer is an error document or a
            // proxy's page with status 200.
            Ok(sent) if !sent.response.body.is_empty() || sent.response.head.header("etag").is_none() => {
                let error = exchange.nonsense(
                    &sent,
                    "the answer to the PUT has a body or no ETag, so it may come from a proxy",
                );
                unread(error, Box::pin(self.head(id, None)), size, sums).await?
            }
            Ok(sent) => {
                if digest.is_none() {
                    attempt.settle();
                }
                let mut meta = meta(id, &sent.response.head);
                // The answer's length and type are those of its empty body, and it doesn't repeat the metadata.
                (meta.size, meta.metadata) = (size, None);
                meta.content_type = options.content_type.clone();
                if let Some(digest) = &digest {
                    digest.prove(&exchange, &sent.response.head, &mut meta, sums)?;
                }
                Box::pin(self.etags.learn(&meta.checksums, sums, body)).await;
                self.etags.read(meta)
            }
            Err(error) => landed(error, Box::pin(self.head(id, None)), size, sums).await?,
        };
        let written = compared(&exchange, meta, size, sums)?;
        let Some(outgoing) = outgoing else { return Ok(written) };
        let written = Box::pin(self.probe(&exchange, &outgoing, options, written)).await;
        Box::pin(self.look_after(&exchange, write, &options.condition, written)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_carries_its_checksum_and_condition() {
        let sums = Checksums { crc32c: Some(0xe306_9283), md5: Some([0; 16]), ..Checksums::default() };
        let options = PutOptions::default().condition(Condition::Absent);
        let id = ObjectId::new("b", "k");
        let guarded = |guard| {
            request(&id, Body::from("123456789"), &sums, guard, &options, &options.condition, None)
                .expect("a request")
        };
        let request = guarded(BodyChecksum::Crc32c);
        assert_eq!(request.headers["x-amz-checksum-crc32c"], "4waSgw==");
        assert!(!request.headers.contains_key("x-amz-sdk-checksum-algorithm"), "the value says it");
        assert_eq!(request.headers["content-md5"], "AAAAAAAAAAAAAAAAAAAAAA==");
        assert_eq!(request.headers["if-none-match"], "*");
        assert_eq!(request.body.len(), 9);
        let request = guarded(BodyChecksum::Md5);
        assert!(!request.headers.contains_key("x-amz-checksum-crc32c"));
        assert_eq!(request.headers["content-md5"], "AAAAAAAAAAAAAAAAAAAAAA==");
        assert_eq!(guarded(BodyChecksum::None).headers.len(), 1, "the condition alone");
    }
}
