//! Opens objects for reads.

use std::sync::Arc;

use laneway::{Bucket, ObjectId, ObjectMeta};
use tokio::sync::Mutex;

use crate::attributes::version;
use crate::call::Work;
use crate::described;
use crate::failure::Failure;
use crate::handles::{self, Object};
use crate::opened::OpenObject;
use crate::packed::{Packed, Unpacked};

pub(super) fn open(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let key = from.text()?;
    let state =
        |text: Option<&str>| text.map(|text| version(bucket.capabilities().versions, text)).transpose();
    let mut open = bucket.open(key);
    if from.flag()? {
        let _own_key = from.text()?;
        let mut known = ObjectMeta::new(ObjectId::new(bucket.name(), key), from.number()?);
        known.version = state(from.maybe_text()?)?;
        open = open.known(&known);
    }
    if let Some(version) = state(from.maybe_text()?)? {
        open = open.if_version(&version);
    }
    let open = match from.number()? {
        0 => open,
        footer => open.footer(footer),
    };
    let open = if from.flag()? { open.in_order() } else { open };
    let client = bucket.client().clone();
    Ok(Work::new(bucket.client(), async move {
        let reader = open.await?;
        let mut meta = Packed::default();
        described::meta(&mut meta, reader.meta());
        let (in_order, at_places) = (Mutex::new(reader.again()), std::sync::Mutex::new(reader));
        let number = handles::keep(Object::Reader(Arc::new(OpenObject { client, at_places, in_order })));
        let mut packed = Packed::default();
        packed.number(number).all(&meta);
        Ok(packed)
    }))
}
