//! The patterns for whole keys in GCS's listings. `*` and `?` don't match slashes, but `**` does. `[a-z]` and `[!a-z]`
//! match one character, and `{a,b}` matches one of several patterns.
//! <https://cloud.google.com/storage/docs/json_api/v1/objects/list#list-objects-and-prefixes-using-glob>

/// The maximum number of combined alternatives, and also of braces, because each brace is a step of a recursion.
const ALTERNATIVES_MAX: usize = 256;

/// A pattern, expanded into the alternatives of its braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MatchGlob(Vec<Vec<PatternToken>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternToken {
    One(char),
    /// `?`
    Any,
    /// `*`
    Run,
    /// `**`
    Everything,
    /// `[...]`. The flag is true if it matches characters that aren't listed.
    Class(Vec<(char, char)>, bool),
}

impl MatchGlob {
    /// Parses a pattern. Returns `None` if a bracket or brace isn't closed, or if there are too many alternatives.
    pub(crate) fn new(pattern: &str) -> Option<MatchGlob> {
        if pattern.matches('{').count() > ALTERNATIVES_MAX {
            return None;
        }
        let plain = expand(pattern)?;
        plain.iter().map(|pattern| tokens(pattern)).collect::<Option<Vec<_>>>().map(MatchGlob)
    }

    pub(crate) fn matches(&self, key: &str) -> bool {
        let key: Vec<char> = key.chars().collect();
        self.0.iter().any(|tokens| whole(tokens, &key))
    }
}

/// Expands a pattern into patterns without braces.
fn expand(pattern: &str) -> Option<Vec<String>> {
    let Some(open) = pattern.find('{') else { return Some(vec![pattern.to_owned()]) };
    let (mut depth, mut close, mut commas) = (0_usize, None, vec![open]);
    for (at, c) in pattern.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => {
                close = Some(at);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    let close = close?;
    let mut expanded = Vec::new();
    for (index, start) in commas.iter().enumerate() {
        let end = commas.get(index + 1).copied().unwrap_or(close);
        let one = format!("{}{}{}", &pattern[..open], &pattern[start + 1..end], &pattern[close + 1..]);
        expanded.extend(expand(&one)?);
        if expanded.len() > ALTERNATIVES_MAX {
            return None;
        }
    }
    Some(expanded)
}

fn tokens(pattern: &str) -> Option<Vec<PatternToken>> {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let token = match c {
            '*' if chars.peek() == Some(&'*') => {
                while chars.next_if_eq(&'*').is_some() {}
                PatternToken::Everything
            }
            '*' => PatternToken::Run,
            '?' => PatternToken::Any,
            '\\' => PatternToken::One(chars.next()?),
            '[' => {
                let outside = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
                let mut ranges = Vec::new();
                // A closing bracket directly after the opening one is one of the listed characters.
                let mut first = true;
                loop {
                    let low = chars.next()?;
                    if low == ']' && !first {
                        break;
                    }
                    first = false;
                    let mut rest = chars.clone();
                    match (rest.next(), rest.next()) {
                        (Some('-'), Some(high)) if high != ']' => {
                            ranges.push((low, high));
                            chars = rest;
                        }
                        _ => ranges.push((low, low)),
                    }
                }
                PatternToken::Class(ranges, outside)
            }
            c => PatternToken::One(c),
        };
        tokens.push(token);
    }
    Some(tokens)
}

/// Returns true if the whole key matches. For each character of the key, it keeps the set of possible positions in the
/// pattern. So the time is at most proportional to the product of both lengths.
fn whole(tokens: &[PatternToken], key: &[char]) -> bool {
    let mut at = vec![false; tokens.len() + 1];
    at[0] = true;
    pass_runs(tokens, &mut at);
    for c in key {
        let mut next = vec![false; tokens.len() + 1];
        for (index, token) in tokens.iter().enumerate().filter(|(index, _)| at[*index]) {
            match token {
                PatternToken::Run if *c != '/' => next[index] = true,
                PatternToken::Everything => next[index] = true,
                token if token.is_one(*c) => next[index + 1] = true,
                _ => {}
            }
        }
        pass_runs(tokens, &mut next);
        at = next;
    }
    at[tokens.len()]
}

/// Adds the positions after `*` and `**`, because these may match nothing.
fn pass_runs(tokens: &[PatternToken], at: &mut [bool]) {
    for (index, token) in tokens.iter().enumerate() {
        if at[index] && matches!(token, PatternToken::Run | PatternToken::Everything) {
            at[index + 1] = true;
        }
    }
}

impl PatternToken {
    fn is_one(&self, c: char) -> bool {
        match self {
            PatternToken::One(one) => *one == c,
            PatternToken::Any => c != '/',
            PatternToken::Class(ranges, outside) => {
                c != '/' && ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *outside
            }
            PatternToken::Run | PatternToken::Everything => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, key: &str) -> bool {
        MatchGlob::new(pattern).unwrap().matches(key)
    }

    #[test]
    fn stars_stay_between_slashes_and_two_of_them_do_not() {
        assert!(matches("foo*bar", "foo-x-bar") && !matches("foo*bar", "foo/bar"));
        assert!(matches("foo**bar", "foo/x/bar") && matches("foo**bar", "foobar"));
        assert!(matches("**.jpg", "a/b/c.jpg") && !matches("**.jpg", "a/b/c.jpeg"));
        assert!(matches("a/**/b", "a/x/y/b") && !matches("a/**/b", "a/b"));
        assert!(matches("a?c", "abc") && !matches("a?c", "a/c") && !matches("a?c", "ac"));
        assert!(matches("", "") && !matches("", "a"));
    }

    #[test]
    fn classes_and_alternatives() {
        assert!(matches("[a-c]1", "b1") && !matches("[a-c]1", "d1"));
        assert!(matches("[!a-c]1", "d1") && matches("[^a-c]1", "d1") && !matches("[!a]", "/"));
        assert!(matches("[]x-]", "]") && matches("[]x-]", "-"));
        assert!(matches("{a,b/c}.{csv,json}", "b/c.json") && !matches("{a,b}.csv", "c.csv"));
        assert!(matches("x{a,{b,c}d}", "xcd") && matches("x{,y}", "x"));
        assert!(matches(r"\*", "*") && !matches(r"\*", "a"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in ["[a", "{a,b", "a\\"] {
            assert_eq!(MatchGlob::new(pattern), None, "{pattern}");
        }
        assert_eq!(MatchGlob::new(&"{a,b}".repeat(9)), None, "too many alternatives");
        assert_eq!(MatchGlob::new(&"{a}".repeat(300)), None, "too many braces");
    }
}
