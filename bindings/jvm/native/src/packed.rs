//! What goes between Java and here, as bytes: `dev.laneway.Packed` and `Unpacked`.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes for Java: numbers of eight bytes in network order, texts in UTF-8 behind their lengths.
#[derive(Debug, Default)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Self {
        self.0.push(u8::from(value));
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64).0.extend_from_slice(text.as_bytes());
        self
    }

    pub(crate) fn maybe_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.flag(true).text(text),
            None => self.flag(false),
        }
    }

    pub(crate) fn maybe_time(&mut self, time: Option<SystemTime>) -> &mut Self {
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        match since {
            Some(since) => self.flag(true).number(since.as_secs()).number(since.subsec_nanos().into()),
            None => self.flag(false),
        }
    }

    pub(crate) fn texts<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str), IntoIter: ExactSizeIterator>,
    ) -> &mut Self {
        let pairs = pairs.into_iter();
        self.number(pairs.len() as u64);
        for (name, value) in pairs {
            self.text(name).text(value);
        }
        self
    }

    /// Another's bytes, as they are.
    pub(crate) fn all(&mut self, other: &Self) -> &mut Self {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// Another's bytes behind their length.
    pub(crate) fn part(&mut self, other: &Self) -> &mut Self {
        self.number(other.0.len() as u64).all(other)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes that are no packed ones of this version's: those of other classes than it was built with.
#[derive(Debug)]
pub(crate) struct OtherVersion;

/// Bytes of Java's that are read.
#[derive(Debug)]
pub(crate) struct Unpacked<'b>(&'b [u8]);

impl<'b> Unpacked<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// # Errors
    /// For less than is to be read: then Java's part is of another version.
    fn take(&mut self, len: usize) -> Result<&'b [u8], OtherVersion> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(OtherVersion)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<u64, OtherVersion> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, OtherVersion> {
        Ok(self.take(1)? != [0])
    }

    pub(crate) fn text(&mut self) -> Result<&'b str, OtherVersion> {
        let len = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        str::from_utf8(self.take(len)?).map_err(|_| OtherVersion)
    }

    pub(crate) fn maybe_text(&mut self) -> Result<Option<&'b str>, OtherVersion> {
        match self.flag()? {
            true => self.text().map(Some),
            false => Ok(None),
        }
    }

    /// A time in milliseconds since 1970.
    pub(crate) fn maybe_time(&mut self) -> Result<Option<SystemTime>, OtherVersion> {
        match self.flag()? {
            true => Ok(UNIX_EPOCH.checked_add(Duration::from_millis(self.number()?))),
            false => Ok(None),
        }
    }

    pub(crate) fn texts(&mut self) -> Result<BTreeMap<&'b str, &'b str>, OtherVersion> {
        (0..self.number()?).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    /// Texts behind their number.
    pub(crate) fn list(&mut self) -> Result<Vec<&'b str>, OtherVersion> {
        (0..self.number()?).map(|_| self.text()).collect()
    }
}
