//! What GCS doesn't have, and is asked for all the same.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Gcs;
use crate::encryption::Keyed;
use crate::exchange::Exchange;
use crate::{Error, ErrorKind, Multipart, ObjectId, Operation, Part, Version};

impl Gcs {
    /// It forgets the parts of an object.
    pub(crate) async fn part_len(
        &self,
        _: &ObjectId,
        _: Option<&Version>,
        _: u32,
        _: Keyed,
    ) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    pub(crate) async fn tags(&self, _: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        Ok(BTreeMap::new())
    }

    /// Its rewrite copies objects of any size.
    pub(crate) async fn part_copy(
        &self,
        upload: &Multipart,
        _: u32,
        _: &ObjectId,
        _: Option<&Version>,
        _: Range<u64>,
    ) -> Result<Part, Error> {
        let exchange = Exchange::object(self, Operation::Part, &upload.id);
        Err(exchange.error(ErrorKind::Unsupported, "GCS copies whole objects only"))
    }
}
