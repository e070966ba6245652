//! Multipart uploads, as Put Block and Put Block List (<https://learn.microsoft.com/rest/api/storageservices/put-block>,
//! <https://learn.microsoft.com/rest/api/storageservices/put-block-list>).
//!
//! A blob has one set of uncommitted blocks, which all its uploads share. So the id of a block names its upload by random
//! digits. It also has the CRC64/NVME of the block's bytes, which the service compares when the block arrives. The
//! checksum of the whole object follows from these.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest, checksum_combine};
use http::Method;
use laneway_lanes::Body;
use md5::{Digest as _, Md5};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::Azure;
use super::headers::{blob_target, check_options, describe, on_source, on_write};
use super::put::written;
use crate::checksum::{each_segment, encode_md5, on_a_thread};
use crate::digest::hex;
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::multipart::{damaged, in_order};
use crate::reconcile::compared;
use crate::{
    Checksums, Condition, Error, ErrorKind, Multipart, ObjectId, ObjectMeta, Operation, Part, PartChecksums,
    PutOptions, StoredPart, Version, xml,
};

/// The digest of a block up to this size is computed at once, and that of a larger one on a new thread.
const AT_ONCE_MAX: u64 = 1 << 20;

/// The time limit without progress for Put Block List, which may take long for a blob of 50,000 blocks.
const COMMIT_NO_PROGRESS_MAX: Duration = Duration::from_secs(600);

/// The header with the encryption scope of a block.
const SCOPE: &str = "x-ms-encryption-scope";

/// The root element of a list of blocks.
const BLOCK_LIST: &str = "BlockList";

/// The length of a block's id before base64. All ids of a blob must have the same length, and this is that of Microsoft's
/// SDKs. So Laneway can replace a blob with leftover blocks of theirs.
const ID_LEN: usize = 48;

/// The mark of Laneway's blocks.
const ID_MARK: &str = "laneway-";

/// The mark of Laneway's blocks that were sent with an MD5. The service hasn't compared their CRC64.
const ID_MARK_MD5: &str = "laneway_";

/// The checksum of a block whose bytes the service copied from another blob.
const NO_CRC64: &str = "----------------";

/// The checksum that the endpoint accepts with a block.
#[derive(Debug, Default)]
pub(super) struct BlockForms {
    /// True after the endpoint has refused CRC64, or has stored a block without comparing it.
    wants_md5: AtomicBool,
}

/// The name of an upload, with the metadata that its completion needs. Put Block List takes the metadata, but a later
/// run may send it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
struct UploadName {
    /// 16 random digits.
    #[serde(rename = "u")]
    random: String,
    #[serde(rename = "t", skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    content_encoding: Option<String>,
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    cache_control: Option<String>,
    #[serde(rename = "d", skip_serializing_if = "Option::is_none")]
    content_disposition: Option<String>,
    #[serde(rename = "l", skip_serializing_if = "Option::is_none")]
    content_language: Option<String>,
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    storage_class: Option<String>,
    #[serde(rename = "k", skip_serializing_if = "Option::is_none")]
    kms_key: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(rename = "g", default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

impl UploadName {
    fn new(random: String, options: &PutOptions) -> Self {
        Self {
            random,
            content_type: options.content_type.clone(),
            content_encoding: options.content_encoding.clone(),
            cache_control: options.cache_control.clone(),
            content_disposition: options.content_disposition.clone(),
            content_language: options.content_language.clone(),
            storage_class: options.storage_class.clone(),
            kms_key: options.kms_key.clone(),
            metadata: options.metadata.clone(),
            tags: options.tags.clone(),
        }
    }

    /// Returns the upload's id, which may be saved: it contains no secret.
    fn to_id(&self) -> String {
        // A map of strings can always be written as JSON.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn read(id: &str) -> Option<Self> {
        let name: Self = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(id).ok()?).ok()?;
        let is_random = name.random.len() == 16 && name.random.bytes().all(|b| b.is_ascii_hexdigit());
        is_random.then_some(name)
    }

    fn options(&self) -> PutOptions {
        PutOptions {
            content_type: self.content_type.clone(),
            content_encoding: self.content_encoding.clone(),
            cache_control: self.cache_control.clone(),
            content_disposition: self.content_disposition.clone(),
            content_language: self.content_language.clone(),
            storage_class: self.storage_class.clone(),
            kms_key: self.kms_key.clone(),
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
            ..PutOptions::default()
        }
    }
}

/// The id of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
struct BlockId {
    random: String,
    number: u32,
    /// `None` for a block that the service copied.
    crc64: Option<u64>,
    /// True if the block was sent with an MD5, so that the service hasn't compared its CRC64.
    by_md5: bool,
}

impl BlockId {
    fn encode(&self) -> String {
        let crc64 = self.crc64.map_or_else(|| NO_CRC64.to_owned(), |crc64| format!("{crc64:016x}"));
        let mark = if self.by_md5 { ID_MARK_MD5 } else { ID_MARK };
        STANDARD.encode(format!("{mark}{}{:08x}{crc64}", self.random, self.number))
    }

    fn decode(id: &str) -> Option<Self> {
        let text = String::from_utf8(STANDARD.decode(id.trim()).ok()?).ok()?;
        if text.len() != ID_LEN || !text.is_ascii() {
            return None;
        }
        let by_md5 = text.starts_with(ID_MARK_MD5);
        let (random, rest) = text.strip_prefix(if by_md5 { ID_MARK_MD5 } else { ID_MARK })?.split_at(16);
        let (number, crc64) = rest.split_at(8);
        let number = u32::from_str_radix(number, 16).ok()?;
        let crc64 = match crc64 {
            NO_CRC64 => None,
            digits => Some(u64::from_str_radix(digits, 16).ok()?),
        };
        Some(Self { random: random.to_owned(), number, crc64, by_md5 })
    }
}

/// The checksums of the bytes of a block or blob, all from one pass over them.
pub(super) struct BlockDigest {
    pub(super) crc32c: u32,
    crc64: u64,
    /// Computed only if the endpoint wants it.
    pub(super) md5: Option<[u8; 16]>,
}

impl BlockDigest {
    /// Returns the checksums, or `None` if the body's file can't be read.
    pub(super) async fn of(body: &Body, wants_md5: bool) -> Option<Self> {
        match body.len() <= AT_ONCE_MAX {
            true => Self::compute(body, wants_md5),
            false => {
                let body = body.clone();
                on_a_thread(move || Self::compute(&body, wants_md5)).await
            }
        }
    }

    fn compute(body: &Body, wants_md5: bool) -> Option<Self> {
        let (mut crc32c, mut crc64) =
            (Digest::new(CrcAlgorithm::Crc32Iscsi), Digest::new(CrcAlgorithm::Crc64Nvme));
        let mut md5 = wants_md5.then(Md5::new);
        each_segment(body, |bytes| {
            crc32c.update(bytes);
            crc64.update(bytes);
            if let Some(md5) = &mut md5 {
                md5.update(bytes);
            }
        })?;
        Some(Self {
            crc32c: crc32c.finalize() as u32,
            crc64: crc64.finalize(),
            md5: md5.map(|md5| md5.finalize().into()),
        })
    }
}

/// Writes a CRC64/NVME as Azure does: eight little-endian bytes in base64. S3's are big-endian.
fn encode_crc64(crc64: u64) -> String {
    STANDARD.encode(crc64.to_le_bytes())
}

fn block_target(id: &ObjectId, block: &BlockId) -> String {
    blob_target(id, QueryString::new().and("comp", "block").and("blockid", &block.encode()))
}

fn put_block(
    id: &ObjectId,
    block: &BlockId,
    body: Body,
    digest: &BlockDigest,
    scope: Option<&str>,
) -> Result<Outgoing, String> {
    let outgoing = Outgoing::new(Method::PUT, block_target(id, block)).key_use(KeyUse::Object);
    let outgoing = Outgoing { body, ..outgoing };
    let sent = match digest.md5 {
        Some(md5) => outgoing.header("content-md5", &encode_md5(md5)),
        None => outgoing.header("x-ms-content-crc64", &encode_crc64(digest.crc64)),
    };
    // The service refuses a list of blocks whose scope isn't that of the blocks.
    sent.and_then(|outgoing| outgoing.header_some(SCOPE, scope)).map_err(|e| e.to_string())
}

/// Returns the request that makes the blob from its blocks.
fn put_block_list(
    id: &ObjectId,
    parts: &[&Part],
    name: &UploadName,
    whole: &Checksums,
    condition: &Condition,
) -> Result<Outgoing, String> {
    let mut document = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    // An empty part isn't a block. `Latest` finds a block also if an earlier attempt has committed it already.
    for part in parts.iter().filter(|part| part.size > 0) {
        BlockId::decode(&part.etag).ok_or("a part's ETag isn't the id of a block")?;
        document.push_str("<Latest>");
        document.push_str(&part.etag);
        document.push_str("</Latest>");
    }
    document.push_str("</BlockList>");
    let target = blob_target(id, QueryString::new().and("comp", "blocklist"));
    let mut outgoing = Outgoing::new(Method::PUT, target).key_use(KeyUse::New);
    outgoing.body = Body::from(Bytes::from(document));
    outgoing.no_progress = Some(COMMIT_NO_PROGRESS_MAX);
    let outgoing = outgoing
        .header("content-type", "application/xml")
        .and_then(|outgoing| {
            outgoing.header_some("x-ms-blob-content-md5", whole.md5.map(encode_md5).as_deref())
        })
        .and_then(|outgoing| describe(outgoing, &name.options()))
        .map_err(|e| e.to_string())?;
    on_write(outgoing, condition)
}

/// Returns the CRC64/NVME of all parts together, or `None` if the service hasn't compared one of them.
fn crc64_of(parts: &[&Part]) -> Option<u64> {
    let empty = Digest::new(CrcAlgorithm::Crc64Nvme).finalize();
    let mut parts = parts.iter().filter(|part| part.size > 0);
    let Some(first) = parts.next() else { return Some(empty) };
    let crc64 = |part: &Part| BlockId::decode(&part.etag).filter(|id| !id.by_md5)?.crc64;
    parts.try_fold(crc64(first)?, |whole, part| {
        Some(checksum_combine(CrcAlgorithm::Crc64Nvme, whole, crc64(part)?, part.size))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BlockList {
    #[serde(default)]
    committed_blocks: Blocks,
    #[serde(default)]
    uncommitted_blocks: Blocks,
}

#[derive(Deserialize, Default)]
struct Blocks {
    #[serde(default, rename = "Block")]
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Block {
    name: String,
    size: u64,
}

impl Azure {
    pub(super) async fn begin_upload(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        check_options(options).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        // A wrong header would otherwise fail only at the end of the upload.
        describe(Outgoing::new(Method::PUT, ""), options).map_err(|e| exchange.unsendable(&e))?;
        let mut random = [0; 8];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| exchange.error(ErrorKind::Source, "the system has no random numbers"))?;
        let name = UploadName::new(hex(&random), &self.with_scope(options));
        let upload_id = name.to_id();
        Ok(Multipart { id: id.clone(), upload_id, checksums: PartChecksums::None })
    }

    fn upload_name(&self, upload: &Multipart, operation: Operation) -> Result<UploadName, Error> {
        let message = "the upload's id isn't one of Laneway's";
        let exchange = Exchange::object(self, operation, &upload.id);
        UploadName::read(&upload.upload_id).ok_or_else(|| exchange.error(ErrorKind::NotFound, message))
    }

    pub(super) async fn upload_part(
        &self,
        upload: &Multipart,
        number: u32,
        body: Body,
        crc32c: u32,
    ) -> Result<Part, Error> {
        let exchange = Exchange::object(self, Operation::Part, &upload.id);
        let UploadName { random, kms_key: scope, .. } = self.upload_name(upload, Operation::Part)?;
        let size = body.len();
        loop {
            let wants_md5 = self.blocks.wants_md5.load(Ordering::Relaxed);
            let digest = BlockDigest::of(&body, wants_md5).await;
            let digest = digest.filter(|digest| digest.crc32c == crc32c).ok_or_else(|| {
                exchange.error(ErrorKind::Integrity, "the bytes changed before they were sent")
            })?;
            let block =
                BlockId { random: random.clone(), number, crc64: Some(digest.crc64), by_md5: wants_md5 };
            let part = Part { number, etag: block.encode(), size, crc32c: Some(crc32c), md5: digest.md5 };
            // The service refuses empty blocks, and an object of one empty part has no blocks.
            if size == 0 {
                return Ok(part);
            }
            let outgoing = put_block(&upload.id, &block, body.clone(), &digest, scope.as_deref())
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            let sent = match exchange.send(&outgoing).await {
                Err(error) if !wants_md5 && error.is_unsupported() => {
                    tracing::info!(
                        "the endpoint doesn't support CRC64: blocks are sent with MD5s from now on"
                    );
                    self.blocks.wants_md5.store(true, Ordering::Relaxed);
                    continue;
                }
                sent => sent?,
            };
            if wants_md5 {
                return Ok(part);
            }
            match sent.response.head.header("x-ms-content-crc64") {
                Some(stored) if stored.trim() == encode_crc64(digest.crc64) => return Ok(part),
                Some(_) => return Err(damaged(&exchange, &sent, number, "crc64nvme")),
                // The endpoint ignores CRC64, so it hasn't compared the bytes.
                None => self.blocks.wants_md5.store(true, Ordering::Relaxed),
            }
        }
    }

    /// Copies a range of a blob into a block. The service compares no checksum.
    pub(super) async fn copy_block(
        &self,
        upload: &Multipart,
        number: u32,
        from: &ObjectId,
        version: Option<&Version>,
        range: Range<u64>,
    ) -> Result<Part, Error> {
        let exchange = Exchange::object(self, Operation::Part, &upload.id);
        let UploadName { random, kms_key: scope, .. } = self.upload_name(upload, Operation::Part)?;
        let block = BlockId { random, number, crc64: None, by_md5: false };
        let size = range.end.saturating_sub(range.start);
        let part = Part { number, etag: block.encode(), size, crc32c: None, md5: None };
        if size == 0 {
            return Ok(part);
        }
        let condition = version.map_or(Condition::None, |version| Condition::Matches(version.clone()));
        let outgoing = Outgoing::new(Method::PUT, block_target(&upload.id, &block)).key_use(KeyUse::PartCopy);
        let outgoing = outgoing
            .header("x-ms-source-range", &format!("bytes={}-{}", range.start, range.end.saturating_sub(1)))
            .and_then(|outgoing| outgoing.header_some(SCOPE, scope.as_deref()))
            .map_err(|e| exchange.unsendable(&e))?;
        let outgoing = on_source(outgoing, &condition).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let outgoing = self.with_source(&exchange, outgoing, from, true).await?;
        exchange.send(&outgoing).await?;
        Ok(part)
    }

    async fn block_list(&self, id: &ObjectId, operation: Operation, kind: &str) -> Result<BlockList, Error> {
        let exchange = Exchange::object(self, operation, id);
        let query = QueryString::new().and("comp", "blocklist").and("blocklisttype", kind);
        let sent = exchange.send(&Outgoing::new(Method::GET, blob_target(id, query))).await?;
        xml::answer(&sent.response.body, &[BLOCK_LIST])
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a list of blocks: {e}")))
    }

    pub(super) async fn list_blocks(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        let random = self.upload_name(upload, Operation::ListParts)?.random;
        match self.block_list(&upload.id, Operation::ListParts, "uncommitted").await {
            Ok(list) => Ok(parts_of(list.uncommitted_blocks.blocks, &random)),
            // An upload begins without a request, so the service doesn't know it before its first block.
            Err(error) if error.code() == Some("BlobNotFound") => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn complete_upload(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Complete, &upload.id);
        let name = self.upload_name(upload, Operation::Complete)?;
        let parts = in_order(parts);
        let size = parts.iter().map(|part| part.size).sum();
        let outgoing = put_block_list(&upload.id, &parts, &name, whole, condition)
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let mut meta = match exchange.send(&outgoing).await {
            // A success without an ETag doesn't come from the service, but from a proxy.
            Ok(sent) if sent.response.head.header("etag").is_none() => {
                let error = exchange.nonsense(&sent, "the answer to the completion has no ETag");
                Box::pin(self.committed(&upload.id, &parts)).await.ok_or(error)?
            }
            Ok(sent) => written(&upload.id, &sent.response.head, size, &name.options()),
            // The answer of an attempt that succeeded may be lost. Its blocks prove that the blob is ours.
            Err(error) if error.is_uncertain() && (error.is_precondition() || error.is_not_found()) => {
                match Box::pin(self.committed(&upload.id, &parts)).await {
                    Some(meta) => meta,
                    None => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        // The service keeps the MD5 of the completion without comparing it. Only the CRC64s of the blocks prove the bytes.
        meta.checksums.md5 = None;
        meta.checksums.crc64nvme = crc64_of(&parts);
        compared(&exchange, meta, size, whole)
    }

    /// Returns the metadata of a blob that consists of exactly these blocks.
    async fn committed(&self, id: &ObjectId, parts: &[&Part]) -> Option<ObjectMeta> {
        let meta = self.head_of(id, None).await.ok()?;
        let list = self.block_list(id, Operation::Complete, "committed").await.ok()?;
        let ours: Vec<&str> = parts.iter().filter(|part| part.size > 0).map(|part| &*part.etag).collect();
        let stored: Vec<&str> = list.committed_blocks.blocks.iter().map(|block| &*block.name).collect();
        (!ours.is_empty() && ours == stored).then_some(meta)
    }
}

/// Returns the parts of one upload among a blob's uncommitted blocks, sorted by number. A part that was sent again with
/// other bytes has several blocks, and the last one counts.
fn parts_of(blocks: Vec<Block>, random: &str) -> Vec<StoredPart> {
    let part = |block: Block| {
        let id = BlockId::decode(&block.name).filter(|id| id.random == random)?;
        Some((id.number, StoredPart { number: id.number, etag: id.encode(), size: block.size, crc32c: None }))
    };
    let by_number: BTreeMap<u32, StoredPart> = blocks.into_iter().filter_map(part).collect();
    by_number.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: &str = "0123456789abcdef";

    fn block(number: u32, crc64: Option<u64>) -> BlockId {
        BlockId { random: RANDOM.to_owned(), number, crc64, by_md5: false }
    }

    fn part(number: u32, bytes: &[u8]) -> Part {
        let crc64 = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes);
        let etag = block(number, Some(crc64)).encode();
        Part { number, etag, size: bytes.len() as u64, crc32c: Some(1), md5: None }
    }

    #[test]
    fn all_block_ids_have_the_length_of_the_sdks_ids() {
        let by_md5 = BlockId { by_md5: true, ..block(2, Some(9)) };
        for id in [block(1, Some(0)), block(50_000, Some(u64::MAX)), block(7, None), by_md5] {
            let text = id.encode();
            assert_eq!(text.len(), 64);
            assert_eq!(BlockId::decode(&text), Some(id));
        }
        assert_eq!(BlockId::decode("AAAA"), None);
        assert_eq!(BlockId::decode("not base64"), None);
    }

    #[test]
    fn an_upload_id_keeps_the_metadata_for_a_later_run() {
        let options = PutOptions::default().content_type("text/plain").metadata("a", "b").tag("t", "u");
        let name = UploadName::new(RANDOM.to_owned(), &options);
        let read = UploadName::read(&name.to_id()).expect("a name");
        assert_eq!(read.options(), options);
        assert_eq!(UploadName::read("e30"), None);
        assert_eq!(UploadName::read("%"), None);
    }

    #[test]
    fn a_crc64_is_written_in_little_endian_order() {
        assert_eq!(encode_crc64(1), "AQAAAAAAAAA=");
    }

    #[test]
    fn the_crc64_of_the_whole_follows_from_the_blocks() {
        let parts = [part(1, b"hello "), part(2, b"world"), part(3, b"")];
        let parts: Vec<&Part> = parts.iter().collect();
        assert_eq!(crc64_of(&parts), Some(crc_fast::checksum(CrcAlgorithm::Crc64Nvme, b"hello world")));
        let copied = Part { etag: block(4, None).encode(), ..part(4, b"x") };
        assert_eq!(crc64_of(&[parts[0], &copied]), None);
        let by_md5 = BlockId { by_md5: true, ..block(4, Some(1)) }.encode();
        assert_eq!(crc64_of(&[parts[0], &Part { etag: by_md5, ..part(4, b"x") }]), None);
    }

    #[test]
    fn lists_only_the_blocks_of_its_own_upload() {
        let other = BlockId { random: "fedcba9876543210".to_owned(), number: 1, crc64: None, by_md5: false };
        let names =
            [block(2, Some(5)).encode(), other.encode(), "Zm9yZWlnbg==".to_owned(), block(1, None).encode()];
        let blocks = names.into_iter().map(|name| Block { name, size: 9 }).collect();
        let numbers: Vec<u32> = parts_of(blocks, RANDOM).iter().map(|part| part.number).collect();
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn reads_a_list_of_blocks() {
        let body = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><UncommittedBlocks><Block><Name>YQ==</Name>\
                    <Size>5</Size></Block></UncommittedBlocks></BlockList>";
        let list: BlockList = xml::answer(body.as_bytes(), &[BLOCK_LIST]).expect("a list");
        assert_eq!(list.uncommitted_blocks.blocks[0].size, 5);
        assert!(list.committed_blocks.blocks.is_empty());
        let empty: BlockList =
            xml::answer(b"<BlockList><UncommittedBlocks /></BlockList>", &[BLOCK_LIST]).expect("a list");
        assert!(empty.uncommitted_blocks.blocks.is_empty());
    }

    #[test]
    fn a_block_names_its_encryption_scope() {
        let digest = BlockDigest { crc32c: 0, crc64: 1, md5: None };
        let id = ObjectId::new("abc", "k");
        let sent =
            |scope| put_block(&id, &block(1, Some(1)), Body::empty(), &digest, scope).expect("a request");
        assert_eq!(sent(Some("team")).headers[SCOPE], "team");
        assert!(!sent(None).headers.contains_key(SCOPE));
    }

    #[test]
    fn a_completion_names_the_blocks_and_the_condition() {
        let name = UploadName::new(RANDOM.to_owned(), &PutOptions::default().content_type("text/plain"));
        let (one, two) = (part(1, b"a"), part(2, b"b"));
        let id = ObjectId::new("abc", "k");
        let list = put_block_list(&id, &[&one, &two], &name, &Checksums::default(), &Condition::Absent);
        let list = list.expect("a request");
        assert_eq!(list.headers["if-none-match"], "*");
        assert_eq!(list.headers["x-ms-blob-content-type"], "text/plain");
        let strange = Part { etag: "\"e\"".to_owned(), ..one };
        assert!(put_block_list(&id, &[&strange], &name, &Checksums::default(), &Condition::None).is_err());
    }
}
