//! Neighbouring keys of a listing, and the page of them that is on its way.

use std::collections::HashSet;

use super::Listed;
use super::disorder::{Disorder, EMPTY_PAGES_MAX};

/// Which stretch a page is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StretchId(pub(super) u64);

/// Where a stretch ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// With the prefix.
    Open,
    /// Before this key, where the caller wants it.
    Before(String),
    /// With this key, where it was cut.
    At(String),
}

/// What has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Objects,
    Prefixes,
}

/// Neighbouring keys.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) id: StretchId,
    pub(super) start_after: Option<String>,
    pub(super) end: End,
    /// The end that its pages were asked for with.
    pub(super) asked_end: Option<End>,
    /// The last key that has come.
    pub(super) last: Option<String>,
    pub(super) token: Option<String>,
    pub(super) is_asked: bool,
    pub(super) is_over: bool,
    /// Pages that are under way or wait for their reader.
    pub(super) held: usize,
    /// Whether it began at a cut, and nothing has come of it yet.
    pub(super) is_new_cut: bool,
    /// Whether the keys after its end are near it, so that its rest may be taken for filled.
    pub(super) is_filled: bool,
    pub(super) page: Page,
    /// Keys of the last full page.
    pub(super) marks: Vec<String>,
    /// The first key of the page before it.
    pub(super) before: Option<String>,
    /// How many pages are left, as the logarithm to base 2 of a guess.
    pub(super) left_log2: Option<f64>,
    pub(super) empty_pages: usize,
    /// Tokens since the last key.
    pub(super) tokens: HashSet<String>,
}

/// A page on its way.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The last key before it.
    pub(super) after: Option<String>,
    pub(super) last_object: Option<String>,
    pub(super) last_prefix: Option<String>,
    pub(super) entries: u64,
    pub(super) marks: Vec<String>,
    /// Whether something came from beyond the stretch's end.
    pub(super) is_beyond: bool,
    /// Whether it was asked for by a key, though there was a token.
    pub(super) is_by_key: bool,
    /// Whether the store began it elsewhere: it is asked for once more.
    pub(super) is_void: bool,
}

impl End {
    pub(super) fn has(&self, key: &str) -> bool {
        match self {
            Self::Open => true,
            Self::Before(end) => key < end.as_str(),
            Self::At(end) => key <= end.as_str(),
        }
    }

    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Open => None,
            Self::Before(end) | Self::At(end) => Some(end),
        }
    }
}

impl Stretch {
    pub(super) fn new(id: StretchId, start_after: Option<String>, end: End) -> Self {
        Self {
            id,
            last: start_after.clone(),
            start_after,
            end,
            asked_end: None,
            token: None,
            is_asked: false,
            is_over: false,
            held: 0,
            is_new_cut: false,
            is_filled: false,
            page: Page::default(),
            marks: Vec::new(),
            before: None,
            left_log2: None,
            empty_pages: 0,
            tokens: HashSet::new(),
        }
    }

    pub(super) fn begins_before(&self, key: &str) -> bool {
        self.start_after.as_deref().is_none_or(|start| start < key)
    }

    /// Looks whether a key may come now.
    pub(super) fn check(&self, listed: &Listed, kind: Kind, key: &str) -> Result<(), Disorder> {
        let before = match kind {
            Kind::Objects => &self.page.last_object,
            Kind::Prefixes => &self.page.last_prefix,
        };
        let before = before.as_deref().or(self.page.after.as_deref());
        match before {
            // What begins with what is rolled up may lie after a key inside of it.
            Some(before)
                if key <= before && !(kind == Kind::Prefixes && self.is_start_inside(before, key)) =>
            {
                Err(Disorder::Backwards(before.to_owned(), key.to_owned()))
            }
            _ if !key.starts_with(&listed.prefix) => Err(Disorder::Outside(key.to_owned())),
            _ => Ok(()),
        }
    }

    /// Whether the listing starts after a key that is rolled up into this prefix.
    fn is_start_inside(&self, before: &str, prefix: &str) -> bool {
        self.start_after.as_deref() == Some(before) && before.starts_with(prefix)
    }

    pub(super) fn end_page(&mut self, next: Option<String>) -> Result<(), Disorder> {
        self.is_asked = false;
        let page = std::mem::take(&mut self.page);
        let is_empty = page.entries == 0;
        if next.is_some() && !page.is_beyond && !is_empty {
            self.before = self.marks.first().cloned();
            self.marks = page.marks;
            self.marks.extend(self.last.clone());
            self.marks.dedup();
        }
        self.is_over = next.is_none() || page.is_beyond;
        if self.is_over {
            self.marks = Vec::new();
            return Ok(());
        }
        if !is_empty {
            self.empty_pages = 0;
            self.tokens.clear();
        }
        self.empty_pages += usize::from(is_empty);
        if self.empty_pages > EMPTY_PAGES_MAX {
            return Err(Disorder::Endless(self.last.clone()));
        }
        if let Some(token) = &next
            && (!self.tokens.insert(token.clone()) || self.token.as_ref() == Some(token))
        {
            return Err(Disorder::Repeated(self.last.clone()));
        }
        self.token = next;
        Ok(())
    }
}

impl Page {
    pub(super) fn take(&mut self, kind: Kind, key: &str) {
        let last = match kind {
            Kind::Objects => &mut self.last_object,
            Kind::Prefixes => &mut self.last_prefix,
        };
        match last {
            Some(last) => {
                last.clear();
                last.push_str(key);
            }
            None => *last = Some(key.to_owned()),
        }
    }
}
