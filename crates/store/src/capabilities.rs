//! The properties of a kind of store. Code that calls a store adapts to them.

use laneway_lanes::Protocol;

/// Properties of one kind of store. They hold for all its endpoints and don't change while a program runs.
/// [`Dialect`](crate::Dialect) has methods for properties that it learns from a server's answers.
///
/// The default is a plain store without any optional capability. It handles objects of any size with one request, may
/// ignore conditions on deletes, and charges nothing. Write `Capabilities { has_tags: true, ..Capabilities::default()
/// }`: a literal without `..` breaks when fields are added.
#[derive(Clone, PartialEq, Debug)]
pub struct Capabilities {
    /// The largest object, in bytes.
    pub object_bytes_max: u64,
    /// The kind of names that this store gives to an object's states and versions.
    pub versions: VersionNames,
    /// The store can copy objects by itself. Otherwise a copy is downloaded to this machine and uploaded again.
    pub copies: bool,
    /// The size in bytes of the largest object that one request can copy, or whose metadata one request can change.
    /// `None` means any size. Larger objects are copied in parts ([`Store::part_copy`](crate::Store::part_copy)), and
    /// changed by an upload onto them ([`Store::changing`](crate::Store::changing)).
    pub copy_bytes_max: Option<u64>,
    /// The limits of the parts of a multipart upload.
    pub parts: PartRules,
    /// The request that completes a multipart upload can carry a condition. Otherwise a conditional upload uses a
    /// resumable session, whose first request carries the condition.
    pub multipart_takes_condition: bool,
    /// A request that deletes many objects can carry a condition for each of them.
    pub delete_many_keeps_conditions: bool,
    /// Every server enforces a condition on a delete. Otherwise a conditional delete may need a HEAD request first, to
    /// check the condition.
    pub delete_keeps_condition: bool,
    /// Deleting an object that doesn't exist is an error.
    pub delete_tells_missing: bool,
    /// In a listing with [`start_after`](crate::List::start_after), the store counts that key as an entry of the first
    /// page. Laneway leaves the key out, so the page can have one entry less than requested.
    pub lists_start_key: bool,
    /// The token of a listing's next page is a key, so another listing can start at this key.
    pub tokens_are_keys: bool,
    /// The maximum number of objects that one request can delete.
    pub delete_many_max: usize,
    /// Objects have tags.
    pub has_tags: bool,
    /// The answer to a download contains the user metadata.
    pub get_tells_metadata: bool,
    /// A listing contains the user metadata of each object.
    pub list_tells_metadata: bool,
    /// The names of the metadata in which an object keeps a file's times, mode and owner.
    pub file_attributes: FileAttributes,
    /// The format of the inventories (lists of a bucket's objects) that the cloud can write. `None` if it writes none.
    pub inventories: Option<InventoryFormat>,
    /// The best protocol that the cloud's own servers support. Laneway assumes it for every endpoint until the first
    /// connection shows the real protocol.
    pub protocol: Protocol,
    /// The list prices of this kind of store's cloud.
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
    /// The maximum number of parts in one upload.
    pub count_max: u64,
    /// The smallest part in bytes. The last one may be smaller.
    pub bytes_min: u64,
    /// The largest part in bytes.
    pub bytes_max: u64,
}

impl PartRules {
    /// S3's limits, which are also those of GCS's XML API:
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>,
    /// <https://cloud.google.com/storage/quotas#requests>.
    pub const S3: Self = Self { count_max: 10_000, bytes_min: 5 << 20, bytes_max: 5 << 30 };

    /// Returns the size in bytes of the largest object that can be uploaded in such parts.
    pub const fn object_bytes_max(self) -> u64 {
        self.count_max.saturating_mul(self.bytes_max)
    }
}

/// The way in which a store names the successive states of an object, and the versions that a versioned bucket keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VersionNames {
    /// A number, the generation, names both an object's current state and a version that the bucket keeps (GCS).
    Generation,
    /// An entity tag (`ETag`) names an object's current state. A version that the bucket keeps has a separate id (S3).
    ETagAndId,
}

/// The names of the metadata in which tools keep a file's times, mode and owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileAttributes {
    /// The names of `gcloud storage`: `goog-reserved-file-mtime` in seconds, `goog-reserved-posix-mode`, `-uid`,
    /// `-gid`.
    Gcloud,
    /// The names of rclone: `mtime` in seconds with a fraction, `mode`, `uid`, `gid`.
    Rclone,
}

/// The format of a cloud's inventories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InventoryFormat {
    /// S3 Inventory: a `manifest.json` that names a bucket's data files.
    S3Inventory,
    /// Storage Insights of Google Cloud: a manifest that names the data files (shards) in its own folder.
    StorageInsights,
}

/// Prices in US dollars for a thousand requests of each class of [`Requests`](crate::Requests). They apply to the
/// standard storage class in one region.
///
/// Write `RequestPrices { reads: 0.0004, ..RequestPrices::FREE }`: a literal without `..` breaks when fields are added.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RequestPrices {
    /// The month of these prices, as `2026-01`. It is empty if nothing is charged.
    pub as_of: &'static str,
    /// The domains of the servers that charge these prices. Other servers of the same protocol have other prices.
    pub domains: &'static [&'static str],
    /// The price of a thousand [`writes`](crate::Requests::writes).
    pub writes: f64,
    /// The price of a thousand [`reads`](crate::Requests::reads).
    pub reads: f64,
    /// The price of a thousand [`deletes`](crate::Requests::deletes).
    pub deletes: f64,
}

impl RequestPrices {
    /// Prices of zero, for a store that charges nothing.
    pub const FREE: Self = Self { as_of: "", domains: &[], writes: 0.0, reads: 0.0, deletes: 0.0 };

    /// Returns true if the server at an endpoint's URL charges these prices.
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
