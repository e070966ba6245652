//! The byte format in which a host language and this library exchange arguments and results.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Values for the host, packed into bytes. A number has eight bytes in network order, and a flag one byte. A text is
/// its length as a number, followed by UTF-8.
#[derive(Clone, Debug, Default)]
pub struct Packed(Vec<u8>);

impl Packed {
    /// Appends a number.
    pub fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends a flag.
    pub fn flag(&mut self, value: bool) -> &mut Self {
        self.0.push(u8::from(value));
        self
    }

    /// Appends a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64).0.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends a flag that says whether there is a text, and then the text.
    pub fn maybe_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.flag(true).text(text),
            None => self.flag(false),
        }
    }

    /// Appends a flag that says whether there is a time, and then its seconds and nanoseconds since 1970.
    pub fn maybe_time(&mut self, time: Option<SystemTime>) -> &mut Self {
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        match since {
            Some(since) => self.flag(true).number(since.as_secs()).number(since.subsec_nanos().into()),
            None => self.flag(false),
        }
    }

    /// Appends the number of pairs, then the pairs of texts.
    pub fn texts<'a>(
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

    /// Appends the bytes of another packed value.
    pub fn all(&mut self, other: &Self) -> &mut Self {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// Appends the bytes of another packed value, with their length in front.
    pub fn part(&mut self, other: &Self) -> &mut Self {
        self.number(other.0.len() as u64).all(other)
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The error for packed bytes that can't be read. The host's part of the binding then has another version than this
/// library.
#[derive(Debug)]
pub struct OtherVersion;

/// A reader of the host's packed bytes.
#[derive(Debug)]
pub struct Unpacked<'b>(&'b [u8]);

impl<'b> Unpacked<'b> {
    /// Returns a reader of these bytes.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// # Errors
    /// Fails if there are too few bytes.
    fn take(&mut self, len: usize) -> Result<&'b [u8], OtherVersion> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(OtherVersion)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// Fails if there are too few bytes.
    pub fn number(&mut self) -> Result<u64, OtherVersion> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a flag.
    ///
    /// # Errors
    /// Fails in the same cases as [`number`](Self::number).
    pub fn flag(&mut self) -> Result<bool, OtherVersion> {
        Ok(self.take(1)? != [0])
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Fails in the same cases as [`number`](Self::number), or if the bytes aren't UTF-8.
    pub fn text(&mut self) -> Result<&'b str, OtherVersion> {
        let len = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        str::from_utf8(self.take(len)?).map_err(|_| OtherVersion)
    }

    /// Reads a flag, and then a text if the flag is set.
    ///
    /// # Errors
    /// Fails in the same cases as [`text`](Self::text).
    pub fn maybe_text(&mut self) -> Result<Option<&'b str>, OtherVersion> {
        match self.flag()? {
            true => self.text().map(Some),
            false => Ok(None),
        }
    }

    /// Reads a flag, and then a time in milliseconds since 1970 if the flag is set.
    ///
    /// # Errors
    /// Fails in the same cases as [`number`](Self::number).
    pub fn maybe_time(&mut self) -> Result<Option<SystemTime>, OtherVersion> {
        match self.flag()? {
            true => Ok(UNIX_EPOCH.checked_add(Duration::from_millis(self.number()?))),
            false => Ok(None),
        }
    }

    /// Reads the number of pairs, then the pairs of texts.
    ///
    /// # Errors
    /// Fails in the same cases as [`text`](Self::text).
    pub fn texts(&mut self) -> Result<BTreeMap<&'b str, &'b str>, OtherVersion> {
        (0..self.number()?).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    /// Reads pairs in their order. A name may occur several times.
    ///
    /// # Errors
    /// Fails in the same cases as [`text`](Self::text).
    pub fn pairs(&mut self) -> Result<Vec<(&'b str, &'b str)>, OtherVersion> {
        (0..self.number()?).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    /// Reads the number of texts, then the texts.
    ///
    /// # Errors
    /// Fails in the same cases as [`text`](Self::text).
    pub fn list(&mut self) -> Result<Vec<&'b str>, OtherVersion> {
        (0..self.number()?).map(|_| self.text()).collect()
    }
}
