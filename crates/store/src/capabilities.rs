//! The properties by which code that calls a store adapts to its kind.

use laneway_lanes::Protocol;

/// Properties of one kind of store. They hold for all its endpoints and don't change while a program runs.
/// [`Dialect`](crate::Dialect) has methods for properties that it learns from a server's answers.
///
/// The default is a plain store that promises nothing. Every verb is one request at any size, conditions on deletes
/// aren't relied on, and nothing costs money. Write `Capabilities { has_tags: true, ..Capabilities::default() }`: a
/// literal without `..` breaks when fields are added.
#[derive(Clone, PartialEq, Debug)]
pub struct Capabilities {
    /// The largest object, in bytes.
    pub object_bytes_max: u64,
    /// The names of an object's states and versions.
    pub versions: VersionNames,
    /// The store copies objects by itself. Otherwise their bytes go through this machine.
    pub copies: bool,
    /// The largest object, in bytes, that one request can copy or change the metadata of; `None` for any size. Larger
    /// objects are copied in parts ([`Store::part_copy`](crate::Store::part_copy)), and changed by an upload onto them
    /// ([`Store::changing`](crate::Store::changing)).
    pub copy_bytes_max: Option<u64>,
    /// The limits of the parts of a multipart upload.
    pub parts: PartRules,
    /// A multipart upload takes a condition when it is completed. Otherwise an upload with a condition uses a resumable
    /// session, which takes the condition when it begins.
    pub multipart_takes_condition: bool,
    /// A request that deletes many objects takes a condition for each of them.
    pub delete_many_keeps_conditions: bool,
    /// Every server enforces a condition on a delete, at no cost. Otherwise a delete may need a HEAD request first.
    pub delete_keeps_condition: bool,
    /// Deleting an object that doesn't exist is an error.
    pub delete_tells_missing: bool,
    /// A listing with [`start_after`](crate::List::start_after) counts that key among the entries of its first page.
    pub lists_start_key: bool,
    /// The token of a listing's next page is a key, and another listing can start from it.
    pub tokens_are_keys: bool,
    /// The most objects that one request deletes.
    pub delete_many_max: usize,
    /// Objects have tags.
    pub has_tags: bool,
    /// The answer to a download carries the user's metadata.
    pub get_tells_metadata: bool,
    /// A listing carries the user's metadata.
    pub list_tells_metadata: bool,
    /// The names under which an object's metadata keeps a file's times, mode and owner.
    pub file_attributes: FileAttributes,
    /// The format of the inventories that the cloud writes of its buckets.
    pub inventories: Option<InventoryFormat>,
    /// The protocol that the cloud's own servers speak best. An endpoint is assumed to speak it until the first
    /// connection shows the real protocol.
    pub protocol: Protocol,
    /// List prices of the cloud that this kind of store is named after.
    pub prices: RequestPrices,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            object_bytes_max: u64::MAX,
            versions: VersionNames::ETagAndId,
            copies: false,
            copy_bytes_max: None,
            parts: PartRules::S3,
            multipart_takes_condition: true,
            delete_many_keeps_conditions: false,
            delete_keeps_condition: false,
            delete_tells_missing: true,
            lists_start_key: false,
            tokens_are_keys: true,
            delete_many_max: 1,
            has_tags: false,
            get_tells_metadata: true,
            list_tells_metadata: true,
            file_attributes: FileAttributes::Rclone,
            inventories: None,
            protocol: Protocol::H1,
            prices: RequestPrices::FREE,
        }
    }
}

/// The limits of the parts of a multipart upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartRules {
    /// The most parts of one upload.
    pub count_max: u64,
    /// The smallest part in bytes. The last one may be smaller.
    pub bytes_min: u64,
    /// The largest part in bytes.
    pub bytes_max: u64,
}

impl PartRules {
    /// S3's limits. The XML API of GCS has the same:
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>,
    /// <https://cloud.google.com/storage/quotas#requests>.
    pub const S3: Self = Self { count_max: 10_000, bytes_min: 5 << 20, bytes_max: 5 << 30 };

    /// Returns the size of the largest object that such parts make.
    pub const fn object_bytes_max(self) -> u64 {
        self.count_max.saturating_mul(self.bytes_max)
    }
}

/// The way in which a store names the states of an object, and the versions that a bucket keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VersionNames {
    /// The generation, a number, names both the state and the version.
    Generation,
    /// An entity tag names the state, and a version has an id of its own.
    ETagAndId,
}

/// The names under which tools keep a file's times, mode and owner in metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileAttributes {
    /// `gcloud storage`'s: `goog-reserved-file-mtime` in seconds, `goog-reserved-posix-mode`, `-uid`, `-gid`.
    Gcloud,
    /// rclone's: `mtime` in seconds with a fraction, `mode`, `uid`, `gid`.
    Rclone,
}

/// The format of a cloud's inventories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InventoryFormat {
    /// S3 Inventory: a `manifest.json` that names a bucket's data files.
    S3Inventory,
    /// Storage Insights of Google Cloud: a manifest that names shards beside itself.
    StorageInsights,
}

/// US dollars for a thousand requests of each class of [`Requests`](crate::Requests), for the standard class in one region.
///
/// Write `RequestPrices { reads: 0.0004, ..RequestPrices::FREE }`: a literal without `..` breaks when fields are added.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RequestPrices {
    /// The month of these prices, as `2026-01`. It is empty if nothing is charged.
    pub as_of: &'static str,
    /// The domains of the servers that charge these prices. Other servers of the same protocol have other prices.
    pub domains: &'static [&'static str],
    /// For [`writes`](crate::Requests::writes).
    pub writes: f64,
    /// For [`reads`](crate::Requests::reads).
    pub reads: f64,
    /// For [`deletes`](crate::Requests::deletes).
    pub deletes: f64,
}

impl RequestPrices {
    /// Nothing is charged.
    pub const FREE: Self = Self { as_of: "", domains: &[], writes: 0.0, reads: 0.0, deletes: 0.0 };

    /// Returns whether the server of an endpoint, which is an URL, charges these prices.
    pub fn are_charged_at(&self, endpoint: &str) -> bool {
        let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or(host);
        let is_in = |domain: &&str| {
            host.strip_suffix(domain).is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        self.domains.iter().any(is_in)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn services_charge_and_servers_of_ones_own_do_not() {
        let (gcs, s3) = (crate::gcs::CAPABILITIES.prices, crate::s3::CAPABILITIES.prices);
        for endpoint in ["https://s3.eu-central-1.amazonaws.com", "https://s3.cn-north-1.amazonaws.com.cn"] {
            assert!(s3.are_charged_at(endpoint) && !gcs.are_charged_at(endpoint), "{endpoint}");
        }
        for endpoint in ["https://storage.googleapis.com", "https://storage.googleapis.com:443/x"] {
            assert!(gcs.are_charged_at(endpoint) && !s3.are_charged_at(endpoint), "{endpoint}");
        }
        for endpoint in ["https://127.0.0.1:9000", "https://notamazonaws.com"] {
            assert!(!s3.are_charged_at(endpoint) && !gcs.are_charged_at(endpoint), "{endpoint}");
        }
    }
}
