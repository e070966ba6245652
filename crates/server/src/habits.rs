//! What one service does differently from another: a table of habits, each with where it is documented.
//!
//! Plain `serve` has the [strict](Habits::strict) ones, so that a mistake in a request shows here and not first at Google
//! or Amazon. The others imitate services that speak a dialect with an accent: what they refuse, ignore or leave out.
//! A habit is a field; whoever meets another one in the wild adds a field and fills in the rows.

use crate::Error;

/// The habits of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Habits {
    /// The service's name, as [`Habits::named`] takes it; `strict` for the default.
    pub name: &'static str,
    /// What the S3 side calls itself in `Server`, by which clients know a service behind any name.
    pub server: &'static str,
    /// Whether a POST, PUT or PATCH without a body needs `Content-Length: 0`, and is 411 without it. Bodies of unknown
    /// length are refused by every S3. [GCS](https://cloud.google.com/storage/docs/json_api/v1/status-codes#411-length-required)
    pub lengths_demanded: bool,
    /// What the S3 side does with conditions on writes.
    pub conditions: Conditions,
    /// Whether copies take R2's `cf-copy-destination-if-*` for conditions on their destination, whatever `conditions` says of
    /// the usual ones.
    /// [R2](https://developers.cloudflare.com/r2/api/s3/extensions/#conditional-operations-in-copyobject-for-the-destination-object)
    pub copy_destination_headers: bool,
    /// Whether a conditional S3 write during which its key was deleted is answered 409 `ConditionalRequestConflict`; of
    /// a multipart upload nothing is left then, so that it has to be begun anew.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html#conditional-error-response)
    pub conflicts: bool,
    /// Request headers that the S3 side refuses, by how their names begin.
    pub refused_headers: Option<RefusedHeaders>,
    /// Whether the S3 side checks, keeps and returns `x-amz-checksum-*`. Where not, they are passed over in silence, but for
    /// what `refused_headers` says; Content-MD5 is checked everywhere.
    pub checksums: bool,
    /// Whether the CRC32 or CRC32C of a multipart upload may be chosen to be the full object's. Where not, only CRC64NVME
    /// may, and `FULL_OBJECT` of others is 501. [R2](https://developers.cloudflare.com/r2/api/s3/api/#checksum-types)
    pub full_object_crc32: bool,
    /// Whether all parts but the last must have one size, which is 400 `InvalidPart` at completion.
    /// [R2](https://developers.cloudflare.com/r2/objects/multipart-objects/#limitations)
    pub equal_parts: bool,
    /// Whether a multipart upload that has been completed can be completed again, of the same parts and with the same
    /// answer, by who hasn't got the first one.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html)
    pub completes_again: bool,
    /// From how many bytes on an object with `Content-Encoding: gzip` comes from the GCS side without Content-Length,
    /// in chunks, also where gzip was accepted; `None` is never. Google's front end sends it so above some 8 MiB; the
    /// size stands in `x-goog-stored-content-length`.
    /// [GCS](https://cloud.google.com/storage/docs/transcoding#content-length)
    pub gzip_chunked_from: Option<u64>,
    /// Whether the JSON description of an empty object says `"size": "0"`. JSON that is written from protocol buffers may leave
    /// out what is 0, and clients of Google's (gcsfs) take a missing size for that.
    /// [Protocol buffers](https://protobuf.dev/programming-guides/json/#field-representation)
    pub empty_sizes: bool,
    /// The S3 side has GetObjectAttributes; where not, it is 501.
    /// [R2's operations](https://developers.cloudflare.com/r2/api/s3/api/),
    /// [B2's](https://www.backblaze.com/apidocs/introduction-to-the-s3-compatible-api)
    pub object_attributes: bool,
    /// Reads take `partNumber`; where not, it is passed over.
    /// [GCS](https://cloud.google.com/storage/docs/xml-api/get-object-download)
    pub part_numbers: bool,
    /// ListBuckets answers without `max-buckets`. It is refused to accounts that may have more than 10,000 buckets.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/BucketRestrictions.html)
    pub unpaged_buckets: bool,
    /// The caller has `kms:Decrypt`. Without it, reads of objects that KMS encrypts are refused, and so are HEADs of them that ask for
    /// checksums. [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html)
    pub may_decrypt: bool,
    /// How many requests for a bucket of another region are answered 307 `TemporaryRedirect`, which is what S3 does
    /// until the name of a new bucket has spread, before 301 or 400 say its region.
    /// [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/Redirects.html)
    pub temporary_redirects: u32,
}

/// What becomes of conditions on writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match` and `If-None-Match` of PutObject.
    pub put: Treatment,
    /// The same of CompleteMultipartUpload.
    pub complete: Treatment,
    /// The same of CopyObject, for its destination.
    pub copy: Treatment,
    /// `If-Match` of DeleteObject, and the ETags in DeleteObjects.
    pub delete: Treatment,
}

/// What a service does with something that it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It does it.
    Honoured,
    /// It passes it over in silence.
    Ignored,
    /// It answers 501 `NotImplemented`.
    Refused,
}

use Treatment::{Honoured, Ignored, Refused};

/// Headers that are refused instead of ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHeaders {
    /// How their names begin, in lower case.
    pub prefixes: &'static [&'static str],
    /// 400 or 501.
    pub status: u16,
    /// The error's code, `NotImplemented` or `InvalidArgument`.
    pub code: &'static str,
}

impl Conditions {
    const fn all(treatment: Treatment) -> Conditions {
        Conditions { put: treatment, complete: treatment, copy: treatment, delete: treatment }
    }
}

/// Above this Google sends what is stored as gzip in chunks; measured by others at 8 MiB or a little more.
const GZIP_CHUNKED_FROM: u64 = 8 << 20;

impl Habits {
    /// The names that [`Habits::named`] knows.
    pub const NAMES: [&'static str; 6] = ["gcs", "s3", "r2", "b2", "minio", "gcs-interop"];

    /// As strict as GCS and S3 themselves, each in its dialect.
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
        }
    }

    /// Google Cloud Storage. Its S3 side is the interoperability API.
    pub fn gcs() -> Habits {
        Habits { name: "gcs", ..Habits::gcs_interop() }
    }

    /// Amazon S3, with buckets whose names are still spreading.
    pub fn s3() -> Habits {
        Habits { name: "s3", server: "AmazonS3", temporary_redirects: 1, ..Habits::strict() }
    }

    /// Cloudflare R2: equal parts, CRC32Cs of parts only, and conditions on everything but copies, whose headers have names of its own there,
    /// and deletes.
    /// [Its S3 compatibility](https://developers.cloudflare.com/r2/api/s3/conditional-operations/)
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
            ..Habits::strict()
        }
    }

    /// Backblaze B2: conditions are not implemented, nor are the headers of checksums that SDKs send since 2025.
    /// [Its S3 compatibility](https://www.backblaze.com/docs/cloud-storage-s3-compatible-api)
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

    /// MinIO: conditions on PutObject and at completion, not on copies and deletes, and no lengths of empty bodies.
    /// [Its source](https://github.com/minio/minio)
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

    /// The interoperability of Google Cloud Storage: S3's requests to its XML API, signed with HMAC keys. ETags are no
    /// conditions on writes there (Google documents them for reads alone), and Amazon's checksums are passed over.
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

    /// The habits of a service by its name, one of [`Habits::NAMES`].
    ///
    /// # Errors
    /// Any other name.
    pub fn named(name: &str) -> Result<Habits, Error> {
        match name {
            "gcs" => Ok(Habits::gcs()),
            "s3" => Ok(Habits::s3()),
            "r2" => Ok(Habits::r2()),
            "b2" => Ok(Habits::b2()),
            "minio" => Ok(Habits::minio()),
            "gcs-interop" => Ok(Habits::gcs_interop()),
            other => Err(Error::unreadable(
                "a service with known habits",
                other,
                "one of gcs, s3, r2, b2, minio, gcs-interop",
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
    /// The first of a request's headers that is refused.
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
