//! Opens an object for reads at any offset.

use std::time::Duration;

use laneway_store::{Get, GetRange, ObjectMeta, Version};

use super::call::{callable, within};
use super::read_ahead::FIRST_IN_ORDER;
use super::reader::{OpeningBytes, Reader};
use crate::content::checksum::{Crc, RangeChecksums};
use crate::content::read::{ObjectBytes, collect};
use crate::transfer::log_second_try;
use crate::{Bucket, Error};

/// A call that opens an object, made by [`Bucket::open`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Open {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    version: Option<Version>,
    footer: Option<u64>,
    in_order: bool,
    known: Option<Box<ObjectMeta>>,
}

impl Bucket {
    /// Opens the current version of an object for reads at any offset. This takes one request.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.put("table.parquet", vec![7; 300_000]).await?;
    /// let table = bucket.open("table.parquet").footer(65_536).await?;
    /// assert_eq!(table.footer().len(), 65_536);
    /// let columns = table.read_ranges([0..4096, 100_000..150_000]).await?;
    /// assert_eq!(columns[1].len(), 50_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(&self, key: &str) -> Open {
        Open {
            bucket: self.clone(),
            deadline: None,
            key: key.to_owned(),
            version: None,
            footer: None,
            in_order: false,
            known: None,
        }
    }
}

callable!(Open, Reader);

impl Open {
    /// Opens the object only if this is its current version. If the object was replaced, the call fails.
    pub fn if_version(mut self, version: &Version) -> Self {
        self.version = Some(version.clone());
        self
    }

    /// Opens the version that this metadata describes. The metadata comes from a listing or another reader,
    /// for example. Then opening sends no request, unless a [`footer`](Self::footer) is set or the metadata
    /// has no version. If the object was replaced or removed since, the first read fails.
    pub fn known(mut self, meta: &ObjectMeta) -> Self {
        self.version.clone_from(&meta.version);
        self.known = Some(Box::new(meta.clone()));
        self
    }

    /// Fetches the last bytes of the object with the opening request, or all bytes if there are fewer. So
    /// files with an index at their end, such as Parquet, need no further request for the index. Reads within
    /// these bytes send no request.
    pub fn footer(mut self, bytes: u64) -> Self {
        self.footer = Some(bytes);
        self
    }

    /// Prepares for reading the object from its beginning to its end. The opening request fetches the first
    /// 512 KiB, instead of a [`footer`](Self::footer). So reading a small object often needs no further
    /// request. Laneway fetches the following bytes before the program reads them. For a
    /// [`known`](Self::known) object, opening sends no request.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    async fn run(self) -> Result<Reader, Error> {
        let Self { bucket, deadline, key, version, footer, in_order, known } = self;
        let (store, id, url) = (bucket.store()?, bucket.id(&key)?, bucket.url_of(&key));
        let footer = footer.filter(|bytes| *bytes > 0 && !in_order);
        if let Some(mut meta) = known.filter(|meta| footer.is_none() && meta.version.is_some()) {
            meta.version = version;
            meta.id = id;
            bucket.relative(&mut meta);
            return Ok(Reader::new(bucket, *meta, OpeningBytes::default(), in_order));
        }
        let range = match footer {
            // Expect half of the bytes, because most objects are smaller than the range.
            _ if in_order => Some((GetRange::from(0..FIRST_IN_ORDER), FIRST_IN_ORDER / 2)),
            footer => footer.map(|last| (GetRange::Last(last), last)),
        };
        let ask = async {
            let Some((range, expected)) = range else {
                return Ok((store.head(&id, version.as_ref()).await?, OpeningBytes::default()));
            };
            let get = || {
                let get = Get { version: version.as_ref(), expected: Some(expected), ..Get::new(&id) };
                collect(&store, range.clone(), get)
            };
            let mut got = get().await?;
            if let Err(error) = verify(&url, &got) {
                log_second_try(&error);
                got = get().await?;
                verify(&url, &got)?;
            }
            let ObjectBytes { meta, start, bytes } = got;
            Ok::<_, Error>((meta, OpeningBytes { start, bytes }))
        };
        let (mut meta, opened) = within(deadline, &url, ask).await?;
        if meta.version.is_none() {
            let message = "the store reports no version of the object, so reads could return bytes of different versions";
            return Err(Error::integrity(url, message));
        }
        bucket.relative(&mut meta);
        Ok(Reader::new(bucket, meta, opened, in_order))
    }
}

/// Compares the answer's bytes with the CRC that the store sent, if it sent one and the answer has the whole
/// object.
fn verify(url: &str, got: &ObjectBytes) -> Result<(), Error> {
    let (stored, is_whole) = (&got.meta.checksums, got.bytes.len() as u64 == got.meta.size);
    let Some(crc) = Crc::given_in(stored).filter(|_| is_whole) else { return Ok(()) };
    let compared = RangeChecksums::of(&got.bytes, crc.wanted()).verify(stored);
    compared.map_err(|difference| Error::mismatch(url, difference))?;
    Ok(())
}
