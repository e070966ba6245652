//! The pattern of `key=GLOB`.

use std::fmt;

/// A pattern for whole keys. `*` matches any characters including `/`, and `?` matches one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<char>);

impl Glob {
    /// Returns a pattern. Every text is a valid pattern.
    pub fn new(pattern: &str) -> Glob {
        Glob(pattern.chars().collect())
    }

    /// Returns true if the whole key matches. The time is proportional to the length of the key times the number of
    /// stars.
    pub fn matches(&self, key: &str) -> bool {
        let key: Vec<char> = key.chars().collect();
        let (mut p, mut k) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while k < key.len() {
            match self.0.get(p) {
                Some('*') => {
                    star = Some((p, k));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == key[k] => {
                    p += 1;
                    k += 1;
                }
                _ => match star {
                    Some((at, eaten)) => {
                        star = Some((at, eaten + 1));
                        p = at + 1;
                        k = eaten + 1;
                    }
                    None => return false,
                },
            }
        }
        self.0[p..].iter().all(|c| *c == '*')
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| write!(f, "{c}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_crosses_slashes_and_a_question_mark_is_one_character() {
        assert!(Glob::new("logs/*").matches("logs/2026/11.txt"));
        assert!(Glob::new("*.t?t").matches("ä/b.txt"));
        assert!(Glob::new("*a*b*").matches("xxaxxb"));
        assert!(Glob::new("").matches(""));
        assert!(!Glob::new("logs/*").matches("log"));
        assert!(!Glob::new("a?").matches("a"));
        assert!(!Glob::new("a").matches("ab"));
    }
}
