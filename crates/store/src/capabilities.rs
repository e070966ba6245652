//! The properties of a kind of store by which callers decide.

use laneway_lanes::Protocol;

/// Properties of one kind of store. They hold for all its endpoints and don't change while a program runs; what is learned
/// from a server's answers is asked of [`Dialect`](crate::Dialect) instead.
///
/// The default is a plain store, which promises nothing: every verb is one request whatever the size, conditions on deletes are not
/// relied on, and nothing costs money. Only `Capabilities { has_tags: true, ..Capabilities::default() }` stays valid when fields are
/// added.
#[derive(Clone, PartialEq, Debug)]
pub struct Capabilities {
    /// The largest object, in bytes.
    pub object_bytes_max: u64,
    /// The names of an object's states and versions.
    pub versions: VersionNames,
    /// The store copies objects by itself. Otherwise their bytes go through this machine.
    pub copies: bool,
    /// One request copies an object of any size, and changes its metadata. Otherwise large objects are copied in parts
    /// ([`Store::part_copy`](crate::Store::part_copy)), and changed by an upload onto them
    /// ([`Store::changing`](crate::Store::changing)).
    pub copies_any_size: bool,
    /// A multipart upload takes a condition when it is completed. Otherwise uploads with a condition go through a resumable
    /// session, which takes it when it begins.
    pub multipart_takes_condition: bool,
    /// One request deletes many objects, each in a state of its own.
    pub delete_many_keeps_conditions: bool,
    /// Every server keeps a condition on a delete, at no cost. Otherwise an object might have to be asked for before each
    /// delete.
    pub delete_keeps_condition: bool,
    /// Deleting an object that doesn't exist is an error.
    pub delete_tells_missing: bool,
    /// A listing with [`start_after`](crate::List::start_after) counts that key among the entries of its first page.
    pub lists_start_key: bool,
    /// The token of a listing's next page is a key, from which another listing may go on.
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
    /// The protocol that the cloud's own servers speak best, assumed of an endpoint until a connection has shown its own.
    pub protocol: Protocol,
    /// List prices of the cloud that a kind of store is named after.
    pub prices: RequestPrices,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            object_bytes_max: u64::MAX,
            versions: VersionNames::ETagAndId,
            copies: false,
            copies_any_size: true,
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
            protocol: Protocol::H1,
            prices: RequestPrices::FREE,
        }
    }
}

/// The way in which a store names the states of an object, and the versions that a bucket keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionNames {
    /// A number, the generation, is both.
    Generation,
    /// An entity tag is the state, and a version has an id of its own.
    ETagAndId,
}

/// The names under which tools keep a file's times, mode and owner in metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileAttributes {
    /// `gcloud storage`'s: `goog-reserved-file-mtime` in seconds, `goog-reserved-posix-mode`, `-uid`, `-gid`.
    Gcloud,
    /// rclone's: `mtime` in seconds with a fraction, `mode`, `uid`, `gid`.
    Rclone,
}

/// US dollars for a thousand requests of each class of [`Requests`](crate::Requests), for the standard class in one region.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RequestPrices {
    /// For [`writes`](crate::Requests::writes).
    pub writes: f64,
    /// For [`reads`](crate::Requests::reads).
    pub reads: f64,
    /// For [`deletes`](crate::Requests::deletes).
    pub deletes: f64,
}

impl RequestPrices {
    /// Nothing is charged.
    pub const FREE: Self = Self { writes: 0.0, reads: 0.0, deletes: 0.0 };
}
