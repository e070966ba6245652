//! object_store's own suite (`object_store::integration`), for the versions that are built, in all dialects of the embedded
//! server.

#[path = "stage/clients.rs"]
mod clients;

use laneway::{Client, Provider};
use laneway_server::{Config, Server};
use tokio::runtime::Builder;

/// Returns a server with a bucket, and a client for all dialects.
fn stage() -> (Server, Client) {
    let server = Server::start(Config::default()).expect("a server");
    server.create_bucket("bucket").expect("a bucket");
    let client = clients::client(&server.url());
    (server, client)
}

/// The buckets and prefixes of each test.
const URLS: [&str; 6] = [
    "s3://bucket/",
    "gs://bucket/",
    "az://bucket/",
    "s3://bucket/below/a/",
    "gs://bucket/below/a/",
    "az://bucket/below/a/",
];

/// Makes two tests for each function of the suite: one on a bucket and one on a prefix.
macro_rules! suite {
    ($module:ident: $version:ident, $object_store:ident, [$($name:ident: |$store:ident| $asked:expr;)*]) => {
        mod $module {
            use laneway_object_store::$version::LanewayStore;
            #[allow(unused_imports, reason = "some have them as functions")]
            use $object_store::{ObjectStore, integration, path::Path};

            $(#[test]
            fn $name() {
                for url in super::URLS {
                    let (_server, client) = super::stage();
                    let $store = LanewayStore::new(client.bucket(url).expect("a bucket"));
                    let runtime = super::Builder::new_current_thread().enable_all().build().expect("a runtime");
                    runtime.block_on(async { $asked });
                }
            }
            )*
        }
    };
}

macro_rules! suites {
    ($($version:ident, $object_store:ident;)*) => {
        $(suite!($version: $version, $object_store, [
            put_get_delete_list: |store| integration::put_get_delete_list(&store).await;
            put_get_attributes: |store| integration::put_get_attributes(&store).await;
            get_opts: |store| integration::get_opts(&store).await;
            put_opts: |store| integration::put_opts(&store, true).await;
            stream_get: |store| integration::stream_get(&store).await;
            list_uses_directories_correctly: |store| integration::list_uses_directories_correctly(&store).await;
            list_with_delimiter: |store| integration::list_with_delimiter(&store).await;
            list_paginated: |store| integration::list_paginated(&store, &store).await;
            list_with_offset_exclusivity: |store| integration::list_with_offset_exclusivity(&store).await;
            rename_and_copy: |store| integration::rename_and_copy(&store).await;
            copy_if_not_exists: |store| integration::copy_if_not_exists(&store).await;
            copy_rename_nonexistent_object: |store| integration::copy_rename_nonexistent_object(&store).await;
            multipart: |store| integration::multipart(&store, &store).await;
            multipart_race_condition: |store| {
                // Azure keeps one set of blocks for each key, and an upload that ends discards it. So the time at which a
                // block of the other upload arrives decides if that upload can end.
                if store.bucket().provider() != super::Provider::Azure {
                    integration::multipart_race_condition(&store, true).await;
                }
            };
            multipart_out_of_order: |store| integration::multipart_out_of_order(&store).await;
            get_nonexistent_object: |store| {
                let error = integration::get_nonexistent_object(&store, Some(Path::from("nothing"))).await;
                let error = error.expect_err("nothing is there");
                assert!(
                    matches!(error, $object_store::Error::NotFound { .. }),
                    "{error}"
                );
            };
        ]);)*
    };
}

#[cfg(feature = "object_store_0_13")]
suites!(v0_13, object_store_0_13;);
#[cfg(feature = "object_store_0_14")]
suites!(v0_14, object_store_0_14;);
#[cfg(feature = "object_store_0_14")]
suite!(v0_14_alone: v0_14, object_store_0_14, [
    multipart_with_opts: |store| integration::multipart_with_opts(&store, &store).await;
    multipart_put_part_out_of_order: |store| {
        integration::multipart_put_part_out_of_order(&store, &store).await
    };
]);
