//! One suite of behaviours for every dialect, transport and server.
//!
//! A behaviour is an async function that gets a [`World`](world::World): a store, a bucket and the server's
//! capabilities. It appears once in the table below, and runs as a separate test in each place. One place is a store in
//! memory. The others are the embedded server in both dialects over plain HTTP/1.1, TLS with HTTP/1.1 and TLS with
//! HTTP/2, and the embedded server with the habits of each known service. A command like this one runs the suite with
//! an external server:
//!
//! ```text
//! LANEWAY_CONFORMANCE_S3=https://127.0.0.1:9000 LANEWAY_CONFORMANCE_S3_SERVER=minio LANEWAY_CONFORMANCE_BUCKET=b \
//!     SSL_CERT_FILE=ca.pem AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... cargo test --test conformance -- --ignored external_s3
//! ```
//!
//! Only [`capabilities`] tells what a known server lacks. Only the table tells what a behaviour needs.

#[path = "conformance/capabilities.rs"]
mod capabilities;
#[path = "conformance/copying.rs"]
mod copying;
#[path = "conformance/deleting.rs"]
mod deleting;
#[path = "conformance/keys.rs"]
mod keys;
#[path = "conformance/listing.rs"]
mod listing;
#[path = "conformance/multipart.rs"]
mod multipart;
#[path = "conformance/reading.rs"]
mod reading;
#[path = "conformance/resumable.rs"]
mod resumable;
#[path = "conformance/world.rs"]
mod world;
#[path = "conformance/writing.rs"]
mod writing;

use capabilities::Capability::{
    CacheControl, ChecksumOnGet, ChecksumOnRange, Checksums, ConditionalComplete, ConditionalCopy,
    ConditionalDelete, ConditionalPut, ConditionalResumable, ContentLanguage, Crc32c, DeleteTellsMissing,
    DotSegments, DoubleSlashKeys, GcsSessions, LongComponents, MultipartUpload, NoMultipartUpload,
    NoSuchUpload, OrderedOffsets, PartCopy, ResumableStatus, SessionCancel, SourceConditions, StoresGzip,
    UploadsByPrefix, WrongChecksum,
};

macro_rules! places {
    ($($place:ident $(#[$ignore:meta])? = $value:expr;)*) => { with_behaviours!(place_tests { $($place [$(#[$ignore])?] $value;)* }); };
}

/// The table: a behaviour, and after the colon the capability that it needs.
macro_rules! with_behaviours {
    ($then:ident $places:tt) => {
        $then! { $places [
            writing::a_put_object_comes_back_byte_for_byte [];
            writing::a_put_reports_size_version_and_checksum [Checksums Crc32c];
            writing::what_describes_an_object_is_kept [];
            writing::cache_control_is_kept [CacheControl];
            writing::content_language_is_kept [ContentLanguage];
            writing::a_body_may_be_a_range_of_a_file [];
            writing::an_object_with_a_wrong_checksum_is_refused [Checksums WrongChecksum];
            writing::absent_lets_only_the_first_write_through [ConditionalPut];
            writing::matches_lets_only_the_known_version_be_replaced [ConditionalPut];
            writing::two_hundred_small_objects_at_once [];
            reading::head_says_what_put_said [Checksums];
            reading::a_whole_get_brings_metadata_and_checksum [ChecksumOnGet Crc32c];
            reading::a_range_brings_its_bytes_and_the_size_of_the_whole [];
            reading::a_range_beyond_the_end_is_cut_there [];
            reading::a_range_that_starts_at_the_end_is_invalid [];
            reading::a_range_of_an_empty_object_is_its_emptiness [];
            reading::the_end_of_an_object_is_read_without_knowing_its_size [];
            reading::the_end_of_an_empty_object_is_its_emptiness [];
            reading::the_end_of_a_replaced_version_is_a_failed_precondition [];
            reading::only_what_the_reader_does_not_have_is_sent [];
            reading::gcs_tells_the_whole_checksum_with_a_range [ChecksumOnRange Crc32c];
            reading::a_sink_sees_the_head_and_then_the_bytes [];
            reading::a_sink_may_stop_the_body [];
            reading::a_sinks_error_comes_back_as_it_was [];
            reading::a_pinned_version_is_read_while_it_is_there [];
            reading::a_replaced_version_is_a_failed_precondition [];
            reading::what_is_missing_is_not_found [];
            reading::a_large_object_is_read_in_ranges_at_once [];
            reading::an_object_stored_as_gzip_comes_back_as_stored [StoresGzip ChecksumOnGet Crc32c];
            reading::the_connection_speaks_what_was_negotiated [];
            keys::ordinary_awkward_keys_are_kept_exactly [];
            keys::double_slashes_are_kept_exactly [DoubleSlashKeys];
            keys::trailing_slashes_are_kept_exactly [];
            keys::dot_segments_are_kept_exactly [DotSegments];
            keys::a_key_of_1024_bytes_is_kept_exactly [];
            keys::a_component_of_1024_bytes_is_kept_exactly [LongComponents];
            listing::everything_under_a_prefix_is_listed_in_order [];
            listing::a_delimiter_rolls_keys_up [];
            listing::pages_follow_one_another_without_gaps [];
            listing::a_listing_starts_after_and_ends_before [OrderedOffsets];
            listing::a_bucket_that_does_not_exist_is_not_found [];
            listing::the_bucket_is_among_the_buckets [];
            deleting::a_deleted_object_is_gone [];
            deleting::deleting_what_is_missing_says_so [DeleteTellsMissing];
            deleting::a_delete_bound_to_a_version_spares_its_successor [ConditionalDelete];
            deleting::many_are_deleted_in_the_order_they_were_named [];
            copying::a_copy_keeps_bytes_and_description [Checksums Crc32c];
            copying::a_copy_may_be_described_anew [];
            copying::a_copy_of_what_is_missing_is_not_found [];
            copying::a_copy_is_bound_to_its_sources_version [SourceConditions];
            copying::a_copy_spares_what_is_there [ConditionalCopy];
            multipart::parts_become_one_checked_object [MultipartUpload Checksums];
            multipart::parts_may_come_in_any_order [MultipartUpload];
            multipart::the_parts_that_are_there_are_listed [MultipartUpload];
            multipart::a_thousand_and_one_parts_are_listed [MultipartUpload];
            multipart::uploads_under_way_are_listed [MultipartUpload UploadsByPrefix];
            multipart::an_aborted_upload_is_gone [MultipartUpload NoSuchUpload];
            multipart::a_part_with_a_wrong_checksum_is_refused [MultipartUpload WrongChecksum];
            multipart::a_wrong_checksum_of_the_whole_is_an_integrity_error [MultipartUpload Checksums];
            multipart::completing_takes_a_precondition [MultipartUpload ConditionalComplete];
            multipart::a_part_may_be_copied_from_an_object [MultipartUpload PartCopy];
            multipart::a_server_without_multipart_uploads_is_recognised [NoMultipartUpload];
            resumable::parts_become_one_object [GcsSessions];
            resumable::an_empty_object_is_a_session_too [GcsSessions];
            resumable::a_session_tells_where_it_stands [GcsSessions ResumableStatus];
            resumable::a_session_takes_a_precondition [GcsSessions ConditionalResumable];
            resumable::a_cancelled_session_is_gone [GcsSessions SessionCancel];
        ] }
    };
}

macro_rules! place_tests {
    ({ $($place:ident [$(#[$ignore:meta])?] $value:expr;)* } $behaviours:tt) => {
        $( place_tests! { @one $place [$(#[$ignore])?] ($value) $behaviours } )*
    };
    (@one $place:ident $ignore:tt $value:tt [ $($module:ident :: $behaviour:ident [$($need:ident)*];)* ]) => {
        mod $place {
            use super::*;
            $( place_tests! { @test $ignore $value $module $behaviour [$($need)*] } )*
        }
    };
    (@test [$(#[$ignore:meta])?] ($value:expr) $module:ident $behaviour:ident [$($need:ident)*]) => {
        #[test]
        $(#[$ignore])?
        fn $behaviour() {
            world::run($value, stringify!($behaviour), &[$($need),*], $module::$behaviour);
        }
    };
}

use laneway_store::Provider::{Azure, Gcs, S3};
use laneway_testkit::Wire;
use world::Place;

places! {
    gcs_plain = Place::Embedded(Gcs, Wire::Plain);
    gcs_tls_h1 = Place::Embedded(Gcs, Wire::TlsH1);
    gcs_tls_h2 = Place::Embedded(Gcs, Wire::TlsH2);
    s3_plain = Place::Embedded(S3, Wire::Plain);
    s3_tls_h1 = Place::Embedded(S3, Wire::TlsH1);
    s3_tls_h2 = Place::Embedded(S3, Wire::TlsH2);
    azure_plain = Place::Embedded(Azure, Wire::Plain);
    azure_tls_h1 = Place::Embedded(Azure, Wire::TlsH1);
    like_gcs = Place::Like("gcs", Gcs, Wire::TlsH1);
    like_s3 = Place::Like("s3", S3, Wire::TlsH1);
    like_r2 = Place::Like("r2", S3, Wire::TlsH2);
    like_b2 = Place::Like("b2", S3, Wire::TlsH1);
    like_minio = Place::Like("minio", S3, Wire::Plain);
    like_gcs_interop = Place::Like("gcs-interop", S3, Wire::TlsH2);
    like_azurite = Place::Like("azurite", Azure, Wire::TlsH1);
    like_azurite_3_35 = Place::Like("azurite-3.35", Azure, Wire::Plain);
    memory = Place::Memory;
    external_gcs #[ignore = "needs LANEWAY_CONFORMANCE_GCS"] = Place::External(Gcs);
    external_s3 #[ignore = "needs LANEWAY_CONFORMANCE_S3"] = Place::External(S3);
    external_azure #[ignore = "needs LANEWAY_CONFORMANCE_AZURE"] = Place::External(Azure);
}
