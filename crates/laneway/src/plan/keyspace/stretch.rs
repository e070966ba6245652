//! A stretch of neighbouring keys in a listing, and its page that is under way.

use std::collections::HashSet;

use super::cuts::common;
use super::{EMPTY_PAGES_MAX, ListingBounds, ListingFault, PageRequest};

/// If a stretch probably has less than this many pages left, Laneway requests only the guessed number of keys
/// plus a margin. If many keys are left, the guess is right to a few per cent. If the guess is too low,
/// Laneway sends a second request. A second request costs less than receiving half a page of keys behind the
/// stretch's end, which Laneway drops.
const REST_PAGES_MAX: f64 = 0.75;
const REST_MARGIN: f64 = 1.25;
/// The minimum number of keys that Laneway requests for the rest of a stretch.
const REST_MIN: u32 = 50;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StretchId(pub(super) u64);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The stretch reaches to the end of the prefix.
    Open,
    /// The stretch ends before this key, as the caller of the listing requested.
    Before(String),
    /// The stretch ends at this key and includes it, because of a cut.
    At(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryKind {
    Objects,
    Prefixes,
}

/// A range of neighbouring keys that is read page by page.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) id: StretchId,
    pub(super) start_after: Option<String>,
    pub(super) end: End,
    /// The end and the prefix of the requests that led to `token`.
    pub(super) asked: Option<(End, String)>,
    /// The last key that has arrived.
    pub(super) last: Option<String>,
    pub(super) token: Option<String>,
    pub(super) is_asked: bool,
    pub(super) is_over: bool,
    /// Number of pages under way or waiting for their reader.
    pub(super) held: usize,
    /// True if the stretch began at a cut and none of its keys has arrived yet.
    pub(super) is_new_cut: bool,
    /// True if the next stretch has keys near the cut between this stretch and the next one. Laneway then
    /// assumes that this stretch has keys up to its end.
    pub(super) is_filled: bool,
    pub(super) page: StretchPage,
    /// Keys of the last full page.
    pub(super) marks: Vec<String>,
    /// The first key of the page that came before the last full page.
    pub(super) before: Option<String>,
    /// The base-2 logarithm of the guessed number of pages that are left.
    pub(super) left_log2: Option<f64>,
    /// True if Laneway has once requested fewer keys than a page has, because it expected the whole rest of
    /// the stretch. Laneway does so only once.
    pub(super) was_short: bool,
    pub(super) empty_pages: usize,
    /// The tokens that have arrived since the last key. In a listing without order, all tokens. If a token
    /// arrives again, the listing repeats its pages.
    pub(super) tokens: HashSet<String>,
}

#[derive(Debug, Default)]
pub(super) struct StretchPage {
    /// The last key before the page.
    pub(super) after: Option<String>,
    /// The end and the prefix of the page's request.
    pub(super) asked: Option<(End, String)>,
    pub(super) last_object: Option<String>,
    pub(super) last_prefix: Option<String>,
    pub(super) entries: u64,
    pub(super) marks: Vec<String>,
    /// True if the page had keys behind the stretch's end.
    pub(super) is_beyond: bool,
    /// True if the page was requested by a key although there was a token.
    pub(super) is_by_key: bool,
    /// True if fewer keys were requested than a page has.
    pub(super) is_short: bool,
    /// True if the store began the page at a wrong key, or refused it. The page's keys are dropped, and the
    /// page is requested again.
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
            asked: None,
            token: None,
            is_asked: false,
            is_over: false,
            held: 0,
            is_new_cut: false,
            is_filled: false,
            page: StretchPage::default(),
            marks: Vec::new(),
            before: None,
            left_log2: None,
            was_short: false,
            empty_pages: 0,
            tokens: HashSet::new(),
        }
    }

    /// Returns the next page to request. If `by_key` is given, the page may be requested by the last key even
    /// if there is a token. The value is the number of entries of a full page.
    pub(super) fn ask(&mut self, listed: &ListingBounds, by_key: Option<u64>) -> PageRequest {
        self.is_asked = true;
        self.held += 1;
        let is_by_key = by_key.is_some() && self.token.is_some() && self.last > self.start_after;
        let (start_after, token) = match is_by_key {
            true => (self.last.clone(), None),
            false => (self.start_after.clone(), self.token.clone()),
        };
        let asked = match (&token, &self.asked) {
            (Some(_), Some(asked)) => asked.clone(),
            _ if by_key.is_some() => (self.end.clone(), self.prefix(&listed.prefix).to_owned()),
            _ => (self.end.clone(), listed.prefix.clone()),
        };
        let (end, prefix) = asked.clone();
        let max = by_key.filter(|_| is_by_key).and_then(|entries| self.rest_max(entries));
        let is_short = max.is_some();
        self.page = StretchPage {
            after: self.last.clone(),
            is_by_key,
            is_short,
            asked: Some(asked),
            ..StretchPage::default()
        };
        PageRequest { stretch: self.id, prefix, start_after, end, token, max }
    }

    /// Returns how many entries to request if less than a full page is left. With a full page, the store
    /// would also send keys behind the stretch's end. These keys take most of a page's time and are dropped.
    /// If more keys are left than guessed, the next request is for a full page.
    fn rest_max(&self, page_entries: u64) -> Option<u32> {
        let pages = self.left_log2.filter(|_| !self.was_short && self.end.key().is_some())?.exp2();
        let wanted = pages * page_entries as f64 * REST_MARGIN;
        (pages < REST_PAGES_MAX).then_some((wanted as u32).max(REST_MIN))
    }

    /// Returns the common prefix of all keys of the stretch that haven't arrived. With this prefix, the store
    /// doesn't look for keys behind the stretch's end. If the prefix lies in a single folder, MinIO reads
    /// only this folder.
    fn prefix<'a>(&'a self, listed: &'a str) -> &'a str {
        let within = self.last.as_deref().zip(self.end.key()).map(|(last, end)| common(last, end));
        within.filter(|within| within.starts_with(listed)).unwrap_or(listed)
    }

    pub(super) fn begins_before(&self, key: &str) -> bool {
        self.start_after.as_deref().is_none_or(|start| start < key)
    }

    /// Checks that a key can follow the keys that have already arrived.
    pub(super) fn check(
        &self,
        listed: &ListingBounds,
        kind: EntryKind,
        key: &str,
    ) -> Result<(), ListingFault> {
        let before = match kind {
            EntryKind::Objects => &self.page.last_object,
            EntryKind::Prefixes => &self.page.last_prefix,
        };
        let before = before.as_deref().or(self.page.after.as_deref());
        match before {
            // If a listing starts after a key below this common prefix, the store still returns the prefix,
            // which sorts before that key.
            Some(before)
                if key <= before && !(kind == EntryKind::Prefixes && self.is_start_inside(before, key)) =>
            {
                Err(ListingFault::Backwards(before.to_owned(), key.to_owned()))
            }
            _ if !key.starts_with(&listed.prefix) => Err(ListingFault::Outside(key.to_owned())),
            _ => Ok(()),
        }
    }

    /// Returns whether the listing starts after a key below this common prefix.
    fn is_start_inside(&self, before: &str, prefix: &str) -> bool {
        self.start_after.as_deref() == Some(before) && before.starts_with(prefix)
    }

    /// Ends a page. In a listing without order, only new tokens show progress, because keys can arrive in any
    /// order.
    pub(super) fn end_page(&mut self, next: Option<String>, is_sorted: bool) -> Result<(), ListingFault> {
        self.is_asked = false;
        let page = std::mem::take(&mut self.page);
        let is_empty = page.entries == 0;
        self.was_short |= page.is_short;
        if next.is_some() && !page.is_beyond && !is_empty && !page.is_short {
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
            if is_sorted {
                self.tokens.clear();
            }
        }
        self.empty_pages += usize::from(is_empty);
        if self.empty_pages > EMPTY_PAGES_MAX {
            return Err(ListingFault::Endless(self.last.clone()));
        }
        if let Some(token) = &next
            && (!self.tokens.insert(token.clone()) || self.token.as_ref() == Some(token))
        {
            return Err(ListingFault::Repeated(self.last.clone()));
        }
        self.token = next;
        self.asked = page.asked;
        Ok(())
    }
}

impl StretchPage {
    pub(super) fn take(&mut self, kind: EntryKind, key: &str) {
        let last = match kind {
            EntryKind::Objects => &mut self.last_object,
            EntryKind::Prefixes => &mut self.last_prefix,
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
