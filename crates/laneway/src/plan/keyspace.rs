//! Decides how a listing reads a bucket's keys. It cuts the keys into stretches (ranges of neighbouring
//! keys). Laneway reads the stretches in parallel, each one page by page.
//!
//! A listing begins as one stretch, from its first key to its last. After two full pages, the plan cuts the
//! rest of a stretch at invented keys ([`cuts`]), if pages take long enough for parallel requests to pay off.
//! From each of these keys, the listing then continues in parallel. The caller asks this state machine which
//! page to request next, and reports what arrives.
//!
//! A key that exists during the whole listing is returned exactly once. Stretches don't overlap. A page's
//! keys must lie after the keys of the stretch's earlier pages. The caller drops keys behind a stretch's end,
//! because the next stretch returns them.
//!
//! **Costs.** Each cut costs at most one request, for a page that ends before it is full. The number of cuts
//! has a limit. Each full page permits two cuts, up to [`CUTS_MAX`] cuts in total. In addition, every
//! [`PAGES_A_CUT`] full pages permit one cut. So a listing of N full pages takes at most N + 1 + min(2 N,
//! 24) + N / 4 requests, for any keys.

mod alphabet;
mod cuts;
#[cfg(test)]
mod scenarios;
mod stretch;

use std::time::Duration;

use alphabet::Alphabet;
use cuts::{CutSpacing, StretchRest, cuts, guess};
use stretch::Stretch;
pub(crate) use stretch::{End, EntryKind, StretchId};

/// The maximum number of concurrent page requests of one listing. From a store that is 20 ms away and takes
/// 16 ms for a page, 50 pages arrive in 3 or 4 rounds of requests. More concurrent requests would only take
/// connections that transfers of objects need.
pub(crate) const AT_ONCE_MAX: usize = 16;
/// If even the fastest page took longer than this, Laneway requests the next pages by their tokens instead of
/// by the last key. With tokens, MinIO copies the rest of the listing on the server, once for each stretch.
/// Ten pages then take 1.1 s of CPU time, instead of 0.31 s with keys. But for each page that is requested by
/// key, MinIO reads the folder from its beginning, so tokens are better for a huge folder.
const BY_KEY_PAGE_TIME_MAX: Duration = Duration::from_millis(250);
/// The number of concurrent page requests until pages have shown whether concurrency slows them down.
const AT_ONCE_FIRST: f64 = 6.0;
/// The number of concurrent page requests is at most the time of the fastest page divided by this time. A
/// page of a thousand keys takes about 5 ms of CPU time at the client, and the same time at the server.
/// Concurrent requests save only the round trip.
const PAGE_TIME_EACH: Duration = Duration::from_millis(3);
/// The maximum number of pages that are under way or wait for their reader, in multiples of [`AT_ONCE_MAX`].
/// Waiting pages don't burden the store. So the limit is the same for a slow store, although Laneway requests
/// fewer pages from it at once.
const PAGES_HELD_EACH: usize = 4;
/// The maximum number of cuts in a short listing. A long listing may have more cuts: see [`PAGES_A_CUT`].
const CUTS_MAX: u64 = 24;
/// Each time this many full pages have arrived, the listing may have one more cut.
const PAGES_A_CUT: u64 = 4;
/// The number of full pages that must arrive before the first cut.
const PAGES_MIN: u64 = 2;
/// The base-2 logarithm of a number of pages. Stretches with at most this many pages are cut evenly. Larger
/// stretches are cut in growing steps, because a page's keys say little about keys far away.
const EVEN_PAGES_LOG2: f64 = 5.0;
/// The base-2 logarithm of a number of pages. If fewer pages than this lie between a cut and the first key
/// behind it, Laneway assumes that the stretch before the cut has keys up to its end.
const NEAR_PAGES_LOG2: f64 = 1.0;
/// Laneway keeps every n-th key of a page as a mark, where n is this number. The marks show how dense the
/// keys are.
const MARK_KEYS: usize = 20;
/// To save time, Laneway inspects the characters of every n-th key only, where n is this number.
const OBSERVED_KEYS: usize = 8;

/// The order in which the caller wants keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyOrder {
    /// In byte order. Keys wait if they arrive long before the reader needs them.
    Keys,
    /// As they arrive.
    Arrival,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ListingBounds {
    pub(crate) prefix: String,
    pub(crate) delimiter: Option<String>,
    pub(crate) start_after: Option<String>,
    pub(crate) end_before: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PageRequest {
    pub(crate) stretch: StretchId,
    /// The common prefix of the requested keys: the prefix of the listing, or a longer one that all keys of
    /// the stretch share.
    pub(crate) prefix: String,
    pub(crate) start_after: Option<String>,
    pub(crate) end: End,
    pub(crate) token: Option<String>,
    /// The maximum number of keys to request, so that the page brings few keys behind the stretch's end.
    pub(crate) max: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Keyspace {
    listed: ListingBounds,
    order: KeyOrder,
    /// True if the store lists in the order of its keys. Otherwise the listing has only one stretch, and
    /// Laneway doesn't check the order of the keys.
    is_sorted: bool,
    /// True if stretches may be cut.
    may_cut: bool,
    /// True if pages may be requested by the last key instead of by a token.
    by_key: bool,
    /// The number of concurrent page requests. It is a little above the number that the store answers without
    /// slowing down.
    at_once: f64,
    /// True once the store has begun a page right behind a cut, as requested.
    cuts_hold: bool,
    /// The stretches in the order of their keys. A stretch that has ended and been read is removed.
    stretches: Vec<Stretch>,
    alphabet: Alphabet,
    stretches_made: u64,
    /// Number of pages under way.
    asked: usize,
    /// Number of pages under way or waiting for their reader.
    held: usize,
    entries: u64,
    /// The number of entries of the fullest page so far.
    page_entries: u64,
    cuts: u64,
    /// The distance between the last two pages of a stretch, divided by the distance that the keys within a
    /// page suggest. The value is the base-2 logarithm of this ratio.
    apart_log2: f64,
    /// The time of the fastest page.
    page_time: Option<Duration>,
}

impl Keyspace {
    /// Returns the plan of a listing. With `by_key`, the plan may also request a page by the last key instead
    /// of by a token.
    pub(crate) fn new(listed: ListingBounds, order: KeyOrder, is_sorted: bool, by_key: bool) -> Self {
        let end = listed.end_before.clone().map_or(End::Open, End::Before);
        let delimiter = listed.delimiter.as_deref().map(|delimiter| delimiter.chars().collect::<Vec<_>>());
        let may_cut = is_sorted && delimiter.as_ref().is_none_or(|delimiter| delimiter.len() == 1);
        let alphabet = Alphabet::without(delimiter.and_then(|delimiter| delimiter.first().copied()));
        let first = Stretch::new(StretchId(0), listed.start_after.clone(), end);
        Self {
            listed,
            order,
            is_sorted,
            may_cut,
            by_key,
            at_once: AT_ONCE_FIRST,
            cuts_hold: false,
            stretches: vec![first],
            alphabet,
            stretches_made: 1,
            asked: 0,
            held: 0,
            entries: 0,
            page_entries: 0,
            cuts: 0,
            apart_log2: 0.0,
            page_time: None,
        }
    }

    /// Returns the same plan with a single stretch, whose pages are requested by their tokens.
    pub(crate) fn in_one_chain(self) -> Self {
        Self { may_cut: false, by_key: false, ..self }
    }

    /// Returns whether all keys have arrived and been read.
    pub(crate) fn is_over(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Returns the first stretch that hasn't been read to its end. A reader that wants the order of keys gets
    /// the keys of this stretch next.
    pub(crate) fn front(&self) -> Option<StretchId> {
        self.stretches.first().map(|stretch| stretch.id)
    }

    /// Returns the next page to request now, if there is one.
    pub(crate) fn ask(&mut self) -> Option<PageRequest> {
        loop {
            if self.asked >= self.at_once() {
                return None;
            }
            if let Some(i) = (0..self.stretches.len()).find(|i| self.may_be_asked(*i)) {
                self.asked += 1;
                self.held += 1;
                let by_key = self.goes_on_by_key();
                return Some(self.stretches[i].ask(&self.listed, by_key.then_some(self.page_entries)));
            }
            if !self.cut() {
                return None;
            }
        }
    }

    /// Handles keys that have arrived, in their order. Returns how many of them belong to the stretch. The
    /// other keys lie behind the stretch's end, so the caller must drop them.
    ///
    /// # Errors
    /// If the keys aren't the requested ones.
    pub(crate) fn came<'a>(
        &mut self,
        id: StretchId,
        kind: EntryKind,
        keys: impl Iterator<Item = &'a str>,
    ) -> Result<usize, ListingFault> {
        let Some(at) = self.place(id) else { return Ok(0) };
        let mut keys = keys.peekable();
        let page = &mut self.stretches[at].page;
        if page.is_by_key
            && page.entries == 0
            && keys.peek() <= page.after.as_deref().as_ref()
            && keys.peek().is_some()
        {
            page.is_void = true;
            self.by_key = false;
        }
        if page.is_void {
            return Ok(0);
        }
        let is_first = self.stretches[at].is_new_cut;
        let mut taken = 0;
        if is_first && let Some(first) = keys.peek() {
            if !self.stretches[at].begins_before(first) {
                return self.forget_cuts(first).map(|()| 0);
            }
            self.cuts_hold = true;
            self.learn_of_first(at, first);
        }
        let stretch = &mut self.stretches[at];
        for key in keys {
            if self.is_sorted {
                stretch.check(&self.listed, kind, key)?;
                if !stretch.end.has(key) {
                    stretch.page.is_beyond = true;
                    break;
                }
            } else if !key.starts_with(&self.listed.prefix) {
                return Err(ListingFault::Outside(key.to_owned()));
            }
            let nth = stretch.page.entries as usize + taken;
            if nth.is_multiple_of(MARK_KEYS) && self.may_cut {
                stretch.page.marks.push(key.to_owned());
            }
            if nth.is_multiple_of(OBSERVED_KEYS) && self.may_cut {
                self.alphabet.observe(&key[self.listed.prefix.len()..]);
            }
            stretch.page.take(kind, key);
            taken += 1;
        }
        stretch.page.entries += taken as u64;
        let last = stretch.page.last_object.as_deref().max(stretch.page.last_prefix.as_deref());
        if last > stretch.last.as_deref() {
            stretch.last = last.map(str::to_owned);
        }
        self.entries += taken as u64;
        Ok(taken)
    }

    /// Handles the end of a page. `took` is the time that the page took, and `next` the token of the next
    /// page.
    ///
    /// # Errors
    /// If the listing would never end.
    pub(crate) fn ended(
        &mut self,
        id: StretchId,
        next: Option<String>,
        took: Duration,
    ) -> Result<(), ListingFault> {
        let at_once = self.asked;
        self.asked = self.asked.saturating_sub(1);
        // The stretch was abandoned, so it doesn't continue.
        let Some(at) = self.place(id) else { return Ok(()) };
        let stretch = &mut self.stretches[at];
        if std::mem::take(&mut stretch.page.is_void) {
            stretch.is_asked = false;
            return Ok(());
        }
        // A store's client drops keys that lie before the requested one. So if the store ignores that key, the page has no
        // keys, and its token may be that of an earlier page. Request the page again by its token. The store would ignore
        // cuts too.
        let is_empty = stretch.page.entries == 0 && !stretch.page.is_beyond && next.is_some();
        if is_empty && stretch.page.is_by_key {
            stretch.is_asked = false;
            (self.by_key, self.may_cut) = (false, false);
            return Ok(());
        }
        self.page_entries = self.page_entries.max(stretch.page.entries);
        if stretch.page.entries * 2 > self.page_entries {
            self.time(took, at_once);
        }
        let stretch = &mut self.stretches[at];
        let below = self.listed.prefix.len();
        let within = stretch.page.marks.windows(2).map(|pair| (&pair[0], &pair[1]));
        let between = stretch.marks.last().zip(stretch.page.marks.first());
        for (key, next) in between.into_iter().chain(within).filter(|_| self.may_cut) {
            self.alphabet.observe_turn(&key[below..], &next[below..]);
        }
        stretch.end_page(next, self.is_sorted)?;
        self.guess(at);
        Ok(())
    }

    /// Records that the store has denied permission for a page. A policy may allow only the caller's own
    /// prefix, without a bound on the keys. So if the request had a longer prefix or a bound, returns true: the
    /// page is requested again. This and all later requests have the caller's own prefix and no bound.
    pub(crate) fn refused(&mut self, id: StretchId) -> bool {
        let Some(at) = self.place(id) else { return false };
        let page = &mut self.stretches[at].page;
        let is_longer = page.asked.as_ref().is_some_and(|(_, prefix)| *prefix != self.listed.prefix);
        if is_longer || page.is_short {
            page.is_void = true;
            self.by_key = false;
        }
        page.is_void
    }

    /// Adjusts the number of concurrent page requests to the time that a page took while `at_once` pages were
    /// under way.
    fn time(&mut self, took: Duration, at_once: usize) {
        let least = self.page_time.map_or(took, |least| least.min(took));
        self.page_time = Some(least);
        // If the store works on fewer pages at once than are requested, some pages wait and take longer. So
        // the ratio of a page's time to the shortest time shows how many pages the store works on at once.
        let slower = took.as_secs_f64() / least.as_secs_f64().max(1e-6);
        let wanted = 1.0 + 1.5 * at_once as f64 / slower;
        match slower < 1.5 {
            true => self.at_once = self.at_once.max(wanted),
            false => self.at_once += (wanted - self.at_once) / 2.0,
        }
    }

    /// Records that the reader has taken all keys of a page.
    pub(crate) fn taken(&mut self, id: StretchId) {
        if let Some(at) = self.place(id) {
            self.held = self.held.saturating_sub(1);
            self.stretches[at].held = self.stretches[at].held.saturating_sub(1);
            if self.stretches[at].is_over && self.stretches[at].held == 0 {
                self.stretches.remove(at);
            }
        }
    }

    /// Returns whether pages after the first are requested by the last key instead of the token.
    fn goes_on_by_key(&self) -> bool {
        let is_quick = self.page_time.is_none_or(|time| time <= BY_KEY_PAGE_TIME_MAX);
        self.by_key && is_quick && self.is_sorted && self.listed.delimiter.is_none()
    }

    fn place(&self, id: StretchId) -> Option<usize> {
        self.stretches.iter().position(|stretch| stretch.id == id)
    }

    /// Returns how many pages may be requested at once.
    fn at_once(&self) -> usize {
        let time = self.page_time.filter(|_| self.may_cut).unwrap_or_default();
        let most = (time.as_micros() / PAGE_TIME_EACH.as_micros()).clamp(1, AT_ONCE_MAX as u128) as usize;
        most.min((self.at_once as usize).max(1))
    }

    /// Returns a limit for the pages that all stretches hold together. The stretch at this index may request
    /// a page only while all stretches together hold fewer pages. For stretches that are read later the
    /// limit is lower, so the stretch that is read first always has room.
    fn held_max(&self, place: usize) -> usize {
        let all = PAGES_HELD_EACH * AT_ONCE_MAX;
        match self.order {
            KeyOrder::Arrival => all,
            KeyOrder::Keys => all - (all * 3 / 4).min(place * PAGES_HELD_EACH),
        }
    }

    fn may_be_asked(&self, place: usize) -> bool {
        let stretch = &self.stretches[place];
        let is_free = self.held < self.held_max(place) || (place == 0 && stretch.held == 0);
        is_free && !stretch.is_asked && !stretch.is_over
    }

    /// Returns how many more cuts the listing may have now.
    fn cuts_left(&self) -> u64 {
        let pages = self.entries / self.page_entries.max(1);
        if pages < PAGES_MIN {
            return 0;
        }
        ((2 * pages).min(CUTS_MAX) + pages / PAGES_A_CUT).saturating_sub(self.cuts)
    }

    /// Returns the minimum number of pages that a stretch should have. In long listings this number is
    /// larger, so that cuts don't run out.
    fn pages_wanted(&self) -> u64 {
        let pages = self.entries / self.page_entries.max(1);
        let most = match self.order {
            KeyOrder::Keys => PAGES_A_CUT,
            KeyOrder::Arrival => 64,
        };
        (pages / 16).clamp(3, most)
    }

    /// Cuts a stretch if that is worth it. Returns whether there is a new page to request.
    fn cut(&mut self) -> bool {
        let free = self.at_once().saturating_sub(self.asked);
        let most = free.min(usize::try_from(self.cuts_left()).unwrap_or(usize::MAX));
        let wanted = self.pages_wanted();
        let least = (2.0 * wanted as f64).log2();
        if most == 0 || !self.may_cut {
            return false;
        }
        let long = self.stretches.iter().enumerate().filter(|(_, stretch)| !stretch.is_over);
        let mut long: Vec<(usize, f64)> = long
            .filter_map(|(i, stretch)| Some((i, stretch.left_log2?)))
            .filter(|(_, left)| *left > least)
            .collect();
        if self.order == KeyOrder::Arrival {
            long.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        }
        for (i, left) in long {
            // Laneway requests the first pages of the new stretches immediately, so the limit of held pages
            // must have room for them.
            let most = most.min(self.held_max(i + 1).saturating_sub(self.held));
            if most == 0 {
                continue;
            }
            let is_even = left < EVEN_PAGES_LOG2 || self.stretches[i].is_filled;
            let wanted = if is_even {
                let parts = (left.exp2() / wanted as f64).min(1e6) as usize;
                CutSpacing::Evenly(parts.clamp(2, most + 1))
            } else {
                CutSpacing::Ladder { first_pages: wanted, max: most }
            };
            if self.cut_at(i, wanted) {
                return true;
            }
        }
        false
    }

    /// Cuts the stretch at an index. Returns whether it succeeded.
    fn cut_at(&mut self, place: usize, wanted: CutSpacing) -> bool {
        let stretch = &self.stretches[place];
        let Some(rest) = self.rest(stretch) else { return false };
        let mut found = cuts(&self.alphabet, rest, wanted);
        found.retain(|cut| self.is_allowed(cut));
        if found.is_empty() {
            // Don't try again before more keys have arrived.
            self.stretches[place].left_log2 = None;
            return false;
        }
        self.cuts += found.len() as u64;
        let end = std::mem::replace(&mut self.stretches[place].end, End::At(found[0].clone()));
        let was_filled = std::mem::take(&mut self.stretches[place].is_filled);
        let ends: Vec<End> = found.iter().skip(1).cloned().map(End::At).chain([end]).collect();
        let mut new: Vec<Stretch> = Vec::with_capacity(found.len());
        for (start, end) in found.into_iter().zip(ends) {
            let id = StretchId(self.stretches_made);
            self.stretches_made += 1;
            new.push(Stretch { is_new_cut: true, ..Stretch::new(id, Some(start), end) });
        }
        if let Some(last) = new.last_mut() {
            last.is_filled = was_filled;
        }
        self.stretches.splice(place + 1..place + 1, new);
        self.guess(place);
        true
    }

    /// Returns whether a cut divides the listing without splitting the keys of a common prefix.
    fn is_allowed(&self, cut: &str) -> bool {
        let below = cut.strip_prefix(&self.listed.prefix);
        let delimiter = self.listed.delimiter.as_deref();
        below.is_some_and(|below| {
            !below.is_empty() && delimiter.is_none_or(|delimiter| !below.contains(delimiter))
        })
    }

    fn rest<'a>(&'a self, stretch: &'a Stretch) -> Option<StretchRest<'a>> {
        let prefix = self.listed.prefix.as_str();
        // An end that doesn't begin with the prefix lies behind all its keys. The stretch then reaches to the
        // prefix's last key.
        let end = stretch.end.key().filter(|end| end.starts_with(prefix));
        Some(StretchRest {
            prefix,
            after: stretch.last.as_deref()?,
            end,
            before: stretch.before.as_deref(),
            marks: &stretch.marks,
            apart_log2: self.apart_log2,
        })
    }

    /// Guesses how many pages are left of the stretch at an index.
    fn guess(&mut self, place: usize) {
        let stretch = &self.stretches[place];
        let left = match self.may_cut && !stretch.is_over {
            true => self.rest(stretch).and_then(|rest| guess(&self.alphabet, rest)),
            false => None,
        };
        self.stretches[place].left_log2 = left.map(|guess| guess.pages_log2);
        if let Some(apart) = left.and_then(|guess| guess.apart_log2) {
            self.apart_log2 = apart;
        }
    }

    /// Judges the stretch before a cut by the first key behind the cut. If that key is near the cut, this
    /// function assumes that the stretch has keys up to its end.
    fn learn_of_first(&mut self, place: usize, first: &str) {
        self.stretches[place].is_new_cut = false;
        let Some(before) = place.checked_sub(1) else { return };
        let stretch = &self.stretches[before];
        let is_next = stretch.end.key() == self.stretches[place].start_after.as_deref();
        if let Some(rest) = self.rest(stretch).filter(|_| is_next)
            && let Some(after) = rest.end
        {
            let gap = StretchRest { after, end: Some(first), ..rest };
            let near = guess(&self.alphabet, gap);
            self.stretches[before].is_filled = near.is_some_and(|gap| gap.pages_log2 < NEAR_PAGES_LOG2);
        }
    }

    /// Drops all cuts, because the store doesn't begin a listing at the requested key: it returned this `key`
    /// instead. The first stretch then reads the whole listing.
    fn forget_cuts(&mut self, key: &str) -> Result<(), ListingFault> {
        let end = self.listed.end_before.clone().map_or(End::Open, End::Before);
        let whole = (end, self.listed.prefix.clone());
        let first = self.stretches.first_mut().filter(|first| first.id == StretchId(0) && !first.is_over);
        // If the first stretch has skipped keys behind a cut, it won't get these keys again. The cuts can't
        // be dropped then. The stretch may have skipped keys in its current page, or by requesting a page
        // only up to a cut.
        let went_on = |first: &Stretch| match first.is_asked {
            true => !first.page.is_beyond && first.page.asked.as_ref() == Some(&whole),
            false => first.asked.as_ref().is_none_or(|asked| *asked == whole),
        };
        let Some(first) = first.filter(|first| !self.cuts_hold && went_on(first)) else {
            return Err(ListingFault::Unbegun(key.to_owned()));
        };
        first.end = whole.0;
        self.may_cut = false;
        let given_up: usize = self.stretches.drain(1..).map(|stretch| stretch.held).sum();
        self.held -= given_up;
        Ok(())
    }
}

/// The maximum number of consecutive pages without a key. A store can send such pages if it filters keys or
/// cleans up.
const EMPTY_PAGES_MAX: usize = 10_000;

/// A fault of a listing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ListingFault {
    #[error("the store lists this key after {0:?}: its listing goes backwards, or repeats itself")]
    Backwards(String, String),
    #[error("the store lists this key, which sorts before the requested keys")]
    Unbegun(String),
    #[error("the store lists this key, which doesn't begin with the requested prefix")]
    Outside(String),
    #[error("the store's listing repeats an earlier page")]
    Repeated(Option<String>),
    #[error("the store's listing doesn't end, and its last {EMPTY_PAGES_MAX} pages contain no key")]
    Endless(Option<String>),
}

impl ListingFault {
    /// Returns whether the reason for the fault can be that the store lists in no order.
    pub(crate) fn is_of_order(&self) -> bool {
        match self {
            Self::Backwards(before, key) => key < before,
            Self::Unbegun(_) => true,
            Self::Outside(_) | Self::Repeated(_) | Self::Endless(_) => false,
        }
    }

    /// Returns the key that the fault concerns, if it concerns one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Backwards(_, key) | Self::Unbegun(key) | Self::Outside(key) => Some(key),
            Self::Repeated(key) | Self::Endless(key) => key.as_deref(),
        }
    }
}
