//! The `Dialect` methods that all dialects over HTTP share.

/// Implements [`Dialect`](crate::Dialect) for a type with [`HttpDialect`](crate::exchange::HttpDialect). The macro adds
/// the verbs that all dialects share, and the invocation contains the others in braces. It is a macro because Rust
/// permits only one `impl` of a trait for a type. With `own parts`, the invocation also contains the verbs for parts. The
/// macro's verbs for parts are those of XML multipart uploads, which GCS and S3 have.
macro_rules! http_verbs {
    ($dialect:ty, $capabilities:expr, { $($own:tt)* }) => {
        http_verbs!($dialect, $capabilities, own parts, {
            async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
                crate::multipart::MultipartDialect::part(self, upload, number, body, crc32c).await
            }

            async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
                crate::multipart::MultipartDialect::list_parts(self, upload).await
            }

            async fn list_uploads(&self, bucket: &str, prefix: &str) -> Result<Vec<Multipart>, Error> {
                crate::multipart::list_uploads(self, bucket, prefix).await
            }

            async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
                crate::multipart::MultipartDialect::abort(self, upload).await
            }

            $($own)*
        });
    };
    ($dialect:ty, $capabilities:expr, own parts, { $($own:tt)* }) => {
        const _: () = {
            use std::time::SystemTime;

            use async_trait::async_trait;
            use laneway_lanes::Body;

            use crate::delete_many::{BatchDeleteDialect, DeleteDialect};
            use crate::exchange::HttpDialect;
            use crate::settings::fingerprint;
            use crate::{
                Capabilities, Checksums, Condition, Deletion, Dialect, Error, Get, Got, List, MetaChange, Multipart,
                NewBucket, ObjectId, ObjectMeta, Page, Part, Provider, PutOptions, ReadAs, Requests, SignOptions,
                SignedUrl, StoredPart, Unless, Version,
            };

            #[async_trait]
            impl Dialect for $dialect {
                fn provider(&self) -> Provider {
                    <Self as HttpDialect>::PROVIDER
                }

                fn capabilities(&self) -> &Capabilities {
                    &$capabilities
                }

                fn endpoint(&self) -> String {
                    HttpDialect::endpoint(self)
                }

                fn fingerprint(&self) -> String {
                    let headers = [&self.headers, &self.added_headers];
                    let algorithm = HttpDialect::checksum_algorithm(self);
                    fingerprint(headers, self.kms_key.as_deref(), &self.encryption, algorithm)
                }

                fn requests(&self) -> Requests {
                    self.tally.snapshot()
                }

                async fn head(
                    &self,
                    id: &ObjectId,
                    version: Option<&Version>,
                    unless: Option<&Unless>,
                    read: ReadAs,
                ) -> Result<ObjectMeta, Error> {
                    self.head_as(id, version, unless, read.into()).await
                }

                async fn get(&self, get: &Get<'_>, read: ReadAs) -> Result<Got, Error> {
                    self.download(get, read.into()).await
                }

                async fn put(
                    &self,
                    id: &ObjectId,
                    body: Body,
                    sums: &Checksums,
                    options: &PutOptions,
                ) -> Result<ObjectMeta, Error> {
                    self.upload(id, body, sums, options).await
                }

                async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
                    DeleteDialect::delete(self, id, condition).await
                }

                async fn list(
                    &self,
                    list: &List,
                    arrived: &mut (dyn FnMut(Vec<ObjectMeta>) + Send),
                ) -> Result<Page, Error> {
                    self.list_page(list, arrived).await
                }

                async fn delete_many(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
                    BatchDeleteDialect::delete_many(self, bucket, objects).await
                }

                async fn copy(
                    &self,
                    from: &ObjectId,
                    known: Option<&ObjectMeta>,
                    to: &ObjectId,
                    options: &PutOptions,
                    condition: &Condition,
                ) -> Result<ObjectMeta, Error> {
                    self.copy_object(from, known, to, options, condition).await
                }

                async fn set_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
                    self.change_meta(id, change).await
                }

                async fn sign(&self, id: &ObjectId, options: &SignOptions, now: SystemTime) -> Result<SignedUrl, Error> {
                    self.sign_url(id, options, now).await
                }

                async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
                    self.begin_upload(id, options).await
                }

                async fn complete(
                    &self,
                    upload: &Multipart,
                    parts: &[Part],
                    whole: &Checksums,
                    condition: &Condition,
                ) -> Result<ObjectMeta, Error> {
                    self.complete_upload(upload, parts, whole, condition).await
                }

                async fn buckets(&self) -> Result<Vec<String>, Error> {
                    self.list_buckets().await
                }

                async fn create_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
                    self.make_bucket(bucket, new).await
                }

                async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
                    self.remove_bucket(bucket).await
                }

                $($own)*
            }
        };
    };
}

pub(crate) use http_verbs;
