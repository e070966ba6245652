//! The verbs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use laneway_lanes::{Body, Lanes, Path};

use crate::encryption::Keyed;
use crate::exchange::Dialect as _;
use crate::gcs::Gcs;
use crate::s3::{self, S3};
use crate::{
    Appended, Checksums, Condition, Deletion, Error, ErrorKind, Get, GetRange, Got, List, Multipart,
    ObjectId, ObjectMeta, Operation, Page, Part, Provider, PutOptions, Requests, Resumable, Settings,
    StoredPart, Unless, Version,
};

/// One provider with its endpoint and credentials. Buckets are arguments; clones share everything.
///
/// Every verb makes as many attempts as help (see the crate's `judge` rules for which errors do), and every error
/// names the verb, the object, the attempts and the time they took.
#[derive(Clone, Debug)]
pub struct Store {
    dialect: Dialect,
    /// Whose key its reads take.
    reads: Keyed,
}

#[derive(Clone, Debug)]
enum Dialect {
    Gcs(Arc<Gcs>),
    S3(Arc<S3>),
}

impl Store {
    /// A store whose requests go over `lanes`. Nothing is sent and no credentials are looked for yet.
    ///
    /// # Errors
    /// `Invalid` for an endpoint that is no URL.
    pub fn new(provider: Provider, settings: &Settings, lanes: Lanes) -> Result<Self, Error> {
        let dialect = match provider {
            Provider::Gcs => Gcs::new(settings, lanes).map(Dialect::Gcs),
            Provider::S3 => S3::new(settings, lanes).map(Dialect::S3),
        };
        let dialect = dialect.map_err(|error| name_sources(provider, error))?;
        Ok(Self { dialect, reads: Keyed::Object })
    }

    /// The same store as the source of copies: its reads take [`Encryption::source_customer_key`](crate::Encryption).
    #[must_use]
    pub fn as_source(&self) -> Self {
        Self { reads: Keyed::Source, ..self.clone() }
    }

    /// Whose protocol it speaks.
    pub fn provider(&self) -> Provider {
        match &self.dialect {
            Dialect::Gcs(_) => Provider::Gcs,
            Dialect::S3(_) => Provider::S3,
        }
    }

    /// The scheme of its URLs: `gs` or `s3`.
    pub fn scheme(&self) -> &'static str {
        self.provider().scheme()
    }

    /// Where its requests go, as an URL without credentials: the same text for the same store, whatever bucket or region.
    pub fn endpoint(&self) -> String {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.endpoint(),
            Dialect::S3(s3) => s3.endpoint(),
        }
    }

    /// A digest of what it adds to each upload by itself ([`Settings::kms_key`], [`Settings::headers`], who pays), from
    /// which none of that can be had back: an upload that was begun under another makes another object.
    pub fn fingerprint(&self) -> String {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.fingerprint(),
            Dialect::S3(s3) => s3.fingerprint(),
        }
    }

    /// What its requests go over.
    pub fn lanes(&self) -> &Lanes {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.lanes(),
            Dialect::S3(s3) => s3.lanes(),
        }
    }

    /// Says how many requests for the bucket's objects are about to come while it is still being found out what they are,
    /// so that connections for them are opened meanwhile; 0 takes back what has not come.
    pub fn anticipate(&self, bucket: &str, requests: usize) {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.anticipate(requests),
            Dialect::S3(s3) => s3.anticipate(bucket, requests),
        }
    }

    /// What is known so far of the way to the bucket's objects.
    pub async fn path(&self, bucket: &str) -> Path {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.path().await,
            Dialect::S3(s3) => s3.path(bucket).await,
        }
    }

    /// Whether the store itself keeps the condition of a write (put, complete, copy, delete), so that no other writer can come
    /// between. Some S3 endpoints don't, as far as is known or seen: there the object is compared before and after.
    pub fn keeps(&self, operation: Operation, condition: &Condition) -> bool {
        match &self.dialect {
            Dialect::Gcs(_) => true,
            Dialect::S3(s3) => s3.keeps(operation, condition),
        }
    }

    /// What has been asked of it so far, as its price list classes requests.
    pub fn requests(&self) -> Requests {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.tally().snapshot(),
            Dialect::S3(s3) => s3.tally().snapshot(),
        }
    }

    /// What the store knows about an object, in the state `version` if one is named.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` when the object isn't in that state any more.
    pub async fn head(&self, id: &ObjectId, version: Option<&Version>) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, None).await
    }

    /// The same, of an object that is no longer what the caller has.
    ///
    /// # Errors
    /// As [`head`](Self::head)'s; `NotModified` when it is.
    pub async fn head_unless(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: &Unless,
    ) -> Result<ObjectMeta, Error> {
        let meta = self.head_as(id, version, Some(unless)).await?;
        if unless.is_met(&meta) {
            let error = Error::new(ErrorKind::NotModified, Operation::Head, NOT_MODIFIED);
            return Err(error.on_object(self.provider(), id));
        }
        Ok(meta)
    }

    async fn head_as(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
    ) -> Result<ObjectMeta, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.head_as(id, version, unless, self.reads).await,
            Dialect::S3(s3) => s3.head_as(id, version, unless, self.reads).await,
        }
    }

    /// How many bytes part `number` (from 1) of an object has that was uploaded in parts. `None` where the store doesn't
    /// tell: GCS forgets parts, some S3 servers pay no attention to the question.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` when the object isn't in the state `version` any more; what the server calls a part
    /// number that the object doesn't have.
    pub async fn part_len(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        number: u32,
    ) -> Result<Option<u64>, Error> {
        match &self.dialect {
            Dialect::Gcs(_) => Ok(None),
            Dialect::S3(s3) => s3.part_len(id, version, number, self.reads).await,
        }
    }

    /// Downloads an object or a range of it, as it is stored. A range that reaches beyond the end, or with
    /// [`GetRange::Last`] before the start, is cut there; [`Got::range`] and [`Got::meta`] tell which bytes came of how many.
    ///
    /// Attempts are repeated only until the first byte has reached a sink, each with a sink of its own.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` for an object that isn't in the state `version`; `NotModified` for one that is what
    /// [`Get::unless`] says; `InvalidRange` for a range that starts at or beyond the end (of an empty object the range from
    /// 0, and the last bytes, are its emptiness); a body that broke after
    /// bytes were delivered is an error that [`is_interrupted`](Error::is_interrupted).
    pub async fn get(&self, get: Get<'_>) -> Result<Got, Error> {
        if get.range.as_ref().is_some_and(GetRange::is_empty) {
            let message = "the range holds no byte";
            return Err(Error::new(ErrorKind::InvalidRange, Operation::Get, message)
                .on_object(self.provider(), get.id));
        }
        if let (Provider::Gcs, Some(unless @ Unless::ModifiedSince(_))) = (self.provider(), get.unless) {
            self.head_unless(get.id, get.version, unless).await.map_err(|e| e.within(Operation::Get))?;
        }
        match self.plain_get(&get).await {
            Err(error)
                if error.kind() == ErrorKind::InvalidRange
                    && get.range.as_ref().is_some_and(GetRange::is_whole_of_nothing) =>
            {
                self.empty(get, error).await
            }
            Err(error) if error.lacks_size() => self.measured(get, error).await,
            outcome => outcome,
        }
    }

    async fn plain_get(&self, get: &Get<'_>) -> Result<Got, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.get(get, self.reads).await,
            Dialect::S3(s3) => s3.get(get, self.reads).await,
        }
    }

    /// An answer in chunks that tells no size anywhere: the object's description does.
    async fn measured(&self, get: Get<'_>, refused: Error) -> Result<Got, Error> {
        let Ok(meta) = self.head(get.id, get.version).await else { return Err(refused) };
        let version = get.version.or(meta.version.as_ref());
        self.plain_get(&Get { version, size: Some(meta.size), ..get }).await
    }

    /// An empty object has no byte 0, so that a range from there is refused; whoever asked means its emptiness.
    async fn empty(&self, get: Get<'_>, refused: Error) -> Result<Got, Error> {
        let whole = Get { range: None, sink: None, ..get.clone() };
        let meta = self.head(get.id, get.version).await?;
        if meta.size != 0 {
            return Err(refused);
        }
        let got = self.plain_get(&whole).await?;
        if got.meta.size != 0 {
            return Err(refused);
        }
        if let Some(maker) = get.sink
            && let Err(error) = maker().begin(&got.meta, 0..0)
        {
            return Err(Error::new(ErrorKind::Sink, Operation::Get, error.to_string())
                .on_object(self.provider(), get.id)
                .because(error));
        }
        Ok(got)
    }

    /// Writes an object in one request. What the store says it stored is compared with `sums`, and bytes that differ are sent
    /// once more; where it says nothing,
    /// the checksums that come back are empty. S3 repeats little else of what it stored: `head` tells the rest.
    ///
    /// # Errors
    /// `Precondition` when `options.condition` doesn't hold, `AlreadyExists` of [`Condition::Absent`]; `Integrity` when
    /// the store has something else.
    pub async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let put = || async {
            match &self.dialect {
                Dialect::Gcs(gcs) => gcs.put(id, body.clone(), sums, options).await,
                Dialect::S3(s3) => s3.put(id, body.clone(), sums, options).await,
            }
        };
        let put = match put().await {
            // Where it wasn't refused it is stored, and under a condition stands in its own way.
            Err(error)
                if error.is_integrity() && (error.status().is_some() || options.condition.is_none()) =>
            {
                again(&error);
                Box::pin(put()).await
            }
            put => put,
        };
        put.map_err(|error| error.of_write(&options.condition))
    }

    /// Deletes an object. S3 reports success also for one that wasn't there.
    ///
    /// # Errors
    /// `NotFound` on GCS; `Precondition` when the object isn't in the state that `condition` names.
    pub async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.delete(id, condition).await,
            Dialect::S3(s3) => s3.delete(id, condition).await,
        }
    }

    /// Deletes many objects of a bucket with few requests: 1000 keys each on S3, 100 on GCS. The results stand in the
    /// order of the keys.
    pub async fn delete_many(&self, bucket: &str, keys: &[String]) -> Vec<Result<(), Error>> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.delete_many(bucket, keys).await,
            Dialect::S3(s3) => {
                let any = |key: &String| Deletion { key: key.clone(), version: None };
                s3.delete_many(bucket, &keys.iter().map(any).collect::<Vec<_>>()).await
            }
        }
    }

    /// The same of objects in the states that are named, and in no others. GCS is sent a request for each.
    pub async fn delete_many_in(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.delete_many_in(bucket, objects).await,
            Dialect::S3(s3) => s3.delete_many(bucket, objects).await,
        }
    }

    /// One page of a listing.
    ///
    /// # Errors
    /// `NotFound` when there is no such bucket.
    pub async fn list(&self, list: &List) -> Result<Page, Error> {
        let mut objects = Vec::new();
        let page = self.list_arriving(list, |arrived| objects.extend(arrived)).await?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }

    /// One page of a listing, its objects handed to `out` as they arrive, each once and in the page's order. The page
    /// that is returned holds those that came last.
    ///
    /// # Errors
    /// As [`list`](Self::list)'s; `out` may have had objects by then.
    pub async fn list_arriving(
        &self,
        list: &List,
        out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.list(list, out).await,
            Dialect::S3(s3) => s3.list(list, out).await,
        }
    }

    /// Whether listings of a bucket come in the order of its keys: those of S3's directory buckets don't.
    pub fn lists_in_order(&self, bucket: &str) -> bool {
        match &self.dialect {
            Dialect::Gcs(_) => true,
            Dialect::S3(_) => s3::lists_in_order(bucket),
        }
    }

    /// The names of the buckets that the credentials own; on GCS those of [`Settings::project`].
    ///
    /// # Errors
    /// `Invalid` on GCS when no project is known.
    pub async fn buckets(&self) -> Result<Vec<String>, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.buckets().await,
            Dialect::S3(s3) => s3.buckets().await,
        }
    }

    /// Copies an object inside the store, without its bytes coming here. What `options` leaves empty is kept (where it
    /// says something of the description, the rest of it is read from the source first).
    /// `condition` is about the source, `options.condition` about the destination. S3 copies at most 5 GiB in one
    /// call: see [`part_copy`](Self::part_copy).
    ///
    /// # Errors
    /// `NotFound`; `Precondition`, or `AlreadyExists` where only the destination has a condition; `Invalid` for a source
    /// beyond 5 GiB on S3.
    pub async fn copy(
        &self,
        from: &ObjectId,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let copied = match &self.dialect {
            Dialect::Gcs(gcs) => gcs.copy(from, to, options, condition).await,
            Dialect::S3(s3) => s3.copy(from, to, options, condition).await,
        };
        // With two conditions nobody says which of them failed.
        copied.map_err(|error| if condition.is_none() { error.of_write(&options.condition) } else { error })
    }

    /// The tags of an object; on GCS, which has none, none.
    ///
    /// # Errors
    /// `NotFound`; `Permission`.
    pub async fn tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        match &self.dialect {
            Dialect::Gcs(_) => Ok(BTreeMap::new()),
            Dialect::S3(s3) => s3.tags(id).await,
        }
    }

    /// Begins a multipart upload.
    ///
    /// # Errors
    /// `Unsupported` on GCS with a condition, and where the server has no multipart uploads.
    pub async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.begin(id, options).await,
            Dialect::S3(s3) => s3.begin(id, options).await,
        }
    }

    /// Uploads a part: `number` from 1 to 10000, at least 5 MiB unless it is the last. The store's checksum of it is
    /// compared before it is reported, and one that differs sent once more.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone; `Integrity` when the store has something else.
    pub async fn part(
        &self,
        upload: &Multipart,
        number: u32,
        body: Body,
        crc32c: u32,
    ) -> Result<Part, Error> {
        let part = || async {
            match &self.dialect {
                Dialect::Gcs(gcs) => gcs.part(upload, number, body.clone(), crc32c).await,
                Dialect::S3(s3) => s3.part(upload, number, body.clone(), crc32c).await,
            }
        };
        match part().await {
            Err(error) if error.is_integrity() => {
                again(&error);
                part().await
            }
            part => part,
        }
    }

    /// Makes a part of a range of another object.
    ///
    /// # Errors
    /// `Unsupported` on GCS, whose rewrite copies objects of any size.
    pub async fn part_copy(
        &self,
        upload: &Multipart,
        number: u32,
        from: &ObjectId,
        version: Option<&Version>,
        range: Range<u64>,
    ) -> Result<Part, Error> {
        match &self.dialect {
            Dialect::Gcs(_) => {
                Err(self.unsupported(Operation::Part, &upload.id, "GCS copies whole objects only"))
            }
            Dialect::S3(s3) => s3.part_copy(upload, number, from, version, range).await,
        }
    }

    /// The parts that the store has of an upload, by their numbers.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone, completed ones included.
    pub async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.list_parts(upload).await,
            Dialect::S3(s3) => s3.list_parts(upload).await,
        }
    }

    /// Makes the object of its parts. Its checksum is compared with `whole`, read back where the answer lacks it.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone; `Precondition` or `AlreadyExists`; `Integrity` when the store has something
    /// else.
    pub async fn complete(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let completed = match &self.dialect {
            Dialect::Gcs(gcs) => gcs.complete(upload, parts, whole, condition).await,
            Dialect::S3(s3) => s3.complete(upload, parts, whole, condition).await,
        };
        completed.map_err(|error| error.of_write(condition))
    }

    /// Gives up a multipart upload, and with it its parts.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone.
    pub async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.abort(upload).await,
            Dialect::S3(s3) => s3.abort(upload).await,
        }
    }

    /// Whether [`begin`](Self::begin) can work: false once a GCS server has shown that it knows no XML multipart
    /// uploads.
    pub fn supports_multipart(&self) -> bool {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.supports_multipart(),
            Dialect::S3(_) => true,
        }
    }

    /// Whether the parts of one upload may differ in size. Stores that speak S3's protocol and aren't Amazon's may
    /// refuse that when the upload is completed, as Cloudflare R2 does
    /// (<https://developers.cloudflare.com/r2/objects/multipart-objects/>).
    pub fn takes_unequal_parts(&self) -> bool {
        match &self.dialect {
            Dialect::Gcs(_) => true,
            Dialect::S3(s3) => s3.takes_unequal_parts(),
        }
    }

    /// Begins a resumable session, for preconditions and for servers without multipart uploads. `sums`, if the whole
    /// is known already, are checked by the store when the session ends.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_begin(
        &self,
        id: &ObjectId,
        len: Option<u64>,
        options: &PutOptions,
        sums: Option<&Checksums>,
    ) -> Result<Resumable, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => {
                let begun = gcs.resumable_begin(id, len, options, sums).await;
                begun.map_err(|error| error.of_write(&options.condition))
            }
            Dialect::S3(_) => Err(self.unsupported(Operation::Begin, id, NO_SESSIONS)),
        }
    }

    /// Appends bytes to a session at `offset`; all but the `last` chunk are a multiple of 256 KiB long. An answer that
    /// was lost is asked for again, so that the session may go on from within the chunk. The object that the last
    /// chunk makes is not compared with anything: its checksums are in the answer.
    ///
    /// # Errors
    /// `NotFound` when the session is gone; `Precondition`; `Unsupported` on S3.
    pub async fn resumable_append(
        &self,
        session: &Resumable,
        offset: u64,
        body: Body,
        last: bool,
    ) -> Result<Appended, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.resumable_append(session, offset, body, last).await,
            Dialect::S3(_) => Err(self.unsupported(Operation::Part, &session.id, NO_SESSIONS)),
        }
    }

    /// Where a session stands.
    ///
    /// # Errors
    /// `NotFound` when the session is gone; `Unsupported` on S3.
    pub async fn resumable_status(&self, session: &Resumable) -> Result<Appended, Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.resumable_status(session).await,
            Dialect::S3(_) => Err(self.unsupported(Operation::Part, &session.id, NO_SESSIONS)),
        }
    }

    /// Gives a session up; one that is gone already is no error.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        match &self.dialect {
            Dialect::Gcs(gcs) => gcs.resumable_cancel(session).await,
            Dialect::S3(_) => Err(self.unsupported(Operation::Abort, &session.id, NO_SESSIONS)),
        }
    }

    fn unsupported(&self, operation: Operation, id: &ObjectId, message: &str) -> Error {
        Error::new(ErrorKind::Unsupported, operation, message).on_object(self.provider(), id)
    }
}

/// Said of an object that the caller has, by whoever compares it here.
pub(crate) const NOT_MODIFIED: &str = "the object is what the reader has";

const NO_SESSIONS: &str = "S3 has no resumable sessions; multipart uploads go on";

/// Says that bytes which arrived damaged are sent once more: a bit may have flipped on the way.
fn again(error: &Error) {
    tracing::info!(target: laneway_lanes::RETRY, attempt = 2, after_ms = 0, throttled = false, cause = %error, "trying again");
}

/// Says where an endpoint that is no URL may have come from, where that isn't known.
fn name_sources(provider: Provider, error: Error) -> Error {
    if provider != Provider::Gcs || !error.message().contains("is no endpoint URL") {
        return error;
    }
    let message = format!("{} (set by --gcs-endpoint or STORAGE_EMULATOR_HOST)", error.message());
    let kind = error.kind();
    error.but(kind, message)
}
