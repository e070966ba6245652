//! Writes an object from bytes that the program passes one after the other.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use laneway_store::PutOptions;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc::{self, OwnedPermit, Sender};

use super::call::{Pending, cleaning, job, pending};
use super::put::{ChannelInput, write};
use super::setters::{conditional_write, describable};
use crate::content::encoding;
use crate::engine::fork::OfProcess;
use crate::plan::parts::StreamPartSizes;
use crate::transfer::upload::{ExpectedChecksum, PartsUpload};
use crate::{Bucket, Canceller, Error, Written};

/// A writer that makes an object from the bytes written to it, returned by [`Bucket::writer`].
///
/// The writer collects bytes until they fill a part of 16 MiB. While Laneway sends a part, the program can
/// fill the next one. If the store allows parts of different sizes, the parts grow: after 18 GiB, they are 32
/// MiB large. So 10,000 parts, the maximum of S3 and GCS, hold up to 6 TiB. Otherwise they hold 156 GiB. An
/// object of at most one part takes one request. The object isn't visible before [`finish`](Self::finish) has
/// succeeded. If the writer is dropped or [aborted](Self::abort), Laneway aborts the upload, and no object is
/// written.
pub struct Writer {
    bucket: Bucket,
    key: String,
    options: PutOptions,
    crc32c: Option<u32>,
    gathered: BytesMut,
    /// The number of parts that were passed to the upload.
    parts: u32,
    upload: Option<OfProcess<WriterUpload>>,
    /// Cancels the upload.
    canceller: Option<Canceller>,
    /// The future that completes the object, once [`finish`](Self::finish) was called.
    ending: Option<Pending<Written>>,
    /// The result once the object is complete, or `Some(None)` after a failure.
    ended: Option<Option<Written>>,
}

struct WriterUpload {
    cut: StreamPartSizes,
    sender: Sender<(Bytes, bool)>,
    /// The future that waits until the upload takes the next part, while there is one to send.
    room: Option<RoomWait>,
    ended: Pending<Written>,
}

type RoomWait = BoxFuture<'static, Option<OwnedPermit<(Bytes, bool)>>>;

impl Bucket {
    /// Returns a writer for an object. The writer sends nothing before the caller has written a part's bytes
    /// or calls [`finish`](Writer::finish).
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

conditional_write!(Writer);
describable!(Writer);

impl Writer {
    /// Sets the expected CRC32C of all bytes, if it is known. If the bytes have another checksum, the upload
    /// fails and writes no object.
    pub(super) fn expect_crc32c(&mut self, value: Option<u32>) {
        self.crc32c = value;
    }

    /// Writes bytes. If a part is full while the upload is still sending earlier parts, this method waits
    /// until the upload takes the full part.
    ///
    /// # Errors
    /// The store's error for a part that was sent. After an error, the writer can't be used any more.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let taken = std::future::poll_fn(|context| self.poll_take(context, bytes)).await?;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Completes the object: sends the remaining bytes, then compares the stored object's checksum with the
    /// bytes that were sent. Dropping the future abandons the object, unless the store is already completing
    /// it.
    ///
    /// # Errors
    /// The store's error; a stored object that differs from the bytes that were sent. After an error, no
    /// object of this writer remains.
    pub async fn finish(mut self) -> Result<Written, Error> {
        std::future::poll_fn(|context| self.poll_finish(context)).await
    }

    /// Abandons the object, and waits until the store has removed the unfinished upload. If the program began
    /// a `shutdown` and didn't wait for its end, the object may still be written.
    pub async fn abort(self) {
        let Self { upload, canceller, ending, .. } = self;
        if let (Some(canceller), Some(ending)) = (canceller, ending) {
            canceller.cancel();
            drop(ending.await);
        }
        // In a forked child, do nothing: only the parent may abandon the upload that it began.
        if let Some(WriterUpload { sender, room, ended, .. }) = upload.and_then(OfProcess::into_inner) {
            drop((sender, room));
            // The channel is now closed without a last part. So the upload cleans up and ends as cancelled.
            // Wait for this.
            drop(ended.await);
        }
    }

    /// Takes the bytes that fit into the current part. If that part is full, sends it first.
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
            None => StreamPartSizes::of(&self.bucket.store()?, None),
        };
        let len = cut.len(self.parts + 1).and_then(|len| usize::try_from(len).ok());
        len.ok_or_else(|| {
            // Make all later calls fail too. If the caller ignored this error and called `finish`, the object
            // would lack its last bytes.
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
            // The upload has dropped its receiver because it has failed. Return the error in its result.
            let failed = ready!(Pin::new(&mut upload.ended).poll(context)).err();
            (self.upload, self.ended) = (None, Some(None));
            let url = self.bucket.url_of(&self.key);
            return Poll::Ready(Err(failed.unwrap_or_else(|| Error::cancelled(url))));
        };
        permit.send((self.gathered.split().freeze(), is_last));
        self.parts += 1;
        Poll::Ready(Ok(()))
    }

    fn begin(&mut self) -> Result<WriterUpload, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        let given = ExpectedChecksum { url: self.bucket.url_of(&self.key), crc32c: self.crc32c };
        let options = self.described();
        let cut = StreamPartSizes::of(&store, None);
        let (sender, parts) = mpsc::channel(1);
        let (owner, job) = job(&self.bucket)?;
        self.canceller = Some(owner.canceller());
        let input = ChannelInput::new(job.clone(), given, parts);
        let send = async move {
            let parts = PartsUpload::new(&job, &store, &id, &options, None);
            Ok(parts.send(None, &input).await?.into())
        };
        // Start the upload now. The upload then sends parts while the program fills further parts, although
        // nothing polls `ended` meanwhile.
        let ended = Pending::new(cleaning(self.bucket.client(), owner, send));
        Ok(WriterUpload { cut, sender, room: None, ended })
    }

    fn described(&self) -> PutOptions {
        let mut options = self.options.clone();
        if options.content_type.is_none() {
            options.content_type = encoding::content_type(&self.key).map(str::to_owned);
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

    /// Writes the collected bytes, which are the whole object, in a single request.
    fn whole(&mut self) -> Pending<Written> {
        let (bucket, key, options) = (self.bucket.clone(), self.key.clone(), self.described());
        let (bytes, crc32c) = (self.gathered.split().freeze(), self.crc32c);
        let client = bucket.client().clone();
        pending(&client, async move { write(&bucket, &key, bytes, Box::new(options), crc32c).await })
    }
}

/// `flush` does nothing, because the object isn't visible before it is complete. `shutdown` completes the
/// object as [`finish`](Writer::finish) does. Afterwards, `finish` can still be called to get the
/// [`Written`].
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
