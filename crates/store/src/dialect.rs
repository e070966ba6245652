//! The trait behind a [`Store`](crate::Store): one implementation for each kind of store.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use laneway_lanes::{Body, Path, Spare};
use serde_json::Value;

use crate::{
    AccessGrant, Appended, Capabilities, Changing, Checksums, Condition, Deletion, Error, ErrorKind,
    FolderPage, FolderRename, Get, Got, List, MetaChange, Multipart, ObjectId, ObjectMeta, Operation, Page,
    Part, Provider, PutOptions, ReadAs, Requests, Resumable, SignOptions, SignedUrl, StoredPart, Unless,
    Version,
};

/// The maximum number of concurrent deletes in the default [`Dialect::delete_many`].
const DELETES_AT_ONCE: usize = 16;

/// One kind of store. All kinds have the same verbs, and each kind implements them with its own requests, answers and
/// errors.
///
/// [`Store`](crate::Store) holds a dialect and documents each verb and the errors that an implementation returns. A
/// dialect retries requests itself, and compares checksums if the store sends them. It reports success only if the
/// store holds the result. Callers decide by [`capabilities`](Self::capabilities), never by the provider.
///
/// Every store must have `head`, `get`, `put`, `delete` and `list`. Without multipart uploads, a store accepts only
/// files of up to 16 MiB, because Laneway uploads larger files in parts. By default every other verb returns
/// [`Unsupported`](ErrorKind::Unsupported), and every query describes a store without special features.
#[async_trait]
pub trait Dialect: fmt::Debug + Send + Sync + 'static {
    /// Returns the kind of store, which decides the scheme of its URLs.
    fn provider(&self) -> Provider;

    /// Returns the capabilities of this kind of store.
    fn capabilities(&self) -> &Capabilities;

    /// Returns the URL to which requests go, without credentials. It must be the same for every bucket and region.
    fn endpoint(&self) -> String;

    /// Returns a digest of the settings that change the uploaded object (encryption keys, added headers). The settings
    /// can't be recovered from it.
    fn fingerprint(&self) -> String {
        String::new()
    }

    /// Returns the numbers of requests sent so far.
    fn requests(&self) -> Requests {
        Requests::default()
    }

    /// Announces requests for a bucket's objects, so that connections can open in advance. 0 cancels the announcement.
    fn anticipate(&self, _bucket: &str, _requests: usize) {}

    /// Returns the measured properties of the network path to a bucket's objects.
    async fn path(&self, _bucket: &str) -> Path {
        Path::default()
    }

    /// Returns the number of additional large requests for a bucket's objects that would raise the rate, because each
    /// would get its own connection.
    async fn spare(&self, _bucket: &str) -> Spare {
        Spare::none()
    }

    /// Returns true if the store itself enforces `condition` on this write, so that no other writer can change the
    /// object in between. By default no condition is enforced.
    fn keeps(&self, _operation: Operation, condition: &Condition) -> bool {
        condition.is_none()
    }

    /// Returns true if a bucket's listings are in the order of the keys.
    fn lists_in_order(&self, _bucket: &str) -> bool {
        true
    }

    /// Returns true if a bucket's listings can start at a key ([`List::start_after`]) without reading the keys before it.
    fn starts_at_keys(&self, _bucket: &str) -> bool {
        true
    }

    /// Returns false if answers have shown that the store doesn't support multipart uploads.
    fn supports_multipart(&self) -> bool {
        false
    }

    /// Returns true if the parts of one upload may have different sizes.
    fn takes_unequal_parts(&self) -> bool {
        true
    }

    /// See [`Store::head_unless`](crate::Store::head_unless). An implementation may ignore `unless` and return the
    /// metadata in any case.
    async fn head(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        read: ReadAs,
    ) -> Result<ObjectMeta, Error>;

    /// See [`Store::get`](crate::Store::get). A range, if there is one, is never empty.
    async fn get(&self, get: &Get<'_>, read: ReadAs) -> Result<Got, Error>;

    /// See [`Store::put`](crate::Store::put).
    async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error>;

    /// See [`Store::delete`](crate::Store::delete).
    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error>;

    /// See [`Store::list_arriving`](crate::Store::list_arriving).
    async fn list(
        &self,
        list: &List,
        arrived: &mut (dyn FnMut(Vec<ObjectMeta>) + Send),
    ) -> Result<Page, Error>;

    /// See [`Store::delete_many`](crate::Store::delete_many). By default each object is deleted with a separate
    /// request.
    async fn delete_many(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        let objects = objects.to_vec();
        let deletes = objects.into_iter().map(|object| async move {
            let id = object.object_id(bucket);
            let condition = object.version.map_or(Condition::None, Condition::Matches);
            self.delete(&id, &condition).await
        });
        stream::iter(deletes).buffered(DELETES_AT_ONCE).collect().await
    }

    /// See [`Store::copy_known`](crate::Store::copy_known).
    async fn copy(
        &self,
        _from: &ObjectId,
        _known: Option<&ObjectMeta>,
        to: &ObjectId,
        _options: &PutOptions,
        _condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        Err(unsupported(self, Operation::Copy, to, "this store can't copy objects by itself"))
    }

    /// See [`Store::rename`](crate::Store::rename). By default it returns `None`, so the caller copies the object and
    /// removes the source instead.
    async fn rename(
        &self,
        _source: &ObjectMeta,
        _to: &ObjectId,
        _condition: &Condition,
    ) -> Result<Option<ObjectMeta>, Error> {
        Ok(None)
    }

    /// See [`Store::compose_max`](crate::Store::compose_max).
    fn compose_max(&self) -> usize {
        0
    }

    /// See [`Store::compose`](crate::Store::compose).
    async fn compose(
        &self,
        _sources: &[ObjectMeta],
        to: &ObjectId,
        _options: &PutOptions,
        _whole: &Checksums,
    ) -> Result<ObjectMeta, Error> {
        Err(unsupported(self, Operation::Compose, to, "this store can't join objects in one request"))
    }

    /// See [`Store::set_meta`](crate::Store::set_meta).
    async fn set_meta(&self, id: &ObjectId, _change: &MetaChange) -> Result<ObjectMeta, Error> {
        Err(unsupported(self, Operation::SetMeta, id, "this store can't change metadata"))
    }

    /// Returns true if [`Store::restore`](crate::Store::restore) brings back deleted objects, and false if it restores
    /// archived objects or none.
    fn restores_deleted(&self) -> bool {
        false
    }

    /// See [`Store::restore`](crate::Store::restore).
    async fn restore(&self, id: &ObjectId, _options: &RestoreOptions) -> Result<Restoration, Error> {
        Err(unsupported(self, Operation::Restore, id, "this store can't restore objects"))
    }

    /// See [`Store::find_deleted`](crate::Store::find_deleted).
    async fn find_deleted(&self, id: &ObjectId) -> Result<ObjectMeta, Error> {
        Err(unsupported(self, Operation::Restore, id, "this store keeps no deleted objects"))
    }

    /// See [`Store::changing`](crate::Store::changing).
    async fn changing(&self, id: &ObjectId, _change: &MetaChange) -> Result<Changing, Error> {
        Err(unsupported(self, Operation::SetMeta, id, NO_CHANGING))
    }

    /// See [`Store::begin_change`](crate::Store::begin_change).
    async fn begin_change(&self, changing: &Changing, _checked: bool) -> Result<Multipart, Error> {
        Err(unsupported(self, Operation::SetMeta, &changing.found().id, NO_CHANGING))
    }

    /// See [`Store::changed`](crate::Store::changed).
    async fn changed(&self, changing: &Changing, _made: &ObjectMeta) -> Result<ObjectMeta, Error> {
        Err(unsupported(self, Operation::SetMeta, &changing.found().id, NO_CHANGING))
    }

    /// See [`Store::sign`](crate::Store::sign).
    async fn sign(
        &self,
        id: &ObjectId,
        _options: &SignOptions,
        _now: SystemTime,
    ) -> Result<SignedUrl, Error> {
        Err(unsupported(self, Operation::Sign, id, "this store can't sign URLs"))
    }

    /// See [`Store::part_len`](crate::Store::part_len).
    async fn part_len(
        &self,
        _id: &ObjectId,
        _version: Option<&Version>,
        _number: u32,
        _read: ReadAs,
    ) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// See [`Store::part_lens`](crate::Store::part_lens).
    async fn part_lens(
        &self,
        _id: &ObjectId,
        _version: Option<&Version>,
        _read: ReadAs,
    ) -> Result<Option<Vec<u64>>, Error> {
        Ok(None)
    }

    /// Returns true if different [`PartsAlgorithm::Md5`](crate::PartsAlgorithm) digests prove that the bytes differ.
    /// Laneway reads these digests from ETags of the form `digest-number`, which on some stores aren't MD5s of the
    /// parts' MD5s.
    fn trusts_md5s_of_parts(&self) -> bool {
        false
    }

    /// Records that such a digest has matched. From now on, a different digest proves that the bytes differ.
    fn trust_md5s_of_parts(&self) {}

    /// Returns true if this store's ETags of 32 hexadecimal digits are known not to be MD5s. This also applies to the
    /// ETags in listings.
    fn has_opaque_etags(&self) -> bool {
        false
    }

    /// See [`Store::tags`](crate::Store::tags).
    async fn tags(&self, _id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        Ok(BTreeMap::new())
    }

    /// See [`Store::access_list`](crate::Store::access_list).
    async fn access_list(&self, id: &ObjectId) -> Result<Vec<AccessGrant>, Error> {
        Err(unsupported(self, Operation::Access, id, "this store has no access control lists"))
    }

    /// See [`Store::begin`](crate::Store::begin).
    async fn begin(&self, id: &ObjectId, _options: &PutOptions) -> Result<Multipart, Error> {
        Err(unsupported(self, Operation::Begin, id, NO_MULTIPART))
    }

    /// See [`Store::begin_unchecked`](crate::Store::begin_unchecked). By default the same as [`begin`](Self::begin).
    async fn begin_unchecked(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.begin(id, options).await
    }

    /// See [`Store::part`](crate::Store::part).
    async fn part(&self, upload: &Multipart, _number: u32, _body: Body, _crc32c: u32) -> Result<Part, Error> {
        Err(unsupported(self, Operation::Part, &upload.id, NO_MULTIPART))
    }

    /// See [`Store::part_copy`](crate::Store::part_copy).
    async fn part_copy(
        &self,
        upload: &Multipart,
        _number: u32,
        _from: &ObjectId,
        _version: Option<&Version>,
        _range: Range<u64>,
    ) -> Result<Part, Error> {
        Err(unsupported(self, Operation::Part, &upload.id, "this store can copy only whole objects"))
    }

    /// See [`Store::list_parts`](crate::Store::list_parts).
    async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        Err(unsupported(self, Operation::ListParts, &upload.id, NO_MULTIPART))
    }

    /// See [`Store::list_uploads`](crate::Store::list_uploads).
    async fn list_uploads(&self, _bucket: &str, _prefix: &str) -> Result<Vec<Multipart>, Error> {
        Ok(Vec::new())
    }

    /// See [`Store::complete`](crate::Store::complete).
    async fn complete(
        &self,
        upload: &Multipart,
        _parts: &[Part],
        _whole: &Checksums,
        _condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        Err(unsupported(self, Operation::Complete, &upload.id, NO_MULTIPART))
    }

    /// See [`Store::abort`](crate::Store::abort).
    async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        Err(unsupported(self, Operation::Abort, &upload.id, NO_MULTIPART))
    }

    /// See [`Store::resumable_begin`](crate::Store::resumable_begin).
    async fn resumable_begin(
        &self,
        id: &ObjectId,
        _len: Option<u64>,
        _options: &PutOptions,
        _sums: Option<&Checksums>,
    ) -> Result<Resumable, Error> {
        Err(unsupported(self, Operation::Begin, id, NO_SESSIONS))
    }

    /// See [`Store::resumable_append`](crate::Store::resumable_append).
    async fn resumable_append(
        &self,
        session: &Resumable,
        _offset: u64,
        _body: Body,
        _last: bool,
    ) -> Result<Appended, Error> {
        Err(unsupported(self, Operation::Part, &session.id, NO_SESSIONS))
    }

    /// See [`Store::resumable_status`](crate::Store::resumable_status).
    async fn resumable_status(&self, session: &Resumable) -> Result<Appended, Error> {
        Err(unsupported(self, Operation::Part, &session.id, NO_SESSIONS))
    }

    /// See [`Store::resumable_cancel`](crate::Store::resumable_cancel).
    async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        Err(unsupported(self, Operation::Abort, &session.id, NO_SESSIONS))
    }

    /// See [`Store::bucket_setting`](crate::Store::bucket_setting).
    async fn bucket_setting(&self, bucket: &str, _setting: BucketSetting) -> Result<Value, Error> {
        Err(unsupported(self, Operation::BucketSettings, &ObjectId::new(bucket, ""), FIXED_BUCKETS))
    }

    /// See [`Store::set_bucket_setting`](crate::Store::set_bucket_setting).
    async fn set_bucket_setting(
        &self,
        bucket: &str,
        _setting: BucketSetting,
        _value: Option<&Value>,
    ) -> Result<(), Error> {
        Err(unsupported(self, Operation::BucketSettings, &ObjectId::new(bucket, ""), FIXED_BUCKETS))
    }

    /// See [`Store::has_folders`](crate::Store::has_folders).
    async fn has_folders(&self, _bucket: &str) -> Result<bool, Error> {
        Ok(false)
    }

    /// See [`Store::folders`](crate::Store::folders).
    async fn folders(&self, _bucket: &str, _prefix: &str, _token: Option<&str>) -> Result<FolderPage, Error> {
        Ok(FolderPage::default())
    }

    /// See [`Store::delete_folder`](crate::Store::delete_folder).
    async fn delete_folder(&self, bucket: &str, folder: &str) -> Result<(), Error> {
        Err(unsupported(self, Operation::Delete, &ObjectId::new(bucket, folder), NO_FOLDERS))
    }

    /// See [`Store::rename_folder`](crate::Store::rename_folder).
    async fn rename_folder(&self, _bucket: &str, _from: &str, _to: &str) -> Result<FolderRename, Error> {
        Ok(FolderRename::Refused(NO_FOLDERS.to_owned()))
    }

    /// See [`Store::folder_rename`](crate::Store::folder_rename).
    async fn folder_rename(&self, bucket: &str, _operation: &str) -> Result<FolderRename, Error> {
        Err(unsupported(self, Operation::Copy, &ObjectId::new(bucket, ""), NO_FOLDERS))
    }

    /// See [`Store::buckets`](crate::Store::buckets).
    async fn buckets(&self) -> Result<Vec<String>, Error> {
        Err(unsupported(self, Operation::List, &ObjectId::new("", ""), "this store can't list buckets"))
    }

    /// See [`Store::create_bucket`](crate::Store::create_bucket).
    async fn create_bucket(&self, bucket: &str, _new: &NewBucket) -> Result<(), Error> {
        Err(unsupported(self, Operation::CreateBucket, &ObjectId::new(bucket, ""), FIXED_BUCKETS))
    }

    /// See [`Store::delete_bucket`](crate::Store::delete_bucket).
    async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
        Err(unsupported(self, Operation::DeleteBucket, &ObjectId::new(bucket, ""), FIXED_BUCKETS))
    }
}

/// The settings of a new bucket.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NewBucket {
    /// The place where the bucket keeps its objects: on GCS a location (`EU`, `us-central1`), on S3 the region to which
    /// the requests go. By default the store or the endpoint chooses it.
    pub location: Option<String>,
    /// The default storage class of the bucket's objects. Only GCS supports it.
    pub storage_class: Option<String>,
}

/// A setting of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BucketSetting {
    /// Versioning, with which a bucket keeps old versions of its objects: `{"enabled": true}` on GCS,
    /// `{"Status": "Enabled"}` on S3.
    Versioning,
    /// The rules that remove objects or change their class. On GCS the JSON is that of `gcloud storage`
    /// (`{"rule": [...]}`). On S3 it is that of `aws s3api` (`{"Rules": [...]}`).
    Lifecycle,
}

/// The options of a restoration.
///
/// ```
/// use laneway_store::RestoreOptions;
///
/// let options = RestoreOptions::default().days(7).tier("Bulk");
/// assert_eq!(options.days, Some(7));
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// S3: the number of days for which the restored copy stays. Leave it empty for objects in an archive tier of
    /// INTELLIGENT_TIERING, which leave the archive permanently.
    pub days: Option<u32>,
    /// S3: the retrieval tier, which decides the speed and the price: `Standard`, `Bulk` or `Expedited`.
    pub tier: Option<String>,
    /// GCS: if true, the restored object replaces a live object of the same name.
    pub overwrite: bool,
}

impl RestoreOptions {
    /// Sets [`days`](field@Self::days).
    #[must_use]
    pub fn days(mut self, days: u32) -> Self {
        self.days = Some(days);
        self
    }

    /// Sets [`tier`](field@Self::tier).
    #[must_use]
    pub fn tier(mut self, tier: impl Into<String>) -> Self {
        self.tier = Some(tier.into());
        self
    }

    /// Sets [`overwrite`](field@Self::overwrite).
    #[must_use]
    pub fn overwrite(mut self, overwrites: bool) -> Self {
        self.overwrite = overwrites;
        self
    }
}

/// The state of an object after a request to restore it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Restoration {
    /// The store has begun the restoration, which takes minutes to days.
    Begun,
    /// The store had begun before this request.
    UnderWay,
    /// The object can be read. If S3 had restored a copy before, it now keeps the copy for the days of this request.
    Readable,
    /// S3: the object isn't in an archive. GCS: a live object has its name.
    NotNeeded,
}

const NO_CHANGING: &str = "this store can't change an object by an upload";

const NO_MULTIPART: &str = "this store has no multipart uploads";

const NO_SESSIONS: &str = "this store has no resumable sessions";

const NO_FOLDERS: &str = "this store has no folders";

const FIXED_BUCKETS: &str = "this store can't create, change or delete buckets";

fn unsupported<D: Dialect + ?Sized>(dialect: &D, operation: Operation, id: &ObjectId, why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, operation, why).on_object(dialect.provider(), id)
}
