//! Restoring objects: from S3's archives, and on GCS after a soft delete.

/// The options of a restoration.
///
/// ```
/// use laneway_store::RestoreOptions;
///
/// let options = RestoreOptions::default().days(7).tier("Bulk");
/// assert_eq!(options.days, Some(7));
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// S3: the number of days for which the restored copy stays. Leave it empty for objects in an archive tier of
    /// INTELLIGENT_TIERING, which leave the archive permanently.
    pub days: Option<u32>,
    /// S3: the retrieval tier, which decides the speed and the price: `Standard`, `Bulk` or `Expedited`.
    pub tier: Option<String>,
    /// GCS: if true, the restored object replaces a live object of the same name.
    pub overwrite: bool,
}

impl RestoreOptions {
    /// Sets [`days`](field@Self::days).
    #[must_use]
    pub fn days(mut self, days: u32) -> Self {
        self.days = Some(days);
        self
    }

    /// Sets [`tier`](field@Self::tier).
    #[must_use]
    pub fn tier(mut self, tier: impl Into<String>) -> Self {
        self.tier = Some(tier.into());
        self
    }

    /// Sets [`overwrite`](field@Self::overwrite).
    #[must_use]
    pub fn overwrite(mut self, overwrites: bool) -> Self {
        self.overwrite = overwrites;
        self
    }
}

/// The state of an object after a request to restore it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Restoration {
    /// The store has begun the restoration, which takes minutes to days.
    Begun,
    /// The store had begun before this request.
    UnderWay,
    /// The object can be read. If S3 had restored a copy before, it now keeps the copy for the days of this request.
    Readable,
    /// S3: the object isn't in an archive. GCS: a live object has its name.
    NotNeeded,
}
