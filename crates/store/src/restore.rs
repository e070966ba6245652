//! Restoring objects: from S3's archives, and on GCS after a soft delete.

/// The form of a restoration.
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
    /// S3: the days for which the restored copy stays. Objects in an archive tier of INTELLIGENT_TIERING take none,
    /// since they leave the archive for good.
    pub days: Option<u32>,
    /// S3: the speed and the price, by the store's name for it: `Standard`, `Bulk` or `Expedited`.
    pub tier: Option<String>,
    /// GCS: replaces an object that has the name of the deleted one.
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
    /// The store has begun, and needs minutes to days.
    Begun,
    /// The store had begun before this request.
    UnderWay,
    /// The object can be read. A copy that was restored before stays for the days of this request.
    Readable,
    /// The object is in no archive, or another one has its name.
    NotNeeded,
}
