//! How a listing goes through a bucket's keys: in stretches side by side, each page by page.
//!
//! A listing begins as one stretch, from its first key to its last. Once it has turned out to have more than two pages, and pages
//! take so long that waiting for several at once pays, what is left of a stretch is cut at keys that are made up ([`cuts`]), and
//! asked for from there too. Whoever asks is told here what to ask next, and says what has come.
//!
//! Keys that were there all the time are taken exactly once: stretches don't overlap, a page's keys have to lie after those that
//! came before them, and what a page brings from beyond its stretch's end is left to the stretch that begins there.
//!
//! **What it costs.** Each cut costs a request at most, for a page that ends before it is full. There are never more cuts than
//! two for each page that has come, up to [`CUTS_MAX`], and one for each [`PAGES_A_CUT`] pages: a listing of N full pages
//! takes at most N + 1 + min(2 N, 24) + N / 4 requests, whatever its keys look like.

mod alphabet;
mod cuts;
mod disorder;
#[cfg(test)]
mod scenarios;
mod stretch;

use std::time::Duration;

use alphabet::Alphabet;
use cuts::{Rest, Wanted, cuts, guess};
pub(crate) use disorder::Disorder;
use stretch::Stretch;
pub(crate) use stretch::{End, Kind, StretchId};

/// Pages of one listing that are asked for at once, at most. A store of 16 ms a page and 20 ms away is asked for all of 50
/// pages in 3 or 4 turns; beyond that a listing would only take the connections that objects need.
pub(crate) const AT_ONCE_MAX: usize = 16;
/// A page that takes longer than this is asked for by its token. Where tokens lead to what a server keeps of a listing, as MinIO's
/// do, it writes all of what follows down, and once more for each stretch: ten pages cost it 1.1 s of a core by tokens, and .31 s by
/// keys. But by keys it reads a folder from the beginning for each page, so that a huge one is better gone through by tokens.
const BY_KEY_PAGE_TIME_MAX: Duration = Duration::from_millis(250);
/// Pages that are asked for at once before it is known whether that makes them slower.
const AT_ONCE_FIRST: f64 = 6.0;
/// How long a page has to take for each that is asked for beside it. What a page costs at either end, some 5 ms of a core for
/// a thousand keys, isn't saved by asking for several at once, only the round trip is.
const PAGE_TIME_EACH: Duration = Duration::from_millis(3);
/// Pages that are there or under way, for each of [`AT_ONCE_MAX`]. A slow store is asked for fewer at once, but what waits for its
/// reader doesn't burden it.
const PAGES_HELD_EACH: usize = 4;
/// Cuts that a listing may have from its first pages on.
const CUTS_MAX: u64 = 24;
/// Of a long listing, how many pages have to come for each further cut.
const PAGES_A_CUT: u64 = 4;
/// Cuts are made once so many full pages have come.
const PAGES_MIN: u64 = 2;
/// Stretches of so many pages are cut evenly, larger ones by a ladder, since what a page tells of keys far away is a guess.
const EVEN_PAGES_LOG2: f64 = 5.0;
/// How near a stretch's first key must be to its beginning, in pages, for the one before it to be taken for filled.
const NEAR_PAGES_LOG2: f64 = 1.0;
/// A page's keys that stand between two marks.
const MARK_KEYS: usize = 20;
/// Of so many keys one is looked at for its characters.
const OBSERVED_KEYS: usize = 8;

/// In which order keys are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// That of their bytes: what is far ahead of the reader waits.
    Keys,
    /// As they arrive.
    Arrival,
}

/// What is listed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Listed {
    pub(crate) prefix: String,
    pub(crate) delimiter: Option<String>,
    pub(crate) start_after: Option<String>,
    pub(crate) end_before: Option<String>,
}

/// A page to ask for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ask {
    pub(crate) stretch: StretchId,
    /// What all keys begin with that are asked for: all that is listed, or what lies in the stretch alone.
    pub(crate) prefix: String,
    pub(crate) start_after: Option<String>,
    pub(crate) end: End,
    pub(crate) token: Option<String>,
    /// At most so many keys, where what lies beyond the end would come too.
    pub(crate) max: Option<u32>,
}

/// A listing under way.
#[derive(Debug)]
pub(crate) struct Keyspace {
    listed: Listed,
    order: Order,
    /// Whether the store lists in the order of its keys. Where it doesn't, there is one stretch, and nothing to compare.
    is_sorted: bool,
    /// Whether stretches may be cut.
    may_cut: bool,
    /// Whether a listing may go on behind a key as well as by a token.
    by_key: bool,
    /// How many pages at once the store answers without becoming slower, and some more.
    at_once: f64,
    /// Whether a listing that was to begin at a cut has begun there.
    cuts_hold: bool,
    /// In the order of their keys; those that have ended and been read are gone.
    stretches: Vec<Stretch>,
    alphabet: Alphabet,
    stretches_made: u64,
    /// Pages that are under way.
    asked: usize,
    /// Pages that are under way or wait for their reader.
    held: usize,
    entries: u64,
    /// The most entries that a page had.
    page_entries: u64,
    cuts: u64,
    /// How much further the last two pages of a stretch were apart than their keys.
    apart_log2: f64,
    /// The quickest page's time.
    page_time: Option<Duration>,
}

impl Keyspace {
    /// A listing; `by_key` says that it may go on behind a key as well as by a token.
    pub(crate) fn new(listed: Listed, order: Order, is_sorted: bool, by_key: bool) -> Self {
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

    /// Whether everything has come and been read.
    pub(crate) fn is_over(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The stretch whose keys come next.
    pub(crate) fn front(&self) -> Option<StretchId> {
        self.stretches.first().map(|stretch| stretch.id)
    }

    /// The next page to ask for, if one is to be asked for now.
    pub(crate) fn ask(&mut self) -> Option<Ask> {
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

    /// Takes keys that have come, in their order: how many of them are the stretch's. The rest lies beyond it.
    ///
    /// # Errors
    /// Where they aren't what was asked for.
    pub(crate) fn came<'a>(
        &mut self,
        id: StretchId,
        kind: Kind,
        keys: impl Iterator<Item = &'a str>,
    ) -> Result<usize, Disorder> {
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
                return Err(Disorder::Outside(key.to_owned()));
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

    /// Takes the end of a page, which took so long, with the token of the next one.
    ///
    /// # Errors
    /// Where the listing would go on without end.
    pub(crate) fn ended(
        &mut self,
        id: StretchId,
        next: Option<String>,
        took: Duration,
    ) -> Result<(), Disorder> {
        let at_once = self.asked;
        self.asked = self.asked.saturating_sub(1);
        // A stretch that was given up has nothing to go on with.
        let Some(at) = self.place(id) else { return Ok(()) };
        let stretch = &mut self.stretches[at];
        if std::mem::take(&mut stretch.page.is_void) {
            stretch.is_asked = false;
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
        stretch.end_page(next)?;
        self.guess(at);
        Ok(())
    }

    /// Learns from how long a page took while so many were under way.
    fn time(&mut self, took: Duration, at_once: usize) {
        let least = self.page_time.map_or(took, |least| least.min(took));
        self.page_time = Some(least);
        // As many as come in the time that one takes alone are answered at once. The others wait in the store's line.
        let slower = took.as_secs_f64() / least.as_secs_f64().max(1e-6);
        let wanted = 1.0 + 1.5 * at_once as f64 / slower;
        match slower < 1.5 {
            true => self.at_once = self.at_once.max(wanted),
            false => self.at_once += (wanted - self.at_once) / 2.0,
        }
    }

    /// Notes that a page of a stretch has been read to its end.
    pub(crate) fn taken(&mut self, id: StretchId) {
        if let Some(at) = self.place(id) {
            self.held = self.held.saturating_sub(1);
            self.stretches[at].held = self.stretches[at].held.saturating_sub(1);
            if self.stretches[at].is_over && self.stretches[at].held == 0 {
                self.stretches.remove(at);
            }
        }
    }

    /// Whether pages after the first are asked for by the last key instead of the token.
    fn goes_on_by_key(&self) -> bool {
        let is_quick = self.page_time.is_none_or(|time| time <= BY_KEY_PAGE_TIME_MAX);
        self.by_key && is_quick && self.is_sorted && self.listed.delimiter.is_none()
    }

    fn place(&self, id: StretchId) -> Option<usize> {
        self.stretches.iter().position(|stretch| stretch.id == id)
    }

    /// How many pages may be asked for at once.
    fn at_once(&self) -> usize {
        let time = self.page_time.filter(|_| self.may_cut).unwrap_or_default();
        let most = (time.as_micros() / PAGE_TIME_EACH.as_micros()).clamp(1, AT_ONCE_MAX as u128) as usize;
        most.min((self.at_once as usize).max(1))
    }

    /// How many pages may be held by the stretch at this place and those before it. The further ahead, the fewer, so that what
    /// is read first always finds room.
    fn held_max(&self, place: usize) -> usize {
        let all = PAGES_HELD_EACH * AT_ONCE_MAX;
        match self.order {
            Order::Arrival => all,
            Order::Keys => all - (all * 3 / 4).min(place * PAGES_HELD_EACH),
        }
    }

    fn may_be_asked(&self, place: usize) -> bool {
        let stretch = &self.stretches[place];
        let is_free = self.held < self.held_max(place) || (place == 0 && stretch.held == 0);
        is_free && !stretch.is_asked && !stretch.is_over
    }

    /// How many more cuts there may be.
    fn cuts_left(&self) -> u64 {
        let pages = self.entries / self.page_entries.max(1);
        if pages < PAGES_MIN {
            return 0;
        }
        ((2 * pages).min(CUTS_MAX) + pages / PAGES_A_CUT).saturating_sub(self.cuts)
    }

    /// How many pages a stretch shall have at least: of long listings more, so that cuts don't run out.
    fn pages_wanted(&self) -> u64 {
        let pages = self.entries / self.page_entries.max(1);
        let most = match self.order {
            Order::Keys => PAGES_A_CUT,
            Order::Arrival => 64,
        };
        (pages / 16).clamp(3, most)
    }

    /// Cuts a stretch, where that is worth it; whether there is something new to ask for.
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
        if self.order == Order::Arrival {
            long.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        }
        for (i, left) in long {
            // What is cut off is asked for at once.
            let most = most.min(self.held_max(i + 1).saturating_sub(self.held));
            if most == 0 {
                continue;
            }
            let is_even = left < EVEN_PAGES_LOG2 || self.stretches[i].is_filled;
            let wanted = if is_even {
                let parts = (left.exp2() / wanted as f64).min(1e6) as usize;
                Wanted::Evenly(parts.clamp(2, most + 1))
            } else {
                Wanted::Ladder { first_pages: wanted, max: most }
            };
            if self.cut_at(i, wanted) {
                return true;
            }
        }
        false
    }

    /// Cuts the stretch at a place; whether that could be done.
    fn cut_at(&mut self, place: usize, wanted: Wanted) -> bool {
        let stretch = &self.stretches[place];
        let Some(rest) = self.rest(stretch) else { return false };
        let mut found = cuts(&self.alphabet, rest, wanted);
        found.retain(|cut| self.is_allowed(cut));
        if found.is_empty() {
            // Nothing will be found before more has come.
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

    /// Whether a cut divides what is listed: nothing that is rolled up lies on both sides of it.
    fn is_allowed(&self, cut: &str) -> bool {
        let below = cut.strip_prefix(&self.listed.prefix);
        let delimiter = self.listed.delimiter.as_deref();
        below.is_some_and(|below| {
            !below.is_empty() && delimiter.is_none_or(|delimiter| !below.contains(delimiter))
        })
    }

    fn rest<'a>(&'a self, stretch: &'a Stretch) -> Option<Rest<'a>> {
        let prefix = self.listed.prefix.as_str();
        // What ends beyond the prefix ends with it.
        let end = stretch.end.key().filter(|end| end.starts_with(prefix));
        Some(Rest {
            prefix,
            after: stretch.last.as_deref()?,
            end,
            before: stretch.before.as_deref(),
            marks: &stretch.marks,
            apart_log2: self.apart_log2,
        })
    }

    /// Guesses how much is left of the stretch at a place.
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

    /// What the first key of a stretch that began at a cut says of the one before it.
    fn learn_of_first(&mut self, place: usize, first: &str) {
        self.stretches[place].is_new_cut = false;
        let Some(before) = place.checked_sub(1) else { return };
        let stretch = &self.stretches[before];
        let is_next = stretch.end.key() == self.stretches[place].start_after.as_deref();
        if let Some(rest) = self.rest(stretch).filter(|_| is_next)
            && let Some(after) = rest.end
        {
            let gap = Rest { after, end: Some(first), ..rest };
            let near = guess(&self.alphabet, gap);
            self.stretches[before].is_filled = near.is_some_and(|gap| gap.pages_log2 < NEAR_PAGES_LOG2);
        }
    }

    /// Goes on without cuts, where the store doesn't begin a listing at the key that it is asked to begin at, but brings this
    /// one: the first stretch, whose pages were asked for up to the end, gets everything back.
    fn forget_cuts(&mut self, key: &str) -> Result<(), Disorder> {
        let end = self.listed.end_before.clone().map_or(End::Open, End::Before);
        let whole = (end, self.listed.prefix.clone());
        let first = self.stretches.first_mut().filter(|first| first.id == StretchId(0) && !first.is_over);
        // What was passed over because it lay behind a cut doesn't come again: of a page, or of one that was asked for up to a cut.
        let went_on = |first: &Stretch| match first.is_asked {
            true => !first.page.is_beyond && first.page.asked.as_ref() == Some(&whole),
            false => first.asked.as_ref().is_none_or(|asked| *asked == whole),
        };
        let Some(first) = first.filter(|first| !self.cuts_hold && went_on(first)) else {
            return Err(Disorder::Outside(key.to_owned()));
        };
        first.end = whole.0;
        self.may_cut = false;
        let given_up: usize = self.stretches.drain(1..).map(|stretch| stretch.held).sum();
        self.held -= given_up;
        Ok(())
    }
}
