//! The objects below a prefix, in the order of their names, from a listing or an inventory.

use laneway::{Client, Entry, Error, Filter, ListRequest, Listing, Location, ObjectMeta};

use crate::format::{KeyRange, refused};
use crate::plan::prefix_of;

/// The objects of a range of names. A name is a key without the prefix.
pub(crate) struct SortedNames {
    /// `None` if there is nothing to read.
    listing: Option<Listing>,
    range: KeyRange,
    prefix_len: usize,
    next: Option<Box<ObjectMeta>>,
    last: Option<String>,
    shown: String,
    /// True if it is no error if there is nothing below the prefix.
    pub(crate) may_be_missing: bool,
    /// True if the object whose key is the prefix itself, a folder's marker, is one of the names.
    pub(crate) has_marker: bool,
    /// If the names are the rows of a part, the number of rows that are still to come.
    rows_left: Option<u64>,
}

impl SortedNames {
    /// Returns the objects of a range below a prefix.
    pub(crate) fn list(
        client: &Client,
        at: &Location,
        range: &KeyRange,
        inventory: Option<&Location>,
        filter: Filter,
    ) -> Self {
        let prefix = prefix_of(at);
        let key = |name: String| format!("{prefix}{name}");
        let mut request = ListRequest::new(at.clone()).recursive(true).filter(filter);
        request.start_after = range.after.clone().map(key);
        request.end_before = range.end_before().map(key);
        request.inventory = inventory.cloned();
        Self {
            listing: Some(client.list(request)),
            range: range.clone(),
            prefix_len: prefix.len(),
            next: None,
            last: None,
            shown: inventory.unwrap_or(at).to_string(),
            may_be_missing: range != &KeyRange::default(),
            has_marker: true,
            rows_left: None,
        }
    }

    /// Returns the rows of a part, whose file lies on this machine. `shown` is the part's URL or path, for errors.
    pub(crate) fn rows(
        client: &Client,
        at: &Location,
        (range, rows): (&KeyRange, u64),
        (file, shown): (&std::path::Path, String),
    ) -> Self {
        let request = ListRequest::new(at.clone()).recursive(true).inventory(file.to_path_buf());
        Self {
            listing: (rows > 0).then(|| client.list(request)),
            range: range.clone(),
            prefix_len: prefix_of(at).len(),
            next: None,
            last: None,
            shown,
            may_be_missing: false,
            has_marker: true,
            rows_left: Some(rows),
        }
    }

    pub(crate) fn name_of<'a>(&self, object: &'a ObjectMeta) -> &'a str {
        object.id.key.get(self.prefix_len..).unwrap_or_default()
    }

    /// Returns the name of the next object.
    pub(crate) fn name(&mut self) -> Result<Option<&str>, Error> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        let prefix_len = self.prefix_len;
        Ok(self.next.as_ref().map(|object| object.id.key.get(prefix_len..).unwrap_or_default()))
    }

    pub(crate) fn take(&mut self) -> Result<Option<Box<ObjectMeta>>, Error> {
        match self.next.take() {
            Some(object) => Ok(Some(object)),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Result<Option<Box<ObjectMeta>>, Error> {
        loop {
            let object = match self.listing.as_mut().and_then(Listing::next_blocking) {
                Some(Ok(Entry::Object(object))) => object,
                Some(Ok(_)) => continue,
                Some(Err(error))
                    if self.may_be_missing && error.is_not_found() && error.status().is_none() =>
                {
                    return self.end();
                }
                Some(Err(error)) => return Err(error),
                None => return self.end(),
            };
            let key = &object.id.key;
            if let Some(last) = self.last.as_ref().filter(|last| *key <= **last) {
                let why = format!(
                    "isn't sorted by key: {key:?} comes after {last:?}; only sorted listings and inventories can be planned"
                );
                return Err(refused(&self.shown, why));
            }
            match &mut self.last {
                Some(last) => last.clone_from(key),
                None => self.last = Some(key.clone()),
            }
            let name = self.name_of(&object);
            let is_in_range = self.range.has(name);
            if let Some(left) = &mut self.rows_left {
                *left = left.saturating_sub(1);
                if !is_in_range {
                    return Err(refused(
                        &self.shown,
                        format!("row {name:?} lies outside of the part's range"),
                    ));
                }
            }
            if is_in_range && (self.has_marker || !name.is_empty()) {
                return Ok(Some(object));
            }
        }
    }

    fn end(&mut self) -> Result<Option<Box<ObjectMeta>>, Error> {
        match self.rows_left.filter(|left| *left > 0) {
            Some(left) => Err(refused(&self.shown, format!("lacks {left} of its rows"))),
            None => Ok(None),
        }
    }
}
