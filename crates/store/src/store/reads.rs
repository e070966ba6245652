//! Reads objects and their metadata, and lists them.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::Store;
use crate::unless::NOT_MODIFIED;
use crate::{
    AccessGrant, Error, ErrorKind, Get, GetRange, Got, List, ListingLimits, ObjectId, ObjectMeta, Operation,
    Page, SignOptions, SignedUrl, Unless, Version,
};

impl Store {
    /// Returns an object's metadata. If `version` is set, the object must be in that state.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` if the object is no longer in that state.
    pub async fn head(&self, id: &ObjectId, version: Option<&Version>) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, None).await
    }

    /// Returns an object's metadata, unless the object is still in the state that the caller has.
    ///
    /// # Errors
    /// As for [`head`](Self::head); `NotModified` if it is still in that state.
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
        self.dialect.head(id, version, unless, self.read).await
    }

    /// Returns a URL, signed at `now`, with which anybody can make one kind of request for the object. Laneway doesn't
    /// check if the object exists, or if the credentials permit the request.
    ///
    /// # Errors
    /// `Invalid` for a time or a name that can't be signed, `Unauthenticated` without credentials that can sign.
    pub async fn sign(
        &self,
        id: &ObjectId,
        options: &SignOptions,
        now: SystemTime,
    ) -> Result<SignedUrl, Error> {
        self.dialect.sign(id, options, now).await
    }

    /// Returns the size in bytes of part `number` (from 1) of an object that was uploaded in parts. Returns `None` if
    /// the store doesn't report it: GCS doesn't keep parts, and some S3 servers ignore the parameter.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` if the object is no longer in the state `version`; the server's error for a part
    /// number that the object doesn't have.
    pub async fn part_len(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        number: u32,
    ) -> Result<Option<u64>, Error> {
        self.dialect.part_len(id, version, number, self.read).await
    }

    /// Returns the size in bytes of each part of an object that was uploaded in parts. Returns `None` if the store
    /// doesn't list the parts. S3 lists parts only if they have checksums.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` if the object is no longer in the state `version`; `Permission` if the caller lacks
    /// the separate permission that this request needs.
    pub async fn part_lens(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
    ) -> Result<Option<Vec<u64>>, Error> {
        self.dialect.part_lens(id, version, self.read).await
    }

    /// Returns true if this store is known to compute ETags of the form `digest-number` as the MD5 of the parts' MD5s. If
    /// so, a different MD5 proves that the bytes differ.
    pub fn trusts_md5s_of_parts(&self) -> bool {
        self.dialect.trusts_md5s_of_parts()
    }

    /// Records that an ETag of the form `digest-number` has matched. From now on, an ETag of this form that doesn't match
    /// proves that the bytes differ.
    pub fn trust_md5s_of_parts(&self) {
        self.dialect.trust_md5s_of_parts();
    }

    /// Returns true if this store's ETags of 32 hexadecimal digits are known not to be MD5s. This also applies to the
    /// ETags in listings. Laneway learns it from the endpoint's host or from a put.
    pub fn has_opaque_etags(&self) -> bool {
        self.dialect.has_opaque_etags()
    }

    /// Returns the permissions that an object's access control list grants.
    ///
    /// # Errors
    /// `NotFound`; `Permission` if the caller lacks the separate permission that this request needs.
    pub async fn access_list(&self, id: &ObjectId) -> Result<Vec<AccessGrant>, Error> {
        self.dialect.access_list(id).await
    }

    /// Downloads an object or a range of it, as it is stored. A range that reaches beyond the object's end stops at the
    /// end. If [`GetRange::Last`] is longer than the object, the whole object arrives. [`Got::range`] is the range that
    /// arrived, and [`Got::meta`] contains the object's size.
    ///
    /// Laneway retries only until the first byte has reached a sink. Each attempt gets a new sink.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` if the object isn't in the state `version`; `NotModified` if it is in the state of
    /// [`Get::unless`]. `InvalidRange` for a range that starts at or beyond the end. For an empty object, a range that
    /// starts at 0 and [`GetRange::Last`] succeed, and return no bytes. A body that broke off after bytes were
    /// delivered is an error that [`is_interrupted`](Error::is_interrupted).
    pub async fn get(&self, get: Get<'_>) -> Result<Got, Error> {
        if get.range.as_ref().is_some_and(GetRange::is_empty) {
            let message = "the range holds no byte";
            return Err(Error::new(ErrorKind::InvalidRange, Operation::Get, message)
                .on_object(self.provider(), get.id));
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
        self.dialect.get(get, self.read).await
    }

    /// Repeats a download whose answer didn't contain the object's size, with the size from the object's metadata.
    async fn measured(&self, get: Get<'_>, refused: Error) -> Result<Got, Error> {
        let Ok(meta) = self.head(get.id, get.version).await else { return Err(refused) };
        let version = get.version.or(meta.version.as_ref());
        self.plain_get(&Get { version, size: Some(meta.size), ..get }).await
    }

    /// Handles a range of an empty object. Stores refuse such a range, because there is no byte 0, but the caller means
    /// the whole object.
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

    /// Returns the tags of an object. GCS has no tags, so there they are empty.
    ///
    /// # Errors
    /// `NotFound`; `Permission`.
    pub async fn tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        self.dialect.tags(id).await
    }
}

impl Store {
    /// Requests one page of a listing.
    ///
    /// # Errors
    /// `NotFound` if the bucket doesn't exist.
    pub async fn list(&self, list: &List) -> Result<Page, Error> {
        let mut objects = Vec::new();
        let page = self.list_arriving(list, |arrived| objects.extend(arrived)).await?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }

    /// Requests one page of a listing. `out` gets its objects as they arrive, each once and in the page's order. The
    /// returned page has only the objects that `out` didn't get. If a bucket policy forbids [`List::max`], the page may
    /// have more objects than that.
    ///
    /// # Errors
    /// As for [`list`](Self::list); `out` may already have received objects.
    pub async fn list_arriving(
        &self,
        list: &List,
        mut out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        let asked = self.listings.ask();
        let mut arrived = |objects: Vec<ObjectMeta>| {
            asked.came(objects.len());
            out(objects);
        };
        let limits = self.limits.of(&list.bucket);
        let list = &List {
            max: list.max.filter(|_| !limits.refuses_max),
            is_unsorted: list.is_unsorted || limits.is_unsorted,
            ..list.clone()
        };
        let page = match self.dialect.list(list, &mut arrived).await {
            Err(error) if error.is_permission() && list.max.is_some() => {
                let whole = List { max: None, ..list.clone() };
                let page = self.dialect.list(&whole, &mut arrived).await.map_err(|_| error)?;
                let learned = ListingLimits { refuses_max: true, ..ListingLimits::default() };
                self.limits.learn(&list.bucket, learned);
                page
            }
            listed => listed?,
        };
        asked.came(page.objects.len() + page.prefixes.len());
        asked.ended();
        Ok(page)
    }

    /// Returns true if a bucket's listings are in the order of the keys, as far as is known. Listings of S3's directory
    /// buckets aren't.
    pub fn lists_in_order(&self, bucket: &str) -> bool {
        self.dialect.lists_in_order(bucket) && !self.limits.of(bucket).is_unsorted
    }

    /// Returns true if a bucket's listings can start at a key without reading the keys before it, as far as is known.
    /// Older emulators of Azure can't.
    pub fn starts_at_keys(&self, bucket: &str) -> bool {
        self.dialect.starts_at_keys(bucket)
    }

    /// Returns the limits of a bucket's listings, as far as answers have shown them.
    pub fn listing_limits(&self, bucket: &str) -> ListingLimits {
        self.limits.of(bucket)
    }

    /// Remembers further limits of a bucket's listings, in addition to those already known.
    pub fn learn_listing_limits(&self, bucket: &str, learned: ListingLimits) {
        self.limits.learn(bucket, learned);
    }
}
