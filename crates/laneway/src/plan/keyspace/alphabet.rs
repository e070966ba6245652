//! The characters of the keys seen so far. They serve as digits when keys are treated as numbers.

use std::collections::BTreeSet;

/// The maximum number of characters that are recorded. For scripts with thousands of characters, some of them
/// are enough to estimate distances between keys.
const CHARACTERS_MAX: usize = 1024;

/// The characters of the keys seen so far, in order, and the range of characters at each place in the keys.
#[derive(Debug, Default)]
pub(crate) struct Alphabet {
    /// ASCII characters, one bit each.
    ascii: u128,
    others: BTreeSet<char>,
    in_order: Vec<char>,
    places: Vec<KeyPosition>,
    /// The listing's delimiter. It isn't recorded as a character, so that no cut lies inside the keys of a
    /// common prefix.
    delimiter: Option<char>,
}

/// The characters seen at one place in the keys. Places are counted in characters, not bytes.
#[derive(Clone, Copy, Debug)]
struct KeyPosition {
    least: char,
    greatest: char,
    /// True if this place has started over while an earlier place advanced, as the last digit of a counter
    /// does. In this case, the characters seen here are probably all that occur here. If a place has never
    /// started over, new characters can still occur at it.
    has_turned: bool,
}

impl Alphabet {
    pub(crate) fn without(delimiter: Option<char>) -> Self {
        Self { delimiter, ..Self::default() }
    }

    /// Records the characters of a key, except those that a store or XML could refuse.
    pub(crate) fn observe(&mut self, key: &str) {
        let before = (self.ascii, self.others.len());
        for (at, c) in key.chars().enumerate() {
            if is_refused(c) || self.delimiter == Some(c) {
                continue;
            }
            if c.is_ascii() {
                self.ascii |= 1 << (c as u32);
            } else if self.others.len() < CHARACTERS_MAX {
                self.others.insert(c);
            }
            match self.places.get_mut(at) {
                Some(place) => {
                    place.least = place.least.min(c);
                    place.greatest = place.greatest.max(c);
                }
                None => self.places.resize(at + 1, KeyPosition { least: c, greatest: c, has_turned: false }),
            }
        }
        if before != (self.ascii, self.others.len()) {
            let ascii = (0..128_u8).filter(|code| self.ascii & (1 << code) != 0).map(char::from);
            self.in_order = ascii.chain(self.others.iter().copied()).collect();
        }
    }

    /// Records that `next` follows closely behind `key`. So the places after the first difference of the two
    /// keys have started over.
    pub(crate) fn observe_turn(&mut self, key: &str, next: &str) {
        let differs = key.chars().zip(next.chars()).position(|(a, b)| a != b);
        if let Some(turned) = differs.and_then(|at| self.places.get_mut(at + 1..)) {
            let both = key.chars().count().min(next.chars().count());
            let len = both.saturating_sub(differs.unwrap_or(0) + 1).min(turned.len());
            turned[..len].iter_mut().for_each(|place| place.has_turned = true);
        }
    }

    /// Returns the base of a place: the number of different digits that can occur there. Each character that
    /// can occur there is a digit, and digit 0 stands for the end of a key.
    pub(crate) fn base(&self, place: usize) -> u64 {
        self.of_place(place).len() as u64 + 1
    }

    /// Returns the digit of a character. A character that wasn't seen gets the digit of the next lower
    /// character that was seen.
    pub(crate) fn digit(&self, place: usize, c: char) -> u64 {
        self.of_place(place).partition_point(|seen| *seen <= c) as u64
    }

    /// Returns the character of a digit, or `None` for the end of a key.
    pub(crate) fn character(&self, place: usize, digit: u64) -> Option<char> {
        self.of_place(place).get(usize::try_from(digit).ok()?.checked_sub(1)?).copied()
    }

    fn of_place(&self, place: usize) -> &[char] {
        let Some(place) = self.places.get(place).filter(|place| place.has_turned) else {
            return &self.in_order;
        };
        let from = self.in_order.partition_point(|c| *c < place.least);
        let to = self.in_order.partition_point(|c| *c <= place.greatest);
        self.in_order.get(from..to).filter(|some| !some.is_empty()).unwrap_or(&self.in_order)
    }
}

/// Returns whether a character must not occur in invented keys. Such characters are control characters, which
/// XML can't contain, and noncharacters.
pub(crate) fn is_refused(c: char) -> bool {
    c.is_control() || matches!(c as u32 & 0xffff, 0xfffe | 0xffff) || matches!(c, '\u{fdd0}'..='\u{fdef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_in_the_order_of_the_characters() {
        let mut alphabet = Alphabet::default();
        alphabet.observe("b/a\u{1}é");
        assert_eq!(alphabet.base(0), 5);
        assert_eq!(['/', 'a', 'b', 'é'].map(|c| alphabet.digit(9, c)), [1, 2, 3, 4]);
        assert_eq!((alphabet.digit(0, '.'), alphabet.digit(0, 'c'), alphabet.digit(0, 'z')), (0, 3, 3));
        assert_eq!((alphabet.character(0, 0), alphabet.character(0, 4)), (None, Some('é')));
        assert_eq!(alphabet.character(0, 5), None);
    }

    #[test]
    fn a_place_that_has_begun_anew_has_the_characters_that_were_seen_there() {
        let mut alphabet = Alphabet::default();
        for key in ["x07q", "x08q", "x13q"] {
            alphabet.observe(key);
        }
        assert_eq!((alphabet.base(1), alphabet.base(2)), (8, 8));
        alphabet.observe_turn("x08q", "x13q");
        // A place that never started over has all seen characters (0, 1, 3, 7, 8, q, x). Place 2 started
        // over, so it has only its own: 3, 7 and 8.
        assert_eq!((alphabet.base(1), alphabet.base(2), alphabet.base(3)), (8, 4, 2));
        assert_eq!((alphabet.digit(2, '9'), alphabet.character(2, 3)), (3, Some('8')));
    }

    #[test]
    fn a_delimiter_is_left_out() {
        let mut alphabet = Alphabet::without(Some('/'));
        alphabet.observe("a/");
        assert_eq!(alphabet.base(0), 2);
    }
}
