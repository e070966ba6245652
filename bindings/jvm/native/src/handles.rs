//! What Java holds, by numbers. One that was closed, or never given, means nothing: no mistake of Java's reaches memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use bytes::Bytes;
use laneway::{Bucket, Client, Download};

use crate::failure::Failure;
use crate::opened::{Listing, Open, Owned, UnderWay, Writing};

/// What a number means. Clones share it.
#[derive(Clone)]
pub(crate) enum Object {
    Client(Client),
    Bucket(Bucket),
    Reader(Arc<Open>),
    Download(Arc<Owned<Download>>),
    List(Arc<Owned<Listing>>),
    Writer(Arc<Owned<Writing>>),
    Job(Arc<UnderWay>),
    Body(Bytes),
}

static OBJECTS: LazyLock<RwLock<HashMap<u64, Object>>> = LazyLock::new(RwLock::default);

/// Numbers that were given. 0 is nothing's.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Gives a number to what Java is to hold.
pub(crate) fn keep(object: Object) -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    OBJECTS.write().unwrap_or_else(PoisonError::into_inner).insert(number, object);
    number
}

/// Forgets what a number means. Calls that use it go on.
pub(crate) fn close(number: u64) {
    let object = OBJECTS.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    // Not while the others are locked: it may have an end of its own.
    drop(object);
}

/// What a number means.
///
/// # Errors
/// For what was closed.
pub(crate) fn held(number: u64) -> Result<Object, Failure> {
    OBJECTS.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned().ok_or_else(Failure::closed)
}

/// The same of one kind.
macro_rules! of_kind {
    ($name:ident, $kind:ident, $of:ty) => {
        /// What a number means, of this kind.
        ///
        /// # Errors
        /// For what was closed.
        pub(crate) fn $name(number: u64) -> Result<$of, Failure> {
            match held(number)? {
                Object::$kind(of) => Ok(of),
                _ => Err(Failure::of_another_version()),
            }
        }
    };
}

of_kind!(client, Client, Client);
of_kind!(bucket, Bucket, Bucket);
of_kind!(reader, Reader, Arc<Open>);
of_kind!(download, Download, Arc<Owned<Download>>);
of_kind!(list, List, Arc<Owned<Listing>>);
of_kind!(writer, Writer, Arc<Owned<Writing>>);
of_kind!(job, Job, Arc<UnderWay>);
of_kind!(body, Body, Bytes);
