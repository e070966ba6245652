//! Writes an object whose bytes a program produces one after the other.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use laneway_store::PutOptions;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc::{self, OwnedPermit, Sender};

use super::attributes::{conditional, describable};
use super::call::{Pending, cleaning, job, pending};
use super::handed::Handed;
use super::put::write;
use crate::content::content_type;
use crate::engine::fork::OfProcess;
use crate::plan::parts::Cut;
use crate::transfer::upload::{Given, Parts};
use crate::{Bucket, Canceller, Error, Written};

/// Writes an object from bytes that the caller writes to it; made by [`Bucket::writer`].
///
/// The writer collects bytes until they fill a part of 16 MiB. If the store takes parts of unequal size,
/// parts have 32 MiB after the first 18 GiB, and so on. One part is sent while the next one fills. An object
/// of at most one part takes one request. Nothing is visible in the store before [`finish`](Self::finish) has
/// succeeded. A writer that is dropped or [aborted](Self::abort) leaves nothing behind.
pub struct Writer {
    bucket: Bucket,
    key: String,
    options: PutOptions,
    crc32c: Option<u32>,
    gathered: BytesMut,
    /// Number of parts that were sent.
    parts: u32,
    upload: Option<OfProcess<Upload>>,
    /// Cancels the upload.
    canceller: Option<Canceller>,
    /// The completion of the object, once it has begun.
    ending: Option<Pending<Written>>,
    /// The result: `Some(None)` after a failure.
    ended: Option<Option<Written>>,
}

struct Upload {
    cut: Cut,
    sender: Sender<(Bytes, bool)>,
    /// The wait for room for the next part, if there is one.
    room: Option<Room>,
    ended: Pending<Written>,
}

type Room = BoxFuture<'static, Option<OwnedPermit<(Bytes, bool)>>>;

impl Bucket {
    /// Writes an object from bytes that the caller writes one after the other. Nothing is sent before the
    /// bytes fill a part or [`finish`](Writer::finish) is called.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// let mut table = bucket.writer("table.csv");
    /// for row in 0..1000 {
    ///     table.write(format!("{row},x\n").as_bytes()).await?;
    /// }
    /// let written = table.finish().await?;
    /// assert_eq!(written.size, 5890);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writer(&self, key: &str) -> Writer {
        Writer {
            bucket: self.clone(),
            key: key.to_owned(),
            options: PutOptions::default(),
            crc32c: None,
            gathered: BytesMut::new(),
            parts: 0,
            upload: None,
            canceller: None,
            ending: None,
            ended: None,
        }
    }
}

conditional!(Writer);
describable!(Writer);

impl Writer {
    /// Sets the CRC32C of all bytes, if the caller knows it. If the bytes have another checksum, the upload
    /// fails and writes no object.
    pub(super) fn expect_crc32c(&mut self, value: Option<u32>) {
        self.crc32c = value;
    }

    /// Writes bytes. Waits while too many bytes are on their way.
    ///
    /// # Errors
    /// The store's error about the upload. The writer can't be used afterwards.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let taken = std::future::poll_fn(|context| self.poll_take(context, bytes)).await?;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Completes the object: sends the rest, then compares the stored object with the bytes that were sent.
    /// Dropping this half-way abandons the object, unless the store is completing it already.
    ///
    /// # Errors
    /// The store's error; a stored object that differs from the bytes. Nothing is left behind then.
    pub async fn finish(mut self) -> Result<Written, Error> {
        std::future::poll_fn(|context| self.poll_finish(context)).await
    }

    /// Abandons the object, and waits until the store has removed the unfinished upload. If a `shutdown` was
    /// begun and not awaited, the object may exist anyway.
    pub async fn abort(self) {
        let Self { upload, canceller, ending, .. } = self;
        if let (Some(canceller), Some(ending)) = (canceller, ending) {
            canceller.cancel();
            drop(ending.await);
        }
        // If a parent of this process began the upload, only the parent may abandon it.
        if let Some(Upload { sender, room, ended, .. }) = upload.and_then(OfProcess::into_inner) {
            drop((sender, room));
            // Without its last part, the upload ends as cancelled, after it has cleaned up.
            drop(ended.await);
        }
    }

    /// Takes as many bytes as fit into the part being filled.
    fn poll_take(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        if self.ending.is_some() || self.ended.is_some() {
            return Poll::Ready(Err(self.misused("was finished or has failed, and takes no more bytes")));
        }
        if self.gathered.len() == self.part_len()? {
            ready!(self.poll_send(context, false))?;
        }
        let wanted = self.part_len()?;
        let taken = bytes.len().min(wanted - self.gathered.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn part_len(&mut self) -> Result<usize, Error> {
        let cut = match &self.upload {
            Some(upload) => upload.get().ok_or_else(|| self.forked())?.cut,
            None => Cut::of(&self.bucket.store()?, None),
        };
        let len = cut.len(self.parts + 1).and_then(|len| usize::try_from(len).ok());
        len.ok_or_else(|| {
            // If a caller ignored this and finished, the object would lack the last bytes. So fail for good.
            (self.upload, self.ended) = (None, Some(None));
            self.misused(&format!("has more than the {} parts that the store allows", cut.count_max()))
        })
    }

    fn forked(&self) -> Error {
        Error::forked(self.bucket.url_of(&self.key))
    }

    fn misused(&self, why: &str) -> Error {
        Error::refused(self.bucket.url_of(&self.key), why)
    }

    fn poll_send(&mut self, context: &mut Context<'_>, is_last: bool) -> Poll<Result<(), Error>> {
        let begun = match self.upload.take() {
            Some(upload) => upload,
            None => OfProcess::new(self.begin()?),
        };
        let Some(upload) = self.upload.insert(begun).get_mut() else {
            return Poll::Ready(Err(Error::forked(self.bucket.url_of(&self.key))));
        };
        let sender = &upload.sender;
        let room = upload.room.get_or_insert_with(|| {
            let sender = sender.clone();
            Box::pin(async move { sender.reserve_owned().await.ok() })
        });
        let permit = ready!(room.as_mut().poll(context));
        upload.room = None;
        let Some(permit) = permit else {
            // The upload takes no more parts because it has failed. Its result has the reason.
            let failed = ready!(Pin::new(&mut upload.ended).poll(context)).err();
            (self.upload, self.ended) = (None, Some(None));
            let url = self.bucket.url_of(&self.key);
            return Poll::Ready(Err(failed.unwrap_or_else(|| Error::cancelled(url))));
        };
        permit.send((self.gathered.split().freeze(), is_last));
        self.parts += 1;
        Poll::Ready(Ok(()))
    }

    fn begin(&mut self) -> Result<Upload, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        let given = Given { url: self.bucket.url_of(&self.key), crc32c: self.crc32c };
        let options = self.described();
        let cut = Cut::of(&store, None);
        let (sender, parts) = mpsc::channel(1);
        let (owner, job) = job(&self.bucket)?;
        self.canceller = Some(owner.canceller());
        let input = Handed::new(job.clone(), given, parts);
        let send = async move {
            let parts = Parts::new(&job, &store, &id, &options, None);
            Ok(parts.send(None, &input).await?.into())
        };
        // Start the upload now, so that it sends parts while others fill, even if nothing awaits its end.
        let ended = Pending::new(cleaning(self.bucket.client(), owner, send));
        Ok(Upload { cut, sender, room: None, ended })
    }

    fn described(&self) -> PutOptions {
        let mut options = self.options.clone();
        if options.content_type.is_none() {
            options.content_type = content_type::guess(&self.key).map(str::to_owned);
        }
        options
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<Written, Error>> {
        match &self.ended {
            Some(Some(written)) => return Poll::Ready(Ok(written.clone())),
            Some(None) => {
                return Poll::Ready(Err(self.misused("is not written, because an earlier write failed")));
            }
            None => {}
        }
        if self.upload.is_some() && self.ending.is_none() {
            ready!(self.poll_send(context, true))?;
        }
        let ending = match self.ending.take() {
            Some(ending) => ending,
            None => match self.upload.take() {
                Some(upload) => upload.into_inner().ok_or_else(|| self.forked())?.ended,
                None => self.whole(),
            },
        };
        let ended = Pin::new(self.ending.insert(ending)).poll(context);
        let ended = ready!(ended);
        self.ending = None;
        self.ended = Some(ended.as_ref().ok().cloned());
        Poll::Ready(ended)
    }

    /// Writes the collected bytes as the whole object.
    fn whole(&mut self) -> Pending<Written> {
        let (bucket, key, options) = (self.bucket.clone(), self.key.clone(), self.described());
        let (bytes, crc32c) = (self.gathered.split().freeze(), self.crc32c);
        let client = bucket.client().clone();
        pending(&client, async move { write(&bucket, &key, bytes, Box::new(options), crc32c).await })
    }
}

/// `flush` does nothing, because nothing is visible before the end. `shutdown` completes the object as
/// [`finish`](Writer::finish) does. `finish` may still be called afterwards, to get the [`Written`].
impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_take(context, bytes).map_err(io::Error::other)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_finish(context).map_ok(drop).map_err(io::Error::other)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("url", &self.bucket.url_of(&self.key))
            .field("gathered", &self.gathered.len())
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use laneway_store::PartRules;

    use crate::Client;

    #[test]
    fn what_was_written_beyond_the_last_part_is_never_left_out_of_an_object() {
        let client =
            Client::builder().region("r").engine(crate::Engine::builder().build()).build().expect("a client");
        let mut writer = client.bucket("s3://bucket/").expect("a bucket").writer("key");
        writer.parts = u32::try_from(PartRules::S3.count_max).expect("it is small");
        let refused = pollster::block_on(writer.write(b"more")).expect_err("there are too many parts");
        assert!(refused.to_string().contains("10000 parts"), "{refused}");
        let ended = pollster::block_on(writer.finish()).expect_err("it has failed");
        assert!(ended.to_string().contains("an earlier write failed"), "{ended}");
    }
}
