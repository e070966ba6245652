//! Patterns in keys and paths, with the syntax of `gcloud storage`.
//!
//! `*` and `?` match within a path component, and `**` matches across components. `[abc]`, `[a-z]` and `[!a]`
//! match one character. This module has its own matcher, because the common glob crates allow `**` only as a
//! whole component, and users of `gcloud storage` write `gs://b/logs**.gz`.

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    tokens: Vec<PatternElement>,
    literal_prefix: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum PatternElement {
    Char(char),
    AnyInComponent,
    Star,
    DoubleStar,
    Set { ranges: Vec<(char, char)>, negated: bool },
}

/// The positions in a path at which a match may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MatchStart {
    Top,
    AnyComponent,
}

impl Pattern {
    /// Parses a pattern. Returns `None` for a text without wildcards.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' if rest.as_str().starts_with('*') => {
                    rest = rest.as_str().trim_start_matches('*').chars();
                    PatternElement::DoubleStar
                }
                '*' => PatternElement::Star,
                '?' => PatternElement::AnyInComponent,
                '[' => match read_set(rest.as_str()) {
                    Some((set, after)) => {
                        rest = after.chars();
                        set
                    }
                    None => PatternElement::Char('['),
                },
                c => PatternElement::Char(c),
            });
        }
        let literal_prefix: String = tokens
            .iter()
            .map_while(|token| match token {
                PatternElement::Char(c) => Some(*c),
                _ => None,
            })
            .collect();
        (literal_prefix.len() < text.len()).then_some(Self { tokens, literal_prefix })
    }

    /// Returns the text before the first wildcard. Every match begins with this text, so Laneway lists this
    /// prefix.
    pub(crate) fn literal_prefix(&self) -> &str {
        &self.literal_prefix
    }

    /// Returns whether the wildcards match no slash, so that a listing with the delimiter `/` finds all
    /// matches.
    pub(crate) fn is_one_level(&self) -> bool {
        let mut rest = self.tokens.iter().skip(self.literal_prefix.chars().count());
        rest.all(|token| match token {
            PatternElement::Char(c) => *c != '/',
            PatternElement::DoubleStar => false,
            PatternElement::Star | PatternElement::AnyInComponent | PatternElement::Set { .. } => true,
        })
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.first_end(text, MatchStart::Top, |end| end == text.len()).is_some()
    }

    /// Returns the folder in `text` that the pattern matches: the shortest prefix that matches and is
    /// followed by `/`.
    pub(crate) fn matching_folder<'t>(&self, text: &'t str) -> Option<&'t str> {
        let end = self.first_end(text, MatchStart::Top, |end| end > 0 && text[end..].starts_with('/'))?;
        Some(&text[..end])
    }

    /// Returns whether the pattern matches consecutive components of `path`. `start` says where the match may
    /// begin. A `/` must follow the match, so that its last component is a folder. If `may_be_last` is true,
    /// the match may also end at the end of the path.
    pub(crate) fn matches_components(&self, path: &str, start: MatchStart, may_be_last: bool) -> bool {
        let may_end = |end| if end == path.len() { may_be_last } else { path[end..].starts_with('/') };
        self.first_end(path, start, may_end).is_some()
    }

    /// Returns the end of the first match in `text` that `may_end` accepts. For each character, it tracks all
    /// states that the pattern may be in, instead of trying them one after the other. So the time is at most
    /// proportional to the product of both lengths.
    fn first_end(&self, text: &str, start: MatchStart, may_end: impl Fn(usize) -> bool) -> Option<usize> {
        let last = self.tokens.len();
        let mut states = vec![false; last + 1];
        let mut next = vec![false; last + 1];
        states[0] = true;
        self.skip_stars(&mut states);
        if states[last] && may_end(0) {
            return Some(0);
        }
        for (at, c) in text.char_indices() {
            next.fill(false);
            next[0] = start == MatchStart::AnyComponent && c == '/';
            for (i, token) in self.tokens.iter().enumerate().filter(|(i, _)| states[*i]) {
                let step = match token {
                    PatternElement::DoubleStar => i,
                    PatternElement::Star if c != '/' => i,
                    PatternElement::Star => continue,
                    token if token.takes(c) => i + 1,
                    _ => continue,
                };
                next[step] = true;
            }
            if start == MatchStart::Top && !next.contains(&true) {
                return None;
            }
            std::mem::swap(&mut states, &mut next);
            self.skip_stars(&mut states);
            let end = at + c.len_utf8();
            if states[last] && may_end(end) {
                return Some(end);
            }
        }
        None
    }

    fn skip_stars(&self, states: &mut [bool]) {
        for (i, token) in self.tokens.iter().enumerate() {
            if states[i] && matches!(token, PatternElement::Star | PatternElement::DoubleStar) {
                states[i + 1] = true;
            }
        }
    }
}

impl PatternElement {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Char(expected) => c == *expected,
            Self::AnyInComponent => c != '/',
            Self::Set { ranges, negated } => {
                c != '/' && ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
            Self::Star | Self::DoubleStar => false,
        }
    }
}

/// Parses a set from the text after its `[`. Returns `None` if no `]` follows. As in a shell, the `[` then
/// stands for itself.
fn read_set(text: &str) -> Option<(PatternElement, &str)> {
    let (negated, body) = match text.strip_prefix(['!', '^']) {
        Some(body) => (true, body),
        None => (false, text),
    };
    // A `]` as the first character of the set stands for itself.
    let first = body.chars().next()?.len_utf8();
    let end = first + body[first..].find(']')?;
    let chars: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        match chars.get(i + 1..i + 3) {
            Some(['-', to]) => {
                ranges.push((chars[i], *to));
                i += 3;
            }
            _ => {
                ranges.push((chars[i], chars[i]));
                i += 1;
            }
        }
    }
    Some((PatternElement::Set { ranges, negated }, &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(text)
    }

    #[test]
    fn one_star_stays_within_a_component_and_two_cross_them() {
        assert!(matches("a*.txt", "ab.txt") && matches("a*.txt", "a.txt"));
        assert!(!matches("a*.txt", "a/b.txt"));
        assert!(matches("a**.txt", "a/b/c.txt") && matches("a**.txt", "a.txt"));
        assert!(matches("**", "") && matches("**/x", "a/b/x") && !matches("**/x", "x"));
        assert!(matches("logs/*/x?.gz", "logs/1/xy.gz") && !matches("logs/*/x?.gz", "logs/1/2/xy.gz"));
    }

    #[test]
    fn sets_take_ranges_negation_and_a_bracket_in_front() {
        assert!(matches("[a-c]1", "b1") && !matches("[a-c]1", "d1"));
        assert!(matches("[!a-c]1", "d1") && !matches("[!a-c]1", "b1") && !matches("[!a]", "/"));
        assert!(matches("[]x]", "]") && matches("[a-]", "-"));
    }

    #[test]
    fn a_text_without_wildcards_is_no_pattern() {
        assert_eq!(Pattern::parse("a/b{c}\\"), None);
        assert_eq!(Pattern::parse("a[b"), None);
    }

    #[test]
    fn the_literal_prefix_is_what_stands_before_the_first_wildcard() {
        assert_eq!(Pattern::parse("a/b*c").unwrap().literal_prefix(), "a/b");
        assert_eq!(Pattern::parse("*").unwrap().literal_prefix(), "");
        assert!(Pattern::parse("a/b*c").unwrap().is_one_level());
        assert!(
            !Pattern::parse("a/*/c").unwrap().is_one_level()
                && !Pattern::parse("a**").unwrap().is_one_level()
        );
    }

    #[test]
    fn a_folder_is_the_shortest_matching_beginning_before_a_slash() {
        let pattern = Pattern::parse("d*").unwrap();
        assert_eq!(pattern.matching_folder("d1/x/y"), Some("d1"));
        assert_eq!(pattern.matching_folder("e/x"), None);
        assert_eq!(pattern.matching_folder("d1"), None);
        assert_eq!(Pattern::parse("a/*").unwrap().matching_folder("a/b/c"), Some("a/b"));
    }

    #[test]
    fn components_are_matched_wherever_they_begin_and_whole() {
        let found = |pattern: &str, path| {
            Pattern::parse(pattern).unwrap().matches_components(path, MatchStart::AnyComponent, true)
        };
        assert!(found("b*", "a/bc/d") && found("b*/d", "a/bc/d") && !found("c*", "a/bc/d"));
        assert!(found("b**d", "a/b/c/d/e") && !found("b**d", "a/b/c/de") && !found("b**d", "ab/c/d"));
        assert!(found("x*", "x/y") && found("?", "aa/a") && !found("?", "aa/aa"));
        let at_top = Pattern::parse("b*").unwrap();
        assert!(!at_top.matches_components("a/b", MatchStart::Top, true));
        assert!(!at_top.matches_components("b", MatchStart::Top, false));
        assert!(at_top.matches_components("b/c", MatchStart::Top, false));
    }

    #[test]
    fn a_pattern_made_to_backtrack_ends_at_once() {
        let text = "a".repeat(1024);
        assert!(!matches(&format!("{}b", "a*".repeat(100)), &text));
    }
}
