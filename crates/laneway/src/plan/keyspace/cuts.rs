//! Chooses the keys at which a stretch of the keyspace is cut.
//!
//! This module treats keys as numbers. The characters after the common prefix are the digits of a fraction.
//! Its base is the number of characters seen so far. The keys of the last page show how much of the keyspace
//! a page covers. From this, the module guesses how many pages are left. The guess is right if keys are
//! spread evenly. Otherwise it can be wrong by orders of magnitude.

use super::alphabet::{Alphabet, is_refused};

/// The number of digits used after the first digit that differs between two keys. More digits wouldn't move a
/// cut.
const PRECISION: usize = 4;
/// The maximum length in bytes of a key in a request. A store accepts 1024 bytes, and one of these is kept
/// for a suffix.
const KEY_BYTES_MAX: usize = 1023;
/// A cut is placed at the shortest key that lies at most a quarter (1/`LEEWAY`) of a step from its target.
const LEEWAY: u64 = 4;
/// Factors are given in units of 1/1024.
const FRACTION: u64 = 1024;

/// The rest of a stretch, with keys of its last pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StretchRest<'a> {
    /// The common prefix of the listed keys.
    pub(crate) prefix: &'a str,
    /// The last key that has arrived.
    pub(crate) after: &'a str,
    /// The end of the stretch; `None` if it reaches to the end of the prefix.
    pub(crate) end: Option<&'a str>,
    /// The first key of the page before the last one.
    pub(crate) before: Option<&'a str>,
    /// Keys of the last page, in order. Between any two neighbours of them, the page has the same number of
    /// keys.
    pub(crate) marks: &'a [String],
    /// The distance between two neighbouring pages, divided by the distance that the keys within a page
    /// suggest. The value is the base-2 logarithm of this ratio, as measured elsewhere in the listing.
    pub(crate) apart_log2: f64,
}

/// A guess about the rest of a stretch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct StretchEstimate {
    /// The base-2 logarithm of the number of pages that are left, if the rest is as dense as the last pages.
    pub(crate) pages_log2: f64,
    /// The distance between the last two pages, divided by the distance that the keys within a page suggest.
    /// The value is the base-2 logarithm of this ratio. The ratio is small if keys are spread evenly, and
    /// large if each folder fills about one page.
    pub(crate) apart_log2: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum CutSpacing {
    /// Cuts into this many equal stretches.
    Evenly(usize),
    /// Cuts at growing distances, the first after `first_pages` pages. There are at most `max` cuts.
    Ladder { first_pages: u64, max: usize },
}

/// The rest of a stretch, with its keys as numbers.
#[derive(Debug)]
struct Frame<'a> {
    alphabet: &'a Alphabet,
    common: &'a str,
    /// The number of characters between the listing's prefix and the first digit. All keys have these
    /// characters in common.
    skipped: usize,
    /// The base of each place.
    bases: Vec<u64>,
    after: Vec<u64>,
    end: Vec<u64>,
    /// The part of the keyspace that a page covers.
    page: Vec<u64>,
    apart_log2: Option<f64>,
}

/// Guesses how many pages are left. Returns `None` if too few keys have arrived.
pub(crate) fn guess(alphabet: &Alphabet, rest: StretchRest<'_>) -> Option<StretchEstimate> {
    let frame = Frame::new(alphabet, rest)?;
    Some(StretchEstimate { pages_log2: frame.pages_log2()?, apart_log2: frame.apart_log2 })
}

/// Returns keys at which to cut the rest, in order. Each of these keys lies after the last key that has
/// arrived, and before the end.
pub(crate) fn cuts(alphabet: &Alphabet, rest: StretchRest<'_>, wanted: CutSpacing) -> Vec<String> {
    let Some(frame) = Frame::new(alphabet, rest) else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for (target, step) in frame.targets(wanted) {
        let Some(key) = frame.key_near(&target, &step) else { continue };
        let is_later = found.last().map_or(rest.after, String::as_str) < key.as_str();
        if is_later && rest.end.is_none_or(|end| key.as_str() < end) && may_be_asked(&key) {
            found.push(key);
        }
    }
    found
}

/// Returns whether a store accepts this key as the bound of a request.
fn may_be_asked(key: &str) -> bool {
    key.len() <= KEY_BYTES_MAX
        && !key.chars().any(is_refused)
        && !key.split('/').any(|segment| segment == "." || segment == "..")
}

impl<'a> Frame<'a> {
    fn new(alphabet: &'a Alphabet, rest: StretchRest<'a>) -> Option<Self> {
        let first = rest.before.or(rest.marks.first().map(String::as_str))?;
        let common = match rest.end {
            Some(end) => common(first, end),
            None => rest.prefix,
        };
        let tail = |key: &'a str| key.strip_prefix(common);
        let tails = rest.marks.iter().map(|mark| tail(mark)).collect::<Option<Vec<_>>>()?;
        let distinct_at = tails.windows(2).map(|pair| common_chars(pair[0], pair[1])).max()?;
        let len = distinct_at + 1 + PRECISION;
        let skipped = common.strip_prefix(rest.prefix)?.chars().count();
        let number = |tail: &str| {
            let mut digits = vec![0; len + 1];
            for (i, (digit, c)) in digits.iter_mut().skip(1).zip(tail.chars()).enumerate() {
                *digit = alphabet.digit(skipped + i, c);
            }
            digits
        };
        let marks: Vec<_> = tails.iter().map(|tail| number(tail)).collect();
        let bases: Vec<u64> =
            std::iter::once(1).chain((0..len).map(|i| alphabet.base(skipped + i))).collect();
        let base = &bases[..];
        let is_some = |digits: &Vec<u64>| digits.iter().any(|digit| *digit > 0);
        let between = marks.windows(2).filter_map(|pair| difference(base, &pair[1], &pair[0]));
        let mut between: Vec<_> = between.filter(is_some).collect();
        // Use the median of the gaps between keys. If a page crosses from one folder to the next, one gap is
        // far wider than the others.
        between.sort();
        let dense = product(base, between.get(between.len() / 2)?, between.len() as u64 * FRACTION);
        let end = match rest.end {
            Some(end) => number(tail(end)?),
            None => {
                let mut one = vec![0; len + 1];
                one[0] = 1;
                one
            }
        };
        let after = number(tail(rest.after)?);
        let (mut page, mut apart_log2) = (dense, None);
        match rest.before {
            Some(before) => {
                let two = difference(base, &after, &number(tail(before)?))?;
                let stride = quotient(base, &two, 2);
                if is_some(&stride) {
                    apart_log2 = Some(log2(base, &stride)? - log2(base, &page)?);
                    page = stride;
                }
            }
            None => page = of_log2(base, log2(base, &page)? + rest.apart_log2.max(0.0)),
        }
        Some(Self { alphabet, common, skipped, after, end, page, apart_log2, bases })
    }

    fn pages_log2(&self) -> Option<f64> {
        let base = &self.bases[..];
        let left = difference(base, &self.end, &self.after)?;
        Some(log2(base, &left)? - log2(base, &self.page)?)
    }

    /// Returns the targets of the cuts, each with the length of its step. A cut may miss its target by a part
    /// of this step ([`LEEWAY`]).
    fn targets(&self, wanted: CutSpacing) -> Vec<(Vec<u64>, Vec<u64>)> {
        let base = &self.bases[..];
        match wanted {
            CutSpacing::Evenly(parts) => {
                let Some(left) = difference(base, &self.end, &self.after) else { return Vec::new() };
                let step = quotient(base, &left, parts.max(1) as u64);
                let at = |i: usize| sum(base, &self.after, &product(base, &step, i as u64 * FRACTION));
                (1..parts).map(|i| (at(i), step.clone())).collect()
            }
            CutSpacing::Ladder { first_pages, max } => {
                let page = log2(base, &self.page);
                let Some((page, pages)) = page.zip(self.pages_log2()) else { return Vec::new() };
                let first = (first_pages as f64).log2();
                // The distances grow ever faster: to 4, 64 and 16384 times the first distance. So a few cuts
                // find the order of magnitude of what is left of the stretch.
                let rungs = (0..max.min(16)).map(|i| first + 2.0 * ((1_u64 << i) - 1) as f64);
                rungs
                    .take_while(|rung| *rung < pages - 0.5)
                    .map(|rung| {
                        let step = of_log2(base, page + rung);
                        (sum(base, &self.after, &step), step)
                    })
                    .collect()
            }
        }
    }

    /// Returns the shortest key near enough to a target.
    fn key_near(&self, target: &[u64], step: &[u64]) -> Option<String> {
        let base = &self.bases[..];
        let leeway = quotient(base, step, LEEWAY);
        let low = difference(base, target, &leeway).filter(|low| *low > self.after);
        let low = low.as_ref().unwrap_or(&self.after);
        let high = sum(base, target, &leeway);
        let high = if high < self.end { high } else { target.to_vec() };
        let at = low.iter().zip(&high).position(|(low, high)| low < high)?;
        if high[0] > 0 || at == 0 {
            return None;
        }
        let mut key = self.common.to_owned();
        for (i, digit) in high[1..=at].iter().enumerate() {
            // Digit 0 stands for the end of a key, so no character can follow it. Use at least digit 1.
            key.push(self.alphabet.character(self.skipped + i, (*digit).max(1))?);
        }
        Some(key)
    }
}

/// Returns the longest common prefix of two keys, in whole characters.
pub(super) fn common<'a>(a: &'a str, b: &str) -> &'a str {
    let len = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    &a[..a.floor_char_boundary(len)]
}

fn common_chars(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

// The functions below calculate with numbers that are lists of digits, with one digit before the point. All
// numbers have equally many digits, and each place has its own base.

fn sum(bases: &[u64], a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut digits: Vec<u64> = a.iter().zip(b).map(|(a, b)| a + b).collect();
    carry(bases, &mut digits);
    digits
}

/// Returns `a` - `b`, or `None` if the result would be negative.
fn difference(bases: &[u64], a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    if a < b {
        return None;
    }
    let mut borrowed = 0;
    let mut digits = vec![0; a.len()];
    for i in (0..a.len()).rev() {
        let less = b[i] + borrowed;
        (digits[i], borrowed) = if a[i] >= less { (a[i] - less, 0) } else { (a[i] + bases[i] - less, 1) };
    }
    Some(digits)
}

/// Multiplies by a factor in units of 1/[`FRACTION`].
fn product(bases: &[u64], a: &[u64], factor: u64) -> Vec<u64> {
    // Multiply each digit by `factor` and divide it by `FRACTION`. Carry the remainder to the next lower
    // digit.
    let mut digits = vec![0; a.len()];
    let mut rest = 0;
    for ((digit, a), base) in digits.iter_mut().zip(a).zip(bases) {
        let parts = a * factor + rest * base;
        *digit = parts / FRACTION;
        rest = parts % FRACTION;
    }
    carry(bases, &mut digits);
    digits
}

fn quotient(bases: &[u64], a: &[u64], divisor: u64) -> Vec<u64> {
    let mut rest = 0;
    let divided = a.iter().zip(bases).map(|(a, base)| {
        let whole = rest * base + a;
        rest = whole % divisor;
        whole / divisor
    });
    divided.collect()
}

/// Carries the excess of each digit that isn't less than its base to the place before it. The first digit may
/// exceed its base.
fn carry(bases: &[u64], digits: &mut [u64]) {
    for i in (1..digits.len()).rev() {
        digits[i - 1] += digits[i] / bases[i];
        digits[i] %= bases[i];
    }
}

fn log2(bases: &[u64], a: &[u64]) -> Option<f64> {
    let first = a.iter().position(|digit| *digit > 0)?;
    let leading = a.iter().zip(bases).skip(first).take(4).rev();
    let leading = leading.fold(0.0, |less, (digit, base)| (less + *digit as f64) / *base as f64);
    Some(leading.log2() - bases[..first].iter().map(|base| (*base as f64).log2()).sum::<f64>())
}

/// Returns the number whose base-2 logarithm is `log2`, exact to four places. A very large number comes out
/// too small, because the first of these places is at most 1e9.
fn of_log2(bases: &[u64], log2: f64) -> Vec<u64> {
    let mut digits = vec![0; bases.len()];
    let mut unit = 0.0;
    for first in 0..bases.len() {
        unit += (bases[first] as f64).log2();
        if log2 + unit < 0.0 {
            continue;
        }
        let mut left = (log2 + unit).exp2().min(1e9);
        for (i, digit) in digits.iter_mut().enumerate().skip(first).take(4) {
            if i > first {
                left *= bases[i] as f64;
            }
            *digit = left as u64;
            left -= left.floor();
        }
        break;
    }
    carry(bases, &mut digits);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the marks of a page: every tenth of these keys.
    fn marks(keys: impl Iterator<Item = String>) -> Vec<String> {
        keys.step_by(10).collect()
    }

    fn alphabet(marks: &[String], prefix: &str) -> Alphabet {
        let mut alphabet = Alphabet::default();
        marks.iter().for_each(|mark| alphabet.observe(&mark[prefix.len()..]));
        alphabet
    }

    fn rest<'a>(prefix: &'a str, marks: &'a [String]) -> StretchRest<'a> {
        StretchRest { prefix, after: marks.last().unwrap(), end: None, before: None, marks, apart_log2: 0.0 }
    }

    fn pages(prefix: &str, marks: &[String], end: Option<&str>) -> f64 {
        let alphabet = alphabet(marks, prefix);
        let rest = StretchRest { end, ..rest(prefix, marks) };
        guess(&alphabet, rest).unwrap().pages_log2.exp2()
    }

    #[test]
    fn what_is_left_is_counted_in_pages() {
        let marks = marks((0..=100).map(|n| format!("p/{n:04}")));
        let left = pages("p/", &marks, None);
        // A place has eleven digits, because a key may also end there. So 10^4 numbered keys look like 11^4.
        assert!((80.0..160.0).contains(&left), "{left}");
        let left = pages("p/", &marks, Some("p/05"));
        assert!((2.5..6.0).contains(&left), "{left}");
    }

    #[test]
    fn a_page_that_goes_on_into_another_folder_is_as_dense_as_most_of_it() {
        let marks = marks(
            (0..=60).map(|n| format!("a/{:04}", 9940 + n)).chain((0..=40).map(|n| format!("b/{n:04}"))),
        );
        let left = pages("", &marks, Some("b/05"));
        assert!((2.0..9.0).contains(&left), "{left}");
    }

    #[test]
    fn even_cuts_are_short_keys_at_even_distances() {
        let marks = marks((0..=100).map(|n| format!("p/{n:04}")));
        let alphabet = alphabet(&marks, "p/");
        let rest = rest("p/", &marks);
        let found = cuts(&alphabet, rest, CutSpacing::Evenly(5));
        assert_eq!(found, ["p/2", "p/4", "p/6", "p/8"]);
        let rest = StretchRest { end: Some("p/02"), ..rest };
        let found = cuts(&alphabet, rest, CutSpacing::Evenly(2));
        assert!(found.len() == 1 && ("p/014".."p/017").contains(&found[0].as_str()), "{found:?}");
    }

    #[test]
    fn a_ladder_goes_up_to_the_end_of_the_prefix_in_few_cuts() {
        let marks = marks((0..=100).map(|n| format!("{}{n:04}", "x".repeat(900))));
        let mut alphabet = alphabet(&marks, "");
        // Make the alphabet reach beyond the `x` of these keys.
        alphabet.observe("z");
        let found = cuts(&alphabet, rest("", &marks), CutSpacing::Ladder { first_pages: 4, max: 16 });
        assert!((5..13).contains(&found.len()), "{:?}", found.iter().map(String::len).collect::<Vec<_>>());
        assert!(found[0].starts_with(&marks[0][..900]) && found[0].len() > 900, "{}", found[0]);
        assert!(found.last().unwrap().len() < 850, "{}", found.last().unwrap().len());
    }

    #[test]
    fn nothing_is_cut_where_keys_cannot_be_distinct_at_or_asked_for() {
        let alphabet = |marks: &[String]| alphabet(marks, "");
        let one = vec!["a".to_owned()];
        assert!(cuts(&alphabet(&one), rest("", &one), CutSpacing::Evenly(4)).is_empty());
        let long = marks((0..=100).map(|n| format!("{}{n:04}", "x".repeat(1020))));
        let end = format!("{}1", "x".repeat(1020));
        let to_end = StretchRest { end: Some(&end), ..rest("", &long) };
        assert!(
            cuts(&alphabet(&long), to_end, CutSpacing::Evenly(4))
                .iter()
                .all(|cut| cut.len() <= KEY_BYTES_MAX)
        );
        let control = marks((0..=100).map(|n| format!("\u{1}{n:04}")));
        let controls = StretchRest { end: Some("\u{1}09"), ..rest("", &control) };
        assert!(cuts(&alphabet(&control), controls, CutSpacing::Evenly(4)).is_empty());
    }

    #[test]
    fn numbers_are_added_divided_and_compared() {
        let ten = &[1, 10, 10][..];
        assert_eq!(sum(ten, &[0, 9, 9], &[0, 0, 1]), [1, 0, 0]);
        assert_eq!(difference(ten, &[1, 0, 0], &[0, 0, 1]), Some(vec![0, 9, 9]));
        assert_eq!(difference(ten, &[0, 0, 0], &[0, 0, 1]), None);
        assert_eq!(quotient(ten, &[1, 0, 0], 4), [0, 2, 5]);
        assert_eq!(product(ten, &[0, 2, 5], 3 * FRACTION), [0, 7, 5]);
        assert_eq!(product(ten, &[0, 5, 0], FRACTION / 2), [0, 2, 5]);
        assert!((log2(ten, &[0, 0, 5]).unwrap() - 0.05_f64.log2()).abs() < 1e-9);
        assert_eq!(log2(ten, &[0, 0, 0]), None);
        assert_eq!(of_log2(ten, 0.26_f64.log2())[..2], [0, 2]);
        assert_eq!(of_log2(ten, -100.0), [0, 0, 0]);
        // The bases 12 and 2 count twelfths and halves of them. Six halves of a twelfth are a quarter.
        let clock = &[1, 12, 2][..];
        assert_eq!(sum(clock, &[0, 2, 1], &[0, 0, 1]), [0, 3, 0]);
        assert!((log2(clock, &[0, 3, 0]).unwrap() + 2.0).abs() < 1e-9);
        assert_eq!(of_log2(clock, -1.99)[..2], [0, 3]);
    }
}
