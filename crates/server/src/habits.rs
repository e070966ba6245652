//! The differences in behaviour between services (their habits), each with a link to its documentation.
//!
//! By default `serve` has the [strict](Habits::strict) habits, so that a mistake in a request shows here before it
//! shows at Google or Amazon. The other sets imitate services that refuse, ignore or leave out parts of a dialect. Each
//! habit is a field of [`Habits`].

use crate::Error;

/// The habits of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Habits {
    /// The service's name, which [`Habits::named`] accepts. The default's name is `strict`.
    pub name: &'static str,
    /// The `Server` header of the S3 dialect. Clients recognise a service by it, because a service can have any host
    /// name.
    pub server: &'static str,
    /// If true, a POST, PUT or PATCH without a body needs `Content-Length: 0`, and gets 411 without it. Every S3
    /// service refuses bodies of unknown length.
    /// [GCS](https://cloud.google.com/storage/docs/json_api/v1/status-codes#411-length-required)
    pub lengths_demanded: bool,
    /// The treatment of conditions on S3 writes.
    pub conditions: Conditions,
    /// If true, copies accept R2's headers `cf-copy-destination-if-*` for conditions on their destination. `conditions`
    /// concerns only the usual headers.
    /// [R2](https://developers.cloudflare.com/r2/api/s3/extensions/#conditional-operations-in-copyobject-for-the-destination-object)
    pub copy_destination_headers: bool,
    /// If true, a conditional S3 write gets 409 `ConditionalRequestConflict` if its key is deleted while the write
    /// runs. A multipart upload is then discarded, and the client must start it again.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html#conditional-error-response)
    pub conflicts: bool,
    /// The request headers that the S3 side refuses, by prefix.
    pub refused_headers: Option<RefusedHeaders>,
    /// If true, the S3 side checks, keeps and returns `x-amz-checksum-*`. If false, it ignores them, except those in
    /// `refused_headers`. Content-MD5 is always checked.
    pub checksums: bool,
    /// If true, a multipart upload may choose a full-object CRC32 or CRC32C. If false, only a CRC64NVME may cover the
    /// full object, and `FULL_OBJECT` with another algorithm gets 501.
    /// [R2](https://developers.cloudflare.com/r2/api/s3/api/#checksum-types)
    pub full_object_crc32: bool,
    /// If true, all parts but the last must have the same size. Otherwise the completion gets 400 `InvalidPart`.
    /// [R2](https://developers.cloudflare.com/r2/objects/multipart-objects/#limitations)
    pub equal_parts: bool,
    /// If true, a completed multipart upload can be completed again with the same parts, and gets the same answer. So a
    /// client that didn't get the first answer can retry.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html)
    pub completes_again: bool,
    /// From this size in bytes on, the GCS dialect sends objects with `Content-Encoding: gzip` in chunks without
    /// Content-Length, even if the client accepts gzip. `None` means never. Google's front end does so above about 8
    /// MiB, with the size in `x-goog-stored-content-length`.
    /// [GCS](https://cloud.google.com/storage/docs/transcoding#content-length)
    pub gzip_chunked_from: Option<u64>,
    /// If true, the JSON resource of an empty object has `"size": "0"`. If false, the field is missing, because JSON
    /// made from protocol buffers may leave out zeros. Google's clients (gcsfs) read a missing size as 0. [Protocol
    /// buffers](https://protobuf.dev/programming-guides/json/#field-representation)
    pub empty_sizes: bool,
    /// If true, the S3 side has GetObjectAttributes. If false, the request gets 501. [R2's
    /// operations](https://developers.cloudflare.com/r2/api/s3/api/),
    /// [B2's](https://www.backblaze.com/apidocs/introduction-to-the-s3-compatible-api)
    pub object_attributes: bool,
    /// If true, reads accept `partNumber`. If false, they ignore it.
    /// [GCS](https://cloud.google.com/storage/docs/xml-api/get-object-download)
    pub part_numbers: bool,
    /// If true, ListBuckets may be requested without `max-buckets`. S3 refuses this if an account's quota is above
    /// 10,000 buckets. [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/BucketRestrictions.html)
    pub unpaged_buckets: bool,
    /// If true, the caller has `kms:Decrypt`. If false, reads of objects that KMS encrypts are refused, and so are
    /// HEADs of these objects that request checksums.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html)
    pub may_decrypt: bool,
    /// The number of requests for a bucket in another region that get 307 `TemporaryRedirect`. S3 sends it until the
    /// name of a new bucket has spread through its DNS. Later requests get 301 or 400 with the region.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/Redirects.html)
    pub temporary_redirects: u32,
    /// If true, answers to HEADs of the S3 dialect always have a `Content-Length`. Cloudflare sends it only if the
    /// request accepts no encodings.
    /// [Cloudflare](https://developers.cloudflare.com/speed/optimization/content/compression/)
    pub head_lengths: bool,
    /// If true, objects have access control lists. Amazon's buckets have had none since 2023, unless their owner turns
    /// them on.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html)
    pub access_lists: bool,
    /// If true, the ETag of an object that is put in one request is the MD5 of its bytes, unless a KMS or customer's
    /// key encrypts it. Otherwise the ETag has 32 hexadecimal digits without a meaning.
    /// [Fastly](https://docs.fastly.com/en/guides/working-with-object-storage)
    pub md5_etags: bool,
    /// The habits of the S3 side's listings.
    pub listings: ListingHabits,
    /// The habits of the Azure side.
    pub azure: AzureHabits,
}

/// The habits of a service in Azure's dialect. Those of the emulator Azurite were observed at its versions 3.35 and 3.37.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AzureHabits {
    /// If true, a blob that doesn't exist gets 404 even if the request has an `If-Match`. Azurite answers 412.
    /// [Azurite](https://github.com/Azure/Azurite/issues/2751)
    pub missing_before_conditions: bool,
    /// If false, Put Blob From URL gets 501.
    pub put_blob_from_url: bool,
    /// If false, `x-ms-content-crc64` gets 500 `FeatureNotSupported`, and answers don't have it.
    pub crc64: bool,
    /// If false, `x-ms-range-get-content-crc64` gets 500 `FeatureNotSupported`.
    pub range_crc64: bool,
    /// If true, an answer has a structured body if the request asks for one. Otherwise, such requests are ignored.
    pub structured_bodies: bool,
    /// If true, a wrong Content-MD5 gets 400 `Md5Mismatch`, and otherwise 400 `InvalidOperation`.
    pub md5_mismatch: bool,
    /// If true, a range of the last bytes is ignored. If false, the answer is 206 with a `Content-Range` that isn't valid.
    pub suffix_ranges_ignored: bool,
    /// The treatment of `startFrom` in listings.
    pub start_from: Treatment,
    /// If false, a batch of a container whose SAS token is one of the account gets 500.
    pub container_batches_by_account_sas: bool,
}

impl AzureHabits {
    const STRICT: AzureHabits = AzureHabits {
        missing_before_conditions: true,
        put_blob_from_url: true,
        crc64: true,
        range_crc64: true,
        structured_bodies: true,
        md5_mismatch: true,
        suffix_ranges_ignored: true,
        start_from: Honoured,
        container_batches_by_account_sas: true,
    };

    /// Azurite 3.37.
    const AZURITE: AzureHabits = AzureHabits {
        missing_before_conditions: false,
        put_blob_from_url: false,
        range_crc64: false,
        structured_bodies: false,
        suffix_ranges_ignored: false,
        container_batches_by_account_sas: false,
        ..AzureHabits::STRICT
    };
}

/// The habits of a service in listings of objects, including restrictions by bucket policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingHabits {
    /// If true, keys are sorted in byte order. Storj lists keys in the order of their encrypted form, and older
    /// versions of versitygw in the order of a directory walk. The pages of a listing continue in the same order.
    /// [Storj](https://storj.dev/dcs/buckets/object-listings),
    /// [versitygw](https://github.com/versity/versitygw/issues/1283)
    pub sorted: bool,
    /// The treatment of `list-type=2`. Older versions of CloudServer ignore it, and answer as ListObjects
    /// version 1 does. [CloudServer](https://github.com/scality/cloudserver/issues/490)
    pub second_version: Treatment,
    /// If true, a truncated page of version 2 has a token for the next page. Huawei's OBS leaves it out.
    /// [minio-go](https://github.com/minio/minio-go/pull/1704)
    pub tokens: bool,
    /// The only prefixes that a bucket policy lets the caller list, as with a condition `StringEquals` on `s3:prefix`.
    /// Other prefixes get 403. [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html)
    pub prefixes: Option<&'static [&'static str]>,
    /// If true, requests may set `max-keys`. If false, they get 403, as with a bucket policy's condition on
    /// `s3:max-keys`.
    pub max_keys: bool,
}

impl ListingHabits {
    const STRICT: ListingHabits = ListingHabits {
        sorted: true,
        second_version: Honoured,
        tokens: true,
        prefixes: None,
        max_keys: true,
    };
}

/// The way in which a service treats conditions, for each kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match` and `If-None-Match` of PutObject.
    pub put: Treatment,
    /// `If-Match` and `If-None-Match` of CompleteMultipartUpload.
    pub complete: Treatment,
    /// `If-Match` and `If-None-Match` of CopyObject, for its destination.
    pub copy: Treatment,
    /// `If-Match` of DeleteObject, and the ETags in DeleteObjects.
    pub delete: Treatment,
}

/// The way in which a service treats an optional part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// The service supports it.
    Honoured,
    /// The service ignores it silently.
    Ignored,
    /// The request gets 501 `NotImplemented`.
    Refused,
}

use Treatment::{Honoured, Ignored, Refused};

/// Headers that are refused instead of ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHeaders {
    /// The prefixes of their names, in lower case.
    pub prefixes: &'static [&'static str],
    /// The status, 400 or 501.
    pub status: u16,
    /// The error's code, `NotImplemented` or `InvalidArgument`.
    pub code: &'static str,
}

impl Conditions {
    const fn all(treatment: Treatment) -> Conditions {
        Conditions { put: treatment, complete: treatment, copy: treatment, delete: treatment }
    }
}

/// The size from which on Google sends gzip objects in chunks. Other people have measured 8 MiB or a little more.
const GZIP_CHUNKED_FROM: u64 = 8 << 20;

impl Habits {
    /// The names that [`Habits::named`] accepts.
    pub const NAMES: [&'static str; 10] =
        ["gcs", "s3", "r2", "b2", "minio", "sia", "storj", "gcs-interop", "azurite", "azurite-3.35"];

    /// Returns the default habits. Each dialect is as strict as GCS, S3 or Azure itself.
    pub fn strict() -> Habits {
        Habits {
            name: "strict",
            server: "laneway",
            lengths_demanded: true,
            conditions: Conditions::all(Honoured),
            copy_destination_headers: false,
            conflicts: true,
            refused_headers: None,
            checksums: true,
            full_object_crc32: true,
            equal_parts: false,
            completes_again: true,
            gzip_chunked_from: Some(GZIP_CHUNKED_FROM),
            empty_sizes: true,
            object_attributes: true,
            part_numbers: true,
            unpaged_buckets: true,
            may_decrypt: true,
            temporary_redirects: 0,
            head_lengths: true,
            access_lists: true,
            md5_etags: true,
            listings: ListingHabits::STRICT,
            azure: AzureHabits::STRICT,
        }
    }

    /// Google Cloud Storage. Its S3 side is the interoperability API.
    pub fn gcs() -> Habits {
        Habits { name: "gcs", ..Habits::gcs_interop() }
    }

    /// Amazon S3 with new buckets, which get temporary redirects and have no access control lists.
    pub fn s3() -> Habits {
        Habits {
            name: "s3",
            server: "AmazonS3",
            temporary_redirects: 1,
            access_lists: false,
            ..Habits::strict()
        }
    }

    /// Cloudflare R2. All parts must have the same size, and CRC32Cs exist only for parts. Conditions are supported,
    /// except on deletes. Copies support them only with R2's own headers. [Its S3
    /// compatibility](https://developers.cloudflare.com/r2/api/s3/conditional-operations/)
    pub fn r2() -> Habits {
        Habits {
            name: "r2",
            server: "cloudflare",
            conditions: Conditions { copy: Ignored, delete: Ignored, ..Conditions::all(Honoured) },
            copy_destination_headers: true,
            conflicts: false,
            full_object_crc32: false,
            completes_again: false,
            equal_parts: true,
            object_attributes: false,
            head_lengths: false,
            ..Habits::strict()
        }
    }

    /// Backblaze B2. It supports neither conditions nor the checksum headers that SDKs have sent since 2025. A report
    /// that B2 accepts these headers since July 2025 was not confirmed, and its page still lists them as unsupported.
    /// [Its S3 compatibility](https://www.backblaze.com/docs/cloud-storage-s3-compatible-api),
    /// [the report](https://github.com/ClickHouse/ClickHouse/pull/107318)
    pub fn b2() -> Habits {
        Habits {
            name: "b2",
            server: "nginx",
            conditions: Conditions::all(Refused),
            conflicts: false,
            completes_again: false,
            refused_headers: Some(RefusedHeaders {
                prefixes: &["x-amz-checksum-", "x-amz-sdk-checksum-algorithm", "x-amz-trailer"],
                status: 400,
                code: "InvalidArgument",
            }),
            checksums: false,
            object_attributes: false,
            ..Habits::strict()
        }
    }

    /// MinIO. It supports conditions on PutObject and on completion, but not on copies and deletes. It doesn't require
    /// the length of empty bodies. [Its source](https://github.com/minio/minio)
    pub fn minio() -> Habits {
        Habits {
            name: "minio",
            server: "MinIO",
            lengths_demanded: false,
            conditions: Conditions { copy: Ignored, delete: Ignored, ..Conditions::all(Honoured) },
            conflicts: false,
            completes_again: false,
            ..Habits::strict()
        }
    }

    /// Sia's S3 gateway. It calls itself `AmazonS3`, and ignores Amazon's checksums and all conditions of writes. s3gw
    /// ignores these conditions too. [Its source](https://github.com/SiaFoundation/gofakes3)
    pub fn sia() -> Habits {
        Habits {
            name: "sia",
            server: "AmazonS3",
            conditions: Conditions::all(Ignored),
            conflicts: false,
            completes_again: false,
            checksums: false,
            object_attributes: false,
            ..Habits::strict()
        }
    }

    /// Storj's gateway. It lists keys in the order of their encrypted form.
    /// [Storj](https://storj.dev/dcs/buckets/object-listings)
    pub fn storj() -> Habits {
        Habits {
            name: "storj",
            server: "Storj",
            conflicts: false,
            completes_again: false,
            object_attributes: false,
            listings: ListingHabits { sorted: false, ..ListingHabits::STRICT },
            ..Habits::strict()
        }
    }

    /// The interoperability API of Google Cloud Storage: S3 requests to its XML API, signed with HMAC keys. It ignores
    /// ETags as conditions on writes (Google documents them only for reads), and Amazon's checksums.
    /// [GCS](https://cloud.google.com/storage/docs/xml-api/reference-headers#ifnonematch)
    pub fn gcs_interop() -> Habits {
        Habits {
            name: "gcs-interop",
            server: "UploadServer",
            conditions: Conditions::all(Ignored),
            conflicts: false,
            completes_again: false,
            checksums: false,
            object_attributes: false,
            part_numbers: false,
            ..Habits::strict()
        }
    }

    /// Microsoft's emulator Azurite, version 3.37. [Its source](https://github.com/Azure/Azurite)
    pub fn azurite() -> Habits {
        Habits { name: "azurite", azure: AzureHabits::AZURITE, ..Habits::strict() }
    }

    /// Azurite 3.35, which has no CRC64s, and lists from the beginning whatever the request asks for.
    pub fn azurite_3_35() -> Habits {
        let azure =
            AzureHabits { crc64: false, md5_mismatch: false, start_from: Ignored, ..AzureHabits::AZURITE };
        Habits { name: "azurite-3.35", azure, ..Habits::strict() }
    }

    /// Returns the habits of a service by its name, one of [`Habits::NAMES`].
    ///
    /// # Errors
    /// Fails for any other name.
    pub fn named(name: &str) -> Result<Habits, Error> {
        match name {
            "gcs" => Ok(Habits::gcs()),
            "s3" => Ok(Habits::s3()),
            "r2" => Ok(Habits::r2()),
            "b2" => Ok(Habits::b2()),
            "minio" => Ok(Habits::minio()),
            "sia" => Ok(Habits::sia()),
            "storj" => Ok(Habits::storj()),
            "gcs-interop" => Ok(Habits::gcs_interop()),
            "azurite" => Ok(Habits::azurite()),
            "azurite-3.35" => Ok(Habits::azurite_3_35()),
            other => Err(Error::unreadable(
                "a service with known habits",
                other,
                "one of gcs, s3, r2, b2, minio, sia, storj, gcs-interop, azurite, azurite-3.35",
            )),
        }
    }
}

impl Default for Habits {
    fn default() -> Habits {
        Habits::strict()
    }
}

impl RefusedHeaders {
    /// Returns the first of a request's headers that is refused.
    pub(crate) fn first_in(&self, headers: &http::HeaderMap) -> Option<http::HeaderName> {
        let refused =
            |name: &&http::HeaderName| self.prefixes.iter().any(|prefix| name.as_str().starts_with(prefix));
        headers.keys().find(refused).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_habits_and_no_other() {
        for name in Habits::NAMES {
            assert_eq!(Habits::named(name).unwrap().name, name);
        }
        let error = Habits::named("azure").unwrap_err().to_string();
        assert!(error.contains("azure") && error.contains("gcs-interop"), "{error}");
    }

    #[test]
    fn headers_are_refused_by_how_they_begin() {
        let refused = Habits::b2().refused_headers.unwrap();
        let mut headers = http::HeaderMap::new();
        headers.insert("x-amz-content-sha256", "UNSIGNED-PAYLOAD".parse().unwrap());
        assert_eq!(refused.first_in(&headers), None);
        headers.insert("x-amz-checksum-crc32c", "AAAAAA==".parse().unwrap());
        assert_eq!(refused.first_in(&headers).unwrap().as_str(), "x-amz-checksum-crc32c");
    }
}
