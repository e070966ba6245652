//! The body of a rival's request: bytes, or a file that is read as it is sent.

use std::fs::File;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Rival;

/// Bytes of a file that are read at a time.
const CHUNK: u64 = 256 << 10;

pub(crate) enum Outgoing {
    Bytes(Bytes),
    /// A file, its remaining bytes, and the client that counts sent bytes. The file is in the page cache, so a blocking
    /// read takes only microseconds.
    File(File, u64, Rival),
}

impl Outgoing {
    pub(crate) fn file(file: File, len: u64, rival: Rival) -> Self {
        Self::File(file, len, rival)
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, left, _) => *left,
        }
    }
}

impl From<Bytes> for Outgoing {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.len() == 0 {
            return Poll::Ready(None);
        }
        let chunk = match &mut *self {
            Self::Bytes(bytes) => Ok(std::mem::take(bytes)),
            Self::File(file, left, rival) => {
                let mut chunk = vec![0; CHUNK.min(*left) as usize];
                *left -= chunk.len() as u64;
                rival.moves(chunk.len() as u64);
                file.read_exact(&mut chunk).map(|()| Bytes::from(chunk))
            }
        };
        Poll::Ready(Some(chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::site::Origin;

    #[test]
    fn a_file_counts_as_it_goes_and_not_when_it_is_answered() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; CHUNK as usize + 5]).unwrap();
        let rival = Rival::at(Origin { https: false, host: "h".to_owned(), port: 1 }, None);
        let mut body = Outgoing::file(File::open(file.path()).unwrap(), CHUNK + 5, rival.clone());
        let mut context = Context::from_waker(std::task::Waker::noop());
        for (moved, is_last) in [(CHUNK, false), (CHUNK + 5, true)] {
            assert!(matches!(Pin::new(&mut body).poll_frame(&mut context), Poll::Ready(Some(Ok(_)))));
            assert_eq!((rival.moved(), body.is_end_stream()), (moved, is_last));
        }
    }
}
