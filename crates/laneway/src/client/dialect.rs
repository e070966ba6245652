//! Adds support for stores that Laneway doesn't know. The caller implements a [`Dialect`] for such a store
//! and chooses a URL scheme for it. Every call and job then accepts URLs with this scheme. See
//! [`ClientBuilder::dialect`](crate::ClientBuilder::dialect).

mod in_folder;
mod in_memory;

pub use async_trait::async_trait;
pub use in_folder::InFolder;
pub use in_memory::InMemory;
pub use laneway_store::{
    Appended, Body, Capabilities, Changing, Deletion, Dialect, Error, ErrorKind, FileAttributes, FolderPage,
    FolderRename, Get, GetHedge, GetRange, GetSink, Got, HedgeMaker, InventoryFormat, List, Multipart,
    NewBucket, NotAScheme, Operation, Page, Part, PartChecksums, PartRules, Path, Protocol, ReadAs,
    RequestPrices, ReservedScheme, Restoration, Resumable, Route, Segment, SignOptions, SinkError, SinkMaker,
    Spare, StoredPart, Timings, Unless, VersionNames, capabilities_of,
};
